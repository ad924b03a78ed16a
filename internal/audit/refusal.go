package audit

import (
	"cmp"
	"container/list"
	"context"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"koine/internal/caller"
	"koine/kg"
)

// Refusal is a refused request.
type Refusal struct {
	Kind      Kind // Denied, Authentication or RateLimit
	Principal kg.AgentID
	Actor     kg.AgentID
	Address   netip.Addr // the zero Addr if it is not known
	// Path is the path of the route. Reason is a kg.Code or a code of a protocol.
	Path, Reason string
	RequestID    string // of the first occurrence

	// First and Last are the times of the first and the last occurrence; Count is their
	// number.
	First, Last time.Time
	Count       int
	number      uint64
	queued      bool // queued in persister.repeatedSince
}

// refusalKey identifies repetitions of a refusal.
type refusalKey struct {
	kind             Kind
	principal, actor kg.AgentID
	address          netip.Addr
	path, reason     string
}

func (r *Refusal) repeatKey() refusalKey {
	return refusalKey{r.Kind, r.Principal, r.Actor, r.Address, r.Path, r.Reason}
}

// Defaults and limits of a Trail.
const (
	DefaultMaxRefusals = 10_000
	// RepeatWindow is the time in which repetitions count as one refusal.
	RepeatWindow = time.Minute
	// MaxDistinctPerAddress is the maximum number of distinct refusals of one address
	// per RepeatWindow. Further ones are reduced to kind, address and reason, so that
	// they repeat.
	MaxDistinctPerAddress = 100
	// shares is the minimum number of addresses that share a full Trail: an address
	// with this fraction of it replaces its own oldest refusals.
	shares = 10
)

// Options configures a Trail. The zero value of each field means its default.
type Options struct {
	MaxRefusals  int
	MaxFileBytes int64            // maximum size of the file of Persist
	Logger       *slog.Logger     // discards if nil
	Clock        func() time.Time // time.Now if nil
}

// Trail holds the newest refusals. It is safe for concurrent use; a nil Trail records
// nothing.
type Trail struct {
	max     int
	maxFile int64
	log     *slog.Logger
	clock   func() time.Time

	mu        sync.Mutex // guards the following
	order     *list.List // of *entry, newest first
	open      map[refusalKey]*entry
	origins   map[netip.Prefix]*origin
	last      uint64     // number of the newest refusal
	persister *persister // nil before Persist
}

// entry is a refusal and its elements in the lists.
type entry struct {
	refusal    *Refusal
	order, own *list.Element
}

// origin is the state of one address.
type origin struct {
	own      *list.List // of *entry, newest first
	since    time.Time  // start of the window of distinct
	distinct int
}

// NewTrail returns an empty Trail.
func NewTrail(o Options) *Trail {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	return &Trail{
		max: cmp.Or(o.MaxRefusals, DefaultMaxRefusals), maxFile: cmp.Or(o.MaxFileBytes, DefaultMaxFileBytes),
		log: cmp.Or(o.Logger, slog.New(slog.DiscardHandler)), clock: o.Clock,
		order: list.New(), open: map[refusalKey]*entry{}, origins: map[netip.Prefix]*origin{},
	}
}

// Record records a refusal; the Trail sets its times, number and count.
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

// RecordDenied records a refusal of the caller in ctx, if the code is one of
// recordedCodes.
func (t *Trail) RecordDenied(ctx context.Context, code kg.Code) {
	kind, ok := recordedCodes[code]
	if t == nil || !ok {
		return
	}
	by := caller.From(ctx)
	t.Record(ctx, Refusal{Kind: kind, Principal: by.Principal.ID, Actor: by.Acting(), Address: by.Address, Reason: string(code), RequestID: by.RequestID, Path: by.Path})
}

// recordedCodes are the codes relevant to security. Hidden objects are reported as not
// found, so GRAPH_NOT_FOUND, CHANNEL_NOT_FOUND and SCOPE_NOT_FOUND are included,
// although they may also be mistakes. Rate limits are recorded by their owner.
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

// recordRefusal reports whether the refusal is new, that is, not a repetition.
func (t *Trail) recordRefusal(r *Refusal) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.clock()
	if t.countRepeat(r, now) {
		return false
	}
	if t.exceedsDistinct(r.Address, now) {
		r.Principal, r.Actor, r.Path, r.RequestID, r.Address = "", "", "", "", caller.OriginOf(r.Address).Addr()
		if t.countRepeat(r, now) {
			return false
		}
	}
	t.last++
	r.First, r.Last, r.Count, r.number = now, now, 1, t.last
	t.insertRefusal(r)
	t.origins[caller.OriginOf(r.Address)].distinct++
	t.persister.enqueueNew(r)
	return true
}

// countRepeat counts the refusal as a repetition of an earlier one. It reports false if
// there is none.
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

// exceedsDistinct reports whether the address has reached MaxDistinctPerAddress.
func (t *Trail) exceedsDistinct(a netip.Addr, now time.Time) bool {
	o := t.origins[caller.OriginOf(a)]
	if o == nil || !a.IsValid() {
		return false
	}
	if now.Sub(o.since) >= RepeatWindow {
		o.since, o.distinct = now, 0
	}
	return o.distinct >= MaxDistinctPerAddress
}

// insertRefusal adds a refusal. If the Trail is full, it evicts the oldest refusal of the same
// address if that has its share, else the oldest of all.
func (t *Trail) insertRefusal(r *Refusal) {
	address := caller.OriginOf(r.Address)
	if t.order.Len() >= t.max {
		oldest := t.order.Back()
		if o := t.origins[address]; o != nil && r.Address.IsValid() && o.own.Len() >= max(1, t.max/shares) {
			oldest = o.own.Back()
		}
		t.evictEntry(oldest.Value.(*entry))
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

func (t *Trail) evictEntry(e *entry) {
	t.order.Remove(e.order)
	if t.open[e.refusal.repeatKey()] == e {
		delete(t.open, e.refusal.repeatKey())
	}
	address := caller.OriginOf(e.refusal.Address)
	o := t.origins[address]
	if o.own.Remove(e.own); o.own.Len() == 0 {
		delete(t.origins, address)
	}
}

// entriesBefore returns the entries of the refusals with a smaller number that match, newest
// first.
func (t *Trail) entriesBefore(number uint64, matches func(*Entry) bool) (list []Entry) {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for e := t.order.Front(); e != nil; e = e.Next() {
		if r := *e.Value.(*entry).refusal; r.number < number {
			if found := (Entry{Time: r.First, Kind: r.Kind, Principal: r.Principal, Actor: r.Actor, Refusal: &r}); matches(&found) {
				list = append(list, found)
			}
		}
	}
	return list
}

func addressText(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}
