package hub

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"koine/a2a"
	"koine/internal/agents"
	"koine/internal/plainjson"
	"koine/kg"
)

// agentCard is the A2A card of an agent behind the hub, readable by clients of A2A 1.0
// and 0.3. Its addresses are the hub's.
type agentCard struct {
	Name                string                        `json:"name"`
	Description         string                        `json:"description"`
	Version             string                        `json:"version"`
	SupportedInterfaces []a2a.CardInterface           `json:"supportedInterfaces,omitempty"` // 1.0
	URL                 string                        `json:"url,omitempty"`                 // 0.3, this and the next three
	ProtocolVersion     string                        `json:"protocolVersion,omitempty"`
	PreferredTransport  string                        `json:"preferredTransport,omitempty"`
	Additional          []a2a.CardTransport           `json:"additionalInterfaces,omitempty"`
	Capabilities        capabilities                  `json:"capabilities"`
	SecuritySchemes     map[string]a2a.SecurityScheme `json:"securitySchemes,omitempty"`
	DefaultInputModes   []string                      `json:"defaultInputModes"`
	DefaultOutputModes  []string                      `json:"defaultOutputModes"`
	Skills              []json.RawMessage             `json:"skills"`
}

type capabilities struct {
	Streaming         bool `json:"streaming"`
	PushNotifications bool `json:"pushNotifications"`
}

// getCard handles GET /agents/<id>/.well-known/agent-card.json, also below the endpoint.
func (h *Handler) getCard(w http.ResponseWriter, r *http.Request) (int, any, error) {
	id := agentOf(r)
	if id == kg.System {
		h.deps.Card.ServeHTTP(w, r)
		return 0, nil, nil
	}
	record, err := h.deps.Agents.Get(r.Context(), id)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, h.cardOf(record, h.baseURL(r)), nil
}

// noCard refuses a request for the card of an unnamed agent: a relative reference drops
// the last segment of a base address without a trailing slash (RFC 3986, section
// 5.2.3).
func (h *Handler) noCard(http.ResponseWriter, *http.Request) (int, any, error) {
	e := kg.Errorf(kg.CodeAgentNotFound, "the path does not name an agent")
	e.Hint = "Resolve the card's path against /agents/<id>/ with the slash, or against /agents/<id>/a2a."
	return 0, nil, e
}

// baseURL returns the address of the server.
func (h *Handler) baseURL(r *http.Request) string {
	switch {
	case h.options.PublicURL != "":
		return h.options.PublicURL
	case r.TLS != nil:
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

func (h *Handler) cardOf(record *agents.Record, base string) *agentCard {
	own := a2a.NewCard(a2a.CardOptions{Keys: h.options.Keys, Tokens: h.options.Tokens, Push: h.options.Push, Only: h.options.Only}, base)
	g := record.Registration
	address := base + "/agents/" + url.PathEscape(agents.ShortID(record.ID)) + "/a2a"
	card := &agentCard{
		Name: record.Name, Description: g.Description, Version: g.Version,
		ProtocolVersion: own.ProtocolVersion, PreferredTransport: own.PreferredTransport,
		Capabilities:      capabilities{Streaming: own.Capabilities.Streaming, PushNotifications: own.Capabilities.PushNotifications},
		SecuritySchemes:   own.SecuritySchemes,
		DefaultInputModes: []string{"text/plain", "application/json"}, DefaultOutputModes: []string{"text/plain", "application/json"},
		Skills: []json.RawMessage{},
	}
	here := strings.NewReplacer(base+a2a.RPCPath, address) // koine's own bindings, at the address of the agent
	for _, i := range own.SupportedInterfaces {
		i.URL = here.Replace(i.URL)
		card.SupportedInterfaces = append(card.SupportedInterfaces, i)
	}
	for _, i := range own.Additional {
		i.URL = here.Replace(i.URL)
		card.Additional = append(card.Additional, i)
	}
	card.URL = here.Replace(own.URL)
	if card.Name == "" {
		card.Name = agents.ShortID(record.ID)
	}
	for _, raw := range g.Skills {
		card.Skills = append(card.Skills, wholeSkill(raw))
	}
	if len(g.Skills) == 0 {
		for _, tag := range g.Capabilities {
			card.Skills = append(card.Skills, plainjson.MustEncode(map[string]any{"id": tag, "name": tag, "description": tag, "tags": []string{tag}}))
		}
	}
	return card
}

// wholeSkill adds the members that A2A requires to a skill.
func wholeSkill(raw json.RawMessage) json.RawMessage {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return raw // an object, as it was read
	}
	for name, value := range map[string]json.RawMessage{"description": members["name"], "tags": json.RawMessage("[]")} {
		if _, there := members[name]; !there {
			members[name] = value
		}
	}
	return plainjson.MustEncode(members)
}
