package a2a_test

import (
	"encoding/json"
	"strings"
	"testing"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"

	"koine/a2a"
	"koine/internal/sse"
	"koine/kg"
)

// The extended card has the form of the requested version only, and the extensions in
// A2A's list only.
func TestExtendedCard(t *testing.T) {
	about := &a2a.CardOptions{PublicURL: "https://koine.example", Channels: true, Push: true, Keys: true}
	s := newTestServerWith(t, kg.Options{}, sse.Options{}, a2a.Options{Card: about})
	for _, row := range []struct {
		path, method string
		has, hasNot  []string
	}{
		{"/", "GetExtendedAgentCard", []string{"supportedInterfaces", "httpAuthSecurityScheme", `"extendedAgentCard":true`, `"pushNotifications":true`, a2a.ChannelsExtensionURI},
			[]string{`"protocolVersion":"0.3.0"`, "preferredTransport", `"type":"http"`, "supportsAuthenticated"}},
		{"/", "agent/getAuthenticatedExtendedCard", []string{`"protocolVersion":"0.3.0"`, `"type":"http"`, `"supportsAuthenticatedExtendedCard":true`, a2a.KnowledgeExtensionURI},
			[]string{"supportedInterfaces", "httpAuthSecurityScheme", "extendedAgentCard"}},
		{"/known", "GetExtendedAgentCard", []string{"-32004"}, []string{"result"}},
		{"/known", "agent/getAuthenticatedExtendedCard", []string{"-32007"}, []string{"result"}},
	} {
		resp := s.send(t, []byte("POST "+row.path+"\nContent-Type: application/json\n\n"+`{"jsonrpc":"2.0","id":1,"method":"`+row.method+`"}`), nil)
		got := answer(t, resp)
		for _, text := range row.has {
			if !strings.Contains(got, text) {
				t.Errorf("%s %s has no %s: %s", row.path, row.method, text, got)
			}
		}
		for _, text := range row.hasNot {
			if strings.Contains(got, text) {
				t.Errorf("%s %s has %s: %s", row.path, row.method, text, got)
			}
		}
		var card struct {
			Result struct{ Capabilities map[string]any }
		}
		if _, body, _ := strings.Cut(got, "\n"); json.Unmarshal([]byte(body), &card) != nil {
			t.Fatal(body)
		}
		for name := range card.Result.Capabilities {
			if name != "streaming" && name != "pushNotifications" && name != "extensions" && name != "extendedAgentCard" {
				t.Errorf("%s: capabilities have %q", row.method, name)
			}
		}
	}
	client, err := a2aclient.NewFromEndpoints(t.Context(), []*sdk.AgentInterface{sdk.NewAgentInterface(s.URL, sdk.TransportProtocolJSONRPC)})
	if err != nil {
		t.Fatal(err)
	}
	if card, err := client.GetExtendedAgentCard(t.Context(), &sdk.GetExtendedAgentCardRequest{}); err != nil || card.Name != "koine" || !card.Capabilities.PushNotifications {
		t.Errorf("the Go client: %+v, %v", card, err)
	}
}

// A card of one version has no member of the other, nor of the extensions.
func TestCardsOfOneVersion(t *testing.T) {
	of := map[string][]string{
		"1.0": {"supportedInterfaces", "extendedAgentCard", "httpAuthSecurityScheme", "apiKeySecurityScheme"},
		"0.3": {"url", "protocolVersion", "preferredTransport", "additionalInterfaces", "supportsAuthenticatedExtendedCard", "type"},
		"":    {"knowledgeGraphQueryLanguages", "messaging"},
	}
	for _, only := range []a2a.CardVersion{a2a.AnyVersion, a2a.Version1, a2a.Version03} {
		raw, err := json.Marshal(a2a.NewCard(a2a.CardOptions{Channels: true, Push: true, Keys: true, Tokens: true, Only: only}, "https://koine.example"))
		if err != nil {
			t.Fatal(err)
		}
		var card map[string]any
		if err := json.Unmarshal(raw, &card); err != nil {
			t.Fatal(err)
		}
		keys := map[string]bool{}
		for _, part := range []any{card, card["capabilities"]} {
			for key := range part.(map[string]any) {
				keys[key] = true
			}
		}
		for _, scheme := range card["securitySchemes"].(map[string]any) {
			for key := range scheme.(map[string]any) {
				keys[key] = true
			}
		}
		for version, own := range of {
			for _, key := range own {
				if want := only == a2a.AnyVersion || string(only) == version; keys[key] != want {
					t.Errorf("--card %q has %s of %q: %v", only, key, version, keys[key])
				}
			}
		}
		if list, _ := card["supportedInterfaces"].([]any); only == a2a.Version1 && len(list) != 2 { // one of each binding
			t.Errorf("interfaces: %v", list)
		}
		if len(card["capabilities"].(map[string]any)["extensions"].([]any)) != 2 {
			t.Errorf("--card %q: extensions are missing", only)
		}
	}
}
