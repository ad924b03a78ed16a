package kg

import (
	"hash/maphash"
	"math/bits"
	"slices"
	"time"

	"koine/kg/internal/base"
)

// Filter says which changes a reader of the log sees.
type Filter struct {
	// Patterns admits the changes of statements that fit any of them; an event
	// comes once however many it fits. Nil admits all. At most MaxPatterns.
	Patterns []Pattern
	// Ops admits only these operations, as the reader sees them. Nil admits
	// all.
	Ops []Op
	// View is under whose eyes the changes are seen: Principal, Graphs,
	// AllGraphs, MinCertainty, Believed, Recorded, ValidAt and Doubted. A revision or an
	// age cannot be part of it: an age goes by while nothing changes. A fixed
	// time does not, so that each assertion is in it or not for good.
	View View
	// Keep is a further condition on a statement with one assertion. Nil keeps
	// all. It must be fast and safe for concurrent use.
	Keep func(Statement) bool
	// Replacements also admits the exchange of the whole content of a graph that the
	// patterns and the view leave room for: see Event.Replaced. Ops and Keep are about
	// statements and do not matter to it.
	Replacements bool
}

// MaxPatterns bounds the patterns of one filter.
const MaxPatterns = 1024

// Event is a change as a watcher sees it: the difference of what its view shows
// before and after.
type Event struct {
	Op Op
	// Statement is the quad with the assertion that changed.
	Statement Statement
	// Previous, on a Replace, is what went.
	Previous []Statement
	// StatementRemains, on a Remove, tells that others still back it.
	StatementRemains bool
	// Replaced, under a filter with Replacements, tells that the content of a graph was
	// exchanged as a whole. Op and Statement are then zero. A watcher ends behind it
	// with CodeResync.
	Replaced *GraphReplacement
	Commit   *Commit // not to be changed; may hold changes that the view does not show, and then not why it was made
	Position Position
}

// Start is the position in front of the event's change, where Position is the
// one behind it.
func (e *Event) Start() Position {
	p, i := e.Position, int(e.Position.Index)
	if p.Index == EndOfCommit {
		i = len(e.Commit.Changes) - 1
	}
	if i <= 0 {
		return Position{p.Epoch, p.Revision - 1, EndOfCommit}
	}
	p.Index = uint32(i - 1)
	return p
}

// watchFilter is a filter made ready: what a reader of the log sees of a change.
type watchFilter struct {
	Filter
	access   Access
	distrust Distrust
	hides    func(predicate, graph Term) bool // nil: nothing
	// patternSet holds the patterns where they are too many to be compared one by
	// one, and masks which of their parts are bound.
	patternSet map[Pattern]struct{}
	masks      []uint8
	// lastAnswer is the answer about the graph that was asked about last.
	lastAnswer lastAnswer
	// lastCommit is what is shown of the commit of the last event.
	lastCommit struct{ of, shown *Commit }

	// forgets tells of which graphs the past is kept from the principal, nil if of
	// none (Forgetter). What commits behind followed took away is told, and of what
	// stood in known it must not go without a word: stale then, or err.
	forgets         func(graph Term) bool
	followed, known Revision
	hasAssertion    func(*Quad, *Assertion) (bool, error)
	// isDeletedAt tells that nobody finds what a graph held at a revision (generations.hides).
	isDeletedAt func(graph Term, at Revision) bool
	stale       bool
	err         error
}

// fewPatterns are as soon compared as looked up.
const fewPatterns = 8

// prepare checks the filter and prepares it.
func (f Filter) prepare(s *Store) (*watchFilter, error) {
	access, distrust := s.options.Access, s.options.Distrust
	if f.View.MaxAge != 0 || f.View.At != 0 {
		return nil, Errorf(CodeInvalid, "changes cannot be watched under an age or at a revision")
	}
	if err := f.View.Valid(); err != nil {
		return nil, err
	}
	if n := len(f.Patterns); n > MaxPatterns {
		return nil, Errorf(CodeLimitExceeded, "%d patterns are more than the %d that one filter may have", n, MaxPatterns)
	}
	f.View.Principal.Normalise()
	if err := f.View.Doubting(distrust); err != nil {
		return nil, err
	}
	if f.View.Doubts = nil; f.View.Doubted { // the doubts of the moment decide
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

// matchesQuad tells whether the quad fits any of the patterns.
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

// maskedPattern is the pattern that binds these parts to those of the quad.
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

// eventOf gives the event that the change is under the filter, nil if it is none.
func (f *watchFilter) eventOf(epoch Epoch, c *Commit, i int) *Event {
	ch := &c.Changes[i]
	if !f.matchesQuad(ch.Quad) || !f.View.Shows(ch.Quad.Graph) || !f.mayRead(&ch.Quad) || f.isDeletedAt(ch.Quad.Graph, c.Revision) {
		return nil
	}
	e := &Event{Commit: c, Position: Position{epoch, c.Revision, uint32(i)}}
	if i == len(c.Changes)-1 {
		e.Position.Index = EndOfCommit
	}
	var seen bool
	if ch.Op == Add {
		seen = f.seeAdd(e, c, ch)
	} else {
		seen = f.seeRemove(e, c, ch)
	}
	if !seen || f.Ops != nil && !slices.Contains(f.Ops, e.Op) {
		return nil
	}
	e.Commit = f.visibleCommit(c)
	return e
}

// mayRead tells whether the principal may read the statement, in whatever view.
func (f *watchFilter) mayRead(q *Quad) bool {
	return f.lastAnswer.mayRead(f.access, &f.View.Principal, q.Graph) && (f.hides == nil || !f.hides(q.Predicate, q.Graph))
}

// matchesReplacement tells whether the filter is about a graph that the commit replaced. That one
// was deleted is told to nobody, and nothing of what it held before.
func (f *watchFilter) matchesReplacement(c *Commit) bool {
	r := c.Replaced
	if r == nil || r.Deleted || !f.View.Shows(r.Graph) || !f.lastAnswer.mayRead(f.access, &f.View.Principal, r.Graph) || f.isDeletedAt(r.Graph, c.Revision) {
		return false
	}
	return f.Patterns == nil || slices.ContainsFunc(f.Patterns, func(p Pattern) bool { return p.MayBeIn(r.Graph) })
}

// seeReplaced gives the event that the replacement of a graph by the commit is under the
// filter, nil if it is none. It is the commit's only event.
func (f *watchFilter) seeReplaced(epoch Epoch, c *Commit) *Event {
	if !f.Replacements || !f.matchesReplacement(c) {
		return nil
	}
	return &Event{Commit: f.visibleCommit(c), Replaced: c.Replaced.Shown(f.isPartlyHidden(c.Replaced.Graph)), Position: replacedAt(epoch, c)}
}

// replacedAt is the position behind the event of a commit that replaced a graph. The end
// of the commit is behind what a watcher tells next, that the graph has to be read anew.
func replacedAt(epoch Epoch, c *Commit) Position { return Position{epoch, c.Revision, 0} }

// isPartlyHidden tells whether some of the graph may be hidden from the principal, or of its
// past.
func (f *watchFilter) isPartlyHidden(graph Term) bool {
	return f.hides != nil || f.distrust.Doubted() != nil || f.forgets != nil && f.forgets(graph)
}

// visibleCommit is the commit with what the principal may know of why it was made.
func (f *watchFilter) visibleCommit(c *Commit) *Commit {
	if f.lastCommit.of != c {
		f.lastCommit.of = c
		f.lastCommit.shown = c.WithMotives(&f.View.Principal, func(q *Quad) bool {
			return f.mayRead(q) && !f.isDeletedAt(q.Graph, c.Revision)
		}, func(r *GraphReplacement) bool {
			return !f.isPartlyHidden(r.Graph) && f.lastAnswer.mayRead(f.access, &f.View.Principal, r.Graph) && !f.isDeletedAt(r.Graph, c.Revision)
		})
	}
	return f.lastCommit.shown
}

// isVisible tells whether the assertion is seen as one of the quad.
func (f *watchFilter) isVisible(q Quad, a Assertion) bool {
	return f.View.Admits(a) && !f.isQuarantined(q.Graph, &a) && (f.Keep == nil || f.Keep(singleStatement(q, a)))
}

func singleStatement(q Quad, a Assertion) Statement {
	return Statement{Quad: q, Assertions: []Assertion{a}}
}

// seeAdd: a new assertion is an add, one that took the place of its source's
// earlier one or of other statements a replace, and one that the view no longer
// admits a removal of the earlier.
func (f *watchFilter) seeAdd(e *Event, c *Commit, ch *Change) bool {
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
			if forgotten { // it is in the same graph
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

// seeRemove: what was withdrawn and had been seen. What a replace removed is
// shown with its add, if that is seen.
func (f *watchFilter) seeRemove(e *Event, c *Commit, ch *Change) bool {
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

// withdrawnAssertions lists the assertions that a removal withdrew and that were seen.
func (f *watchFilter) withdrawnAssertions(ch *Change) []Assertion {
	var list []Assertion
	for _, a := range ch.Before {
		if _, stays := base.FindSource(ch.After, a.Source); !stays && f.isVisible(ch.Quad, a) {
			list = append(list, a)
		}
	}
	return list
}

// isStillVisible tells whether the statement is still seen after the change.
func (f *watchFilter) isStillVisible(ch *Change) bool {
	return slices.ContainsFunc(ch.After, func(a Assertion) bool { return f.isVisible(ch.Quad, a) })
}

// retryWatch is when it may make sense to ask for a watcher again.
const retryWatch = 5 * time.Second

// filterIndex finds the watchers any of whose patterns a change fits without
// looking at all of them: by which terms of the pattern are bound, and their
// hash. Terms that the store has not seen can be watched like any other.
type filterIndex struct {
	seed  maphash.Seed
	masks [16]map[uint64][]*Watcher // by which parts are bound
	used  []uint8                   // masks that hold any
	round uint64                    // of match, so that each watcher is told once
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

// hashes are those of a quad's four terms.
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

// everyQuad is what a filter without patterns admits.
var everyQuad = []Pattern{{}}

// eachKey calls fn for the mask and the key of each of the watcher's patterns.
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

// matchCommit calls fn once for every watcher that the commit may concern, and not for
// each change or pattern: many may wait for everything while many things change
// at once. A nil commit may concern everybody.
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
