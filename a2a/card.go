package a2a

import (
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// KnowledgeExtensionURI identifies the knowledge graph extension in agent cards. The
// specification defines no URI.
const KnowledgeExtensionURI = "urn:koine:a2a:knowledge-graph:1.0"

// ChannelsExtensionURI identifies the channels extension. The specification defines no
// URI; the version is that of its capability (section 13).
const ChannelsExtensionURI = "urn:koine:a2a:channels:0.1"

// The paths that the card links to. The caller mounts the handlers there.
const (
	RPCPath        = "/a2a"
	ChangesPath    = "/changes"
	SDLPath        = "/graphql/schema"
	KnowledgePath  = "/schemas/knowledge.json"
	ChannelsPath   = "/schemas/channels.json"
	cardMaxAge     = 5 * time.Minute
	documentMaxAge = time.Hour
)

// CardOptions configures the agent card.
type CardOptions struct {
	// Name and Description; "" selects those of koine.
	Name, Description string
	// Version is the version of the server.
	Version string
	// PublicURL is the address of the server for clients, without a trailing slash; ""
	// uses the address of the request.
	PublicURL string
	// Keys and Tokens select the accepted credentials: API keys, bearer tokens, both,
	// or neither in open mode.
	Keys, Tokens bool
	// Channels announces the channels/* methods.
	Channels bool
	// Push announces push notifications.
	Push bool
	// Only is the version of A2A of the card, for strict readers that refuse unknown
	// members: it has neither members of another version nor of the extensions. Clients
	// of all versions can read the card of AnyVersion.
	Only CardVersion
}

// CardVersion is the version of A2A of an agent card.
type CardVersion string

// The versions.
const (
	AnyVersion CardVersion = ""
	Version1   CardVersion = "1.0"
	Version03  CardVersion = "0.3"
)

// baseURL returns the address of the server.
func (o *CardOptions) baseURL(r *http.Request) string {
	switch {
	case o.PublicURL != "":
		return o.PublicURL
	case r.TLS != nil:
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

// Card is the agent card, in a form that clients of A2A 1.0 and 0.3 can both read.
type Card struct {
	Name                string          `json:"name"`
	Description         string          `json:"description"`
	Version             string          `json:"version"`
	SupportedInterfaces []CardInterface `json:"supportedInterfaces,omitempty"` // 1.0
	URL                 string          `json:"url,omitempty"`                 // 0.3, this and the next four
	ProtocolVersion     string          `json:"protocolVersion,omitempty"`
	PreferredTransport  string          `json:"preferredTransport,omitempty"`
	Additional          []CardTransport `json:"additionalInterfaces,omitempty"`
	Extended            bool            `json:"supportsAuthenticatedExtendedCard,omitempty"`
	Capabilities        Capabilities    `json:"capabilities"`
	// SecuritySchemes are the ways to authenticate. The card has no security
	// requirements, because the Go client cannot read correct ones, and
	// WWW-Authenticate has the same information.
	SecuritySchemes    map[string]SecurityScheme `json:"securitySchemes,omitempty"`
	DefaultInputModes  []string                  `json:"defaultInputModes"`
	DefaultOutputModes []string                  `json:"defaultOutputModes"`
	Skills             []Skill                   `json:"skills"`
}

// CardInterface is an address with its binding.
type CardInterface struct {
	URL             string `json:"url"`
	ProtocolBinding string `json:"protocolBinding"`
	ProtocolVersion string `json:"protocolVersion"`
}

// CardTransport is an address with its binding, in the form of A2A 0.3.
type CardTransport struct {
	URL       string `json:"url"`
	Transport string `json:"transport"`
}

// The bindings of base A2A.
const (
	bindingRPC  = "JSONRPC"
	bindingHTTP = "HTTP+JSON"
)

// Interfaces returns the addresses of an endpoint with its bindings, in the forms of 1.0 and
// of 0.3. JSON-RPC is the first.
func Interfaces(endpoint string) ([]CardInterface, []CardTransport) {
	var all []CardInterface
	for _, b := range []CardTransport{{endpoint, bindingRPC}, {endpoint + HTTPPath, bindingHTTP}} {
		all = append(all, CardInterface{b.URL, b.Transport, version1.name}, CardInterface{b.URL, b.Transport, version03.name})
	}
	return all, []CardTransport{{endpoint, bindingRPC}, {endpoint + HTTPPath, bindingHTTP}}
}

// Capabilities announces the extensions in both forms: the members that their
// specifications require (knowledge graph extension, section 1; channels extension,
// section 2), and A2A's own list.
type Capabilities struct {
	Streaming                    bool        `json:"streaming"`
	PushNotifications            bool        `json:"pushNotifications"`
	Extended                     bool        `json:"extendedAgentCard,omitempty"` // 1.0
	Extensions                   []Extension `json:"extensions"`
	KnowledgeGraph               bool        `json:"knowledgeGraph,omitempty"`
	KnowledgeGraphQueryLanguages []string    `json:"knowledgeGraphQueryLanguages,omitempty"`
	Messaging                    *Messaging  `json:"messaging,omitempty"`
}

// Messaging is the reserved member of the channels extension.
type Messaging struct {
	Channels MessagingChannels `json:"channels"`
}

// MessagingChannels is the capability of the channels extension.
type MessagingChannels struct {
	Version  string   `json:"version"`
	Features []string `json:"features"`
}

// Extension is an entry in A2A's list of extensions.
type Extension struct {
	URI         string `json:"uri"`
	Description string `json:"description"`
	Required    bool   `json:"required"`
	Params      any    `json:"params"` // KnowledgeParams, ChannelsParams
}

// ChannelsParams repeats the announcement of the channels extension in full and has the
// addresses of its documents.
type ChannelsParams struct {
	Messaging  *Messaging `json:"messaging"`
	Methods    []string   `json:"methods"`
	JSONSchema string     `json:"jsonSchema"`
}

// KnowledgeParams are the same for the knowledge graph extension.
type KnowledgeParams struct {
	KnowledgeGraph               bool     `json:"knowledgeGraph"`
	KnowledgeGraphQueryLanguages []string `json:"knowledgeGraphQueryLanguages"`
	Methods                      []string `json:"methods"`
	GraphQLSchema                string   `json:"graphqlSchema"` // the SDL
	JSONSchema                   string   `json:"jsonSchema"`
	Changes                      string   `json:"changes"` // the plain feed
}

// Skill is a skill of the agent.
type Skill struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Tags        []string `json:"tags"`
	Examples    []string `json:"examples"`
}

// SecurityScheme is a way to authenticate, in the form of A2A 0.3 and, in the member of
// its own kind, in that of 1.0: each client reads the form it knows.
type SecurityScheme struct {
	Type         string `json:"type,omitempty"`
	Description  string `json:"description,omitempty"`
	Scheme       string `json:"scheme,omitempty"`       // of type http
	BearerFormat string `json:"bearerFormat,omitempty"` // of type http
	In           string `json:"in,omitempty"`           // of type apiKey
	Name         string `json:"name,omitempty"`         // of type apiKey

	HTTP   *HTTPScheme   `json:"httpAuthSecurityScheme,omitempty"`
	APIKey *APIKeyScheme `json:"apiKeySecurityScheme,omitempty"`
}

// HTTPScheme is a scheme of the Authorization header (A2A 1.0).
type HTTPScheme struct {
	Description  string `json:"description"`
	Scheme       string `json:"scheme"`
	BearerFormat string `json:"bearerFormat,omitempty"`
}

// APIKeyScheme is a key in a header (A2A 1.0).
type APIKeyScheme struct {
	Description string `json:"description"`
	Location    string `json:"location"`
	Name        string `json:"name"`
}

// securitySchemes returns the schemes of a server with keys, tokens, both or neither.
func securitySchemes(keys, tokens bool) map[string]SecurityScheme {
	if !keys && !tokens {
		return nil
	}
	bearer := HTTPScheme{Description: "An API key (ak_live_…) or a JSON Web Token.", Scheme: "Bearer"}
	switch {
	case !tokens:
		bearer.Description = "An API key (ak_live_…)."
	case !keys:
		bearer.Description, bearer.BearerFormat = "A JSON Web Token.", "JWT"
	}
	out := map[string]SecurityScheme{"bearer": {
		Type: "http", Description: bearer.Description, Scheme: bearer.Scheme, BearerFormat: bearer.BearerFormat, HTTP: &bearer,
	}}
	if keys {
		key := APIKeyScheme{Description: "An API key (ak_live_…).", Location: "header", Name: "X-API-Key"}
		out["apiKey"] = SecurityScheme{Type: "apiKey", Description: key.Description, In: key.Location, Name: key.Name, APIKey: &key}
	}
	return out
}

// NewCard returns the card of a server with the address base.
func NewCard(o CardOptions, base string) Card {
	methods := []string{"knowledge/query", "knowledge/update", "knowledge/subscribe"}
	all, additional := Interfaces(base + RPCPath)
	card := Card{
		Name:                cmp.Or(o.Name, "koine"),
		Description:         cmp.Or(o.Description, "A knowledge graph shared by a team of agents: query it with GraphQL, change it with patches, and subscribe to its changes."),
		Version:             o.Version,
		SupportedInterfaces: all,
		URL:                 base + RPCPath, ProtocolVersion: "0.3.0", PreferredTransport: bindingRPC, Additional: additional, Extended: true,
		Capabilities: Capabilities{
			Streaming: true, PushNotifications: o.Push, Extended: true, KnowledgeGraph: true, KnowledgeGraphQueryLanguages: languages,
			Extensions: []Extension{{
				URI:         KnowledgeExtensionURI,
				Description: "Knowledge graph collaboration: " + strings.Join(methods, ", ") + ".",
				Params: KnowledgeParams{
					KnowledgeGraph: true, KnowledgeGraphQueryLanguages: languages, Methods: methods,
					GraphQLSchema: base + SDLPath, JSONSchema: base + KnowledgePath, Changes: base + ChangesPath,
				},
			}},
		},
		SecuritySchemes:   securitySchemes(o.Keys, o.Tokens),
		DefaultInputModes: []string{"text/plain", "application/json"}, DefaultOutputModes: []string{"application/json", "text/plain"},
		Skills: skills,
	}
	if o.Channels {
		card.announceChannels(base)
	}
	return card.forVersion(o.Only)
}

// forVersion removes the members that readers of one version do not know.
func (c Card) forVersion(only CardVersion) Card {
	if only == AnyVersion {
		return c
	}
	c.Capabilities.KnowledgeGraph, c.Capabilities.KnowledgeGraphQueryLanguages, c.Capabilities.Messaging = false, nil, nil
	c.SecuritySchemes = SchemesOf(c.SecuritySchemes, only)
	if only == Version1 {
		c.SupportedInterfaces = slices.DeleteFunc(c.SupportedInterfaces, func(i CardInterface) bool { return i.ProtocolVersion != version1.name })
		c.URL, c.ProtocolVersion, c.PreferredTransport, c.Additional, c.Extended = "", "", "", nil, false
		return c
	}
	c.SupportedInterfaces, c.Capabilities.Extended = nil, false
	return c
}

// SchemesOf removes the members of security schemes that readers of one version do not
// know.
func SchemesOf(schemes map[string]SecurityScheme, only CardVersion) map[string]SecurityScheme {
	if only == AnyVersion || schemes == nil {
		return schemes
	}
	out := map[string]SecurityScheme{}
	for name, s := range schemes {
		if only == Version1 {
			s = SecurityScheme{HTTP: s.HTTP, APIKey: s.APIKey}
		} else {
			s.HTTP, s.APIKey = nil, nil
		}
		out[name] = s
	}
	return out
}

// announceChannels adds the channels extension.
func (c *Card) announceChannels(base string) {
	methods := []string{"channels/create", "channels/get", "channels/list", "channels/update", "channels/delete", "channels/addMember", "channels/removeMember",
		"channels/publish", "channels/history", "channels/stream"}
	m := &Messaging{MessagingChannels{Version: "0.1", Features: []string{"create", "publish", "history", "stream", "membership"}}}
	c.Capabilities.Messaging = m
	c.Capabilities.Extensions = append(c.Capabilities.Extensions, Extension{
		URI: ChannelsExtensionURI, Description: "Channels and messages: " + strings.Join(methods, ", ") + ".",
		Params: ChannelsParams{Messaging: m, Methods: methods, JSONSchema: base + ChannelsPath},
	})
	c.Skills = append(c.Skills[:len(c.Skills):len(c.Skills)], Skill{
		ID: "channels", Name: "Use channels", Tags: []string{"messaging", "channels", "sse"},
		Description: "Keeps durable conversations between agents, ordered and streamed, whose messages may carry facts for the knowledge graph (channels/*).",
		Examples: []string{
			`{"method": "channels/create", "params": {"name": "summaries", "visibility": "public"}}`,
			`{"method": "channels/list", "params": {"pageSize": 10}}`,
		},
	})
}

var skills = []Skill{
	{
		ID: "search", Name: "Search knowledge", Tags: []string{"knowledge-graph", "search"},
		Description: "Answers words with what the graph knows about them. The text \"help\" lists the other requests that a message may contain.",
		Examples:    []string{"Ada Lovelace", "What is known about water in the crystal?", "help"},
	},
	{
		ID: "query", Name: "Query knowledge", Tags: []string{"knowledge-graph", "graphql"},
		Description: "Answers GraphQL queries over the shared knowledge graph, sent as text or as data with query and variables, now or as of an earlier revision, by least certainty and greatest age (knowledge/query).",
		Examples:    []string{"{ entities(first: 5) { nodes { iri label types } } }", "{ vocabulary { classes { nodes { iri count } } } }", `{"query": "query($i: IRI!) { entity(iri: $i) { label } }", "variables": {"i": "urn:x:ada"}}`},
	},
	{
		ID: "update", Name: "Update knowledge", Tags: []string{"knowledge-graph"},
		Description: "Applies patches of statements, sent as data with mutations, all or none, with certainty, provenance and a justification (knowledge/update).",
		Examples:    []string{`{"mutations": [{"op": "add", "statement": {"subject": {"id": "urn:x:ada"}, "predicate": {"id": "foaf:name"}, "object": {"value": "Ada"}}}]}`},
	},
	{
		ID: "subscribe", Name: "Follow changes", Tags: []string{"knowledge-graph", "graphql", "sse"},
		Description: "Streams the changes of statements, of an entity and its surroundings, or of the rows of a pattern, from now on, from any earlier position, or after a snapshot of the present state (knowledge/subscribe). As a streaming message, a subscription yields each event as an artifact.",
		Examples: []string{
			"subscription { statementChanged(where: {predicate: {eq: \"foaf:name\"}}) { __typename } }",
			"subscription { matchChanged(pattern: {triples: [{s: \"?who\", p: \"foaf:knows\", o: \"?whom\"}]}) { ... on MatchChange { added { values } removed { values } } } }",
		},
	},
}

// NewCardHandler serves the agent card, to be mounted at /.well-known/agent-card.json
// (and agent.json, for A2A 0.2).
func NewCardHandler(o CardOptions) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := appendJSON(nil, NewCard(o, o.baseURL(r)))
		if err != nil {
			panic(err) // plain text always encodes
		}
		serveDocument(w, r, "application/json", body, cardMaxAge)
	})
}

//go:embed schemas/knowledge.json schemas/channels.json
var schemas embed.FS

// NewSchemaHandler serves the JSON Schemas of the extensions at /schemas/<name>.json.
func NewSchemaHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := schemas.ReadFile(strings.TrimPrefix(r.URL.Path, "/"))
		if err != nil {
			http.NotFound(w, r)
			return
		}
		serveDocument(w, r, "application/schema+json", body, documentMaxAge)
	})
}

// serveDocument serves a cacheable document with an ETag (RFC 9110, section 13).
func serveDocument(w http.ResponseWriter, r *http.Request, kind string, body []byte, maxAge time.Duration) {
	sum := sha256.Sum256(body)
	header := w.Header()
	header.Set("Content-Type", kind)
	header.Set("ETag", `"`+base64.RawURLEncoding.EncodeToString(sum[:12])+`"`)
	header.Set("Cache-Control", "public, max-age="+strconv.Itoa(int(maxAge.Seconds())))
	// ServeContent handles If-None-Match, HEAD and ranges.
	http.ServeContent(w, r, "", time.Time{}, strings.NewReader(string(body)))
}
