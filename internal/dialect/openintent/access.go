package openintent

import (
	"net/http"
	"slices"
	"time"

	"koine/channels/scope"
	"koine/internal/caller"
	"koine/internal/intents"
	"koine/kg"
)

// wireAssignment is an agent that works on an intent.
type wireAssignment struct {
	ID         string   `json:"id"`
	IntentID   scope.ID `json:"intent_id"`
	AgentID    string   `json:"agent_id"`
	Role       string   `json:"role"`
	AssignedAt string   `json:"assigned_at"`
}

func assignmentIn(intent scope.ID, a *scope.Assignment) *wireAssignment {
	return &wireAssignment{a.ID, intent, bare(a.Agent), a.Role, formatTime(a.At)}
}

// listAssignments handles GET /intents/{id}/agents, in the order of their assignment.
func (h *Handler) listAssignments(_ http.ResponseWriter, r *http.Request, who caller.Caller) (int, any, error) {
	id := scope.ID(r.PathValue("id"))
	list, err := h.deps.Intents.Assignments(r.Context(), channelCaller(who), id)
	if err != nil {
		return 0, nil, err
	}
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b scope.Assignment) int { return a.At.Compare(b.At) })
	out := make([]*wireAssignment, 0, len(list))
	for i := range list {
		out = append(out, assignmentIn(id, &list[i]))
	}
	return http.StatusOK, out, nil
}

// assign handles POST /intents/{id}/agents.
func (h *Handler) assign(w http.ResponseWriter, r *http.Request, who caller.Caller) (int, any, error) {
	var body struct {
		Agent *string `json:"agent_id"`
		Role  string  `json:"role"`
	}
	if err := h.readBody(w, r, &body); err != nil {
		return 0, nil, err
	}
	if body.Agent == nil {
		return 0, nil, errRequired("agent_id")
	}
	id := scope.ID(r.PathValue("id"))
	a, err := h.deps.Intents.Assign(r.Context(), channelCaller(who), id, kg.AgentID(*body.Agent), body.Role)
	if kg.CodeOf(err) == kg.CodeNameTaken {
		return 0, nil, &wireError{Message: "The intent has another coordinator", Code: string(kg.CodeNameTaken), status: http.StatusConflict}
	}
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, assignmentIn(id, a), nil
}

// unassign handles DELETE /intents/{id}/agents/{agent}.
func (h *Handler) unassign(_ http.ResponseWriter, r *http.Request, who caller.Caller) (int, any, error) {
	_, err := h.deps.Intents.Unassign(r.Context(), channelCaller(who), scope.ID(r.PathValue("id")), kg.AgentID(r.PathValue("agent")))
	return http.StatusNoContent, nil, err
}

// The policies of access to an intent.
const (
	accessOpen   = "open"
	accessClosed = "closed"
)

// The kinds of principals in an entry.
const (
	kindAgent = "agent"
	kindRole  = "role"
)

// wireAccess is the access control list of an intent.
type wireAccess struct {
	IntentID scope.ID    `json:"intent_id"`
	Policy   string      `json:"default_policy"`
	Entries  []wireEntry `json:"entries"`
}

// wireEntry is an entry of the list.
type wireEntry struct {
	ID         string   `json:"id"`
	IntentID   scope.ID `json:"intent_id"`
	Principal  string   `json:"principal_id"`
	Kind       string   `json:"principal_type"`
	Permission string   `json:"permission"`
	GrantedBy  string   `json:"granted_by"`
	GrantedAt  string   `json:"granted_at"`
	ExpiresAt  *string  `json:"expires_at"`
	Reason     *string  `json:"reason"`
}

func entryIn(intent scope.ID, g *scope.Grant) wireEntry {
	out := wireEntry{g.ID, intent, bare(g.Agent), kindAgent, string(g.Level), bare(g.GrantedBy), formatTime(g.GrantedAt), timeOrNull(g.ExpiresAt), orNull(g.Reason)}
	if g.Role != "" {
		out.Principal, out.Kind = g.Role, kindRole
	}
	return out
}

// accessOf converts the access to an intent.
func accessOf(intent scope.ID, a *intents.AccessList) *wireAccess {
	out := &wireAccess{intent, accessClosed, []wireEntry{}}
	if a.Everybody {
		out.Policy = accessOpen
	}
	list := slices.Clone(a.Grants)
	slices.SortStableFunc(list, func(a, b scope.Grant) int { return a.GrantedAt.Compare(b.GrantedAt) })
	for i := range list {
		out.Entries = append(out.Entries, entryIn(intent, &list[i]))
	}
	return out
}

// getAccess handles GET /intents/{id}/acl.
func (h *Handler) getAccess(_ http.ResponseWriter, r *http.Request, who caller.Caller) (int, any, error) {
	id := scope.ID(r.PathValue("id"))
	a, err := h.deps.Intents.Access(r.Context(), channelCaller(who), id)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, accessOf(id, a), nil
}

// entryDraft is an entry in a body.
type entryDraft struct {
	Principal  *string `json:"principal_id"`
	Kind       string  `json:"principal_type"`
	Permission string  `json:"permission"`
	Reason     string  `json:"reason"`
	ExpiresAt  *string `json:"expires_at"`
}

func (e *entryDraft) toGrant() (g scope.Grant, err error) {
	if e.Principal == nil {
		return g, errRequired("principal_id")
	}
	g = scope.Grant{Level: scope.Level(e.Permission), Reason: e.Reason}
	if g.Level == "" {
		g.Level = scope.Read
	}
	switch e.Kind {
	case "", kindAgent:
		g.Agent = kg.AgentID(*e.Principal)
	case kindRole:
		g.Role = *e.Principal
	default:
		return g, errField("principal_type", "principal_type must be agent or role", "enum")
	}
	g.ExpiresAt, err = optionalTime("expires_at", e.ExpiresAt)
	return g, err
}

// optionalTime parses a time of a body; nil is the zero time.
func optionalTime(field string, text *string) (time.Time, error) {
	if text == nil {
		return time.Time{}, nil
	}
	t, err := parseTime(*text)
	if err != nil {
		return t, errField(field, field+" must be a time in ISO 8601", "datetime_parsing")
	}
	return t, nil
}

// setAccess handles PUT /intents/{id}/acl.
func (h *Handler) setAccess(w http.ResponseWriter, r *http.Request, who caller.Caller) (int, any, error) {
	var body struct {
		Policy  string       `json:"default_policy"`
		Entries []entryDraft `json:"entries"`
	}
	if err := h.readBody(w, r, &body); err != nil {
		return 0, nil, err
	}
	if body.Policy != accessOpen && body.Policy != accessClosed {
		return 0, nil, errField("default_policy", "default_policy must be open or closed", "enum")
	}
	grants := make([]scope.Grant, 0, len(body.Entries))
	for i := range body.Entries {
		g, err := body.Entries[i].toGrant()
		if err != nil {
			return 0, nil, err
		}
		grants = append(grants, g)
	}
	id := scope.ID(r.PathValue("id"))
	a, err := h.deps.Intents.Access(r.Context(), channelCaller(who), id)
	if err != nil {
		return 0, nil, err
	}
	list := intents.AccessList{Access: a.Access, Grants: grants}
	list.Everybody = body.Policy == accessOpen
	if a, err = h.deps.Intents.SetAccess(r.Context(), channelCaller(who), id, list); err != nil {
		return 0, nil, err
	}
	return http.StatusOK, accessOf(id, a), nil
}

// grant handles POST /intents/{id}/acl/entries.
func (h *Handler) grant(w http.ResponseWriter, r *http.Request, who caller.Caller) (int, any, error) {
	var body entryDraft
	if err := h.readBody(w, r, &body); err != nil {
		return 0, nil, err
	}
	g, err := body.toGrant()
	if err != nil {
		return 0, nil, err
	}
	id := scope.ID(r.PathValue("id"))
	made, err := h.deps.Intents.Grant(r.Context(), channelCaller(who), id, g)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, entryIn(id, made), nil
}

// revoke handles DELETE /intents/{id}/acl/entries/{entry}.
func (h *Handler) revoke(_ http.ResponseWriter, r *http.Request, who caller.Caller) (int, any, error) {
	_, err := h.deps.Intents.Revoke(r.Context(), channelCaller(who), scope.ID(r.PathValue("id")), r.PathValue("entry"))
	return http.StatusNoContent, nil, err
}
