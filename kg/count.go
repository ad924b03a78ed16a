package kg

import (
	"errors"
	"slices"

	"koine/kg/internal/keys"
)

// TermCount is a term with the number of its statements, or, for a class, of its subjects.
type TermCount struct {
	Term  Term
	Count uint64
}

// hasExactCounts reports whether the catalogue's counts are those of the view.
func (s *Snapshot) hasExactCounts() bool { return !s.past && s.view.AdmitsAll() }

// Count returns the number of statements that Match would yield. It uses the catalogue if it
// can, and counts the statements otherwise.
func (s *Snapshot) Count(p Pattern) (uint64, error) {
	ids, known, err := s.PatternIDs(p)
	if !known || err != nil {
		return 0, err
	}
	return s.CountIDs(ids)
}

// CountIDs is Count for a pattern of ids.
func (s *Snapshot) CountIDs(p IDPattern) (uint64, error) {
	if s.hasExactCounts() {
		if kind, id, ok := s.catalogueKey(p); ok {
			if !id.IsZero() && !p.Graph.IsZero() {
				shown, err := s.admitsCounted(kind, p.Graph, id)
				if !shown || err != nil {
					return 0, err
				}
				graph, there := s.toIndex(p.Graph)
				if !there {
					return 0, nil
				}
				return s.catalogue.CountOf(kind, graph, id), nil
			}
			var n uint64
			err := s.eachVisibleCount(kind, p.Graph, func(_, counted ID, count uint64) {
				if id.IsZero() || id == counted {
					n += count
				}
			})
			return n, err
		}
	}
	return s.scanCount(p)
}

// Estimate returns the approximate number of statements that match the pattern, from the
// counts of the visible graphs, without reading any. It includes statements that the view
// hides by certainty, age or revision. If known is false, n is an upper bound.
func (s *Snapshot) Estimate(p IDPattern) (n uint64, known bool, err error) {
	kind, id, known := s.catalogueKey(p)
	if !known {
		kind, id = keys.PrefixPredicate, p.Predicate
	}
	if id.IsZero() || !p.Graph.IsZero() {
		err = s.eachVisibleCount(kind, p.Graph, func(_, counted ID, count uint64) {
			if id.IsZero() || id == counted {
				n += count
			}
		})
		return n, known, err
	}
	s.catalogue.EachGraph(kind, id, func(graph ID, count uint64) {
		graph, shown := s.currentGraph(graph)
		if shown && err == nil {
			shown, err = s.admitsCounted(kind, graph, id)
		}
		if shown {
			n += count
		}
	})
	return n, known, err
}

// eachVisibleCount calls fn for each count of the catalogue that the view admits.
func (s *Snapshot) eachVisibleCount(kind byte, in ID, fn func(graph, id ID, count uint64)) (err error) {
	var last ID // the counts of a graph are adjacent
	var shown bool
	in, there := s.toIndex(in)
	if !there {
		return nil
	}
	s.catalogue.Each(kind, in, func(graph, id ID, count uint64) {
		graph, is := s.currentGraph(graph)
		if !is {
			return
		}
		if err == nil && (graph != last || s.hides != nil) {
			shown, err = s.admitsCounted(kind, graph, id)
			last = graph
		}
		if shown && err == nil {
			fn(graph, id, count)
		}
	})
	return err
}

// admitsCounted reports whether the view admits the statements behind a count of the
// catalogue.
func (s *Snapshot) admitsCounted(kind byte, graph, id ID) (bool, error) {
	if s.hides == nil {
		return s.admitsGraph(graph)
	}
	if kind == keys.PrefixClass {
		typeID, known, err := s.dict.ID(IRI(RDFType))
		if !known || err != nil {
			return false, err
		}
		id = typeID
	}
	return s.admitsPredicate(id, graph)
}

// catalogueKey returns the key of the counts that answer the pattern, and false if none do.
func (s *Snapshot) catalogueKey(p IDPattern) (kind byte, id ID, ok bool) {
	if !p.Subject.IsZero() {
		return 0, id, false
	}
	if p.Object.IsZero() {
		return keys.PrefixPredicate, p.Predicate, true
	}
	typeID, known, err := s.dict.ID(IRI(RDFType))
	if err == nil && known && p.Predicate == typeID {
		return keys.PrefixClass, p.Object, true
	}
	return 0, id, false
}

// Instances returns the number of subjects of a class if the catalogue knows it. The catalogue
// counts statements, so known is false if several visible graphs have instances, and under a
// view that leaves assertions out.
func (s *Snapshot) Instances(class Term) (n uint64, known bool, err error) {
	id, there, err := s.dict.ID(class)
	if err != nil || !s.hasExactCounts() {
		return 0, false, err
	}
	graphs := 0
	if there {
		err = s.eachVisibleCount(keys.PrefixClass, ID{}, func(_, counted ID, count uint64) {
			if counted == id && count > 0 {
				graphs++
				n += count
			}
		})
	}
	return n, graphs <= 1, err
}

func (s *Snapshot) scanCount(p IDPattern) (uint64, error) {
	sc := newScanner(s, IDQuad(p), nil, !s.view.AdmitsAll())
	defer sc.close()
	var n uint64
	for sc.next() {
		n++
	}
	return n, sc.err
}

// Predicates lists the predicates with the number of their visible statements, Classes the
// classes, which are no literals, with the number of their subjects, and Graphs the graphs with
// the number of their statements. Each list is in the order of Term.Compare, without zero counts.
func (s *Snapshot) Predicates() ([]TermCount, error) {
	return s.sumCounts(keys.PrefixPredicate, func(_, id ID) (ID, IDPattern) {
		return id, IDPattern{Predicate: id}
	})
}

// Classes: see Predicates.
func (s *Snapshot) Classes() ([]TermCount, error) {
	list, err := TypeValues(s)
	return slices.DeleteFunc(list, func(c TermCount) bool { return c.Term.IsLiteral() }), err
}

// TypeValues is Snapshot.Classes with the literals among the objects of rdf:type.
func TypeValues(s *Snapshot) ([]TermCount, error) {
	typeID, known, err := s.dict.ID(IRI(RDFType))
	if !known || err != nil {
		return nil, err
	}
	return s.sumCounts(keys.PrefixClass, func(_, id ID) (ID, IDPattern) {
		return id, IDPattern{Predicate: typeID, Object: id}
	})
}

// Graphs: see Predicates.
func (s *Snapshot) Graphs() ([]TermCount, error) {
	return s.sumCounts(keys.PrefixPredicate, func(graph, id ID) (ID, IDPattern) {
		return graph, IDPattern{Predicate: id}
	})
}

// sumCounts adds up the counts of one kind by the id that key returns. key also returns the
// pattern to count in that graph if the catalogue's count does not hold for the view.
func (s *Snapshot) sumCounts(kind byte, key func(graph, id ID) (ID, IDPattern)) ([]TermCount, error) {
	sums := make(map[ID]uint64)
	var failed error
	err := s.eachVisibleCount(kind, ID{}, func(graph, id ID, count uint64) {
		into, pattern := key(graph, id)
		if !s.hasExactCounts() && failed == nil {
			pattern.Graph = graph
			count, failed = s.scanCount(pattern)
		}
		sums[into] += count
	})
	if err = errors.Join(err, failed); err != nil {
		return nil, err
	}
	out := make([]TermCount, 0, len(sums))
	for id, n := range sums {
		if n == 0 {
			continue
		}
		t, err := s.dict.Term(id)
		if err != nil {
			return nil, err
		}
		out = append(out, TermCount{t, n})
	}
	slices.SortFunc(out, func(a, b TermCount) int { return a.Term.Compare(b.Term) })
	return out, nil
}

// knownPredicates lists the visible predicates that the graph, given by its id in the index,
// has or had, in the order of their ids. The zero ID stands for all graphs.
func (s *Snapshot) knownPredicates(graph ID) ([]ID, error) {
	seen := make(map[ID]bool)
	var failed error
	note := func(in, id ID) {
		if failed != nil || seen[id] {
			return
		}
		shown, err := s.admitsCounted(keys.PrefixPredicate, s.generations.NameID(in), id)
		if failed = err; shown {
			seen[id] = true
		}
	}
	s.catalogue.Each(keys.PrefixPredicate, graph, func(in, id ID, _ uint64) { note(in, id) })
	for _, e := range s.pending.All() {
		in, id, ok := keys.ParsePair([]byte(e.Key))
		if !ok || e.Key[0] != keys.PrefixPredicate || !graph.IsZero() && in != graph {
			continue
		}
		note(in, id)
	}
	if failed != nil {
		return nil, failed
	}
	out := make([]ID, 0, len(seen))
	for id := range seen {
		out = append(out, id)
	}
	slices.SortFunc(out, ID.Compare)
	return out, nil
}
