package intents

import (
	"context"
	"encoding/json"
	"slices"

	"koine/channels"
	"koine/channels/scope"
	"koine/kg"
)

// MaxListedEntries bounds the entries that an event of SetAccess lists; it counts all.
const MaxListedEntries = 200

// AccessList has the access to an intent besides that of its creator, its coordinator and the
// agents that are assigned to it.
type AccessList struct {
	scope.Access
	// Grants are those in force, sorted by id.
	Grants []scope.Grant
}

// Assign gives an agent a role in an intent, "worker" if it names none, and with it access.
// The role scope.Coordinates makes it the coordinator, of which there is one. It requires the
// level Admin, and appends the event EventAssigned unless the agent has the role already. If the caller announced that it delegates work to the agent (an event
// of the same type by AppendEvent, whose data have delegated_by), the event says so too.
func (s *Service) Assign(ctx context.Context, by channels.Caller, id scope.ID, agent kg.AgentID, role string) (*scope.Assignment, error) {
	self, err := by.ActingAgent()
	if err != nil {
		return nil, err
	}
	asked, err := channels.NewAssignment(self, agent, role)
	if err != nil {
		return nil, err
	}
	handsOff, err := s.announcesHandoff(ctx, by, id, self, asked.Agent)
	if err != nil {
		return nil, err
	}
	var made scope.Assignment
	_, err = s.scopes.Change(ctx, by, id, scope.Admin, "intents/assign", func(tx *kg.Tx, sc *scope.Scope) error {
		made = asked
		if added, err := channels.AddAssignment(tx, sc, &made); err != nil || !added {
			return err
		}
		data := map[string]any{"agent_id": bareName(made.Agent), "role": made.Role}
		if handsOff {
			data["delegated_by"] = bareName(self)
		}
		return appendEvent(tx, id, EventAssigned, self, data)
	})
	if err != nil {
		return nil, err
	}
	return &made, nil
}

// announcesHandoff reports whether the newest event about an assignment of the agent, of the
// newest that are examined, is one in which self says that it delegates work to it.
func (s *Service) announcesHandoff(ctx context.Context, by channels.Caller, id scope.ID, self, agent kg.AgentID) (bool, error) {
	page, _, err := s.scopes.ListEvents(ctx, by, id, scope.EventQuery{Types: []string{EventAssigned, EventUnassigned}, Descending: true, PageSize: handoffEvents})
	if err != nil {
		return false, err
	}
	for _, e := range page {
		var data struct {
			Agent string `json:"agent_id"`
			By    string `json:"delegated_by"`
			Role  string `json:"role"`
		}
		if json.Unmarshal(e.Data, &data) == nil && kg.CanonicalAgent(data.Agent) == agent {
			return e.Type == EventAssigned && e.Actor == self && kg.CanonicalAgent(data.By) == self && data.Role == "", nil
		}
	}
	return false, nil
}

// handoffEvents is the number of events about assignments that are examined for the
// announcement of a handoff.
const handoffEvents = 10

// Unassign ends the assignment of an agent, and appends the event EventUnassigned. It requires
// the level Admin or the agent itself.
//
// Errors: CodeNotFound if the agent is not assigned; those of channels.Scopes.Change.
func (s *Service) Unassign(ctx context.Context, by channels.Caller, id scope.ID, agent kg.AgentID) (*scope.Assignment, error) {
	self, err := by.ActingAgent()
	if err != nil {
		return nil, err
	}
	agent, need := kg.CanonicalAgent(string(agent)), scope.Admin
	if agent == self {
		need = scope.Read
	}
	var gone scope.Assignment
	_, err = s.scopes.Change(ctx, by, id, need, "intents/unassign", func(tx *kg.Tx, sc *scope.Scope) (err error) {
		if gone, err = channels.RemoveAssignment(sc, agent); err != nil {
			return err
		}
		return appendEvent(tx, id, EventUnassigned, self, map[string]any{"agent_id": bareName(agent), "role": gone.Role})
	})
	if err != nil {
		return nil, err
	}
	return &gone, nil
}

// Assignments lists the agents that work on an intent, in the order in which they were
// assigned.
//
// Errors: CodeScopeNotFound.
func (s *Service) Assignments(ctx context.Context, by channels.Caller, id scope.ID) ([]scope.Assignment, error) {
	sc, err := s.scopes.Get(ctx, by, id)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(sc.Assignments, func(a, b scope.Assignment) int { return a.At.Compare(b.At) })
	return sc.Assignments, nil
}

// Access returns the access list of an intent.
//
// Errors: CodeScopeNotFound.
func (s *Service) Access(ctx context.Context, by channels.Caller, id scope.ID) (*AccessList, error) {
	sc, err := s.scopes.Get(ctx, by, id)
	if err != nil {
		return nil, err
	}
	now := s.clock()
	return &AccessList{Access: sc.Access, Grants: slices.DeleteFunc(sc.Grants, func(g scope.Grant) bool { return g.IsExpired(now) })}, nil
}

// SetAccess replaces the access list of an intent. Grants that equal one in force are that
// one and keep their id. It requires the level Admin, and appends an
// event for the granted entries and one for the revoked ones.
//
// Errors: CodeInvalid; CodeLimitExceeded; those of channels.Scopes.Change.
func (s *Service) SetAccess(ctx context.Context, by channels.Caller, id scope.ID, list AccessList) (*AccessList, error) {
	self, err := by.ActingAgent()
	if err != nil {
		return nil, err
	}
	access, err := list.Access.Normalized()
	if err != nil {
		return nil, err
	}
	grants, err := channels.NewGrants(self, list.Grants)
	if err != nil {
		return nil, err
	}
	sc, err := s.scopes.Change(ctx, by, id, scope.Admin, "intents/setAccess", func(tx *kg.Tx, sc *scope.Scope) error {
		before := accessEntries(sc)
		sc.Access = access
		if err := channels.ReplaceGrants(tx, sc, grants); err != nil {
			return err
		}
		after := accessEntries(sc)
		if err := appendEntries(tx, id, EventGranted, self, after, before); err != nil {
			return err
		}
		return appendEntries(tx, id, EventRevoked, self, before, after)
	})
	if err != nil {
		return nil, err
	}
	return &AccessList{Access: sc.Access, Grants: sc.Grants}, nil
}

// Grant gives an agent, or everybody with a role, access to an intent, until it expires. It
// requires the level Admin, and appends the event EventGranted unless a grant in force equals
// it.
func (s *Service) Grant(ctx context.Context, by channels.Caller, id scope.ID, g scope.Grant) (*scope.Grant, error) {
	self, err := by.ActingAgent()
	if err != nil {
		return nil, err
	}
	list, err := channels.NewGrants(self, []scope.Grant{g})
	if err != nil {
		return nil, err
	}
	var made scope.Grant
	_, err = s.scopes.Change(ctx, by, id, scope.Admin, "intents/grant", func(tx *kg.Tx, sc *scope.Scope) error {
		made = list[0]
		if err := channels.AddGrant(tx, sc, &made); err != nil || made.ID != list[0].ID {
			return err
		}
		return appendEvent(tx, id, EventGranted, self, grantEntry(&made).data())
	})
	if err != nil {
		return nil, err
	}
	return &made, nil
}

// Revoke removes a grant, and appends the event EventRevoked. It requires the level Admin.
//
// Errors: CodeNotFound if there is no such grant, or it has expired.
func (s *Service) Revoke(ctx context.Context, by channels.Caller, id scope.ID, grant string) (*scope.Grant, error) {
	self, err := by.ActingAgent()
	if err != nil {
		return nil, err
	}
	var gone scope.Grant
	_, err = s.scopes.Change(ctx, by, id, scope.Admin, "intents/revoke", func(tx *kg.Tx, sc *scope.Scope) error {
		g := sc.Grant(grant)
		if g == nil || g.IsExpired(tx.Time()) {
			return kg.Errorf(kg.CodeNotFound, "grant not found").At("grantId")
		}
		gone = *g
		sc.RemoveGrant(grant)
		return appendEvent(tx, id, EventRevoked, self, grantEntry(&gone).data())
	})
	if err != nil {
		return nil, err
	}
	return &gone, nil
}

// accessEntry is the form of a granted or revoked right in an event.
type accessEntry struct {
	id, principal, kind string // kind is agent, role or everybody
	level               scope.Level
}

func grantEntry(g *scope.Grant) accessEntry {
	if g.Role != "" {
		return accessEntry{g.ID, g.Role, "role", g.Level}
	}
	return accessEntry{g.ID, bareName(g.Agent), "agent", g.Level}
}

func (e accessEntry) data() map[string]any {
	d := map[string]any{"principal_id": e.principal, "principal_type": e.kind, "permission": e.level}
	if e.id != "" {
		d["entry_id"] = e.id
	}
	return d
}

// accessEntries lists all that the access list of a scope says.
func accessEntries(sc *scope.Scope) (out []accessEntry) {
	if sc.Access.Everybody {
		out = append(out, accessEntry{"", "*", "everybody", scope.Write})
	}
	for _, a := range sc.Access.Agents {
		out = append(out, accessEntry{"", bareName(a), "agent", scope.Write})
	}
	for _, r := range sc.Access.Roles {
		out = append(out, accessEntry{"", r, "role", scope.Write})
	}
	for i := range sc.Grants {
		out = append(out, grantEntry(&sc.Grants[i]))
	}
	return out
}

// appendEntries appends an event of the entries of a list that another one does not have, if
// there are any.
func appendEntries(tx *kg.Tx, id scope.ID, kind string, by kg.AgentID, list, other []accessEntry) error {
	had := make(map[accessEntry]bool, len(other))
	for _, e := range other {
		had[e] = true
	}
	n, entries := 0, []map[string]any{}
	for _, e := range list {
		if had[e] {
			continue
		}
		if n++; n <= MaxListedEntries {
			entries = append(entries, e.data())
		}
	}
	if n == 0 {
		return nil
	}
	return appendEvent(tx, id, kind, by, map[string]any{"entries": entries, "count": n})
}
