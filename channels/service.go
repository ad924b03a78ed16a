package channels

import (
	"cmp"
	"context"
	"sync"
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
	// withheld has, by channel, the newest revision in which the content of a message
	// was taken away, or was about to be: what the log has of before may not be told.
	withheld sync.Map // ChannelID → kg.Revision
	// answered has, by channel, the newest revision in which a request was answered, or
	// about to be, that would have expired: what the log has of it is no longer so.
	answered sync.Map // ChannelID → kg.Revision
	// evicted has, by channel, up to which sequence messages may have been evicted.
	evicted sync.Map // ChannelID → int64
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
	s.store = store
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
	if s.expiry != nil {
		s.receipts.close()
		s.expiry.close()
	}
	s.table.lapses.close()
	s.counting.close()
}

// withholds notes, inside of the commit, that the content of a message goes.
func (s *Service) withholds(id ChannelID, r kg.Revision) { raise(&s.withheld, id, r) }

// raise makes what is kept for a channel at least so much: an update may be tried when
// a later one was made.
func raise[T cmp.Ordered](m *sync.Map, id ChannelID, to T) {
	for {
		last, known := m.LoadOrStore(id, to)
		if !known || last.(T) >= to || m.CompareAndSwap(id, last, to) {
			return
		}
	}
}

// withheldSince tells whether content may have gone since a revision.
func (s *Service) withheldSince(id ChannelID, r kg.Revision) bool {
	last, ok := s.withheld.Load(id)
	return ok && last.(kg.Revision) > r
}

// changedSince tells whether a message that the log has may have to be shown in
// another way by now.
func (s *Service) changedSince(m *Message) bool {
	if gone, ok := s.evicted.Load(m.Channel); ok && m.Sequence <= gone.(int64) {
		return true
	}
	if m.Withheld == Expired || s.withheldSince(m.Channel, m.Revision) {
		return true
	}
	last, ok := s.answered.Load(m.Channel)
	return ok && m.Interaction == Request && !m.ExpiresAt.IsZero() && last.(kg.Revision) > m.Revision
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
