package agentapi

import (
	"encoding/json"
	"net/http"

	"koine/internal/caller"
	"koine/kg"
)

// agentPage is the answer of GET /agents.
type agentPage struct {
	Agents []json.RawMessage `json:"agents"`
	Next   kg.AgentID        `json:"nextPageToken,omitempty"`
}

// listAgents handles GET /agents.
func (h *Handler) listAgents(_ http.ResponseWriter, r *http.Request, who caller.Caller) (int, any, error) {
	first, after, err := pageOf(r)
	if err != nil {
		return 0, nil, err
	}
	cards, last, err := h.deps.Agents.Cards(r.Context(), who, r.URL.Query().Get("capability"), kg.AgentID(after), first)
	if cards == nil {
		cards = []json.RawMessage{}
	}
	return http.StatusOK, agentPage{cards, last}, err
}

// getAgent handles GET /agents/:agentId.
func (h *Handler) getAgent(_ http.ResponseWriter, r *http.Request, who caller.Caller) (int, any, error) {
	card, err := h.deps.Agents.Card(r.Context(), who, kg.CanonicalAgent(r.PathValue("id")))
	return http.StatusOK, card, err
}
