package kg

import (
	"errors"
	"slices"

	"koine/kg/internal/index"
	"koine/kg/internal/keys"
)

// TermCount is a term with how many statements (or, for a class, subjects) it
// stands in.
type TermCount struct {
	Term  Term
	Count uint64
}

// hasExactCounts tells whether the catalogue counts just what the view shows.
func (s *Snapshot) hasExactCounts() bool { return !s.past && s.view.AdmitsAll() }

// Count is the number of statements that Match would yield. The catalogue
// answers where it knows; otherwise the statements are counted.
func (s *Snapshot) Count(p Pattern) (uint64, error) {
	ids, known, err := s.patternIDs(p)
	if !known || err != nil {
		return 0, err
	}
	return s.CountIDs(ids)
}

// CountIDs is Count of a pattern in ids.
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
				return s.catalogue.One(kind, graph, id), nil
			}
			var n uint64
			err := s.eachShown(kind, p.Graph, func(_, counted ID, count uint64) {
				if id.IsZero() || id == counted {
					n += count
				}
			})
			return n, err
		}
	}
	return s.scanCount(p)
}

// Estimate is roughly how many statements fit the pattern, from the counts of
// the graphs that the view shows, without reading any: what the view hides by
// certainty, age or revision is counted. known is false when only reading could
// tell; n is then how many there are at most.
func (s *Snapshot) Estimate(p IDPattern) (n uint64, known bool, err error) {
	kind, id, known := s.catalogueKey(p)
	if !known {
		kind, id = keys.PrefixPredicate, p.Predicate
	}
	if id.IsZero() || !p.Graph.IsZero() {
		err = s.eachShown(kind, p.Graph, func(_, counted ID, count uint64) {
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

// eachShown is catalogue.each for what the view shows.
func (s *Snapshot) eachShown(kind byte, in ID, fn func(graph, id ID, count uint64)) (err error) {
	var last ID // the counts of a graph follow one another
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

// admitsCounted tells whether the view shows the statements of one of the
// catalogue's counts.
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
	return s.admitsPlace(id, graph)
}

// catalogueKey tells which of the catalogue's counts answer the pattern, if any.
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

// Instances is the number of subjects of a class, if the catalogue knows it:
// what it counts are statements, so not when several graphs that the view shows
// have some, nor under a view that leaves assertions out.
func (s *Snapshot) Instances(class Term) (n uint64, known bool, err error) {
	id, there, err := s.dict.ID(class)
	if err != nil || !s.hasExactCounts() {
		return 0, false, err
	}
	graphs := 0
	if there {
		err = s.eachShown(keys.PrefixClass, ID{}, func(_, counted ID, count uint64) {
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

// Predicates lists the predicates of what the view shows with the number of
// their statements, Classes the classes with the number of their subjects,
// Graphs the graphs with the number of their statements; each in the order of
// Term.Compare, those with none left out.
func (s *Snapshot) Predicates() ([]TermCount, error) {
	return s.sumCounts(keys.PrefixPredicate, func(_, id ID) (ID, IDPattern) {
		return id, IDPattern{Predicate: id}
	})
}

// Classes: see Predicates.
func (s *Snapshot) Classes() ([]TermCount, error) {
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

// sumCounts adds the counts of one kind up by what key names; each also gives the
// pattern whose statements in that graph are counted when the catalogue's
// number is not the view's.
func (s *Snapshot) sumCounts(kind byte, key func(graph, id ID) (ID, IDPattern)) ([]TermCount, error) {
	sums := make(map[ID]uint64)
	var failed error
	err := s.eachShown(kind, ID{}, func(graph, id ID, count uint64) {
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

// knownPredicates lists the predicates that the graph, by its id in the index, or any
// for the zero ID, has or had, as far as the view shows it, in the order of their ids.
func (s *Snapshot) knownPredicates(graph ID) ([]ID, error) {
	seen := make(map[ID]bool)
	var failed error
	note := func(in, id ID) {
		if failed != nil || seen[id] {
			return
		}
		shown, err := s.admitsCounted(keys.PrefixPredicate, s.generations.Name(in), id)
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
	slices.SortFunc(out, index.CompareIDs)
	return out, nil
}
