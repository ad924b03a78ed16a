package pattern

import (
	"slices"
	"strings"

	"koine/internal/query/path"
	"koine/kg"
)

// boundNode is one position of a triple bound to a snapshot: the slot of a variable,
// or, with slot -1, an id; the zero id matches any.
type boundNode struct {
	slot int
	id   kg.ID
}

// boundTriple is a triple pattern with slots for variables and ids for terms.
type boundTriple struct {
	source *Triple
	nodes  [4]boundNode // subject, predicate, object, graph
	oneOf  []kg.ID      // alternatives for the object, sorted; nil if there are none
	path   *path.Bound
	// given reports for each end of a path whether it is a term or substituted.
	given    [graphPos]bool
	dead     bool    // matches nothing
	anyGraph bool    // merges graphs: returns each triple once
	except   []kg.ID // predicates that the triple excludes, sorted
	// objects are those that the group's filters admit; nil means any.
	objects   *kg.Objects
	variables slots
}

const (
	subjectPos = iota
	predicatePos
	objectPos
	graphPos
)

// quadParts returns pointers to the ids of a quad: subject, predicate, object, graph.
func quadParts(q *kg.IDQuad) [4]*kg.ID {
	return [4]*kg.ID{&q.Subject, &q.Predicate, &q.Object, &q.Graph}
}

func (b *builder) bindTriple(t *Triple, own, constant map[string]int) (*boundTriple, error) {
	out := &boundTriple{source: t, anyGraph: t.Graph.isZero()}
	for i, n := range [...]Node{t.Subject, t.Predicate, t.Object, t.Graph} {
		p := &out.nodes[i]
		p.slot = -1
		switch {
		case n.isZero():
		case n.name != "":
			p.slot = own[n.name]
			out.variables.add(p.slot)
			if _, substituted := constant[n.name]; i < graphPos {
				out.given[i] = substituted
			}
		default:
			if i < graphPos {
				out.given[i] = true
			}
			if err := b.resolveTerms(out, i, n.terms); err != nil {
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
	slices.SortFunc(out.except, kg.ID.Compare)
	if t.Path != nil && !out.dead {
		var err error
		out.path, err = t.Path.Bind(b.snapshot, path.Options{Graph: out.nodes[graphPos].id, Nodes: b.limits.Nodes, Statements: int(b.limits.Statements)})
		return out, err
	}
	return out, nil
}

// resolveTerms resolves the terms of one position to ids.
func (b *builder) resolveTerms(out *boundTriple, at int, terms []kg.Term) error {
	var ids []kg.ID
	nullable := at != graphPos && out.source.Path != nil && out.source.Path.Nullable()
	for _, t := range terms {
		id, known, err := b.snapshot.ID(t)
		if err != nil {
			return err
		}
		if known = known && out.source.canHold(at, id); known {
			known, err = b.isShown(at, id, out.source.Path)
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
	slices.SortFunc(ids, kg.ID.Compare)
	ids = slices.Compact(ids)
	switch len(ids) {
	case 0:
		out.dead = true
	case 1:
		out.nodes[at].id = ids[0]
	default:
		out.oneOf = ids
	}
	return nil
}

// isShown reports whether the view has a statement with the term in this position.
// For a path, either end counts; for a path that may have length zero, any
// position. A term that the view does not show is treated as an unknown term, so
// that neither rows nor the plan reveal it.
func (b *builder) isShown(at int, id kg.ID, way *path.Path) (bool, error) {
	positions := [4]bool{}
	positions[at] = true
	if way != nil && at != graphPos {
		positions[subjectPos], positions[objectPos] = id.IsResource(), true
		if way.Nullable() {
			positions[predicatePos], positions[graphPos] = id.IsResource(), id.IsResource()
		}
	}
	for i, look := range positions {
		var p kg.IDQuad
		*quadParts(&p)[i] = id
		if !look {
			continue
		}
		if there, err := b.hasMatch(kg.IDPattern(p)); there || err != nil {
			return there, err
		}
	}
	return false, nil
}

// hasMatch reports whether the view has a statement that matches the pattern.
func (b *builder) hasMatch(p kg.IDPattern) (bool, error) {
	for _, err := range b.snapshot.MatchIDs(p, nil) {
		return err == nil, err
	}
	return false, nil
}

// canHold reports whether a match of the triple can have the id in this position. A
// path may begin at a literal, because its first step may be inverted.
func (t *Triple) canHold(at int, id kg.ID) bool {
	switch {
	case at == graphPos:
		return id.IsResource() || id == kg.DefaultGraphID
	case at == objectPos, t.Path != nil:
		return id != kg.DefaultGraphID
	}
	return id.IsResource()
}

// patternFor returns the pattern to read for the current row. It reports false if
// nothing can match.
func (t *boundTriple) patternFor(row []kg.ID) (p kg.IDPattern, ok bool) {
	if t.dead {
		return p, false
	}
	for i, id := range quadParts((*kg.IDQuad)(&p)) {
		at := &t.nodes[i]
		*id = at.id
		if at.slot >= 0 {
			if *id = row[at.slot]; !id.IsZero() && !t.source.canHold(i, *id) {
				return p, false
			}
		}
	}
	return p, true
}

// excludesPredicate reports whether the triple excludes statements with the predicate.
func (t *boundTriple) excludesPredicate(predicate kg.ID) bool {
	if len(t.except) == 0 {
		return false
	}
	_, found := slices.BinarySearchFunc(t.except, predicate, kg.ID.Compare)
	return found
}

// String returns the triple in SPARQL syntax.
func (t *Triple) String() string {
	nodes := []string{t.Subject.String(), t.Predicate.String(), t.Object.String()}
	if t.Path != nil {
		nodes[1] = t.Path.String()
	} else if t.except != nil {
		nodes[1] = t.formatExcept()
	}
	text := strings.Join(nodes, " ")
	if !t.Graph.isZero() {
		text = "GRAPH " + t.Graph.String() + " { " + text + " }"
	}
	return text
}

// formatExcept returns the excluded predicates as a negated property set.
func (t *Triple) formatExcept() string {
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
