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
}

// same is what makes one refusal a repetition of another.
type same struct {
	kind             Kind
	principal, actor kg.AgentID
	address          netip.Addr
	path, reason     string
}

func (r *Refusal) same() same {
	return same{r.Kind, r.Principal, r.Actor, r.Address, r.Path, r.Reason}
}

// Defaults and bounds of a Trail.
const (
	DefaultMaxRefusals = 10_000
	// Together is how long a repetition counts to the one before.
	Together = time.Minute
)

// Options of a Trail. The zero value of each means its default.
type Options struct {
	MaxRefusals int
	Logger      *slog.Logger     // discards when nil
	Clock       func() time.Time // time.Now when nil
}

// Trail is the newest refusals. It is safe for concurrent use; a nil Trail keeps
// nothing.
type Trail struct {
	max   int
	log   *slog.Logger
	clock func() time.Time

	mu    sync.Mutex // guards what follows
	order *list.List // of *Refusal, the newest in front
	open  map[same]*list.Element
	last  uint64 // number of the newest
}

// NewTrail makes a Trail.
func NewTrail(o Options) *Trail {
	t := &Trail{max: o.MaxRefusals, log: o.Logger, clock: o.Clock, order: list.New(), open: map[same]*list.Element{}}
	if t.max == 0 {
		t.max = DefaultMaxRefusals
	}
	if t.log == nil {
		t.log = slog.New(slog.DiscardHandler)
	}
	if t.clock == nil {
		t.clock = time.Now
	}
	return t
}

// Refuse takes note of a refusal; its times, number and count are the Trail's.
func (t *Trail) Refuse(ctx context.Context, r Refusal) {
	if t == nil {
		return
	}
	if r.Actor == "" {
		r.Actor = r.Principal
	}
	if t.add(&r) {
		t.log.LogAttrs(ctx, slog.LevelWarn, "refused", slog.String("kind", string(r.Kind)), slog.String("reason", r.Reason),
			slog.String("agent", string(r.Principal)), slog.String("actor", string(r.Actor)), slog.String("address", addressText(r.Address)),
			slog.String("path", r.Path), slog.String("request", r.RequestID))
	}
}

// Refused takes note of what the caller that the context carries was not let do,
// if the code says such a thing.
func (t *Trail) Refused(ctx context.Context, code kg.Code) {
	kind, ok := kinds[code]
	if t == nil || !ok {
		return
	}
	who := caller.From(ctx)
	t.Refuse(ctx, Refusal{Kind: kind, Principal: who.Principal.ID, Actor: who.Acting(), Address: who.Address, Reason: string(code), RequestID: who.RequestID, Path: who.Path})
}

// kinds are the codes that matter to who watches over a store. A graph that is
// not to be seen is not found: so GRAPH_NOT_FOUND is also that of a slip. Limits
// are told by who keeps them.
var kinds = map[kg.Code]Kind{
	kg.CodePermissionDenied:   Denied,
	kg.CodeSourceForbidden:    Denied,
	kg.CodeReserved:           Denied,
	kg.CodeGraphNotFound:      Denied,
	kg.CodeAlignmentViolation: Denied,
	kg.CodeUnauthenticated:    Authentication,
	"HOST_FORBIDDEN":          Denied,
	"ORIGIN_FORBIDDEN":        Denied,
}

// add says whether the refusal is a new one.
func (t *Trail) add(r *Refusal) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.clock()
	if e := t.open[r.same()]; e != nil {
		if before := e.Value.(*Refusal); now.Sub(before.First) < Together {
			before.Count++
			before.Last = now
			return false
		}
	}
	if t.order.Len() >= t.max {
		oldest := t.order.Remove(t.order.Back()).(*Refusal)
		if e := t.open[oldest.same()]; e != nil && e.Value == oldest {
			delete(t.open, oldest.same())
		}
	}
	t.last++
	r.First, r.Last, r.Count, r.number = now, now, 1, t.last
	t.open[r.same()] = t.order.PushFront(r)
	return true
}

// before calls yield with a copy of each refusal whose number is smaller, the
// newest first.
func (t *Trail) before(number uint64, yield func(Refusal) bool) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for e := t.order.Front(); e != nil; e = e.Next() {
		if r := e.Value.(*Refusal); r.number < number && !yield(*r) {
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
