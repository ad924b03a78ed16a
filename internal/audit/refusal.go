package audit

import (
	"container/list"
	"context"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"koine/internal/caller"
	"koine/kg"
)

// Refusal is something that somebody was not let do.
type Refusal struct {
	Kind      Kind // Denied, Authentication or RateLimit
	Principal kg.AgentID
	Actor     kg.AgentID
	Address   netip.Addr // the zero Addr if it is not known
	// Path of the route, Reason a kg.Code or one of a protocol's own.
	Path, Reason string
	RequestID    string // of the first

	// First and Last are when it began and when it was last repeated, Count how
	// often it was.
	First, Last time.Time
	Count       int
	number      uint64
	queued      bool // the keeper has noted that it was repeated
}

// refusalKey is what makes one refusal a repetition of another.
type refusalKey struct {
	kind             Kind
	principal, actor kg.AgentID
	address          netip.Addr
	path, reason     string
}

func (r *Refusal) repeatKey() refusalKey {
	return refusalKey{r.Kind, r.Principal, r.Actor, r.Address, r.Path, r.Reason}
}

// Defaults and bounds of a Trail.
const (
	DefaultMaxRefusals = 10_000
	// RepeatWindow is how long a repetition counts to the one before.
	RepeatWindow = time.Minute
	// MaxDistinctPerAddress is how many refusals of one address are told apart within Together.
	// Of what comes beyond only kind, address and reason are told, so that it
	// repeats.
	MaxDistinctPerAddress = 100
	// shares is how many addresses at least share a Trail: once one of them has
	// this part of it, its oldest goes for its newest.
	shares = 10
)

// Options of a Trail. The zero value of each means its default.
type Options struct {
	MaxRefusals  int
	MaxFileBytes int64            // of the file of Keep
	Logger       *slog.Logger     // discards when nil
	Clock        func() time.Time // time.Now when nil
}

// Trail is the newest refusals. It is safe for concurrent use; a nil Trail keeps
// nothing.
type Trail struct {
	max     int
	maxFile int64
	log     *slog.Logger
	clock   func() time.Time

	mu        sync.Mutex // guards what follows
	order     *list.List // of *entry, the newest in front
	open      map[refusalKey]*entry
	origins   map[netip.Prefix]*origin
	last      uint64     // number of the newest
	persister *persister // nil before Keep
}

// entry is a refusal in the lists that it is in.
type entry struct {
	refusal    *Refusal
	order, own *list.Element
}

// origin is what is kept of one address.
type origin struct {
	own      *list.List // of *entry, the newest in front
	since    time.Time  // when apart began to be counted
	distinct int
}

// NewTrail makes a Trail.
func NewTrail(o Options) *Trail {
	t := &Trail{max: o.MaxRefusals, maxFile: o.MaxFileBytes, log: o.Logger, clock: o.Clock, order: list.New(), open: map[refusalKey]*entry{}, origins: map[netip.Prefix]*origin{}}
	if t.max == 0 {
		t.max = DefaultMaxRefusals
	}
	if t.maxFile == 0 {
		t.maxFile = DefaultMaxFileBytes
	}
	if t.log == nil {
		t.log = slog.New(slog.DiscardHandler)
	}
	if t.clock == nil {
		t.clock = time.Now
	}
	return t
}

// Record takes note of a refusal; its times, number and count are the Trail's.
func (t *Trail) Record(ctx context.Context, r Refusal) {
	if t == nil {
		return
	}
	if r.Actor == "" {
		r.Actor = r.Principal
	}
	if t.recordRefusal(&r) {
		t.log.LogAttrs(ctx, slog.LevelWarn, "refused", slog.String("kind", string(r.Kind)), slog.String("reason", r.Reason),
			slog.String("agent", string(r.Principal)), slog.String("actor", string(r.Actor)), slog.String("address", addressText(r.Address)),
			slog.String("path", r.Path), slog.String("request", r.RequestID))
	}
}

// RecordDenied takes note of what the caller that the context carries was not let do,
// if the code says such a thing.
func (t *Trail) RecordDenied(ctx context.Context, code kg.Code) {
	kind, ok := recordedCodes[code]
	if t == nil || !ok {
		return
	}
	who := caller.From(ctx)
	t.Record(ctx, Refusal{Kind: kind, Principal: who.Principal.ID, Actor: who.Acting(), Address: who.Address, Reason: string(code), RequestID: who.RequestID, Path: who.Path})
}

// recordedCodes are the codes that matter to who watches over a store. A graph that is
// not to be seen is not found: so GRAPH_NOT_FOUND is also that of a slip, and so is
// CHANNEL_NOT_FOUND and SCOPE_NOT_FOUND. Limits are told by who keeps them.
var recordedCodes = map[kg.Code]Kind{
	kg.CodePermissionDenied:   Denied,
	kg.CodeSourceForbidden:    Denied,
	kg.CodeReserved:           Denied,
	kg.CodeGraphNotFound:      Denied,
	kg.CodeChannelNotFound:    Denied,
	kg.CodeScopeNotFound:      Denied,
	kg.CodeAlignmentViolation: Denied,
	kg.CodeUnauthenticated:    Authentication,
	"HOST_FORBIDDEN":          Denied,
	"ORIGIN_FORBIDDEN":        Denied,
}

// recordRefusal says whether the refusal is a new one.
func (t *Trail) recordRefusal(r *Refusal) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.clock()
	if t.countRepeat(r, now) {
		return false
	}
	if t.exceedsDistinct(r.Address, now) {
		r.Principal, r.Actor, r.Path, r.RequestID, r.Address = "", "", "", "", originOf(r.Address).Addr()
		if t.countRepeat(r, now) {
			return false
		}
	}
	t.last++
	r.First, r.Last, r.Count, r.number = now, now, 1, t.last
	t.insert(r)
	t.origins[originOf(r.Address)].distinct++
	t.persister.enqueueNew(r)
	return true
}

// countRepeat counts a refusal to an earlier one, if there is one.
func (t *Trail) countRepeat(r *Refusal, now time.Time) bool {
	e := t.open[r.repeatKey()]
	if e == nil || now.Sub(e.refusal.First) >= RepeatWindow {
		return false
	}
	e.refusal.Count++
	e.refusal.Last = now
	t.persister.enqueueRepeated(e.refusal)
	return true
}

// exceedsDistinct tells whether no more refusals of the address are told apart now.
func (t *Trail) exceedsDistinct(a netip.Addr, now time.Time) bool {
	o := t.origins[originOf(a)]
	if o == nil || !a.IsValid() {
		return false
	}
	if now.Sub(o.since) >= RepeatWindow {
		o.since, o.distinct = now, 0
	}
	return o.distinct >= MaxDistinctPerAddress
}

// insert puts a refusal in front of the others, and takes one away if there are too
// many: the oldest of the same address if that has its share, else the oldest.
func (t *Trail) insert(r *Refusal) {
	address := originOf(r.Address)
	if t.order.Len() >= t.max {
		oldest := t.order.Back()
		if o := t.origins[address]; o != nil && r.Address.IsValid() && o.own.Len() >= max(1, t.max/shares) {
			oldest = o.own.Back()
		}
		t.evict(oldest.Value.(*entry))
	}
	o := t.origins[address]
	if o == nil {
		o = &origin{own: list.New(), since: r.First}
		t.origins[address] = o
	}
	e := &entry{refusal: r}
	e.order, e.own = t.order.PushFront(e), o.own.PushFront(e)
	t.open[r.repeatKey()] = e
}

func (t *Trail) evict(e *entry) {
	t.order.Remove(e.order)
	if t.open[e.refusal.repeatKey()] == e {
		delete(t.open, e.refusal.repeatKey())
	}
	address := originOf(e.refusal.Address)
	o := t.origins[address]
	if o.own.Remove(e.own); o.own.Len() == 0 {
		delete(t.origins, address)
	}
}

// originOf is what counts as one address: of IPv6 a /64, which is what one
// customer has.
func originOf(a netip.Addr) netip.Prefix {
	bits := 32
	if a = a.Unmap(); a.Is6() {
		bits = 64
	}
	p, _ := a.WithZone("").Prefix(bits) // of no address it is none
	return p
}

// eachBefore calls yield with a copy of each refusal whose number is smaller, the
// newest first.
func (t *Trail) eachBefore(number uint64, yield func(Refusal) bool) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for e := t.order.Front(); e != nil; e = e.Next() {
		if r := e.Value.(*entry).refusal; r.number < number && !yield(*r) {
			return
		}
	}
}

func addressText(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}
