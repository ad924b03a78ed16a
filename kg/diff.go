package kg

import (
	"bytes"
	"iter"
	"slices"

	"koine/kg/internal/keys"
)

// Difference is what became of one statement between two revisions: its version
// before and after. One that has a zero From did not stand; not both do, and
// they are not the same.
type Difference struct {
	IDQuad
	Before, After Version
}

// Diff yields the statements that fit the pattern and that stand otherwise at
// the snapshot's revision than at the earlier revision from, in the order of
// MatchIDs; with after, from behind that statement on. Access and view decide as
// in every read: an assertion that the view does not admit makes no difference.
// It looks at the commits between, or at all versions of the pattern's
// statements, whichever is less.
func (s *Snapshot) Diff(from Revision, p IDPattern, after *IDQuad) iter.Seq2[Difference, error] {
	return func(yield func(Difference, error) bool) {
		if from > s.position.Revision {
			yield(Difference{}, Errorf(CodeInvalid, "revision %d is newer than %d, up to which the difference is asked for", from, s.position.Revision))
			return
		}
		if from == s.position.Revision {
			return
		}
		touched, known, err := s.touched(from, p, after)
		switch {
		case err != nil:
			yield(Difference{}, err)
		case !known:
			s.diffOf(from, p, after, yield)
		default:
			for _, q := range touched {
				if !s.diffOf(from, IDPattern(q), nil, yield) {
					return
				}
			}
		}
	}
}

// diffOf yields the differences of a pattern from its versions, and tells
// whether to go on.
func (s *Snapshot) diffOf(from Revision, p IDPattern, after *IDQuad, yield func(Difference, error) bool) bool {
	var d Difference // of the statement at hand
	flush := func() bool {
		// Asked after the reading: what is taken away is first made unreadable.
		if from > 0 && from < s.floor() { // before the first commit nothing stood
			yield(Difference{}, s.errGone(from))
			return false
		}
		// Not by when they began: what was changed and changed back is the same.
		return sameShown(d.Before.shown, d.After.shown) || yield(d, nil)
	}
	for v, err := range s.Versions(p, after) {
		if err != nil {
			yield(Difference{}, err)
			return false
		}
		if v.IDQuad != d.IDQuad {
			if !flush() {
				return false
			}
			d = Difference{IDQuad: v.IDQuad}
		}
		if v.StandsAt(from) {
			d.Before = v
		}
		if v.To == 0 {
			d.After = v
		}
	}
	return flush()
}

// A commit is as much work as this many statements of a scan (15 µs to 0.3 µs,
// as measured), a statement that it touched as this many (3 µs), and so many at
// most are remembered.
const (
	commitCost  = 50
	touchedCost = 10
	maxTouched  = 1 << 16
)

// touched lists the statements of the pattern behind after that the commits
// behind from changed, in the order of MatchIDs, where to find these is less
// than to look at all statements of the pattern.
func (s *Snapshot) touched(from Revision, p IDPattern, after *IDQuad) (list []IDQuad, known bool, err error) {
	most, err := s.worthOfLog(from, p)
	if most == 0 || err != nil {
		return nil, false, err
	}
	seen := make(map[IDQuad]struct{})
	for r := from + 1; r <= s.position.Revision; r++ {
		if s.ctx.Err() != nil {
			return nil, false, s.ctx.Err()
		}
		c, err := s.commit(r)
		if CodeOf(err) == CodeRevisionGone {
			return nil, false, nil // the index knows the past without the log
		}
		if err != nil {
			return nil, false, err
		}
		if c.Replaced != nil {
			return nil, false, nil // the log does not say which statements those were
		}
		for i := range c.Changes {
			ids, known, err := s.quadIDs(&c.Changes[i].Quad)
			if err != nil {
				return nil, false, err
			}
			if !known || !keys.Matches(IDQuad(p), ids) {
				continue
			}
			// What is hidden must not decide which way is less work.
			shown, err := s.admitsPlace(ids.Predicate, ids.Graph)
			if err != nil {
				return nil, false, err
			}
			if shown {
				seen[ids] = struct{}{}
			}
		}
		if len(seen) > most {
			return nil, false, nil
		}
	}
	return s.inOrderOf(p, seen, after), true, nil
}

// worthOfLog says up to how many touched statements it is less work to find them
// in the log behind from, 0 when it is not at all.
func (s *Snapshot) worthOfLog(from Revision, p IDPattern) (most int, err error) {
	kind, id, ok := s.tallied(p)
	if !ok || s.commit == nil {
		return 0, nil
	}
	var n uint64
	err = s.eachShown(kind, p.Graph, func(_, counted ID, count uint64) {
		if id.IsZero() || id == counted {
			n += count
		}
	})
	commits := uint64(s.position.Revision - from)
	if commits >= n/commitCost {
		return 0, err
	}
	return int(min((n-commits*commitCost)/touchedCost, maxTouched)), err
}

// quadIDs gives the ids of a quad, known when it has them all.
func (s *Snapshot) quadIDs(q *Quad) (IDQuad, bool, error) {
	ids, known, err := s.patternIDs(Pattern(*q))
	return IDQuad(ids), known, err
}

// inOrderOf lists the quads behind after as a scan of the pattern would.
func (s *Snapshot) inOrderOf(p IDPattern, quads map[IDQuad]struct{}, after *IDQuad) []IDQuad {
	order := keys.Choose(IDQuad(p))
	if keys.NeedsPredicates(IDQuad(p)) {
		order = keys.POSG
	}
	key := func(q IDQuad) []byte {
		if graph, ok := s.toIndex(q.Graph); ok {
			q.Graph = graph
		}
		return order.Append(nil, q)
	}
	compare := func(a, b IDQuad) int { return bytes.Compare(key(a), key(b)) }
	list := make([]IDQuad, 0, len(quads))
	for q := range quads {
		if after == nil || compare(q, *after) > 0 {
			list = append(list, q)
		}
	}
	slices.SortFunc(list, compare)
	return list
}
