package intents

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"koine/channels"
	"koine/channels/scope"
	"koine/internal/jobs"
	"koine/internal/plainjson"
	"koine/internal/systemgraph"
	"koine/kg"
)

// Options configures a Service. The zero value is ready.
type Options struct {
	Clock func() time.Time // time.Now if nil

	// For tests: the time between two checks for expired leases, and bounds of a size that a
	// test reaches.
	pause  time.Duration
	bounds *bounds
}

// bounds are the numbers of records of each kind that a Service keeps and lists.
type bounds struct {
	Leases, Requests, CallerRequests, ListedRequests, Portfolios, CreatorPortfolios, PortfolioPageBytes, PortfolioIntents, IntentPortfolios, Counted int
}

var defaultBounds = &bounds{
	Leases: MaxLeases, Requests: MaxRequests, CallerRequests: MaxCallerRequests, ListedRequests: MaxListedRequests, Portfolios: MaxPortfolios,
	CreatorPortfolios: MaxCreatorPortfolios, PortfolioPageBytes: MaxPortfolioPageBytes, PortfolioIntents: MaxPortfolioIntents, IntentPortfolios: MaxIntentPortfolios, Counted: MaxCounted,
}

// Service manages intents. Its methods may be called concurrently.
type Service struct {
	store    *kg.Store
	channels *channels.Service
	scopes   *channels.Scopes
	clock    func() time.Time
	bounds   *bounds
	jobs     *jobs.Group
	expiry   *leaseExpirer
}

// New returns a service of the intents in the store. c manages their scopes. What expires is
// recorded between Start and Close.
func New(store *kg.Store, c *channels.Service, o Options) *Service {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	return &Service{
		store: store, channels: c, scopes: c.Scopes(), clock: o.Clock, bounds: cmp.Or(o.bounds, defaultBounds),
		jobs: jobs.NewGroup(nil), expiry: newLeaseExpirer(store, o.Clock, cmp.Or(o.pause, expiryPause)),
	}
}

// Start starts the background work of the service, which runs until Close. One service of a
// store is started, once.
func (s *Service) Start(ctx context.Context) error { return s.expiry.start(ctx, s.jobs) }

// Close stops the background work and waits for it. Call it before closing the store.
func (s *Service) Close() {
	s.expiry.stop()
	s.jobs.Stop()
}

// Leases returns the part of the service for leases.
func (s *Service) Leases() *Leases { return &Leases{s.store, s.scopes, s.clock, s.bounds} }

// Tasks returns the part of the service for tasks.
func (s *Service) Tasks() *Tasks { return &Tasks{s.store, s.scopes} }

// Requests returns the part of the service for access requests.
func (s *Service) Requests() *Requests { return &Requests{s.store, s.scopes, s.bounds} }

// Portfolios returns the part of the service for portfolios.
func (s *Service) Portfolios() *Portfolios { return &Portfolios{s.store, s.scopes, s.bounds} }

// NewIntent describes an intent to create.
type NewIntent struct {
	Title, Description string
	// Parent and DependsOn name intents that the caller sees.
	Parent                         scope.ID
	DependsOn                      []scope.ID
	Constraints, State, Governance []byte // JSON, as in Intent
	Status                         Status // Draft if ""; not final
	Confidence                     float64
	// Access, Grants and Coordinator are those of the scope.
	Access      scope.Access
	Grants      []scope.Grant
	Coordinator kg.AgentID
	// IdempotencyKey works as in scope.Draft.
	IdempotencyKey string
}

// Create creates an intent, which the caller manages. If the caller has used the idempotency
// key before, it returns the existing intent with Replayed set.
//
// Errors: CodeScopeNotFound for a parent or a dependency that the caller does not see;
// CodeInvalid; CodeLimitExceeded; those of channels.Scopes.Create.
func (s *Service) Create(ctx context.Context, by channels.Caller, d NewIntent) (*Intent, error) {
	draft, err := s.newIntent(by, d)
	if err != nil {
		return nil, err
	}
	content, err := plainjson.Encode([]any{draft.Description, draft.Parent, draft.DependsOn, draft.Constraints, draft.State, draft.Governance, draft.Status, draft.Confidence})
	if err != nil {
		return nil, err
	}
	sd := scope.Draft{Title: d.Title, Access: d.Access, Grants: d.Grants, Coordinator: d.Coordinator, Content: string(content), IdempotencyKey: d.IdempotencyKey}
	var made *Intent
	sc, err := s.scopes.CreateWith(ctx, by, sd, func(tx *kg.Tx, sc *scope.Scope) error {
		it := *draft
		it.ID, it.Title, it.CreatedBy, it.CreatedAt, it.UpdatedAt = sc.ID, sc.Title, sc.CreatedBy, tx.Time(), tx.Time()
		if err := systemgraph.WriteOver(tx, recordGraph(sc.ID), sc.ID.Entity(), nil, it.toRecord()); err != nil {
			return err
		}
		made = &it
		return appendEvent(tx, sc.ID, EventCreated, sc.CreatedBy, map[string]any{"title": it.Title, "status": it.Status, "version": it.Version})
	})
	if err != nil {
		return nil, err
	}
	if sc.Replayed {
		return s.read(ctx, by, sc)
	}
	return made, nil
}

// newIntent validates the draft.
func (s *Service) newIntent(by channels.Caller, d NewIntent) (it *Intent, err error) {
	it = &Intent{Description: d.Description, Parent: d.Parent, Status: d.Status, Confidence: d.Confidence, Version: 1}
	if it.Status == "" {
		it.Status = Draft
	}
	if err := it.Status.check(); err != nil {
		return nil, err
	}
	if it.Status.IsFinal() {
		return nil, kg.Errorf(kg.CodeInvalid, "an intent cannot begin %s", it.Status).At("status")
	}
	if err := checkText("description", d.Description, MaxDescriptionRunes); err != nil {
		return nil, err
	}
	if math.IsNaN(d.Confidence) || d.Confidence < 0 || d.Confidence > MaxConfidence {
		return nil, kg.Errorf(kg.CodeInvalid, "confidence must be from 0 to %d", MaxConfidence).At("confidence")
	}
	if it.Constraints, err = checkJSON("constraints", d.Constraints, MaxConstraintsBytes, "{["); err != nil {
		return nil, err
	}
	if it.Governance, err = checkJSON("governance", d.Governance, MaxGovernanceBytes, "{"); err != nil {
		return nil, err
	}
	if it.State, err = checkJSON("state", d.State, MaxStateBytes, "{"); err != nil {
		return nil, err
	}
	if it.State == nil {
		it.State = emptyObject
	}
	if it.Parent != "" {
		if _, err := s.scopes.LevelOf(by, it.Parent); err != nil {
			return nil, kg.AsError(err).At("parent")
		}
	}
	it.DependsOn = slices.Compact(slices.Sorted(slices.Values(d.DependsOn)))
	if n := len(it.DependsOn); n > MaxDependsOn {
		return nil, errTooMany("dependsOn", "intents", n, MaxDependsOn)
	}
	for _, id := range it.DependsOn {
		if _, err := s.scopes.LevelOf(by, id); err != nil {
			return nil, kg.AsError(err).At("dependsOn")
		}
	}
	return it, nil
}

// Get returns an intent.
//
// Errors: CodeScopeNotFound, also without access, and for a task.
func (s *Service) Get(ctx context.Context, by channels.Caller, id scope.ID) (*Intent, error) {
	sc, err := s.scopes.Get(ctx, by, id)
	if err != nil {
		return nil, err
	}
	if sc.Parent != "" {
		return nil, scope.ErrNotFound()
	}
	return s.read(ctx, by, sc)
}

// read reads the intent of a scope that the caller saw.
func (s *Service) read(ctx context.Context, by channels.Caller, sc *scope.Scope) (it *Intent, err error) {
	err = viewPart(ctx, s.store, by, func(snapshot *kg.Snapshot) (err error) {
		it, err = s.readIn(snapshot, by, sc)
		return err
	})
	return it, err
}

// readIn reads the intent of a scope that the caller saw before the snapshot.
func (s *Service) readIn(snapshot *kg.Snapshot, by channels.Caller, sc *scope.Scope) (*Intent, error) {
	it, err := readIntent(snapshot.Match, sc)
	if err == nil { // without access the record is missing, which does not make an intent without a record
		_, err = s.scopes.LevelOf(by, sc.ID)
	}
	return it, err
}

// ListQuery selects intents.
type ListQuery struct {
	// Status, if set, excludes intents with another one.
	Status Status
	// Behind is the intent behind which the page begins, "" for the first page. With Backward
	// the newest intents come first.
	Behind   scope.ID
	Backward bool
	// PageSize is clamped to 1…channels.MaxPage; channels.DefaultPage if 0.
	PageSize int
}

// List returns the intents that the caller has access to in order of creation, one page at a
// time. next is the intent behind which the next page begins, "" after the last page. Other
// pages may be short or empty.
func (s *Service) List(ctx context.Context, by channels.Caller, q ListQuery) (page []*Intent, next scope.ID, err error) {
	if q.Status != "" {
		if err := q.Status.check(); err != nil {
			return nil, "", err
		}
	}
	list, next, err := s.scopes.ListPage(ctx, by, scope.ListQuery{PageSize: q.PageSize, Behind: q.Behind, Backward: q.Backward})
	if err != nil {
		return nil, "", err
	}
	err = viewPart(ctx, s.store, by, func(snapshot *kg.Snapshot) error {
		for _, sc := range list {
			if sc.Parent != "" {
				continue
			}
			it, err := s.readIn(snapshot, by, sc)
			if kg.CodeOf(err) == kg.CodeScopeNotFound {
				continue
			}
			if err != nil {
				return err
			}
			if q.Status == "" || it.Status == q.Status {
				page = append(page, it)
			}
		}
		return nil
	})
	return page, next, err
}

// MaxCounted bounds the intents that Count looks at: the status of each is in its record.
const MaxCounted = 10_000

// Count counts the intents of List, on all pages. exact is false if there may be more, behind
// MaxCounted.
func (s *Service) Count(ctx context.Context, by channels.Caller, status Status) (n int64, exact bool, err error) {
	q := ListQuery{Status: status, PageSize: channels.MaxPage}
	for looked := 0; looked < s.bounds.Counted; looked += q.PageSize {
		q.PageSize = min(q.PageSize, s.bounds.Counted-looked)
		page, next, err := s.List(ctx, by, q)
		if n += int64(len(page)); err != nil || next == "" {
			return n, true, err
		}
		q.Behind = next
	}
	return n, false, nil
}

// SetStatus changes the status of an intent. version must be the current one. It requires the
// level Write. Completed and Abandoned are final: they end the scope with its tasks and close
// their channels, in the same commit.
//
// Errors: those of PatchState.
func (s *Service) SetStatus(ctx context.Context, by channels.Caller, id scope.ID, version int64, status Status, reason string) (*Intent, error) {
	if err := status.check(); err != nil {
		return nil, err
	}
	if err := checkText("reason", reason, MaxReasonRunes); err != nil {
		return nil, err
	}
	return s.change(ctx, by, id, version, "intents/setStatus", func(tx *kg.Tx, sc *scope.Scope, it *Intent) (string, map[string]any, error) {
		it.Status = status
		data := map[string]any{"status": status, "version": it.Version}
		if reason != "" {
			data["reason"] = reason
		}
		if status.IsFinal() {
			if err := s.scopes.EndIn(tx, sc, scope.Status(status), reason); err != nil {
				return "", nil, err
			}
		}
		return EventStatusChanged, data, nil
	})
}

// change changes the state or the status of an intent. fn receives the intent with its next
// version, and returns the event.
func (s *Service) change(ctx context.Context, by channels.Caller, id scope.ID, version int64, method string, fn func(*kg.Tx, *scope.Scope, *Intent) (kind string, data map[string]any, err error)) (*Intent, error) {
	agent, err := by.ActingAgent()
	if err != nil {
		return nil, err
	}
	var now *Intent
	_, err = s.scopes.Change(ctx, by, id, scope.Write, method, func(tx *kg.Tx, sc *scope.Scope) error {
		if sc.Parent != "" {
			return scope.ErrNotFound()
		}
		it, err := readIntent(tx.MatchOwn, sc)
		if err != nil {
			return err
		}
		if sc.Ended() {
			return scope.ErrEnded(sc.Status)
		}
		if it.Version != version {
			return errVersion("intent", it.Version, version)
		}
		it.Version++
		it.UpdatedAt = tx.Time()
		kind, data, err := fn(tx, sc, it)
		if err != nil {
			return err
		}
		if err := systemgraph.Write(tx, recordGraph(id), id.Entity(), it.toRecord()); err != nil {
			return err
		}
		now = it
		return appendEvent(tx, id, kind, agent, data)
	})
	return now, err
}

// End ends a scope as channels.Scopes.End does, and, if it is an intent, records its status
// with an event. It requires the level scope.Admin.
//
// Errors: those of channels.Scopes.End.
func (s *Service) End(ctx context.Context, by channels.Caller, id scope.ID, status scope.Status, reason string) (*scope.Scope, error) {
	agent, err := by.ActingAgent()
	if err != nil {
		return nil, err
	}
	if status != scope.Completed && status != scope.Abandoned {
		return nil, kg.Errorf(kg.CodeInvalid, "status must be completed or abandoned, not %.60q", status).At("status")
	}
	if err := checkText("reason", reason, MaxReasonRunes); err != nil {
		return nil, err
	}
	return s.scopes.Change(ctx, by, id, scope.Admin, "scopes/end", func(tx *kg.Tx, sc *scope.Scope) error {
		it, err := readIntent(tx.MatchOwn, sc)
		if err != nil {
			return err
		}
		if err := s.scopes.EndIn(tx, sc, status, reason); err != nil || sc.Parent != "" {
			return err
		}
		it.Status, it.UpdatedAt = Status(status), tx.Time()
		it.Version++
		if err := systemgraph.Write(tx, recordGraph(id), id.Entity(), it.toRecord()); err != nil {
			return err
		}
		data := map[string]any{"status": it.Status, "version": it.Version}
		if reason != "" {
			data["reason"] = reason
		}
		return appendEvent(tx, id, EventStatusChanged, agent, data)
	})
}
