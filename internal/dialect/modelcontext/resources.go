package modelcontext

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The URIs of resources. The name of an entity and the id of a channel are percent-encoded
// where a URI needs it.
const (
	entityURI     = "koine://entity/"
	channelURI    = "koine://channel/"
	vocabularyURI = "koine://vocabulary"
	schemaURI     = "koine://schema"
)

// The sizes of resources. Tools go on where they end.
const (
	entityTokens    = 4_000
	channelMessages = 50
)

// resources are texts that a client puts into a model's context by itself.
type resources struct {
	tools
	schema string
}

// addTo registers the resources. The middleware adds channels to their list.
func (s resources) addTo(server *mcp.Server) {
	read := func(ctx context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return s.readResource(ctx, r.Params.URI)
	}
	for _, r := range s.listFixed() {
		server.AddResource(r, read)
	}
	server.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: entityURI + "{+iri}", Name: "entity", Title: "An entity", Description: "What is known about an entity, such as koine://entity/lab:run-7", MIMEType: "text/plain"}, read)
	server.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: channelURI + "{+id}", Name: "channel", Title: "A channel", Description: "The newest messages of a channel", MIMEType: "text/plain"}, read)
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
			listing, ok := r.(*mcp.ListResourcesRequest)
			if !ok {
				return next(ctx, method, r)
			}
			cursor := ""
			if listing.Params != nil {
				cursor, listing.Params.Cursor = listing.Params.Cursor, ""
			}
			result, err := next(ctx, method, r)
			if list, ok := result.(*mcp.ListResourcesResult); ok && err == nil {
				err = s.addChannels(ctx, cursor, list)
			}
			return result, err
		}
	})
}

func (s resources) listFixed() []*mcp.Resource {
	return []*mcp.Resource{
		{URI: vocabularyURI, Name: "vocabulary", Title: "Vocabulary", Description: "Prefixes, classes and predicates in use", MIMEType: "text/plain"},
		{URI: schemaURI, Name: "schema", Title: "GraphQL schema", Description: "What the tool query understands", MIMEType: "text/plain"},
	}
}

// addChannels puts a page of channels behind the fixed resources, which are on the first page alone.
// Entities are found by search.
func (s resources) addChannels(ctx context.Context, cursor string, l *mcp.ListResourcesResult) error {
	_, page, err := s.listChannels(ctx, pageArgs{Limit: MaxListed, After: cursor})
	if err != nil {
		return err
	}
	if cursor != "" {
		l.Resources = []*mcp.Resource{}
	}
	for _, c := range page.Items {
		r := &mcp.Resource{URI: channelURI + url.PathEscape(c.ID), Name: c.ID, Title: c.Name, Description: c.Topic, MIMEType: "text/plain"}
		l.Resources = append(l.Resources, r)
	}
	l.NextCursor = page.Next
	return nil
}

// readResource returns a resource. A hidden one is like one that does not exist.
func (s resources) readResource(ctx context.Context, uri string) (*mcp.ReadResourceResult, error) {
	text, err := s.readText(ctx, uri)
	switch {
	case err != nil:
		return nil, err
	case text == "":
		return nil, mcp.ResourceNotFoundError(uri)
	}
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: uri, MIMEType: "text/plain", Text: text}}}, nil
}

// hasResource reports whether a client may subscribe to a resource. An entity may come to be.
func (s resources) hasResource(ctx context.Context, uri string) (bool, error) {
	if _, ok := nameIn(uri, entityURI); ok {
		return true, nil
	}
	text, err := s.readText(ctx, uri)
	return text != "", err
}

// readText returns the text of a resource, "" for none.
func (s resources) readText(ctx context.Context, uri string) (text string, err error) {
	switch uri {
	case vocabularyURI:
		text, _, err = s.listVocabulary(ctx, vocabularyArgs{})
		return text, err
	case schemaURI:
		return s.schema, nil
	}
	if iri, ok := nameIn(uri, entityURI); ok {
		known, err := s.isEntity(ctx, iri)
		if err != nil || !known {
			return "", err
		}
		_, answer, err := s.recallTopic(ctx, recallArgs{Topic: iri, MaxTokens: entityTokens})
		return answer.Text, err
	}
	if id, ok := nameIn(uri, channelURI); ok {
		text, _, err = s.readChannel(ctx, readArgs{Channel: id, pageArgs: pageArgs{Limit: channelMessages}})
		if err != nil && strings.Contains(err.Error(), "CHANNEL_NOT_FOUND") {
			return "", nil
		}
		return text, err
	}
	return "", nil
}

// isEntity reports whether there is a statement with the entity. A topic that is none would
// be looked for by its words.
func (t tools) isEntity(ctx context.Context, iri string) (bool, error) {
	var answer struct{ Entity *struct{ IRI string } }
	err := t.GraphQL(ctx, `query($iri: IRI!) { entity(iri: $iri) { iri } }`, map[string]any{"iri": iri}, &answer)
	return answer.Entity != nil, err
}

// addPrompts registers the prompts.
func (t tools) addPrompts(server *mcp.Server) {
	one := func(name, description string, required bool) []*mcp.PromptArgument {
		return []*mcp.PromptArgument{{Name: name, Description: description, Required: required}}
	}
	server.AddPrompt(&mcp.Prompt{Name: "brief", Title: "Brief me on", Description: "What the graph knows about a topic, with those who say so", Arguments: one("topic", "a few words, or a name such as lab:run-7", true)},
		func(ctx context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			topic := r.Params.Arguments["topic"]
			text, _, err := t.recallTopic(ctx, recallArgs{Topic: topic, MaxTokens: entityTokens})
			if err != nil {
				return nil, err
			}
			return promptResult(fmt.Sprintf("Brief me on %s, from these facts alone. Say which are uncertain or contradict each other and who states them, and what is not known. Use recall, why and history where you need more.\n\n%s", topic, text)), nil
		})
	server.AddPrompt(&mcp.Prompt{Name: "record", Title: "Record what was decided", Description: "Writes what was decided in this conversation into the graph", Arguments: one("about", "what it is about; the whole conversation if absent", false)},
		func(ctx context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			vocabulary, _, err := t.listVocabulary(ctx, vocabularyArgs{})
			if err != nil {
				return nil, err
			}
			about := ""
			if a := r.Params.Arguments["about"]; a != "" {
				about = " about " + a
			}
			return promptResult(fmt.Sprintf("Record what was decided%s: recall what is known about it first, then remember each decision with its reason as why, and correct what it replaces. Use the names that are there; state as certain only what was decided. Show me the facts before you write them.\n\n%s", about, vocabulary)), nil
		})
}

func promptResult(text string) *mcp.GetPromptResult {
	return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: text}}}}
}
