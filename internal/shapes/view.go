package shapes

import (
	"cmp"
	"iter"

	"koine/kg"
)

// dataView reads the data of a validation, the merged graphs of a snapshot, through a cache.
// It belongs to one goroutine.
type dataView struct {
	snapshot     *kg.Snapshot
	meter        *meter
	links        map[lookup]ends
	all          map[kg.Term]properties
	systemGraphs map[kg.ID]bool               // system graphs by id
	superclasses map[kg.Term]map[kg.Term]bool // superclasses of a class, and itself

	conforming *fixpoint     // nodes that conform to recursive shapes
	worsened   *fixpoint     // nodes that are further from conforming than before the update
	reported   map[pair]bool // pairs with findings already reported
}

// lookup is a link from a node.
type lookup struct {
	node kg.Term
	link
}

// ends are the end nodes of a link, and the number of steps for iterating over them.
type ends struct {
	list []kg.Term
	cost int
}

type property struct{ predicate, object kg.Term }

// properties are the properties of a node, and the number of steps for iterating over
// them.
type properties struct {
	list []property
	cost int
}

func newView(s *kg.Snapshot, m *meter) *dataView {
	return &dataView{
		snapshot: s, meter: m, links: map[lookup]ends{}, all: map[kg.Term]properties{},
		systemGraphs: map[kg.ID]bool{}, superclasses: map[kg.Term]map[kg.Term]bool{},
		conforming: newFixpoint(true), worsened: newFixpoint(false), reported: map[pair]bool{},
	}
}

// readLink returns the end nodes of the link from the node, each once. The caller must not
// change the list.
func (v *dataView) readLink(node kg.Term, l link) ([]kg.Term, error) {
	if err := v.meter.spendSteps(stepCost(node)); err != nil {
		return nil, err
	}
	key := lookup{node, l}
	if e, ok := v.links[key]; ok {
		return e.list, v.meter.spendSteps(e.cost)
	}
	if node.IsLiteral() && !l.inverse {
		return nil, nil
	}
	list, err := v.scanLink(node, l)
	if err == nil {
		v.links[key] = ends{list, costOf(list)}
	}
	return list, err
}

func (v *dataView) scanLink(node kg.Term, l link) (ends []kg.Term, err error) {
	at, found, err := v.snapshot.ID(node)
	if !found || err != nil {
		return nil, err
	}
	predicate, found, err := v.snapshot.ID(l.predicate)
	if !found || err != nil {
		return nil, err
	}
	p := kg.IDPattern{Subject: at, Predicate: predicate}
	if l.inverse {
		p = kg.IDPattern{Object: at, Predicate: predicate}
	}
	var last kg.ID
	for row, err := range v.scan(p) {
		if err != nil {
			return nil, err
		}
		end := row.Object
		if l.inverse {
			end = row.Subject
		}
		if end == last { // in another graph
			continue
		}
		last = end
		t, err := v.readTerm(end)
		if err != nil {
			return nil, err
		}
		ends = append(ends, t)
	}
	return ends, nil
}

// scan yields the statements of a pattern that are not in system graphs.
func (v *dataView) scan(p kg.IDPattern) iter.Seq2[kg.Row, error] {
	return func(yield func(kg.Row, error) bool) {
		for row, err := range v.snapshot.MatchIDs(p, nil) {
			err = cmp.Or(err, v.meter.spendSteps(1))
			hidden := false
			if err == nil {
				hidden, err = v.isSystemGraph(row.Graph)
			}
			if !hidden && !yield(row, err) || err != nil {
				return
			}
		}
	}
}

// readTerm returns the term of an end of a scanned statement.
func (v *dataView) readTerm(id kg.ID) (kg.Term, error) {
	t, err := v.snapshot.Term(id)
	if err == nil {
		err = v.meter.spendSteps(stepCost(t) - 1)
	}
	return t, err
}

// readProperties returns the properties of the node, each once.
func (v *dataView) readProperties(node kg.Term) ([]property, error) {
	if err := v.meter.spendSteps(stepCost(node)); err != nil {
		return nil, err
	}
	if known, ok := v.all[node]; ok || node.IsLiteral() {
		return known.list, v.meter.spendSteps(known.cost)
	}
	var list []property
	at, found, err := v.snapshot.ID(node)
	if err != nil {
		return nil, err
	}
	if found {
		if list, err = v.scanProperties(at); err != nil {
			return nil, err
		}
	}
	sum := 0
	for i := range list {
		sum += stepCost(list[i].object)
	}
	v.all[node] = properties{list, sum}
	return list, nil
}

func (v *dataView) scanProperties(at kg.ID) (list []property, err error) {
	var last kg.IDQuad
	for row, err := range v.scan(kg.IDPattern{Subject: at}) {
		if err != nil {
			return nil, err
		}
		if row.Predicate == last.Predicate && row.Object == last.Object { // in another graph
			continue
		}
		last = row.IDQuad
		q, err := v.snapshot.Quad(row)
		if err == nil {
			err = v.meter.spendSteps(stepCost(q.Object) - 1)
		}
		if err != nil {
			return nil, err
		}
		list = append(list, property{q.Predicate, q.Object})
	}
	return list, nil
}

// isSystemGraph reports whether the graph is a system graph, which is not data.
func (v *dataView) isSystemGraph(graph kg.ID) (bool, error) {
	own, ok := v.systemGraphs[graph]
	if ok {
		return own, nil
	}
	t, err := v.snapshot.Term(graph)
	if err == nil {
		own = kg.IsOwnGraph(t)
		v.systemGraphs[graph] = own
	}
	return own, err
}

var upward = repeat{link{predicate: subClassOf}, 0}

// isA reports whether the node is an instance of the class or of a subclass.
func (v *dataView) isA(node, class kg.Term) (bool, error) {
	types, err := v.readLink(node, link{predicate: rdfType})
	if err != nil {
		return false, err
	}
	for _, t := range types {
		if ok, err := v.isBelow(t, class); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

// isBelow reports whether a class is the other one or a subclass of it.
func (v *dataView) isBelow(class, other kg.Term) (bool, error) {
	if class == other {
		return true, nil
	}
	if above, known := v.superclasses[class]; known {
		return above[other], v.meter.spendSteps(1)
	}
	list, err := upward.endNodes(v, []kg.Term{class})
	if err != nil {
		return false, err
	}
	above := setOf(list)
	v.superclasses[class] = above
	return above[other], nil
}

// readEnds returns the subjects, or the objects, of a property.
func (v *dataView) readEnds(predicate kg.Term, objects bool) ([]kg.Term, error) {
	var out nodeSet
	at, found, err := v.snapshot.ID(predicate)
	if !found || err != nil {
		return nil, err
	}
	for row, err := range v.scan(kg.IDPattern{Predicate: at}) {
		if err != nil {
			return nil, err
		}
		end := row.Subject
		if objects {
			end = row.Object
		}
		t, err := v.readTerm(end)
		if err != nil {
			return nil, err
		}
		out.add([]kg.Term{t})
	}
	return out.list, nil
}
