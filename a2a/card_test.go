package a2a_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"koine/a2a"
)

func get(h http.Handler, url string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, url, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// The card has the members that the extension requires, and those that clients of A2A
// 1.0 and 0.3 read.
func TestCard(t *testing.T) {
	w := get(a2a.NewCardHandler(a2a.CardOptions{Version: "1.2.3"}), "http://localhost:8080/.well-known/agent-card.json")
	var card struct {
		Name, Description, Version, URL, ProtocolVersion, PreferredTransport string
		SupportedInterfaces                                                  []struct{ URL, ProtocolBinding, ProtocolVersion string }
		Capabilities                                                         struct {
			Streaming                    bool
			KnowledgeGraph               bool
			KnowledgeGraphQueryLanguages []string
			Extensions                   []struct {
				URI      string
				Required bool
				Params   map[string]any
			}
			Messaging any
		}
		Skills []struct{ ID, Name, Description string }
	}
	if err := json.Unmarshal(w.Body.Bytes(), &card); err != nil {
		t.Fatal(err)
	}
	c := card.Capabilities
	if !c.Streaming || !c.KnowledgeGraph || len(c.KnowledgeGraphQueryLanguages) != 1 || c.KnowledgeGraphQueryLanguages[0] != "graphql" {
		t.Errorf("capabilities: %+v", c)
	}
	if len(c.Extensions) != 1 || c.Extensions[0].URI != a2a.KnowledgeExtensionURI ||
		c.Extensions[0].Params["knowledgeGraph"] != true ||
		c.Extensions[0].Params["graphqlSchema"] != "http://localhost:8080/graphql/schema" ||
		c.Extensions[0].Params["jsonSchema"] != "http://localhost:8080/schemas/knowledge.json" {
		t.Errorf("extensions: %+v", c.Extensions)
	}
	if c.Messaging != nil {
		t.Errorf("it announces channels, which are not there: %v", c.Messaging)
	}
	if c.Extensions[0].Required {
		t.Error("the extension is required, and clients of base A2A alone are not let in")
	}
	if first := card.SupportedInterfaces[0]; first.ProtocolBinding != "JSONRPC" || first.ProtocolVersion != "1.0" || first.URL != card.URL {
		t.Errorf("interfaces: %+v", card.SupportedInterfaces)
	}
	if card.URL != "http://localhost:8080/a2a" || card.ProtocolVersion != "0.3.0" || card.PreferredTransport != "JSONRPC" || card.Version != "1.2.3" {
		t.Errorf("card: %+v", card)
	}
	for _, s := range card.Skills {
		if s.ID == "" || s.Name == "" || s.Description == "" {
			t.Errorf("skill: %+v", s)
		}
	}
}

// The card has the members that the channels extension requires (section 2), and its
// entry.
func TestCardWithChannels(t *testing.T) {
	w := get(a2a.NewCardHandler(a2a.CardOptions{Channels: true}), "http://localhost:8080/.well-known/agent-card.json")
	var card struct {
		Capabilities struct {
			Messaging  json.RawMessage
			Extensions []json.RawMessage
		}
		Skills []struct{ ID string }
	}
	if err := json.Unmarshal(w.Body.Bytes(), &card); err != nil {
		t.Fatal(err)
	}
	const messaging = `{"channels":{"version":"0.1","features":["create","publish","history","stream","membership"]}}`
	const methods = "channels/create, channels/get, channels/list, channels/update, channels/delete, channels/addMember, channels/removeMember, channels/publish, channels/history, channels/stream"
	if got := string(card.Capabilities.Messaging); got != messaging {
		t.Errorf("got %s", got)
	}
	want := `{"uri":"urn:koine:a2a:channels:0.1","description":"Channels and messages: ` + methods + `.","required":false,"params":{"messaging":` + messaging +
		`,"methods":["` + strings.ReplaceAll(methods, ", ", `","`) + `"],"jsonSchema":"http://localhost:8080/schemas/channels.json"}}`
	if e := card.Capabilities.Extensions; len(e) != 2 || string(e[1]) != want {
		t.Errorf("got  %s\nwant %s", e, want)
	}
	if len(card.Skills) != 5 || card.Skills[4].ID != "channels" {
		t.Errorf("skills: %v", card.Skills)
	}
}

func TestCardIsCached(t *testing.T) {
	h := a2a.NewCardHandler(a2a.CardOptions{PublicURL: "https://koine.example"})
	first := get(h, "http://localhost/.well-known/agent.json")
	tag := first.Header().Get("ETag")
	if first.Code != 200 || tag == "" || first.Header().Get("Cache-Control") != "public, max-age=300" || first.Header().Get("Content-Type") != "application/json" {
		t.Errorf("got %d %v", first.Code, first.Header())
	}
	if again := get(h, "http://elsewhere/.well-known/agent.json", "If-None-Match", tag); again.Code != 304 || again.Body.Len() != 0 {
		t.Errorf("known by its tag: got %d %s", again.Code, again.Body)
	}
	other := get(a2a.NewCardHandler(a2a.CardOptions{}), "http://localhost/.well-known/agent.json", "If-None-Match", tag)
	if other.Code != 200 || other.Header().Get("ETag") == tag {
		t.Errorf("another card: got %d %v", other.Code, other.Header())
	}
}

func TestSchemaHandler(t *testing.T) {
	h := a2a.NewSchemaHandler()
	if w := get(h, "http://localhost/schemas/channels.json"); w.Code != 200 || !json.Valid(w.Body.Bytes()) {
		t.Errorf("channels: got %d", w.Code)
	}
	w := get(h, "http://localhost/schemas/knowledge.json")
	if w.Code != 200 || w.Header().Get("Content-Type") != "application/schema+json" || w.Header().Get("ETag") == "" || !json.Valid(w.Body.Bytes()) {
		t.Errorf("got %d %v", w.Code, w.Header())
	}
	for _, path := range []string{"/schemas/none.json", "/schemas/", "/schemas/../card.go", "/schemas"} {
		if w := get(h, "http://localhost"+path); w.Code != 404 {
			t.Errorf("%s: got %d", path, w.Code)
		}
	}
}

// A server with credentials announces them in the forms of A2A 0.3 and 1.0.
func TestSecuritySchemes(t *testing.T) {
	for _, row := range []struct {
		keys, tokens bool
		want         string
	}{
		{false, false, `null`},
		{true, false, `{"apiKey":{"apiKeySecurityScheme":{"description":"An API key (ak_live_…).","location":"header","name":"X-API-Key"},"description":"An API key (ak_live_…).","in":"header","name":"X-API-Key","type":"apiKey"},` +
			`"bearer":{"description":"An API key (ak_live_…).","httpAuthSecurityScheme":{"description":"An API key (ak_live_…).","scheme":"Bearer"},"scheme":"Bearer","type":"http"}}`},
		{false, true, `{"bearer":{"bearerFormat":"JWT","description":"A JSON Web Token.","httpAuthSecurityScheme":{"bearerFormat":"JWT","description":"A JSON Web Token.","scheme":"Bearer"},"scheme":"Bearer","type":"http"}}`},
	} {
		w := get(a2a.NewCardHandler(a2a.CardOptions{Keys: row.keys, Tokens: row.tokens}), "http://localhost/.well-known/agent-card.json")
		var card map[string]any
		if err := json.Unmarshal(w.Body.Bytes(), &card); err != nil {
			t.Fatal(err)
		}
		got, err := json.Marshal(card["securitySchemes"])
		if err != nil || string(got) != row.want {
			t.Errorf("keys %v, tokens %v: got %s, want %s", row.keys, row.tokens, got, row.want)
		}
		if _, said := card["securityRequirements"]; said {
			t.Error("the card has requirements, which the Go client cannot read")
		}
	}
}
