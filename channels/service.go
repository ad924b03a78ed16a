package channels

import (
	"context"
	"sync/atomic"

	"github.com/tidwall/btree"
	"golang.org/x/time/rate"

	"koine/channels/channel"
	"koine/channels/internal/vocab"
	"koine/channels/message"
	"koine/kg"
)

// Service manages channels. Create it before the store, because its Guard is part of
// the store's access control, and connect it to the store with Load. Its methods may be
// called concurrently.
type Service struct {
	options       Options
	table         table
	store         *kg.Store
	rateWindows   *rateWindows
	streams       *openCounts
	signals       *signalHub
	expiry        *messageExpirer
	receipts      *receiptQueue
	counter       *messageCounter
	pendingAsks   atomic.Int64 // calls of Ask and AskAll that wait
	decoded       decodedCache
	revised       revisedIndex
	stopObserving func() // nil before Load
}

// New returns a service. Call Load before any method other than Guard and Follow.
func New(o Options) *Service {
	s := &Service{options: o.withDefaults()}
	s.table.byMember = make(map[kg.AgentID]*btree.Set[channel.ID])
	s.table.byPartition = make(map[kg.AgentID]*btree.Set[channel.ID])
	s.table.invited = make(map[kg.AgentID]*btree.Set[channel.ID])
	s.table.now, s.table.idle = s.options.Clock, newIdleQueue()
	s.counter = newMessageCounter(s)
	s.rateWindows = &rateWindows{most: s.options.MaxRates, last: map[string][]int64{}}
	s.streams = &openCounts{open: map[string]int{}}
	s.signals = &signalHub{maxListeners: s.options.MaxListeners, maxLimiters: s.options.MaxRates, listeners: map[channel.ID]map[*listener]bool{}, limiters: map[string]*rate.Limiter{}}
	return s
}

// Guard returns an access control that decides about channel graphs and passes all
// other graphs to next.
func (s *Service) Guard(next kg.Access) *Guard {
	s.table.version = kg.VersionOf(next)
	return &Guard{Front: kg.Front{Access: next}, table: &s.table}
}

// Follow applies a commit to the in-memory state (kg.Options.OnSystemChange).
func (s *Service) Follow(c *kg.Commit) {
	s.table.applyCommit(c)
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
	var ids []channel.ID
	for st, err := range snapshot.Match(kg.Pattern{Predicate: vocab.Type, Object: vocab.ClassChannel}) {
		if err != nil {
			return err
		}
		if id, part := channel.OfGraph(st.Graph); part == channel.RecordPart && st.Subject == id.Entity() {
			ids = append(ids, id)
		}
	}
	partitions := partitionReaders{}
	for st, err := range snapshot.Match(kg.Pattern{Predicate: vocab.LaneReader}) {
		if err != nil {
			return err
		}
		partitions.applyStatement(st.Quad)
	}
	var serverWide channel.Restrictions
	for st, err := range snapshot.Match(kg.Pattern{Subject: channel.ServerEntity, Graph: kg.SystemGraph}) {
		if err != nil {
			return err
		}
		serverWide.ApplyStatement(st.Predicate, st.Object, &st.Assertions[0])
	}
	s.table.mu.Lock()
	defer s.table.mu.Unlock()
	s.table.addPartitions(partitions)
	s.table.serverWide.Store(&serverWide)
	s.table.scheduleRestrictionEnds(serverWide)
	s.table.appliedRevision = max(s.table.appliedRevision, snapshot.Revision())
	if err := s.loadScopes(snapshot); err != nil {
		return err
	}
	for _, id := range ids {
		c, err := channel.ReadRecord(snapshot.Match, id)
		if err != nil {
			return err
		}
		s.table.putChannel(c)
	}
	if err := s.startExpiry(); err != nil {
		return err
	}
	s.startReceipts()
	s.startIdleCloser()
	s.counter.start()
	return nil
}

// Close stops the background work and waits for it. Call it before closing the store.
func (s *Service) Close() {
	s.signals.close()
	if s.stopObserving != nil {
		s.stopObserving()
	}
	if s.expiry != nil {
		s.receipts.close()
		s.expiry.close()
	}
	s.table.idle.close()
	s.counter.close()
}

// systemView returns a snapshot of all graphs.
func (s *Service) systemView(ctx context.Context) (*kg.Snapshot, error) {
	return s.store.View(ctx, kg.View{Principal: kg.SystemPrincipal(), AllGraphs: true})
}

// requireReadable returns the agent and the entry of a channel that it can read. The
// error is CodePermissionDenied if the agent can only find the channel, and
// CodeChannelNotFound otherwise.
func (s *Service) requireReadable(by Caller, id channel.ID) (kg.AgentID, *entry, error) {
	agent, e, err := s.requireDiscoverable(by, id)
	if err == nil {
		err = e.mustRead(agent)
	}
	if err != nil {
		return "", nil, err
	}
	return agent, e, nil
}

// requireDiscoverable is like requireReadable for a channel that the agent can find.
func (s *Service) requireDiscoverable(by Caller, id channel.ID) (kg.AgentID, *entry, error) {
	agent, err := by.actingAgent()
	if err != nil {
		return "", nil, err
	}
	if !id.IsValid() {
		return "", nil, channel.ErrNotFound()
	}
	e := s.table.get(id)
	if e == nil {
		e = s.pendingDirect(id, agent)
	}
	e = e.asPrincipal(by.readerPrincipal(agent)).seenBy(by)
	if !e.canDiscover(agent) {
		return "", nil, channel.ErrNotFound()
	}
	return agent, e, nil
}

// viewerOf returns a viewer for the agent at the current time.
func (s *Service) viewerOf(agent kg.AgentID) message.Viewer {
	return message.Viewer{agent, s.options.Clock()}
}
