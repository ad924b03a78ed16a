package channels

import (
	"context"
	"reflect"
	"time"

	"koine/channels/channel"
	"koine/channels/internal/access"
	"koine/channels/internal/check"
	"koine/channels/internal/journal"
	"koine/channels/scope"
	"koine/internal/systemgraph"
	"koine/kg"
)

// Scopes is the part of the service that manages scopes.
type Scopes struct {
	store *kg.Store
	table *access.Table
	most  int // scopes of the server
}

// OfChannel returns the scope of a channel that the caller can find, "" for none. It reads
// nothing from the store.
//
// Errors: CodeChannelNotFound.
func (s *Scopes) OfChannel(by Caller, id channel.ID) (scope.ID, error) {
	_, e, err := s.table.RequireDiscoverable(by, id)
	if err != nil {
		return "", err
	}
	return e.Scope, nil
}

// Create creates a scope that the caller manages. Any caller can create an intent;
// creating a task requires the level Write in its intent. If the caller has used the
// idempotency key before, it returns the existing scope with Replayed set.
//
// Errors: CodeScopeNotFound, CodePermissionDenied and CodeScopeEnded for the parent;
// CodeInvalid; CodeLimitExceeded; CodeNameTaken for an external id; CodeIdempotencyConflict
// for a key that was used for a different request; CodeScopeNotFound if the caller has lost
// access to the scope of the key.
func (s *Scopes) Create(ctx context.Context, by Caller, d scope.Draft) (*scope.Scope, error) {
	return s.CreateWith(ctx, by, d, func(*kg.Tx, *scope.Scope) error { return nil })
}

// CreateWith is Create, and calls fn in the commit: it writes the scope's part graphs and
// events. fn is not called for a scope that the idempotency key finds; what it writes is part
// of the request as Draft.Content. It may be called several times, and must not call the
// service.
func (s *Scopes) CreateWith(ctx context.Context, by Caller, d scope.Draft, fn func(tx *kg.Tx, sc *scope.Scope) error) (*scope.Scope, error) {
	agent, err := by.ActingAgent()
	if err != nil {
		return nil, err
	}
	draft, request, err := s.newScope(agent, d)
	if err != nil {
		return nil, err
	}
	var earlier kg.Term
	var made *scope.Scope
	err = systemgraph.Update(ctx, s.store, by.UpdateMeta("scopes/create"), func(tx *kg.Tx) (err error) {
		if earlier, err = request.findEarlier(tx); err != nil || !earlier.IsZero() {
			return err
		}
		if s.table.ScopeCount() >= s.most {
			return check.TooMuch("", "server has %d scopes, which is the limit", s.most)
		}
		made = draft.Clone()
		if made.Parent != "" {
			if err := s.checkNewTask(made, by, tx.Time()); err != nil {
				return err
			}
		}
		made.CreatedAt = tx.Time()
		for i := range made.Grants {
			made.Grants[i].GrantedAt = tx.Time()
		}
		if err := fn(tx, made); err != nil {
			return err
		}
		if err := made.WriteTo(tx, new(scope.Scope)); err != nil {
			return err
		}
		return request.writeTo(tx, made.ID.RecordGraph(), made.ID.Entity())
	})
	if err != nil {
		return nil, err
	}
	if !earlier.IsZero() {
		if made, err = s.Get(ctx, by, scope.IDOf(earlier)); err == nil {
			made.Replayed = true
		}
	}
	return made, err
}

// newScope validates a draft and builds the scope, and the key of the request.
func (s *Scopes) newScope(agent kg.AgentID, d scope.Draft) (made *scope.Scope, request creationKey, err error) {
	if d.Access, err = d.Access.Normalized(); err != nil {
		return nil, request, err
	}
	if err := check.Text("title", d.Title, scope.MaxTitleRunes); err != nil {
		return nil, request, err
	}
	if err := scope.CheckExternalID(d.ExternalID, d.Parent); err != nil {
		return nil, request, err
	}
	if d.Coordinator, err = scope.ParseCoordinator(d.Coordinator); err != nil {
		return nil, request, err
	}
	grants, err := NewGrants(agent, d.Grants)
	if err != nil {
		return nil, request, err
	}
	id, err := newID()
	if err != nil {
		return nil, request, err
	}
	made = &scope.Scope{
		ID: scope.ID(id), Parent: d.Parent, Title: d.Title, Status: scope.Active, Access: d.Access, Coordinator: d.Coordinator,
		ExternalID: d.ExternalID, CreatedBy: agent, Version: 1,
	}
	content := []any{made.Parent, made.Title, made.Access, made.Coordinator}
	if d.ExternalID != "" || len(grants) > 0 || d.Content != "" { // else the key is that of earlier builds
		asked := make([]string, len(grants))
		for i, g := range grants {
			asked[i] = g.Key()
		}
		content = append(content, d.ExternalID, asked, d.Content)
	}
	for _, g := range grants {
		made.AddGrant(g)
	}
	request, err = newCreationKey("scopes/create", agent, d.IdempotencyKey, content...)
	return made, request, err
}

func (s *Scopes) checkNewTask(task *scope.Scope, by Caller, at time.Time) error {
	_, up, err := s.table.RequireLevel(by, task.Parent, scope.Write, at)
	switch {
	case err != nil:
		return errOfParent(kg.AsError(err))
	case up.Parent != "":
		return kg.Errorf(kg.CodeInvalid, "parent is a task, which cannot have tasks").At("parent")
	case up.Ended():
		return errOfParent(scope.ErrEnded(up.Status))
	case len(s.table.TasksOf(task.Parent)) >= scope.MaxTasks:
		return check.TooMuch("parent", "scope has the maximum of %d tasks", scope.MaxTasks)
	case task.ExternalID != "" && s.table.TaskByExternalID(task.Parent, task.ExternalID) != "":
		return scope.ErrExternalIDTaken()
	}
	return nil
}

// errOfParent returns the error with the field parent.
func errOfParent(err *kg.Error) error {
	err.Field = "parent"
	return err
}

// Get returns a scope that the caller has access to.
//
// Errors: CodeScopeNotFound, also without access.
func (s *Scopes) Get(_ context.Context, by Caller, id scope.ID) (*scope.Scope, error) {
	_, sc, err := s.table.RequireScope(by, id)
	if err != nil {
		return nil, err
	}
	return sc.Clone(), nil
}

// List returns the scopes that the caller has access to in order of creation, one
// page at a time. next is "" after the last page. Other pages may be short or empty.
//
// Errors: CodeCursorForeign for a page token of another query or caller.
func (s *Scopes) List(ctx context.Context, by Caller, l scope.ListQuery) (page []*scope.Scope, next string, err error) {
	agent, err := by.ActingAgent()
	if err != nil {
		return nil, "", err
	}
	token := pageToken{store: s.store, bound: boundTo("scopes/list", agent, l.Parent, l.Status)}
	after, err := token.open(l.PageToken)
	if err != nil {
		return nil, "", err
	}
	l.Behind = scope.ID(after)
	page, end, err := s.ListPage(ctx, by, l)
	if err == nil && end != "" {
		next = token.seal(string(end))
	}
	return page, next, err
}

// CountScopes counts the scopes of List, on all pages. exact is false if there may be
// more than MaxCounted.
func (s *Scopes) CountScopes(by Caller, l scope.ListQuery) (n int, exact bool, err error) {
	l.Behind = ""
	for looked := 0; looked < MaxCounted; looked += access.MaxScannedScopes {
		found, last, err := s.findScopes(by, l, MaxCounted)
		if n += len(found); err != nil || last == "" {
			return n, true, err
		}
		l.Behind = last
	}
	return n, false, nil
}

// findScopes returns up to n scopes of a list, and the one behind which it goes on if
// there may be more.
func (s *Scopes) findScopes(by Caller, l scope.ListQuery, n int) (found []*access.Scope, next scope.ID, err error) {
	agent, err := by.ActingAgent()
	if err != nil {
		return nil, "", err
	}
	reader := by.ReaderPrincipal(agent)
	found, next = s.table.ListScopes(l.Behind, l.Backward, n, func(sc *access.Scope) bool {
		return (l.Parent == "" || sc.Parent == l.Parent) && (l.Status == "" || sc.Status == l.Status) && sc.AdmitsPrincipal(reader)
	})
	return found, next, nil
}

// ListPage is List for callers that have cursors of their own: the page begins behind
// the scope ListQuery.Behind, and end is the id behind which the next page begins, ""
// after the last page.
func (s *Scopes) ListPage(_ context.Context, by Caller, l scope.ListQuery) (page []*scope.Scope, end scope.ID, err error) {
	found, end, err := s.findScopes(by, l, pageSize(l.PageSize))
	for _, sc := range found {
		page = append(page, sc.Clone())
	}
	return page, end, err
}

// Update changes a scope. It requires a manager of the scope: the creator and coordinator
// of the scope or of its intent, and an agent with a grant of the level Admin. An assignment
// with the role scope.Coordinates ends if another agent becomes the coordinator.
//
// Errors: CodeScopeNotFound; CodePermissionDenied; CodeVersionConflict; CodeInvalid;
// CodeLimitExceeded.
func (s *Scopes) Update(ctx context.Context, by Caller, id scope.ID, r scope.Update) (*scope.Scope, error) {
	if err := check.Text("title", deref(r.Title), scope.MaxTitleRunes); err != nil {
		return nil, err
	}
	if r.Access != nil {
		access, err := r.Access.Normalized()
		if err != nil {
			return nil, err
		}
		r.Access = &access
	}
	if r.Coordinator != nil {
		coordinator, err := scope.ParseCoordinator(*r.Coordinator)
		if err != nil {
			return nil, err
		}
		r.Coordinator = &coordinator
	}
	return s.Change(ctx, by, id, scope.Admin, "scopes/update", func(_ *kg.Tx, sc *scope.Scope) error {
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

// Change changes a scope in one commit. It requires a level of access. fn receives the scope
// as of the commit: it may change it, write its part graphs and append events. The version
// increases with each change that Update and End can make. fn may be called several times, and
// must not call the service, but EndIn.
//
// Errors: CodeScopeNotFound; CodePermissionDenied; CodeLimitExceeded for too many grants or
// assignments; those of fn.
func (s *Scopes) Change(ctx context.Context, by Caller, id scope.ID, need scope.Level, method string, fn func(tx *kg.Tx, sc *scope.Scope) error) (*scope.Scope, error) {
	if _, _, err := s.table.RequireScope(by, id); err != nil {
		return nil, err
	}
	var now *scope.Scope
	err := systemgraph.Update(ctx, s.store, by.UpdateMeta(method), func(tx *kg.Tx) error {
		_, sc, err := s.table.RequireLevel(by, id, need, tx.Time())
		if err != nil {
			return err
		}
		now = sc.Clone()
		if err := fn(tx, now); err != nil {
			return err
		}
		return s.writeChanged(tx, &sc.Scope, now)
	})
	return now, err
}

// writeChanged writes the changes of a scope.
func (s *Scopes) writeChanged(tx *kg.Tx, before, now *scope.Scope) error {
	if now.Coordinator != before.Coordinator {
		now.RemoveCoordination()
	}
	if err := now.CheckBounds(); err != nil {
		return err
	}
	if !reflect.DeepEqual(now.ToRecord(), before.ToRecord()) {
		now.Version++
	}
	return now.WriteTo(tx, before)
}

// LevelOf returns the caller's level of access to a scope.
//
// Errors: CodeScopeNotFound without access.
func (s *Scopes) LevelOf(by Caller, id scope.ID) (scope.Level, error) {
	agent, sc, err := s.table.RequireScope(by, id)
	if err != nil {
		return "", err
	}
	level := sc.LevelFor(by.ReaderPrincipal(agent))
	if level == "" { // a grant has expired since
		err = scope.ErrNotFound()
	}
	return level, err
}

// TaskByExternalID returns the task of an intent that has this external id.
//
// Errors: CodeScopeNotFound, also without access to the task or the intent.
func (s *Scopes) TaskByExternalID(ctx context.Context, by Caller, intent scope.ID, external string) (*scope.Scope, error) {
	if _, _, err := s.table.RequireScope(by, intent); err != nil {
		return nil, err
	}
	return s.Get(ctx, by, s.table.TaskByExternalID(intent, external))
}

// End ends a scope and its tasks, and closes all of their channels in the same
// commit. It requires a manager of the scope.
//
// Errors: CodeInvalid for a status that is not final; CodeScopeEnded; those of
// Scopes.Update.
func (s *Scopes) End(ctx context.Context, by Caller, id scope.ID, status scope.Status, reason string) (*scope.Scope, error) {
	if status != scope.Completed && status != scope.Abandoned {
		return nil, kg.Errorf(kg.CodeInvalid, "status must be completed or abandoned, not %.60q", status).At("status")
	}
	if err := checkReason("reason", reason); err != nil {
		return nil, err
	}
	return s.Change(ctx, by, id, scope.Admin, "scopes/end", func(tx *kg.Tx, sc *scope.Scope) error {
		return s.EndIn(tx, sc, status, reason)
	})
}

// EndIn is the part of End within the function of Change, which it receives its scope from.
// status must be final.
//
// Errors: CodeScopeEnded.
func (s *Scopes) EndIn(tx *kg.Tx, sc *scope.Scope, status scope.Status, reason string) error {
	if sc.Ended() {
		return scope.ErrEnded(sc.Status)
	}
	sc.Status, sc.EndedAt, sc.EndReason = status, tx.Time(), reason
	if err := s.closeAllOf(tx, sc.ID); err != nil {
		return err
	}
	for _, task := range s.table.TasksOf(sc.ID) {
		before := &s.table.Scope(task).Scope
		t := before.Clone()
		if t.Ended() {
			continue
		}
		t.Status, t.EndedAt, t.EndReason = status, tx.Time(), reason
		t.Version++
		if err := t.WriteTo(tx, before); err != nil {
			return err
		}
		if err := s.closeAllOf(tx, task); err != nil {
			return err
		}
	}
	return nil
}

// closeAllOf closes the open channels of a scope.
func (s *Scopes) closeAllOf(tx *kg.Tx, id scope.ID) error {
	for _, of := range s.table.ChannelsOf(id) {
		if e := s.table.Get(of); e.Deleted || e.Status() == channel.Closed {
			continue
		}
		_, err := channel.ChangeRecord(tx, of, func(w *channel.Writer, c *channel.Channel) error {
			if err := journal.MustBeOpen(tx, c); kg.CodeOf(err) == kg.CodeChannelClosed {
				return journal.CloseExpired(w, c) // the idle timeout was first
			} else if err != nil {
				return err
			}
			w.Close(c, tx.Time(), channel.ReasonEnded)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
