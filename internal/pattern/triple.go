package pattern

import (
	"bytes"
	"slices"
	"strings"

	"koine/internal/path"
	"koine/kg"
)

// place is one position of a triple bound to a snapshot: the slot of a variable,
// or, with slot -1, an id; the zero id matches any.
type place struct {
	slot int
	id   kg.ID
}

// boundTriple is a triple pattern whose variables are slots and whose terms are
// ids.
type boundTriple struct {
	of     *Triple
	places [4]place // subject, predicate, object, graph
	oneOf  []kg.ID  // alternatives for the object, sorted; nil if there are none
	path   *path.Bound
	// given reports for each end of a path whether it is a term or substituted.
	given     [graphPlace]bool
	dead      bool    // matches nothing
	anyGraph  bool    // merges graphs: returns each triple once
	except    []kg.ID // predicates that the triple excludes, sorted
	variables slots
}

const (
	subjectPlace = iota
	predicatePlace
	objectPlace
	graphPlace
)

// parts returns pointers to the ids of a quad: subject, predicate, object, graph.
func parts(q *kg.IDQuad) [4]*kg.ID { return [4]*kg.ID{&q.Subject, &q.Predicate, &q.Object, &q.Graph} }

func (b *builder) triple(t *Triple, own, constant map[string]int) (*boundTriple, error) {
	out := &boundTriple{of: t, anyGraph: t.Graph.isZero()}
	for i, n := range [...]Node{t.Subject, t.Predicate, t.Object, t.Graph} {
		p := &out.places[i]
		p.slot = -1
		switch {
		case n.isZero():
		case n.name != "":
			p.slot = own[n.name]
			out.variables.add(p.slot)
			if _, substituted := constant[n.name]; i < graphPlace {
				out.given[i] = substituted
			}
		default:
			if i < graphPlace {
				out.given[i] = true
			}
			if err := b.terms(out, i, n.terms); err != nil {
				return nil, err
			}
		}
	}
	for _, predicate := range t.except {
		id, known, err := b.snapshot.ID(predicate)
		if err != nil {
			return nil, err
		}
		if known {
			out.except = append(out.except, id)
		}
	}
	slices.SortFunc(out.except, compareIDs)
	if t.Path != nil && !out.dead {
		var err error
		out.path, err = t.Path.Bind(b.snapshot, path.Options{Graph: out.places[graphPlace].id, Nodes: b.limits.Nodes, Statements: int(b.limits.Statements)})
		return out, err
	}
	return out, nil
}

// terms resolves the terms of one position to ids.
func (b *builder) terms(out *boundTriple, at int, terms []kg.Term) error {
	var ids []kg.ID
	nullable := at != graphPlace && out.of.Path != nil && out.of.Path.Nullable()
	for _, t := range terms {
		id, known, err := b.snapshot.ID(t)
		if err != nil {
			return err
		}
		if known = known && out.of.fits(at, id); known {
			known, err = b.shown(at, id, out.of.Path)
		}
		if err == nil && !known && nullable && t != kg.DefaultGraph {
			id, err = b.snapshot.LocalID(t)
			known = true
		}
		if err != nil {
			return err
		}
		if known {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, compareIDs)
	ids = slices.Compact(ids)
	switch len(ids) {
	case 0:
		out.dead = true
	case 1:
		out.places[at].id = ids[0]
	default:
		out.oneOf = ids
	}
	return nil
}

// shown reports whether the view has a statement with the term in this position.
// For a path, either end counts; for a path that may have length zero, any
// position. A term that the view does not show is treated as an unknown term, so
// that neither rows nor the plan reveal it.
func (b *builder) shown(at int, id kg.ID, way *path.Path) (bool, error) {
	places := [4]bool{}
	places[at] = true
	if way != nil && at != graphPlace {
		places[subjectPlace], places[objectPlace] = id.IsResource(), true
		if way.Nullable() {
			places[predicatePlace], places[graphPlace] = id.IsResource(), id.IsResource()
		}
	}
	for i, look := range places {
		var p kg.IDQuad
		*parts(&p)[i] = id
		if !look {
			continue
		}
		if there, err := b.holds(kg.IDPattern(p)); there || err != nil {
			return there, err
		}
	}
	return false, nil
}

// holds reports whether the view has a statement that matches the pattern.
func (b *builder) holds(p kg.IDPattern) (bool, error) {
	for _, err := range b.snapshot.MatchIDs(p, nil) {
		return err == nil, err
	}
	return false, nil
}

func compareIDs(a, b kg.ID) int { return bytes.Compare(a[:], b[:]) }

// fits reports whether a match of the triple can have the id in this position. A
// path may begin at a literal, because its first step may be inverted.
func (t *Triple) fits(at int, id kg.ID) bool {
	switch {
	case at == graphPlace:
		return id.IsResource() || id == kg.DefaultGraphID
	case at == objectPlace, t.Path != nil:
		return id != kg.DefaultGraphID
	}
	return id.IsResource()
}

// pattern returns the pattern to read for the current row. It reports false if
// nothing can match.
func (t *boundTriple) pattern(row []kg.ID) (p kg.IDPattern, ok bool) {
	if t.dead {
		return p, false
	}
	for i, id := range parts((*kg.IDQuad)(&p)) {
		at := &t.places[i]
		*id = at.id
		if at.slot >= 0 {
			if *id = row[at.slot]; !id.IsZero() && !t.of.fits(i, *id) {
				return p, false
			}
		}
	}
	return p, true
}

// excludes reports whether the triple excludes statements with the predicate.
func (t *boundTriple) excludes(predicate kg.ID) bool {
	if len(t.except) == 0 {
		return false
	}
	_, found := slices.BinarySearchFunc(t.except, predicate, compareIDs)
	return found
}

// String returns the triple in SPARQL syntax.
func (t *Triple) String() string {
	nodes := []string{t.Subject.String(), t.Predicate.String(), t.Object.String()}
	if t.Path != nil {
		nodes[1] = t.Path.String()
	} else if t.except != nil {
		nodes[1] = t.exception()
	}
	text := strings.Join(nodes, " ")
	if !t.Graph.isZero() {
		text = "GRAPH " + t.Graph.String() + " { " + text + " }"
	}
	return text
}

// exception returns the excluded predicates as a negated property set.
func (t *Triple) exception() string {
	list := make([]string, len(t.except))
	for i, p := range t.except {
		list[i] = p.String()
	}
	return "!(" + strings.Join(list, "|") + ")"
}

// maxShown is the number of alternatives that String prints.
const maxShown = 4

func (n Node) String() string {
	switch {
	case strings.HasPrefix(n.name, " "): // a hidden variable
		return "_:" + n.name[1:]
	case n.name != "":
		return "?" + n.name
	case len(n.terms) == 1:
		return n.terms[0].String()
	}
	var list []string
	for i, t := range n.terms {
		if i == maxShown {
			list = append(list, "…")
			break
		}
		list = append(list, t.String())
	}
	return "(" + strings.Join(list, " ") + ")"
}
