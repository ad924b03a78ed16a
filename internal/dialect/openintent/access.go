package openintent

import (
	"net/http"
	"slices"
	"time"

	"koine/channels/scope"
	"koine/internal/caller"
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

// intentNamed returns the intent of the path.
func (h *Handler) intentNamed(r *http.Request, who caller.Caller) (*scope.Scope, error) {
	sc, err := h.deps.Channels.Scopes().Get(r.Context(), channelCaller(who), scope.ID(r.PathValue("id")))
	if err == nil && sc.Parent != "" {
		return nil, scope.ErrNotFound()
	}
	return sc, err
}

// listAssignments handles GET /intents/{id}/agents, in the order of their assignment.
func (h *Handler) listAssignments(_ http.ResponseWriter, r *http.Request, who caller.Caller) (int, any, error) {
	sc, err := h.intentNamed(r, who)
	if err != nil {
		return 0, nil, err
	}
	list := slices.Clone(sc.Assignments)
	slices.SortStableFunc(list, func(a, b scope.Assignment) int { return a.At.Compare(b.At) })
	out := make([]*wireAssignment, 0, len(list))
	for i := range list {
		out = append(out, assignmentIn(sc.ID, &list[i]))
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
	sc, err := h.intentNamed(r, who)
	if err != nil {
		return 0, nil, err
	}
	a, err := h.deps.Channels.Scopes().Assign(r.Context(), channelCaller(who), sc.ID, kg.AgentID(*body.Agent), body.Role)
	if kg.CodeOf(err) == kg.CodeNameTaken {
		return 0, nil, &wireError{Message: "The intent has another coordinator", Code: string(kg.CodeNameTaken), status: http.StatusConflict}
	}
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, assignmentIn(sc.ID, a), nil
}

// unassign handles DELETE /intents/{id}/agents/{agent}.
func (h *Handler) unassign(_ http.ResponseWriter, r *http.Request, who caller.Caller) (int, any, error) {
	sc, err := h.intentNamed(r, who)
	if err == nil {
		_, err = h.deps.Channels.Scopes().Unassign(r.Context(), channelCaller(who), sc.ID, kg.AgentID(r.PathValue("agent")))
	}
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

// accessOf converts the access to an intent, without entries that have expired.
func (h *Handler) accessOf(sc *scope.Scope) *wireAccess {
	out := &wireAccess{sc.ID, accessClosed, []wireEntry{}}
	if sc.Access.Everybody {
		out.Policy = accessOpen
	}
	list, now := slices.Clone(sc.Grants), h.options.Clock()
	slices.SortStableFunc(list, func(a, b scope.Grant) int { return a.GrantedAt.Compare(b.GrantedAt) })
	for i := range list {
		if !list[i].IsExpired(now) {
			out.Entries = append(out.Entries, entryIn(sc.ID, &list[i]))
		}
	}
	return out
}

// getAccess handles GET /intents/{id}/acl.
func (h *Handler) getAccess(_ http.ResponseWriter, r *http.Request, who caller.Caller) (int, any, error) {
	sc, err := h.intentNamed(r, who)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, h.accessOf(sc), nil
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
	sc, err := h.intentNamed(r, who)
	if err != nil {
		return 0, nil, err
	}
	access := sc.Access
	access.Everybody = body.Policy == accessOpen
	if sc, err = h.deps.Channels.Scopes().SetGrants(r.Context(), channelCaller(who), sc.ID, &access, grants); err != nil {
		return 0, nil, err
	}
	return http.StatusOK, h.accessOf(sc), nil
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
	sc, err := h.intentNamed(r, who)
	if err != nil {
		return 0, nil, err
	}
	made, err := h.deps.Channels.Scopes().Grant(r.Context(), channelCaller(who), sc.ID, g)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, entryIn(sc.ID, made), nil
}

// revoke handles DELETE /intents/{id}/acl/entries/{entry}.
func (h *Handler) revoke(_ http.ResponseWriter, r *http.Request, who caller.Caller) (int, any, error) {
	sc, err := h.intentNamed(r, who)
	if err == nil {
		_, err = h.deps.Channels.Scopes().Revoke(r.Context(), channelCaller(who), sc.ID, r.PathValue("entry"))
	}
	return http.StatusNoContent, nil, err
}
