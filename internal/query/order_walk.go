package query

import (
	"koine/internal/query/valuespace"
	"koine/internal/query/valuewalk"
	"koine/kg"
)

// A list that is ordered by a property is read in that order where the index has it (see
// valuewalk). The walk ends with the page. It gives up where it would read more than it saves;
// ranking all entities then answers.

// Bounds of a walk.
const (
	// leastRanked is the number of statements up to which all entities are ranked.
	leastRanked = 1024
	// walkedShare is the part of the statements that ranking would read, of which a walk reads
	// at most as many. A walk reads entities out of order, which costs more for each.
	walkedShare = 8
)

// walkLimit returns how many statements of the first key a walk may read, 0 if all entities are
// to be ranked.
func (l *EntityList) walkLimit(s *kg.Snapshot) (most int, err error) {
	if len(l.Order) == 0 || l.Order[0].property == nil || l.Order[0].nullFirst || l.Backward || l.Match.matchesObjects() {
		return 0, nil
	}
	if _, limited := s.ReadsLeft(); limited {
		return 0, nil
	}
	if l.Total {
		if l.Match.class.IsZero() {
			return 0, nil
		}
		if _, known, err := s.Instances(l.Match.class); !known || err != nil {
			return 0, err
		}
	}
	d, n, err := cheapestAccessPath(s, l.Match.accessPaths, true)
	if err != nil || d != nil && d.iris != nil {
		return 0, err
	}
	if d == nil {
		if n, _, err = s.Estimate(kg.IDPattern{}); err != nil {
			return 0, err
		}
	}
	if n <= leastRanked {
		return 0, nil
	}
	return int(min(n/walkedShare, 1<<30)) + leastRanked, nil
}

// walkPage finds a page of the list by a walk over at most so many statements of the first key.
// found is false if that does not suffice.
func (l *EntityList) walkPage(s *kg.Snapshot, after *kg.ID, first, most int) (g Page[kg.ID], found bool, err error) {
	var behind *ranked[kg.ID]
	if after != nil {
		if behind, err = l.rank(s, *after); err != nil || behind.rank[0].null {
			return g, false, err
		}
	}
	predicate, known, err := s.ID(*l.Order[0].property)
	if !known || err != nil {
		return g, false, err
	}
	var from *valuespace.Value
	if behind != nil {
		from = &behind.rank[0].Value
	}
	w, err := valuewalk.New(s, predicate, l.Order[0].descending, from)
	if err != nil || w == nil {
		return g, false, err
	}
	kept, whole, err := l.collectWalked(s, w, behind, first+1, most)
	if err != nil || !whole {
		return g, false, err
	}
	if l.Total {
		if g.Total, err = l.countAll(s); err != nil {
			return g, false, err
		}
	}
	b := topN[*subject, kg.ID]{order: l.Order, compare: kg.ID.Compare, n: first + 1, kept: kept}
	g.fill(b.firstKeys(), first, false)
	return g, true, nil
}

// collectWalked collects the first n entities of a walk that match, and those that the first key
// does not tell from the last of them. whole is false if the walk ended before, or after so many
// statements.
func (l *EntityList) collectWalked(s *kg.Snapshot, w *valuewalk.Walk, behind *ranked[kg.ID], n, most int) (kept []ranked[kg.ID], whole bool, err error) {
	reader, err := l.Match.readSubjects(s)
	if err != nil {
		return nil, false, err
	}
	defer reader.close()
	class, known, err := l.classPattern(s)
	if !known || err != nil {
		return nil, false, err
	}
	seen := map[kg.ID]struct{}{}
	b := topN[*subject, kg.ID]{order: l.Order, compare: kg.ID.Compare}
	var last valuespace.Value
	for ; ; most-- {
		row, more, err := w.Next()
		if !more || err != nil {
			return nil, false, err
		}
		if len(kept) >= n && (len(l.Order) == 1 || row.Value.Order(last) != 0) {
			return kept, true, nil
		}
		if last = row.Value; most == 0 {
			return nil, false, nil
		}
		if _, again := seen[row.Subject]; again {
			continue
		}
		seen[row.Subject] = struct{}{}
		e, err := reader.read(row.Subject)
		ok := false
		if err == nil {
			ok, err = l.matchesWalked(e, class)
		}
		var r rank
		if err == nil && ok {
			r, err = l.Order.rankOf(e)
		}
		if err != nil {
			return nil, false, err
		}
		if at := (ranked[kg.ID]{r, row.Subject}); ok && (behind == nil || b.compareRanked(at, *behind) > 0) {
			kept = append(kept, at)
		}
	}
}

// classPattern returns the pattern by which an entity has the class of the match, if that is
// the whole condition. known is false if no entity has it.
func (l *EntityList) classPattern(s *kg.Snapshot) (p kg.IDPattern, known bool, err error) {
	if l.Match.test != nil || l.Match.class.IsZero() {
		return p, true, nil
	}
	return s.PatternIDs(kg.Pattern{Predicate: RDFType, Object: l.Match.class})
}

func (l *EntityList) matchesWalked(e *subject, class kg.IDPattern) (bool, error) {
	if class == (kg.IDPattern{}) {
		return l.Match.matchesEntity(e)
	}
	class.Subject = e.id
	return Shows(e.snapshot, class)
}
