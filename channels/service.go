package channels

import (
	"context"
	"sync/atomic"

	"golang.org/x/time/rate"

	"koine/channels/channel"
	"koine/channels/internal/access"
	"koine/channels/internal/counting"
	"koine/channels/internal/journal"
	"koine/channels/internal/retention"
	"koine/channels/receipts"
	"koine/internal/jobs"
	"koine/kg"
)

// Caller identifies the source of a request: the authenticated principal and the agent
// that it acts for.
type Caller = access.Caller

// Service manages channels. Create it before the store, because its Guard is part of
// the store's access control, and connect it to the store with Load. Its methods may be
// called concurrently.
type Service struct {
	options       Options
	table         *access.Table
	store         *kg.Store
	journal       *journal.Journal
	rateWindows   *rateWindows
	streams       *openCounts
	signals       *signalHub
	digests       commitDigests
	expiry        *retention.Expirer
	idle          *retention.IdleCloser
	grants        *retention.GrantExpirer
	receipts      *receipts.Receipts
	counter       *counting.Counter
	pendingAsks   atomic.Int64 // calls of Ask and AskAll that wait
	stopObserving func()       // nil before Load
	jobs          *jobs.Group
}

// New returns a service. Call Load before any method other than Guard and Follow.
func New(o Options) *Service {
	s := &Service{options: o.withDefaults(), jobs: jobs.NewGroup(nil)}
	s.idle = retention.NewIdleCloser(s.options.Clock, s.options.pause)
	s.grants = retention.NewGrantExpirer(s.options.Clock, s.options.pause)
	s.table = access.NewTable(s.options.Clock, s.options.Agents, s.idle.Schedule, s.grants.Schedule)
	s.table.SetOversight(access.Oversight{Role: s.options.OverseerRole, Record: s.recordOverseer})
	s.journal = journal.New(s.table, s.options.Clock)
	s.receipts = receipts.NewReceipts(s.table, s.journal, s.options.Clock, s.options.MaxReceipts)
	s.expiry = retention.NewExpirer(s.journal, s.options.Clock, s.options.pause, s.options.MaxQueuedExpiries)
	s.counter = counting.NewCounter(s.table, s.journal, s.options.CountBatch)
	s.rateWindows = &rateWindows{most: s.options.MaxRates, last: map[string][]int64{}}
	s.streams = &openCounts{open: map[string]int{}}
	s.signals = &signalHub{maxListeners: s.options.MaxListeners, maxLimiters: s.options.MaxRates, all: map[*listener]bool{}, listeners: map[channel.ID]map[*listener]bool{}, limiters: map[string]*rate.Limiter{}}
	return s
}

// Guard returns an access control that decides about channel graphs and passes all
// other graphs to next.
func (s *Service) Guard(next kg.Access) *access.Guard {
	return s.table.Guard(next)
}

// Follow applies a commit to the in-memory state (kg.Governor.OnSystemChange).
func (s *Service) Follow(c *kg.Commit) {
	s.table.ApplyCommit(c)
	s.signals.applyCommit(c)
}

// Load reads the channels from the store and starts the background work, which runs
// until Close. It must be called once.
func (s *Service) Load(ctx context.Context, store *kg.Store) error {
	s.store, s.stopObserving = store, s.journal.Open(store)
	snapshot, err := s.journal.SystemView(ctx)
	if err != nil {
		return err
	}
	defer snapshot.Close()
	if err := s.table.Load(snapshot); err != nil {
		return err
	}
	if err := s.expiry.Start(); err != nil {
		return err
	}
	s.receipts.Open(s.jobs, store)
	s.idle.Start(s.jobs, s.table, s.journal)
	s.grants.Start(s.jobs, s.table, store)
	if o := &s.options; o.KeepEnded > 0 {
		retention.StartEndedEvictor(s.jobs, o.KeepEnded, o.endedPause, o.Clock, s.table, s.journal)
	}
	s.jobs.Start("count messages", s.counter.Run)
	if s.options.Presence != nil {
		s.jobs.Start("tell presence", s.tellPresence)
	}
	if s.options.Reviews != nil {
		s.jobs.Start("end expired holds of messages", s.expireHeld)
	}
	return nil
}

// Close stops the background work and waits for it. Call it before closing the store.
func (s *Service) Close() {
	s.signals.close()
	if s.stopObserving != nil {
		s.stopObserving()
	}
	s.expiry.Close()
	s.jobs.Stop()
}

// Receipts returns the part of the service that records which messages their recipients
// received and read.
func (s *Service) Receipts() *receipts.Receipts { return s.receipts }

// Scopes returns the part of the service that manages scopes.
func (s *Service) Scopes() *Scopes {
	return &Scopes{store: s.store, table: s.table, most: s.options.MaxScopes}
}

// Members returns the part of the service for membership.
func (s *Service) Members() *Members { return &Members{service: s} }
