package openintent

import (
	"net/http"

	"koine/channels/scope"
	"koine/internal/caller"
	"koine/internal/intents"
	"koine/kg"
)

// wireRequest is a request for access to an intent.
type wireRequest struct {
	ID           string   `json:"id"`
	IntentID     scope.ID `json:"intent_id"`
	Principal    string   `json:"principal_id"`
	Kind         string   `json:"principal_type"`
	Permission   string   `json:"requested_permission"`
	Reason       string   `json:"reason"`
	Status       string   `json:"status"`
	Capabilities []string `json:"capabilities"`
	DecidedBy    *string  `json:"decided_by"`
	DecidedAt    *string  `json:"decided_at"`
	Decision     *string  `json:"decision_reason"`
	CreatedAt    string   `json:"created_at"`
}

func requestOf(q *intents.AccessRequest) *wireRequest {
	return &wireRequest{
		q.ID, q.Intent, bare(q.Agent), kindAgent, string(q.Level), q.Reason, string(q.Status), orNone(q.Capabilities),
		orNull(bare(q.DecidedBy)), timeOrNull(q.DecidedAt), orNull(q.DecisionReason), formatTime(q.CreatedAt),
	}
}

// requestAccess handles POST /intents/{id}/access-requests.
func (h *Handler) requestAccess(w http.ResponseWriter, r *http.Request, who caller.Caller) (int, any, error) {
	var body struct {
		Principal    *string  `json:"principal_id"`
		Kind         string   `json:"principal_type"`
		Permission   string   `json:"requested_permission"`
		Reason       string   `json:"reason"`
		Capabilities []string `json:"capabilities"`
	}
	if err := h.readBody(w, r, &body); err != nil {
		return 0, nil, err
	}
	switch {
	case body.Principal == nil:
		return 0, nil, errRequired("principal_id")
	case body.Kind != "" && body.Kind != kindAgent:
		return 0, nil, errField("principal_type", "principal_type must be agent", "enum")
	case body.Permission == "":
		body.Permission = string(scope.Read)
	}
	q, err := h.deps.Intents.Requests().Create(r.Context(), channelCaller(who), intents.AccessRequest{
		Intent: scope.ID(r.PathValue("id")), Agent: kg.AgentID(*body.Principal), Level: scope.Level(body.Permission), Reason: body.Reason, Capabilities: body.Capabilities,
	})
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, requestOf(q), nil
}

// listRequests handles GET /intents/{id}/access-requests.
func (h *Handler) listRequests(_ http.ResponseWriter, r *http.Request, who caller.Caller) (int, any, error) {
	list, err := h.deps.Intents.Requests().List(r.Context(), channelCaller(who), scope.ID(r.PathValue("id")))
	if err != nil {
		return 0, nil, err
	}
	out := struct {
		Requests []*wireRequest `json:"access_requests"`
	}{make([]*wireRequest, 0, len(list))}
	for _, q := range list {
		out.Requests = append(out.Requests, requestOf(q))
	}
	return http.StatusOK, out, nil
}

// decideRequest returns the handler of POST …/access-requests/{request}/approve or /deny.
func (h *Handler) decideRequest(approve bool) call {
	return func(w http.ResponseWriter, r *http.Request, who caller.Caller) (int, any, error) {
		var body struct {
			By         string      `json:"decided_by"`
			Permission scope.Level `json:"permission"`
			ExpiresAt  *string     `json:"expires_at"`
			Reason     string      `json:"reason"`
		}
		if err := h.readBody(w, r, &body); err != nil {
			return 0, nil, err
		}
		by, err := h.actAs(r.Context(), who, "decided_by", body.By)
		if err != nil {
			return 0, nil, err
		}
		d := intents.Decision{Approve: approve, Reason: body.Reason}
		if approve {
			d.Level = body.Permission
			if d.ExpiresAt, err = optionalTime("expires_at", body.ExpiresAt); err != nil {
				return 0, nil, err
			}
		}
		q, err := h.deps.Intents.Requests().Decide(r.Context(), channelCaller(by), scope.ID(r.PathValue("id")), r.PathValue("request"), d)
		if err != nil {
			return 0, nil, err
		}
		return http.StatusOK, requestOf(q), nil
	}
}
