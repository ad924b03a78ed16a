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
	options  Options
	table    table
	store    *kg.Store
	rates    *rates
	streams  *counts // that are open
	signals  *signals
	expiry   *expiry
	receipts *receiptQueue
	counting *counting
	asking   atomic.Int64 // how many wait for responses
	decoded  decoded
	revised  revised
	ignore   func() // commits, from when it is closed
}

// New makes a service.
func New(o Options) *Service {
	s := &Service{options: o.withDefaults()}
	s.table.byMember = make(map[kg.AgentID]*btree.Set[ChannelID])
	s.table.byLane = make(map[kg.AgentID]*btree.Set[ChannelID])
	s.table.invited = make(map[kg.AgentID]*btree.Set[ChannelID])
	s.table.now, s.table.lapses = s.options.Clock, newLapses()
	s.counting = newCounting(s)
	s.rates = &rates{most: s.options.MaxRates, last: map[string][]int64{}}
	s.streams = &counts{open: map[string]int{}}
	s.signals = &signals{mostListeners: s.options.MaxListeners, mostPaces: s.options.MaxRates, listeners: map[ChannelID]map[*listener]bool{}, paces: map[string]*rate.Limiter{}}
	return s
}

// Guard puts the access to channels in front of another.
func (s *Service) Guard(next kg.Access) *Guard {
	s.table.version = kg.VersionOf(next)
	return &Guard{Front: kg.Front{Access: next}, table: &s.table}
}

// Follow takes a commit (kg.Options.OnSystemChange).
func (s *Service) Follow(c *kg.Commit) {
	s.table.follow(c)
	s.signals.follow(c)
}

// Load reads the channels that the store has, and begins to write down what expires,
// until Close. It is called once, before any other method.
func (s *Service) Load(ctx context.Context, store *kg.Store) error {
	s.store, s.ignore = store, store.Observe(s.followMessages)
	snapshot, err := s.system(ctx)
	if err != nil {
		return err
	}
	defer snapshot.Close()
	var ids []ChannelID
	for st, err := range snapshot.Match(kg.Pattern{Predicate: rdfType, Object: ClassChannel}) {
		if err != nil {
			return err
		}
		if id, part := channelOf(st.Graph); part == recordPart && st.Subject == id.Entity() {
			ids = append(ids, id)
		}
	}
	lanes := laneReaders{}
	for st, err := range snapshot.Match(kg.Pattern{Predicate: propLaneReader}) {
		if err != nil {
			return err
		}
		lanes.take(st.Quad)
	}
	var everywhere bars
	for st, err := range snapshot.Match(kg.Pattern{Subject: serverEntity, Graph: kg.SystemGraph}) {
		if err != nil {
			return err
		}
		everywhere.take(st.Predicate, st.Object, &st.Assertions[0])
	}
	s.table.mu.Lock()
	defer s.table.mu.Unlock()
	s.table.keep(lanes)
	s.table.barred.Store(&everywhere)
	s.table.wake(everywhere)
	s.table.followed = max(s.table.followed, snapshot.Revision())
	if err := s.loadScopes(snapshot); err != nil {
		return err
	}
	for _, id := range ids {
		c, err := readChannel(snapshot.Match, id)
		if err != nil {
			return err
		}
		s.table.put(c)
	}
	if err := s.startExpiry(); err != nil {
		return err
	}
	s.startReceipts()
	s.startLapses()
	s.counting.start()
	return nil
}

// Close ends what the service does by itself, and waits for it. Call it before the
// store is closed.
func (s *Service) Close() {
	s.signals.close()
	if s.ignore != nil {
		s.ignore()
	}
	if s.expiry != nil {
		s.receipts.close()
		s.expiry.close()
	}
	s.table.lapses.close()
	s.counting.close()
}

// system reads everything there is.
func (s *Service) system(ctx context.Context) (*kg.Snapshot, error) {
	return s.store.View(ctx, kg.View{Principal: kg.SystemPrincipal(), AllGraphs: true})
}

// see gives the channel as it is to be decided by, for an agent that may read it.
// Who may find it only is refused; for anybody else it is not there.
func (s *Service) see(by Caller, id ChannelID) (kg.AgentID, *entry, error) {
	agent, e, err := s.discover(by, id)
	if err == nil {
		err = e.mustRead(agent)
	}
	if err != nil {
		return "", nil, err
	}
	return agent, e, nil
}

// discover is see for an agent that may find the channel.
func (s *Service) discover(by Caller, id ChannelID) (kg.AgentID, *entry, error) {
	agent, err := by.agent()
	if err != nil {
		return "", nil, err
	}
	if !id.valid() {
		return "", nil, errNoChannel()
	}
	e := s.table.get(id)
	if e == nil {
		e = s.unmade(id, agent)
	}
	e = e.as(by.reader(agent)).seenBy(by)
	if !e.discovers(agent) {
		return "", nil, errNoChannel()
	}
	return agent, e, nil
}
