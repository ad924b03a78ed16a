package channels

import (
	"context"
	"sync/atomic"

	"golang.org/x/time/rate"

	"koine/channels/channel"
	"koine/channels/internal/access"
	"koine/channels/message"
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
	rateWindows   *rateWindows
	streams       *openCounts
	signals       *signalHub
	expiry        *messageExpirer
	idle          *idleQueue
	receipts      *receiptQueue
	counter       *messageCounter
	pendingAsks   atomic.Int64 // calls of Ask and AskAll that wait
	decoded       decodedCache
	revised       revisedIndex
	stopObserving func() // nil before Load
	jobs          *jobs.Group
}

// New returns a service. Call Load before any method other than Guard and Follow.
func New(o Options) *Service {
	s := &Service{options: o.withDefaults(), jobs: jobs.NewGroup(nil)}
	s.idle = newIdleQueue()
	s.table = access.NewTable(s.options.Clock, s.options.Agents, s.idle.schedule)
	s.counter = newMessageCounter(s)
	s.rateWindows = &rateWindows{most: s.options.MaxRates, last: map[string][]int64{}}
	s.streams = &openCounts{open: map[string]int{}}
	s.signals = &signalHub{maxListeners: s.options.MaxListeners, maxLimiters: s.options.MaxRates, listeners: map[channel.ID]map[*listener]bool{}, limiters: map[string]*rate.Limiter{}}
	return s
}

// Guard returns an access control that decides about channel graphs and passes all
// other graphs to next.
func (s *Service) Guard(next kg.Access) *access.Guard {
	return s.table.Guard(next)
}

// Follow applies a commit to the in-memory state (kg.Options.OnSystemChange).
func (s *Service) Follow(c *kg.Commit) {
	s.table.ApplyCommit(c)
	s.signals.applyCommit(c)
}

// Load reads the channels from the store and starts the background work, which runs
// until Close. It must be called once.
func (s *Service) Load(ctx context.Context, store *kg.Store) error {
	s.store, s.stopObserving = store, store.Observe(s.observeCommit)
	snapshot, err := s.systemView(ctx)
	if err != nil {
		return err
	}
	defer snapshot.Close()
	if err := s.table.Load(snapshot); err != nil {
		return err
	}
	if err := s.startExpiry(); err != nil {
		return err
	}
	s.startReceipts()
	s.jobs.Start("close idle channels", s.runIdleCloser)
	s.jobs.Start("count messages", s.counter.run)
	return nil
}

// Close stops the background work and waits for it. Call it before closing the store.
func (s *Service) Close() {
	s.signals.close()
	if s.stopObserving != nil {
		s.stopObserving()
	}
	if s.expiry != nil {
		s.expiry.jobs.Stop()
	}
	s.jobs.Stop()
}

// systemView returns a snapshot of all graphs.
func (s *Service) systemView(ctx context.Context) (*kg.Snapshot, error) {
	return s.store.View(ctx, kg.View{Principal: kg.SystemPrincipal(), AllGraphs: true})
}

// viewerOf returns a viewer for the agent at the current time.
func (s *Service) viewerOf(agent kg.AgentID) message.Viewer {
	return message.Viewer{Agent: agent, Now: s.options.Clock()}
}
