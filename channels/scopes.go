package channels

import (
	"context"
	"reflect"

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

// Create creates a scope that the caller manages. Any caller can create an intent;
// creating a task requires access to its intent. If the caller has used the idempotency
// key before, it returns the existing scope with Replayed set.
//
// Errors: CodeScopeNotFound and CodeScopeEnded for the parent; CodeInvalid;
// CodeLimitExceeded; CodeIdempotencyConflict for a key that was used for a different
// request; CodeScopeNotFound if the caller has lost access to the scope of the key.
func (s *Scopes) Create(ctx context.Context, by Caller, d scope.Draft) (*scope.Scope, error) {
	agent, err := by.ActingAgent()
	if err != nil {
		return nil, err
	}
	if d.Access, err = d.Access.Normalized(); err != nil {
		return nil, err
	}
	if err := check.Text("title", d.Title, scope.MaxTitleRunes); err != nil {
		return nil, err
	}
	if d.Coordinator, err = scope.ParseCoordinator(d.Coordinator); err != nil {
		return nil, err
	}
	id, err := newID()
	if err != nil {
		return nil, err
	}
	made := &scope.Scope{ID: scope.ID(id), Parent: d.Parent, Title: d.Title, Status: scope.Active, Access: d.Access, Coordinator: d.Coordinator, CreatedBy: agent, Version: 1}
	request, err := newCreationKey("scopes/create", agent, d.IdempotencyKey, made.Parent, made.Title, made.Access, made.Coordinator)
	if err != nil {
		return nil, err
	}
	var earlier kg.Term
	err = systemgraph.Update(ctx, s.store, by.UpdateMeta("scopes/create"), func(tx *kg.Tx) (err error) {
		if earlier, err = request.findEarlier(tx); err != nil || !earlier.IsZero() {
			return err
		}
		if s.table.ScopeCount() >= s.most {
			return check.TooMuch("", "server has %d scopes, which is the limit", s.most)
		}
		if made.Parent != "" {
			if err := s.checkNewTask(made.Parent, by.ReaderPrincipal(agent)); err != nil {
				return err
			}
		}
		made.CreatedAt = tx.Time()
		if err := systemgraph.Write(tx, made.ID.RecordGraph(), made.ID.Entity(), made.ToRecord()); err != nil {
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

func (s *Scopes) checkNewTask(parent scope.ID, reader kg.Principal) error {
	up := s.table.Scope(parent)
	switch {
	case !up.AdmitsPrincipal(reader):
		return errOfParent(scope.ErrNotFound())
	case up.Parent != "":
		return kg.Errorf(kg.CodeInvalid, "parent is a task, which cannot have tasks").At("parent")
	case up.Ended():
		return errOfParent(scope.ErrEnded(up.Status))
	case len(s.table.TasksOf(parent)) >= scope.MaxTasks:
		return check.TooMuch("parent", "scope has the maximum of %d tasks", scope.MaxTasks)
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

// Update changes a scope. It requires the creator or coordinator of the scope or
// of its intent.
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
	return s.alterScope(ctx, by, id, "scopes/update", func(_ *kg.Tx, sc *scope.Scope) error {
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
func (s *Scopes) alterScope(ctx context.Context, by Caller, id scope.ID, method string, change func(*kg.Tx, *scope.Scope) error) (*scope.Scope, error) {
	agent, _, err := s.table.RequireScope(by, id)
	if err != nil {
		return nil, err
	}
	var now *scope.Scope
	err = systemgraph.Update(ctx, s.store, by.UpdateMeta(method), func(tx *kg.Tx) error {
		sc := s.table.Scope(id)
		switch {
		case !sc.AdmitsPrincipal(by.ReaderPrincipal(agent)):
			return scope.ErrNotFound() // access was lost
		case !sc.ManagedBy(agent):
			return check.Denied("only the creator and the coordinator of the scope can do this")
		}
		now = sc.Clone()
		if err := change(tx, now); err != nil {
			return err
		}
		if reflect.DeepEqual(now.ToRecord(), sc.ToRecord()) {
			return nil
		}
		now.Version++
		return systemgraph.Write(tx, id.RecordGraph(), id.Entity(), now.ToRecord())
	})
	return now, err
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
	if err := checkReason(reason); err != nil {
		return nil, err
	}
	return s.alterScope(ctx, by, id, "scopes/end", func(tx *kg.Tx, sc *scope.Scope) error {
		if sc.Ended() {
			return scope.ErrEnded(sc.Status)
		}
		sc.Status, sc.EndedAt, sc.EndReason = status, tx.Time(), reason
		if err := s.closeAllOf(tx, id); err != nil {
			return err
		}
		for _, task := range s.table.TasksOf(id) {
			t := s.table.Scope(task).Clone()
			if t.Ended() {
				continue
			}
			t.Status, t.EndedAt, t.EndReason = status, tx.Time(), reason
			t.Version++
			if err := systemgraph.Write(tx, task.RecordGraph(), task.Entity(), t.ToRecord()); err != nil {
				return err
			}
			if err := s.closeAllOf(tx, task); err != nil {
				return err
			}
		}
		return nil
	})
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
