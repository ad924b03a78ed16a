package channels

import (
	"context"
	"sync/atomic"

	"github.com/tidwall/btree"
	"golang.org/x/time/rate"

	"koine/kg"
)

// Service keeps channels. It is made before the store, in front of whose Access it
// stands, and bound to it by Load. Its methods may be called concurrently.
type Service struct {
	options       Options
	table         table
	store         *kg.Store
	rateWindows   *rateWindows
	streams       *openCounts // that are open
	signals       *signalHub
	expiry        *messageExpirer
	receipts      *receiptQueue
	counter       *messageCounter
	pendingAsks   atomic.Int64 // how many wait for responses
	decoded       decodedCache
	revised       revisedIndex
	stopObserving func() // commits, from when it is closed
}

// New makes a service.
func New(o Options) *Service {
	s := &Service{options: o.withDefaults()}
	s.table.byMember = make(map[kg.AgentID]*btree.Set[ChannelID])
	s.table.byPartition = make(map[kg.AgentID]*btree.Set[ChannelID])
	s.table.invited = make(map[kg.AgentID]*btree.Set[ChannelID])
	s.table.now, s.table.idle = s.options.Clock, newIdleQueue()
	s.counter = newMessageCounter(s)
	s.rateWindows = &rateWindows{most: s.options.MaxRates, last: map[string][]int64{}}
	s.streams = &openCounts{open: map[string]int{}}
	s.signals = &signalHub{maxListeners: s.options.MaxListeners, maxLimiters: s.options.MaxRates, listeners: map[ChannelID]map[*listener]bool{}, limiters: map[string]*rate.Limiter{}}
	return s
}

// Guard puts the access to channels in front of another.
func (s *Service) Guard(next kg.Access) *Guard {
	s.table.version = kg.VersionOf(next)
	return &Guard{Front: kg.Front{Access: next}, table: &s.table}
}

// Follow takes a commit (kg.Options.OnSystemChange).
func (s *Service) Follow(c *kg.Commit) {
	s.table.applyCommit(c)
	s.signals.applyCommit(c)
}

// Load reads the channels that the store has, and begins to write down what expires,
// until Close. It is called once, before any other method.
func (s *Service) Load(ctx context.Context, store *kg.Store) error {
	s.store, s.stopObserving = store, store.Observe(s.observeCommit)
	snapshot, err := s.systemView(ctx)
	if err != nil {
		return err
	}
	defer snapshot.Close()
	var ids []ChannelID
	for st, err := range snapshot.Match(kg.Pattern{Predicate: rdfType, Object: ClassChannel}) {
		if err != nil {
			return err
		}
		if id, part := channelOfGraph(st.Graph); part == recordPart && st.Subject == id.Entity() {
			ids = append(ids, id)
		}
	}
	lanes := partitionReaders{}
	for st, err := range snapshot.Match(kg.Pattern{Predicate: propLaneReader}) {
		if err != nil {
			return err
		}
		lanes.applyStatement(st.Quad)
	}
	var everywhere restrictions
	for st, err := range snapshot.Match(kg.Pattern{Subject: serverEntity, Graph: kg.SystemGraph}) {
		if err != nil {
			return err
		}
		everywhere.applyStatement(st.Predicate, st.Object, &st.Assertions[0])
	}
	s.table.mu.Lock()
	defer s.table.mu.Unlock()
	s.table.addPartitions(lanes)
	s.table.serverWide.Store(&everywhere)
	s.table.scheduleRestrictionEnds(everywhere)
	s.table.appliedRevision = max(s.table.appliedRevision, snapshot.Revision())
	if err := s.loadScopes(snapshot); err != nil {
		return err
	}
	for _, id := range ids {
		c, err := readChannel(snapshot.Match, id)
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

// Close ends what the service does by itself, and waits for it. Call it before the
// store is closed.
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

// systemView reads everything there is.
func (s *Service) systemView(ctx context.Context) (*kg.Snapshot, error) {
	return s.store.View(ctx, kg.View{Principal: kg.SystemPrincipal(), AllGraphs: true})
}

// requireReadable gives the channel as it is to be decided by, for an agent that may read it.
// Who may find it only is refused; for anybody else it is not there.
func (s *Service) requireReadable(by Caller, id ChannelID) (kg.AgentID, *entry, error) {
	agent, e, err := s.requireDiscoverable(by, id)
	if err == nil {
		err = e.mustRead(agent)
	}
	if err != nil {
		return "", nil, err
	}
	return agent, e, nil
}

// requireDiscoverable is see for an agent that may find the channel.
func (s *Service) requireDiscoverable(by Caller, id ChannelID) (kg.AgentID, *entry, error) {
	agent, err := by.actingAgent()
	if err != nil {
		return "", nil, err
	}
	if !id.isValid() {
		return "", nil, errNoChannel()
	}
	e := s.table.get(id)
	if e == nil {
		e = s.pendingDirect(id, agent)
	}
	e = e.asPrincipal(by.readerPrincipal(agent)).seenBy(by)
	if !e.canDiscover(agent) {
		return "", nil, errNoChannel()
	}
	return agent, e, nil
}
