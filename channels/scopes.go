package channels

import (
	"context"
	"reflect"
	"unicode/utf8"

	"koine/internal/systemgraph"
	"koine/kg"
)

// ScopeDraft describes a scope to create.
type ScopeDraft struct {
	// Parent makes the scope a task of that intent. Tasks cannot have tasks.
	Parent      ScopeID
	Title       string
	Access      ScopeAccess
	Coordinator kg.AgentID
	// IdempotencyKey works as in Draft.
	IdempotencyKey string
}

// CreateScope creates a scope that the caller manages. Any caller can create an intent;
// creating a task requires access to its intent. If the caller has used the idempotency
// key before, it returns the existing scope with Replayed set.
//
// Errors: CodeScopeNotFound and CodeScopeEnded for the parent; CodeInvalid;
// CodeLimitExceeded; CodeIdempotencyConflict for a key that was used for a different
// request; CodeScopeNotFound if the caller has lost access to the scope of the key.
func (s *Service) CreateScope(ctx context.Context, by Caller, d ScopeDraft) (*Scope, error) {
	agent, err := by.actingAgent()
	if err != nil {
		return nil, err
	}
	if d.Access, err = d.Access.normalized(); err != nil {
		return nil, err
	}
	if err := checkText("title", d.Title, MaxNameRunes); err != nil {
		return nil, err
	}
	if d.Coordinator, err = parseCoordinator(d.Coordinator); err != nil {
		return nil, err
	}
	id, err := newID()
	if err != nil {
		return nil, err
	}
	made := &Scope{ID: ScopeID(id), Parent: d.Parent, Title: d.Title, Status: Active, Access: d.Access, Coordinator: d.Coordinator, CreatedBy: agent, Version: 1}
	request, err := made.creationKey(d.IdempotencyKey)
	if err != nil {
		return nil, err
	}
	var earlier kg.Term
	err = systemgraph.Update(ctx, s.store, by.updateMeta("scopes/create"), func(tx *kg.Tx) (err error) {
		if earlier, err = request.findEarlier(tx); err != nil || !earlier.IsZero() {
			return err
		}
		if s.table.scopes.count.Load() >= int64(s.options.MaxScopes) {
			return errTooMuch("", "server has %d scopes, which is the limit", s.options.MaxScopes)
		}
		if made.Parent != "" {
			if err := s.checkNewTask(made.Parent, by.readerPrincipal(agent)); err != nil {
				return err
			}
		}
		made.CreatedAt = tx.Time()
		if err := systemgraph.Write(tx, made.ID.RecordGraph(), made.ID.Entity(), made.toRecord()); err != nil {
			return err
		}
		return request.writeTo(tx, made.ID.RecordGraph(), made.ID.Entity())
	})
	if err != nil {
		return nil, err
	}
	if !earlier.IsZero() {
		if made, err = s.GetScope(ctx, by, scopeIDIn(earlier)); err == nil {
			made.Replayed = true
		}
	}
	return made, err
}

func (s *Service) checkNewTask(parent ScopeID, reader kg.Principal) error {
	up := s.table.scopes.get(parent)
	switch {
	case !up.admitsPrincipal(reader):
		return errOfParent(errNoScope())
	case up.Parent != "":
		return kg.Errorf(kg.CodeInvalid, "parent is a task, which cannot have tasks").At("parent")
	case up.Ended():
		return errOfParent(errScopeEnded(&up.Scope))
	case len(s.table.tasksOf(parent)) >= MaxScopeTasks:
		return errTooMuch("parent", "scope has the maximum of %d tasks", MaxScopeTasks)
	}
	return nil
}

// errOfParent returns the error with the field parent.
func errOfParent(err *kg.Error) error {
	err.Field = "parent"
	return err
}

// GetScope returns a scope that the caller has access to.
//
// Errors: CodeScopeNotFound, also without access.
func (s *Service) GetScope(_ context.Context, by Caller, id ScopeID) (*Scope, error) {
	_, sc, err := s.accessibleScope(by, id)
	if err != nil {
		return nil, err
	}
	return sc.clone(), nil
}

// ScopeListQuery selects the scopes to list.
type ScopeListQuery struct {
	// PageSize is clamped to 1…MaxPage; DefaultPage if 0.
	PageSize  int
	PageToken string
	// Parent and Status, if set, exclude other scopes.
	Parent ScopeID
	Status ScopeStatus
}

// ListScopes returns the scopes that the caller has access to in order of creation, one
// page at a time. next is "" after the last page. Other pages may be short or empty.
//
// Errors: CodeCursorForeign for a page token of another query or caller.
func (s *Service) ListScopes(_ context.Context, by Caller, l ScopeListQuery) (page []*Scope, next string, err error) {
	agent, err := by.actingAgent()
	if err != nil {
		return nil, "", err
	}
	token := pageToken{store: s.store, bound: boundTo("scopes/list", agent, l.Parent, l.Status)}
	after, err := token.open(l.PageToken)
	if err != nil {
		return nil, "", err
	}
	reader := by.readerPrincipal(agent)
	found, last := s.table.listScopes(ScopeID(after), pageSize(l.PageSize), func(sc *scope) bool {
		return (l.Parent == "" || sc.Parent == l.Parent) && (l.Status == "" || sc.Status == l.Status) && sc.admitsPrincipal(reader)
	})
	for _, sc := range found {
		page = append(page, sc.clone())
	}
	if last != "" {
		next = token.seal(string(last))
	}
	return page, next, nil
}

// ScopeUpdate is a change of a scope. Nil fields are unchanged.
type ScopeUpdate struct {
	// ExpectedVersion must be the current version of the scope.
	ExpectedVersion int64
	Title           *string
	Access          *ScopeAccess
	Coordinator     *kg.AgentID // "" for none
}

// UpdateScope changes a scope. It requires the creator or coordinator of the scope or
// of its intent.
//
// Errors: CodeScopeNotFound; CodePermissionDenied; CodeVersionConflict; CodeInvalid;
// CodeLimitExceeded.
func (s *Service) UpdateScope(ctx context.Context, by Caller, id ScopeID, r ScopeUpdate) (*Scope, error) {
	if err := checkText("title", deref(r.Title), MaxNameRunes); err != nil {
		return nil, err
	}
	if r.Access != nil {
		access, err := r.Access.normalized()
		if err != nil {
			return nil, err
		}
		r.Access = &access
	}
	if r.Coordinator != nil {
		coordinator, err := parseCoordinator(*r.Coordinator)
		if err != nil {
			return nil, err
		}
		r.Coordinator = &coordinator
	}
	return s.alterScope(ctx, by, id, "scopes/update", func(_ *kg.Tx, sc *Scope) error {
		if sc.Version != r.ExpectedVersion {
			e := kg.Errorf(kg.CodeVersionConflict, "scope has version %d, expected %d", sc.Version, r.ExpectedVersion).At("expectedVersion")
			e.Hint = "read the scope again and retry with its version"
			return e
		}
		if r.Title != nil {
			sc.Title = *r.Title
		}
		if r.Access != nil {
			sc.Access = *r.Access
		}
		if r.Coordinator != nil {
			sc.Coordinator = *r.Coordinator
		}
		return nil
	})
}

// alterScope applies change to a scope that the caller manages.
func (s *Service) alterScope(ctx context.Context, by Caller, id ScopeID, method string, change func(*kg.Tx, *Scope) error) (*Scope, error) {
	agent, _, err := s.accessibleScope(by, id)
	if err != nil {
		return nil, err
	}
	var now *Scope
	err = systemgraph.Update(ctx, s.store, by.updateMeta(method), func(tx *kg.Tx) error {
		sc := s.table.scopes.get(id)
		switch {
		case !sc.admitsPrincipal(by.readerPrincipal(agent)):
			return errNoScope() // access was lost
		case !sc.managedBy(agent):
			return errDenied("only the creator and the coordinator of the scope can do this")
		}
		now = sc.clone()
		if err := change(tx, now); err != nil {
			return err
		}
		if reflect.DeepEqual(now.toRecord(), sc.toRecord()) {
			return nil
		}
		now.Version++
		return systemgraph.Write(tx, id.RecordGraph(), id.Entity(), now.toRecord())
	})
	return now, err
}

// accessibleScope returns the scope if the caller has access to it, and errNoScope
// otherwise.
func (s *Service) accessibleScope(by Caller, id ScopeID) (kg.AgentID, *scope, error) {
	agent, err := by.actingAgent()
	if err != nil {
		return "", nil, err
	}
	sc := s.table.scopes.get(id)
	if !sc.admitsPrincipal(by.readerPrincipal(agent)) {
		return "", nil, errNoScope()
	}
	return agent, sc, nil
}

// toRecord returns the stored form of a scope.
func (s *Scope) toRecord() systemgraph.Record {
	class, of := systemgraph.Class("Scope")
	r := systemgraph.Record{
		class: of, "scopeStatus": systemgraph.Values(string(s.Status)), "scopeTitle": nil, "scopeParent": nil, "scopeCoordinator": nil,
		"scopeEverybody": nil, "scopeRole": systemgraph.Values(s.Access.Roles...), "scopeAgent": nil, "scopeCreatedAt": {kg.DateTime(s.CreatedAt)},
		"scopeCreatedBy": {kg.IRI(string(s.CreatedBy))}, "scopeVersion": {kg.Integer(s.Version)}, "scopeEndedAt": nil, "scopeEndReason": nil,
	}
	if s.Title != "" {
		r["scopeTitle"] = systemgraph.Values(s.Title)
	}
	if s.Parent != "" {
		r["scopeParent"] = []kg.Term{s.Parent.Entity()}
	}
	if s.Coordinator != "" {
		r["scopeCoordinator"] = []kg.Term{kg.IRI(string(s.Coordinator))}
	}
	if s.Access.Everybody {
		r["scopeEverybody"] = []kg.Term{kg.Boolean(true)}
	}
	for _, a := range s.Access.Agents {
		r["scopeAgent"] = append(r["scopeAgent"], kg.IRI(string(a)))
	}
	if !s.EndedAt.IsZero() {
		r["scopeEndedAt"] = []kg.Term{kg.DateTime(s.EndedAt)}
	}
	if s.EndReason != "" {
		r["scopeEndReason"] = systemgraph.Values(s.EndReason)
	}
	return r
}

// normalized validates the lists and returns them in canonical form.
func (a ScopeAccess) normalized() (ScopeAccess, error) {
	if n := len(a.Agents); n > MaxScopeAgents {
		return a, errTooMuch("access.agents", "access has %d agents; the limit is %d", n, MaxScopeAgents)
	}
	if n := len(a.Roles); n > MaxScopeRoles {
		return a, errTooMuch("access.roles", "access has %d roles; the limit is %d", n, MaxScopeRoles)
	}
	a.Agents = sortedAgents(a.Agents)
	for _, agent := range a.Agents {
		if err := agent.Valid(); err != nil {
			return a, kg.AsError(err).At("access.agents")
		}
	}
	a.Roles = sortedTexts(a.Roles)
	for _, role := range a.Roles {
		if role == "" || !utf8.ValidString(role) || utf8.RuneCountInString(role) > MaxRoleRunes {
			return a, kg.Errorf(kg.CodeInvalid, "role must be non-empty valid UTF-8 of at most %d characters", MaxRoleRunes).At("access.roles")
		}
	}
	return a, nil
}

// parseCoordinator canonicalizes a coordinator; "" means none.
func parseCoordinator(agent kg.AgentID) (kg.AgentID, error) {
	if agent == "" {
		return "", nil
	}
	agent = kg.CanonicalAgent(string(agent))
	if err := agent.Valid(); err != nil {
		return "", kg.AsError(err).At("coordinator")
	}
	return agent, nil
}
