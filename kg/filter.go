package kg

import (
	"hash/maphash"
	"math/bits"
	"slices"
	"sync/atomic"
	"time"

	"koine/kg/base"
)

// Filter selects the changes that a watcher or log reader yields.
type Filter struct {
	// Patterns selects changes of statements that match any of them; each change comes once.
	// Nil selects all. At most MaxPatterns.
	Patterns []Pattern
	// Ops selects these operations, as the reader sees them. Nil selects all.
	Ops []Op
	// View decides the visibility of changes: Principal, Graphs, AllGraphs, MinCertainty,
	// Believed, Recorded, ValidAt and Doubted. It cannot have a revision or an age: age passes
	// while nothing changes. With a fixed time, an assertion is visible for good or never.
	View View
	// Keep is a further condition on a statement with one assertion. Nil keeps all. It must be
	// fast and safe for concurrent use.
	Keep func(Statement) bool
	// Replacements also selects the replacement of a whole graph that the patterns and the
	// view admit: see Event.Replaced. Ops and Keep do not apply to it.
	Replacements bool
}

// MaxPatterns bounds the patterns of one filter.
const MaxPatterns = 1024

// Event is a change as a reader sees it: the difference between the visible states before and
// after.
type Event struct {
	Op Op
	// Statement is the quad with the assertion that changed.
	Statement Statement
	// Previous holds the statements that a Replace removed.
	Previous []Statement
	// StatementRemains, on a Remove, means that other assertions still back the statement.
	StatementRemains bool
	// Types are the types that the commit asserted of the statement's subject and object in its
	// graph, the first of each that the reader sees; zero for none, and for a Remove.
	Types [2]Term
	// Replaced is set for the replacement of a whole graph, under a filter with Replacements.
	// Op and Statement are then zero. A watcher ends after it with CodeResync.
	Replaced *GraphReplacement
	Commit   *Commit // read-only; may contain hidden changes, and then no justification
	Position Position
}

// Start returns the position before the change; Position is the one behind it.
func (e *Event) Start() Position {
	p, i := e.Position, int(e.Position.Index)
	if p.Index == EndOfCommit {
		i = len(e.Commit.Changes) - 1
	}
	if i <= 0 {
		return Position{Epoch: p.Epoch, Revision: p.Revision - 1, Index: EndOfCommit}
	}
	p.Index = uint32(i - 1)
	return p
}

// watchFilter is a prepared filter: it turns changes into events.
type watchFilter struct {
	Filter
	access   Access
	distrust Distrust
	hides    func(predicate, graph Term) bool // nil: nothing is hidden
	open     *openEvents                      // nil: each event is made for this filter
	// patternSet holds the patterns if there are too many to compare one by one, and masks the
	// combinations of parts that they bind.
	patternSet map[Pattern]struct{}
	masks      []uint8
	// lastAnswer caches the decision on the last graph.
	lastAnswer lastAnswer
	// lastCommit is the commit of the last event and its visible form.
	lastCommit struct{ of, shown *Commit }
	// lastTypes are the types that a commit asserted and the reader sees.
	lastTypes struct {
		of    *Commit
		types map[typedTerm]Term
	}

	// forgets reports graphs whose past is hidden from the principal, nil for none
	// (Forgetter). Removals by commits after followed are visible. A statement that the reader
	// may know, from up to known, must not vanish without an event: stale or err is then set.
	forgets         func(graph Term) bool
	followed, known Revision
	hasAssertion    func(*Quad, *Assertion) (bool, error)
	// isDeletedAt reports whether the content of a graph at a revision is unreachable
	// (Generations.Hides).
	isDeletedAt func(graph Term, at Revision) bool
	stale       bool
	err         error
}

// fewPatterns is the number of patterns up to which comparing is as fast as a lookup.
const fewPatterns = 8

// prepare validates the filter and prepares it.
func (f Filter) prepare(s *Store) (*watchFilter, error) {
	access, distrust := s.options.Access, s.options.Distrust
	if f.View.MaxAge != 0 || f.View.At != 0 || f.View.AtStart {
		return nil, Errorf(CodeInvalid, "a watch takes no revision and no age")
	}
	if err := f.View.Valid(); err != nil {
		return nil, err
	}
	if n := len(f.Patterns); n > MaxPatterns {
		return nil, Errorf(CodeLimitExceeded, "%d patterns exceed the limit of %d per filter", n, MaxPatterns)
	}
	f.View.Principal.Normalise()
	if err := f.View.ApplyDistrust(distrust); err != nil {
		return nil, err
	}
	if f.View.Doubts = nil; f.View.Doubted { // the quarantine at the time of the event decides
		distrust = base.TrustAll{}
	}
	v := &watchFilter{Filter: f, access: access, distrust: distrust, hides: Hidden(access, f.View.Principal), lastAnswer: lastAnswer{current: VersionOf(access)}}
	v.forgets, v.followed, v.hasAssertion = base.Forgetful(access, f.View.Principal), unfollowed, s.hasAssertion
	v.isDeletedAt = s.isDeletedAt
	if len(f.Patterns) > fewPatterns {
		v.patternSet = make(map[Pattern]struct{}, len(f.Patterns))
		for _, p := range f.Patterns {
			v.patternSet[p] = struct{}{}
			if mask := maskOf(p); !slices.Contains(v.masks, mask) {
				v.masks = append(v.masks, mask)
			}
		}
	}
	return v, nil
}

// matchesQuad reports whether the quad matches any of the patterns.
func (f *watchFilter) matchesQuad(q Quad) bool {
	if f.Patterns == nil {
		return true
	}
	if f.patternSet == nil {
		for i := range f.Patterns {
			if f.Patterns[i].Matches(q) {
				return true
			}
		}
		return false
	}
	for _, mask := range f.masks {
		if _, ok := f.patternSet[maskedPattern(q, mask)]; ok {
			return true
		}
	}
	return false
}

// maskedPattern returns the pattern that binds the parts in mask to those of the quad.
func maskedPattern(q Quad, mask uint8) (p Pattern) {
	if mask&boundSubject != 0 {
		p.Subject = q.Subject
	}
	if mask&boundPredicate != 0 {
		p.Predicate = q.Predicate
	}
	if mask&boundObject != 0 {
		p.Object = q.Object
	}
	if mask&boundGraph != 0 {
		p.Graph = q.Graph
	}
	return p
}

// eventOf returns the event for the change in a slice, which is empty if the filter excludes it. The
// slice may be shared with other filters and must not be changed.
func (f *watchFilter) eventOf(epoch Epoch, c *Commit, i int) []Event {
	ch := &c.Changes[i]
	if !f.matchesQuad(ch.Quad) || !f.View.Shows(ch.Quad.Graph) || !f.mayRead(&ch.Quad) || f.isDeletedAt(ch.Quad.Graph, c.Revision) {
		return nil
	}
	open := f.openCommit(c, i)
	event, known := open.find(i)
	if !known {
		event = f.makeEvent(epoch, c, i)
		open.keep(i, event)
	}
	if len(event) > 0 && f.Ops != nil && !slices.Contains(f.Ops, event[0].Op) {
		return nil
	}
	return event
}

// makeEvent makes the event for a change that the filter selects, whatever its Ops.
func (f *watchFilter) makeEvent(epoch Epoch, c *Commit, i int) []Event {
	ch := &c.Changes[i]
	e := Event{Commit: c, Position: Position{Epoch: epoch, Revision: c.Revision, Index: uint32(i)}}
	if i == len(c.Changes)-1 {
		e.Position.Index = EndOfCommit
	}
	var seen bool
	if ch.Op == Add {
		seen = f.addEvent(&e, c, ch)
	} else {
		seen = f.removeEvent(&e, c, ch)
	}
	if !seen {
		return nil
	}
	e.Commit = f.visibleCommit(c)
	if e.Op != Remove {
		f.setTypes(&e, c)
	}
	return []Event{e}
}

// Bounds of openEvents.
const (
	openEventPlaces = 16
	// maxOpenChanges and maxOpenBytes are the size of the largest commit whose events are kept.
	maxOpenChanges = 64
	maxOpenBytes   = 256 << 10
)

// openEvents keeps the events of the last commits as readers see them from whom nothing of a change
// is hidden: many watchers are woken together, and the first makes the event for all. It is safe
// for concurrent use. A nil one keeps nothing.
type openEvents struct {
	places [openEventPlaces]atomic.Pointer[openCommit]
}

// openCommit has the events of a commit, by change.
type openCommit struct {
	of     *Commit
	types  bool // some change asserts a type, which other events repeat
	events []atomic.Pointer[openEvent]
}

// openEvent is the event of a change, empty if the change is part of another event. It is
// immutable.
type openEvent []Event

// commitOf returns the events of the commit that are known, nil if they are not kept.
func (o *openEvents) commitOf(c *Commit) *openCommit {
	if o == nil || len(c.Changes) > maxOpenChanges || c.Replaced != nil {
		return nil
	}
	at := &o.places[uint64(c.Revision)%openEventPlaces]
	if known := at.Load(); known != nil && known.of == c {
		return known
	}
	if commitSize(c) > maxOpenBytes {
		return nil
	}
	fresh := &openCommit{of: c, events: make([]atomic.Pointer[openEvent], len(c.Changes))}
	for i := range c.Changes {
		fresh.types = fresh.types || assertsType(&c.Changes[i])
	}
	at.Store(fresh)
	return fresh
}

// find returns the event of a change, false if it is not known.
func (o *openCommit) find(i int) (event []Event, known bool) {
	if o == nil {
		return nil, false
	}
	if e := o.events[i].Load(); e != nil {
		return *e, true
	}
	return nil, false
}

func (o *openCommit) keep(i int, event []Event) {
	if o != nil {
		e := openEvent(event)
		o.events[i].Store(&e)
	}
}

// openCommit returns the events of the commit for readers from whom nothing of the change is hidden,
// nil if something may be hidden from this one: by its view, a quarantine, the past of the graph, or
// because the filter does not select all that the event shows. The caller has found that the filter
// selects the statement and that the principal may read it, and with it those that it replaces:
// they have its subject, predicate and graph.
func (f *watchFilter) openCommit(c *Commit, i int) *openCommit {
	if f.Keep != nil || !f.View.AdmitsAll() || f.distrust.Doubted() != nil || f.visibleCommit(c) != c {
		return nil
	}
	ch := &c.Changes[i]
	if f.isForgotten(c, ch.Quad.Graph) || ch.ReplacedBy >= 0 && !f.matchesQuad(c.Changes[ch.ReplacedBy].Quad) {
		return nil
	}
	for _, gone := range ch.Replaces {
		if !f.matchesQuad(c.Changes[gone].Quad) {
			return nil
		}
	}
	o := f.open.commitOf(c)
	if o == nil || !o.types {
		return o
	}
	for i := range c.Changes {
		if ch := &c.Changes[i]; assertsType(ch) && (!f.mayRead(&ch.Quad) || f.isForgotten(c, ch.Quad.Graph)) {
			return nil
		}
	}
	return o
}

// assertsType reports whether the change asserts a type, which the events of the commit repeat.
func assertsType(ch *Change) bool {
	return ch.Op != Remove && ch.Quad.Predicate == typePredicate && ch.Quad.Object.IsResource()
}

// typedTerm is a resource in a graph.
type typedTerm struct{ graph, resource Term }

// setTypes sets the types of the event. Its graph is readable, but not each statement in it need be.
func (f *watchFilter) setTypes(e *Event, c *Commit) {
	if f.lastTypes.of != c {
		f.lastTypes.of = c
		clear(f.lastTypes.types)
		for i := range c.Changes {
			ch := &c.Changes[i]
			if !assertsType(ch) {
				continue
			}
			of := typedTerm{ch.Quad.Graph, ch.Quad.Subject}
			if _, has := f.lastTypes.types[of]; has || !f.showsType(c, ch) {
				continue
			}
			if f.lastTypes.types == nil {
				f.lastTypes.types = map[typedTerm]Term{}
			}
			f.lastTypes.types[of] = ch.Quad.Object
		}
	}
	if len(f.lastTypes.types) == 0 {
		return
	}
	q := &e.Statement.Quad
	e.Types[0] = f.lastTypes.types[typedTerm{q.Graph, q.Subject}]
	if q.Object.IsResource() {
		e.Types[1] = f.lastTypes.types[typedTerm{q.Graph, q.Object}]
	}
}

var typePredicate = IRI(RDFType)

// showsType reports whether the reader sees the assertion of a change, whatever the filter selects.
func (f *watchFilter) showsType(c *Commit, ch *Change) bool {
	return f.mayRead(&ch.Quad) && f.View.Admits(ch.Assertion) && !f.isQuarantined(ch.Quad.Graph, &ch.Assertion) &&
		(!f.isForgotten(c, ch.Quad.Graph) || f.isCurrent(ch))
}

// mayRead reports whether the principal may read the statement, regardless of the view.
func (f *watchFilter) mayRead(q *Quad) bool {
	return f.lastAnswer.mayRead(f.access, &f.View.Principal, q.Graph) && (f.hides == nil || !f.hides(q.Predicate, q.Graph))
}

// matchesReplacement reports whether the commit replaced a graph of the filter. The deletion
// of a graph is not reported, nor its earlier content.
func (f *watchFilter) matchesReplacement(c *Commit) bool {
	r := c.Replaced
	if r == nil || r.Deleted || !f.View.Shows(r.Graph) || !f.lastAnswer.mayRead(f.access, &f.View.Principal, r.Graph) || f.isDeletedAt(r.Graph, c.Revision) {
		return false
	}
	return f.Patterns == nil || slices.ContainsFunc(f.Patterns, func(p Pattern) bool { return p.MayBeIn(r.Graph) })
}

// replacementEvent returns the event for the replacement of a graph, nil if the filter excludes it.
// It is the only event of its commit.
func (f *watchFilter) replacementEvent(epoch Epoch, c *Commit) *Event {
	if !f.Replacements || !f.matchesReplacement(c) {
		return nil
	}
	return &Event{Commit: f.visibleCommit(c), Replaced: c.Replaced.Redacted(f.isPartlyHidden(c.Replaced.Graph)), Position: replacedAt(epoch, c)}
}

// replacedAt returns the position behind the event of a replacement. The end of the commit is
// the position behind the CodeResync that follows.
func replacedAt(epoch Epoch, c *Commit) Position {
	return Position{Epoch: epoch, Revision: c.Revision, Index: 0}
}

// isPartlyHidden reports whether statements of the graph, or of its past, may be hidden from
// the principal.
func (f *watchFilter) isPartlyHidden(graph Term) bool {
	return f.hides != nil || f.distrust.Doubted() != nil || f.forgets != nil && f.forgets(graph)
}

// visibleCommit returns the commit without the texts that the principal may not read.
func (f *watchFilter) visibleCommit(c *Commit) *Commit {
	if f.lastCommit.of != c {
		f.lastCommit.of = c
		// The changes of a message are in one graph, whose answer lastAnswer does not keep.
		var graph Term
		asked, shows := false, false
		f.lastCommit.shown = c.WithMotives(&f.View.Principal, func(q *Quad) bool {
			if !asked || q.Graph != graph {
				graph, asked = q.Graph, true
				shows = f.lastAnswer.mayRead(f.access, &f.View.Principal, graph) && !f.isDeletedAt(graph, c.Revision)
			}
			return shows && (f.hides == nil || !f.hides(q.Predicate, q.Graph))
		}, func(r *GraphReplacement) bool {
			return !f.isPartlyHidden(r.Graph) && f.lastAnswer.mayRead(f.access, &f.View.Principal, r.Graph) && !f.isDeletedAt(r.Graph, c.Revision)
		})
	}
	return f.lastCommit.shown
}

// isVisible reports whether the assertion of the quad is visible.
func (f *watchFilter) isVisible(q Quad, a Assertion) bool {
	return f.View.Admits(a) && !f.isQuarantined(q.Graph, &a) && (f.Keep == nil || f.Keep(singleStatement(q, a)))
}

func singleStatement(q Quad, a Assertion) Statement {
	return Statement{Quad: q, Assertions: []Assertion{a}}
}

// addEvent fills in the event of an addition. A new assertion is an Add, one that replaces an
// earlier one of its source or other statements is a Replace, and one that the view does not
// admit is a Remove of the earlier one.
func (f *watchFilter) addEvent(e *Event, c *Commit, ch *Change) bool {
	old, had := base.FindSource(ch.Before, ch.Assertion.Source)
	had = had && f.isVisible(ch.Quad, old)
	forgotten := f.isForgotten(c, ch.Quad.Graph)
	if forgotten {
		if had {
			f.noteUnreported(ch.Since)
		}
		if had = false; !f.isCurrent(ch) {
			return false
		}
	}
	if !f.isVisible(ch.Quad, ch.Assertion) {
		if had {
			e.Op, e.Statement = Remove, singleStatement(ch.Quad, old)
			e.StatementRemains = f.isStillVisible(ch)
		}
		return had
	}
	e.Op, e.Statement = Add, singleStatement(ch.Quad, ch.Assertion)
	if had {
		e.Previous = append(e.Previous, singleStatement(ch.Quad, old))
	}
	for _, i := range ch.Replaces {
		gone := &c.Changes[i]
		if list := f.withdrawnAssertions(gone); f.matchesQuad(gone.Quad) && len(list) > 0 {
			if forgotten { // same graph
				f.noteUnreported(gone.Since)
				continue
			}
			e.Previous = append(e.Previous, Statement{Quad: gone.Quad, Assertions: list})
		}
	}
	if len(e.Previous) > 0 {
		e.Op = Replace
	}
	return true
}

// removeEvent fills in the event of a removal of visible assertions. Removals by a replace are
// part of the event of its addition, if that is visible.
func (f *watchFilter) removeEvent(e *Event, c *Commit, ch *Change) bool {
	gone := f.withdrawnAssertions(ch)
	if len(gone) == 0 {
		return false
	}
	if ch.ReplacedBy >= 0 {
		by := &c.Changes[ch.ReplacedBy]
		if f.matchesQuad(by.Quad) && f.isVisible(by.Quad, by.Assertion) {
			return false
		}
	}
	if f.isForgotten(c, ch.Quad.Graph) {
		f.noteUnreported(ch.Since)
		return false
	}
	e.Op, e.Statement = Remove, singleStatement(ch.Quad, gone[0])
	e.StatementRemains = f.isStillVisible(ch)
	return true
}

// withdrawnAssertions lists the visible assertions that a removal withdrew.
func (f *watchFilter) withdrawnAssertions(ch *Change) []Assertion {
	var list []Assertion
	for _, a := range ch.Before {
		if _, stays := base.FindSource(ch.After, a.Source); !stays && f.isVisible(ch.Quad, a) {
			list = append(list, a)
		}
	}
	return list
}

// isStillVisible reports whether the statement is visible after the change.
func (f *watchFilter) isStillVisible(ch *Change) bool {
	return slices.ContainsFunc(ch.After, func(a Assertion) bool { return f.isVisible(ch.Quad, a) })
}

// retryWatch is the RetryAfter of a refused watcher.
const retryWatch = 5 * time.Second

// filterIndex finds the watchers with a pattern that a change matches, without trying all: it
// hashes the terms that a pattern binds. Terms that the store does not know can be watched
// too.
type filterIndex struct {
	seed  maphash.Seed
	masks [16]map[uint64][]*Watcher // by the parts bound
	used  []uint8                   // masks with entries
	round uint64                    // of matchCommit, so that each watcher is called once
}

func newFilterIndex() filterIndex { return filterIndex{seed: maphash.MakeSeed()} }

const (
	boundSubject = 1 << iota
	boundPredicate
	boundObject
	boundGraph
)

func maskOf(p Pattern) (mask uint8) {
	if !p.Subject.IsZero() {
		mask |= boundSubject
	}
	if !p.Predicate.IsZero() {
		mask |= boundPredicate
	}
	if !p.Object.IsZero() {
		mask |= boundObject
	}
	if !p.Graph.IsZero() {
		mask |= boundGraph
	}
	return mask
}

// hashes are the hashes of a quad's terms.
type hashes [4]uint64

func (x *filterIndex) hashQuad(q Quad) (h hashes) {
	for i, t := range [...]*Term{&q.Subject, &q.Predicate, &q.Object, &q.Graph} {
		h[i] = maphash.String(x.seed, t.Value()) + uint64(t.Kind())
		if kind := t.LiteralKind(); kind != "" {
			h[i] = bits.RotateLeft64(h[i], 1) ^ maphash.String(x.seed, kind)
		}
	}
	return h
}

// maskedKey combines the hashes of the parts that the mask binds.
func (h *hashes) maskedKey(mask uint8) uint64 {
	var k uint64
	for i := range h {
		if mask&(1<<i) != 0 {
			k = (k ^ h[i]) * 0x9e3779b97f4a7c15
		}
	}
	return k
}

// everyQuad stands for the patterns of a filter that has none.
var everyQuad = []Pattern{{}}

// eachKey calls fn with the mask and the key of each of the watcher's patterns.
func (x *filterIndex) eachKey(w *Watcher, fn func(mask uint8, key uint64)) {
	patterns := w.filter.Patterns
	if patterns == nil {
		patterns = everyQuad
	}
	for _, p := range patterns {
		mask := maskOf(p)
		h := x.hashQuad(Quad(p))
		fn(mask, h.maskedKey(mask))
	}
}

func (x *filterIndex) add(w *Watcher) {
	x.eachKey(w, func(mask uint8, key uint64) {
		if x.masks[mask] == nil {
			x.masks[mask] = make(map[uint64][]*Watcher)
			x.used = append(x.used, mask)
		}
		x.masks[mask][key] = append(x.masks[mask][key], w)
	})
}

func (x *filterIndex) remove(w *Watcher) {
	x.eachKey(w, func(mask uint8, key uint64) {
		list := x.masks[mask][key]
		for i, other := range list {
			if other == w {
				last := len(list) - 1
				list[i], list[last] = list[last], nil
				list = list[:last]
				break
			}
		}
		if len(list) == 0 {
			delete(x.masks[mask], key)
			return
		}
		x.masks[mask][key] = list
	})
}

// matchCommit calls fn once for each watcher that the commit may concern, not once per change
// or pattern: many may watch everything while many things change. A nil commit may concern
// all.
func (x *filterIndex) matchCommit(c *Commit, fn func(*Watcher)) {
	x.round++
	tell := func(list []*Watcher) {
		for _, w := range list {
			if w.round != x.round {
				w.round = x.round
				fn(w)
			}
		}
	}
	if c == nil {
		for _, byKey := range x.masks {
			for _, list := range byKey {
				tell(list)
			}
		}
		return
	}
	if len(x.used) == 0 {
		return
	}
	type bound struct {
		mask uint8
		key  uint64
	}
	told := make(map[bound]bool)
	for i := range c.Changes {
		h := x.hashQuad(c.Changes[i].Quad)
		for _, mask := range x.used {
			b := bound{mask, h.maskedKey(mask)}
			list := x.masks[mask][b.key]
			if len(list) == 0 || told[b] {
				continue
			}
			told[b] = true
			tell(list)
		}
	}
}
