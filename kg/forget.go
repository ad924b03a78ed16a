package kg

import (
	"context"
	"math"
	"slices"

	"koine/kg/internal/keys"
)

// Forgetter is an Access under which what is taken away from a graph is gone for
// some of those who read it: of such a graph they see what stands, and nothing
// that no longer does, whichever revision they read and wherever they begin to
// read the log. It is asked inside the scan and the watch, and only about the
// past: reads of what stands cost nothing for it.
//
// Who follows the graph is told what goes while it does, because it could read
// that until then: see Watcher.View. One that comes back to a position before
// something went that it may have been told of gets CodeAccessChanged, and reads
// anew; in a history there is neither that it came nor that it went.
type Forgetter interface {
	// Forgets gives a function that tells whether the past of a graph is kept from
	// the principal; nil where that of none is. It must not change its answers, and
	// is used for one read.
	Forgets(p Principal) func(graph Term) bool
}

// forgetful is what an Access forgets for the principal.
func forgetful(a Access, p Principal) func(graph Term) bool {
	if f, ok := a.(Forgetter); ok {
		return f.Forgets(p)
	}
	return nil
}

// unfollowed is behind every revision.
const unfollowed Revision = math.MaxUint64

// forgotten tells whether what stood in the graph until a revision is not seen.
func (s *Snapshot) forgotten(graph ID, to Revision) (bool, error) {
	if s.forgets == nil || to > s.followed {
		return false, nil
	}
	if d, ok := s.forgot.Load(graph); ok {
		return d.(bool), nil
	}
	t, err := s.dict.term(graph)
	if err != nil {
		return false, err
	}
	forgot := s.forgets(t)
	s.forgot.Store(graph, forgot)
	return forgot, nil
}

// forgotten is that of the snapshot; an error ends the scan.
func (sc *scanner) forgotten(graph ID, to uint64) (forgot bool) {
	if sc.s.forgets == nil {
		return false
	}
	forgot, sc.err = sc.s.forgotten(graph, Revision(to))
	return forgot || sc.err != nil
}

// forgotten tells whether the principal does not see of the graph what a commit
// took away, or brought and is gone.
func (f *sight) forgotten(c *Commit, graph Term) bool {
	return f.forgets != nil && c.Revision <= f.followed && f.forgets(graph)
}

// missed notes that what began to stand in a revision went without a word.
func (f *sight) missed(since Revision) {
	if f.Ops != nil && !slices.Contains(f.Ops, Remove) && !slices.Contains(f.Ops, Replace) {
		return
	}
	if since != 0 && since <= f.known {
		f.stale = true
	}
}

// stillStands tells whether an assertion of a change is what stands now. An error
// ends the reading (broken).
func (f *sight) stillStands(ch *Change) bool {
	stands, err := f.stands(&ch.Quad, &ch.Assertion)
	if err != nil {
		f.err = err
	}
	return stands
}

// broken is why nothing more may be told.
func (f *sight) broken(s *Store) error {
	if f.err == nil && f.stale {
		return s.errAccessChanged()
	}
	return f.err
}

// stands tells whether the newest revision has the assertion of the statement.
func (s *Store) stands(q *Quad, a *Assertion) (bool, error) {
	p, err := s.pin(context.Background())
	if err != nil {
		return false, err
	}
	defer s.unpin(p)
	dict := dictionary{kv: p.kv, cache: s.cache}
	var ids IDQuad
	for _, part := range quadParts(q, &ids) {
		id, known, err := dict.id(*part.term)
		if !known || err != nil {
			return false, err
		}
		*part.id = id
	}
	ids.Graph = p.head.generations.current(ids.Graph)
	var st state
	found, err := p.kv.get(keys.SPOG.Append(nil, ids), func(v []byte) (err error) {
		st, err = parseState(v, dict.agent)
		return err
	})
	if !found || err != nil {
		return false, err
	}
	p.head.generations.settle(&st, ids.Graph)
	now, ok := findSource(st.assertions, a.Source)
	return ok && now.Revision == a.Revision, nil
}

// buried tells that what a graph held at a revision is found by nobody: the graph of
// that name was deleted since.
func (s *Store) buried(graph Term, at Revision) bool {
	return s.head.Load().generations.hides(graph, at)
}

// View is Store.View for what the events of the watcher are told with, to the
// watcher's principal: of what a Forgetter forgets, it shows what went since the
// watcher was registered, as of when it stood.
func (w *Watcher) View(ctx context.Context, v View) (*Snapshot, error) {
	v.Principal = w.filter.View.Principal
	snapshot, err := w.s.View(ctx, v)
	if err == nil {
		snapshot.followed = w.filter.followed
	}
	return snapshot, err
}

// ReadLog is Store.ReadLog for a part of what the watcher tells, with what it tells
// of that.
func (w *Watcher) ReadLog(ctx context.Context, f Filter, part LogRange) (*LogReader, error) {
	f.View.Principal = w.filter.View.Principal
	l, err := w.s.ReadLog(ctx, f, part)
	if err == nil {
		l.filter.followed = w.filter.followed
	}
	return l, err
}

// withoutGone is a commit without what it changed in graphs whose past is kept from
// its reader, but for what still stands as the commit left it. Why it was made
// stays: that is not what they held.
func (s *Store) withoutGone(c *Commit, forgets func(graph Term) bool) (*Commit, error) {
	if !slices.ContainsFunc(c.Changes, func(ch Change) bool { return forgets(ch.Quad.Graph) }) {
		return c, nil
	}
	out := *c
	out.Changes, out.ContentHash = nil, [32]byte{} // a hash of what is gone too
	for _, ch := range c.Changes {
		ch.Replaces, ch.ReplacedBy = nil, -1
		if forgets(ch.Quad.Graph) {
			stands := false
			var err error
			if ch.Op != Remove {
				stands, err = s.stands(&ch.Quad, &ch.Assertion)
			}
			if err != nil {
				return nil, err
			}
			if !stands {
				continue
			}
			ch.Before, ch.Since = nil, 0
		}
		out.Changes = append(out.Changes, ch)
	}
	if len(out.Changes) == 0 {
		return nil, errNoRevision(c.Revision)
	}
	return &out, nil
}
