package tasks

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"iter"
	"slices"

	"koine/internal/caller"
	"koine/internal/systemgraph"
	"koine/kg"
)

// listing is a query resolved against a snapshot.
type listing struct {
	*kg.Snapshot
	runs    []run
	since   moment
	filters []kg.Pattern // each binds predicate and object
	most    int          // rows read when filters are set
}

// run selects the tasks of one journal in one state, in list order.
type run struct {
	journal kg.Term
	order   kg.Term // the property with the order
}

// rank is the position of a task in a list.
type rank struct {
	changed moment
	task    kg.ID
}

// firstRank sorts before every rank.
var firstRank = rank{changed: 1<<63 - 1}

func (p rank) compare(other rank) int {
	return cmp.Or(cmp.Compare(other.changed, p.changed), bytes.Compare(p.task[:], other.task[:]))
}

func (p rank) bytes() []byte {
	return append(binary.BigEndian.AppendUint64(nil, uint64(p.changed)), p.task[:]...)
}

func parseRank(raw []byte) (p rank, err error) {
	if len(raw) != 8+len(p.task) {
		return p, kg.Errorf(kg.CodeCursorForeign, "the cursor has another version")
	}
	p.changed = moment(binary.BigEndian.Uint64(raw))
	copy(p.task[:], raw[8:])
	return p, nil
}

func (q *Query) resolve(s *kg.Snapshot, c caller.Caller, agent kg.AgentID, limit int) (*listing, error) {
	journals, err := q.listJournals(s, c, agent, limit)
	if err != nil {
		return nil, err
	}
	by := &byChange
	if q.ByStatus {
		by = &byStatus
	}
	l := &listing{Snapshot: s, since: firstMoment(q.Since), most: limit}
	for _, journal := range journals {
		for _, state := range states[1:] {
			if len(q.States) == 0 || slices.Contains(q.States, state) {
				l.runs = append(l.runs, run{journal, systemgraph.Property(by.propertyOf(state))})
			}
		}
	}
	for _, f := range []struct{ property, text string }{{propParent, string(q.Parent)}, {propContext, q.Context}} {
		if f.text != "" {
			l.filters = append(l.filters, kg.Pattern{Predicate: systemgraph.Property(f.property), Object: kg.String(f.text)})
		}
	}
	return l, nil
}

// listJournals lists the graphs of the tasks that the query selects.
func (q *Query) listJournals(s *kg.Snapshot, by caller.Caller, agent kg.AgentID, limit int) (list []kg.Term, err error) {
	patternFor := func(property string, agent kg.AgentID) kg.Pattern {
		return kg.Pattern{Predicate: systemgraph.Property(property), Object: kg.IRI(string(agent))}
	}
	both := q.Created == q.Handled
	var patterns []kg.Pattern
	switch all := both && !q.Created && agent == by.Principal.ID && isAdmin(by.Principal); {
	case all && q.Handler != "":
		patterns = []kg.Pattern{patternFor(propListHandler, q.Handler)}
	case all:
		patterns = []kg.Pattern{{Predicate: systemgraph.Property(propListCreator)}}
	default:
		if (both || q.Created) && q.Handler != "" {
			list = append(list, graphOf(agent, q.Handler))
		} else if both || q.Created {
			patterns = append(patterns, patternFor(propListCreator, agent))
		}
		if (both || q.Handled) && (q.Handler == "" || q.Handler == agent) {
			patterns = append(patterns, patternFor(propListHandler, agent))
		}
	}
	for _, p := range patterns {
		for st, err := range s.Match(p) {
			if err != nil {
				return nil, err
			}
			if _, _, ours := pairOf(st.Graph); !ours {
				continue
			}
			if list = append(list, st.Graph); len(list) > limit {
				return nil, errTooMuch("", "more than %d pairs of agents have tasks: set handler", limit)
			}
		}
	}
	slices.SortFunc(list, kg.Term.Compare)
	return slices.Compact(list), nil // an agent may ask itself
}

// readRanks returns up to limit ranks after one, in order, and the total.
func (l *listing) readRanks(after rank, limit int) (list []rank, total int, err error) {
	if len(l.filters) > 0 {
		return l.readFiltered(after, limit)
	}
	for _, r := range l.runs {
		n, err := l.countRun(r)
		if err != nil {
			return nil, 0, err
		}
		if total += n; n == 0 {
			continue
		}
		for p, err := range l.scanRun(r, after) {
			if err != nil {
				return nil, 0, err
			}
			if len(list) == limit && list[limit-1].compare(p) <= 0 {
				break
			}
			at, _ := slices.BinarySearchFunc(list, p, rank.compare)
			list = slices.Insert(list, at, p)
			list = list[:min(len(list), limit)]
		}
	}
	return list, total, nil
}

// scanRun yields the ranks of a run after a position.
func (l *listing) scanRun(r run, after rank) iter.Seq2[rank, error] {
	return func(yield func(rank, error) bool) {
		for row, err := range l.InOrder(r.journal, r.order, -int64(after.changed), after.task) {
			if err != nil {
				yield(rank{}, err)
				return
			}
			p := rankOf(row)
			if p.changed < l.since || !yield(p, nil) {
				return
			}
		}
	}
}

// rankOf decodes the rank from an order statement.
func rankOf(row kg.Row) rank {
	n, _ := kg.IntegerOf(row.Object)
	return rank{moment(-n), row.Subject}
}

// countRun returns the size of a run: from the index, or by reading if a time is set.
func (l *listing) countRun(r run) (n int, err error) {
	all, err := l.Count(kg.Pattern{Predicate: r.order, Graph: r.journal})
	if l.since == 0 || all == 0 || err != nil {
		return int(all), err
	}
	for _, err := range l.scanRun(r, firstRank) {
		if err != nil {
			return 0, err
		}
		n++
	}
	return n, nil
}

// readFiltered reads the tasks that match the first filter.
func (l *listing) readFiltered(after rank, limit int) (list []rank, total int, err error) {
	orders := map[[2]kg.ID]bool{} // journal and property
	for _, r := range l.runs {
		journal, known, err := l.ID(r.journal)
		if err != nil {
			return nil, 0, err
		}
		order, _, err := l.ID(r.order)
		if err != nil {
			return nil, 0, err
		}
		if known {
			orders[[2]kg.ID{journal, order}] = true
		}
	}
	filters := make([]kg.IDPattern, len(l.filters))
	for i, f := range l.filters {
		var known [2]bool
		if filters[i].Predicate, known[0], err = l.ID(f.Predicate); err != nil {
			return nil, 0, err
		}
		if filters[i].Object, known[1], err = l.ID(f.Object); err != nil || !known[0] || !known[1] {
			return nil, 0, err
		}
	}
	examined := 0
	for row, err := range l.MatchIDs(filters[0], nil) {
		if err != nil {
			return nil, 0, err
		}
		if examined++; examined > l.most {
			return nil, 0, errTooMuch("", "more than %d tasks match: narrow the query", l.most)
		}
		p, fits, err := l.matchFilters(row, filters[1:], orders)
		if err != nil {
			return nil, 0, err
		}
		if fits {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, rank.compare)
	total = len(list)
	at, found := slices.BinarySearchFunc(list, after, rank.compare)
	if found {
		at++
	}
	return list[at:min(at+limit, total)], total, nil
}

// matchFilters reports whether the task of a row passes the other filters, and returns its
// rank.
func (l *listing) matchFilters(row kg.Row, filters []kg.IDPattern, orders map[[2]kg.ID]bool) (p rank, fits bool, err error) {
	for _, f := range filters {
		f.Subject, f.Graph = row.Subject, row.Graph
		found := false
		for _, err := range l.MatchIDs(f, nil) {
			if err != nil {
				return p, false, err
			}
			found = true
		}
		if !found {
			return p, false, nil
		}
	}
	for about, err := range l.MatchIDs(kg.IDPattern{Subject: row.Subject, Graph: row.Graph}, nil) {
		if err != nil {
			return p, false, err
		}
		if orders[[2]kg.ID{about.Graph, about.Predicate}] {
			p = rankOf(about)
			return p, p.changed >= l.since, nil
		}
	}
	return p, false, nil
}
