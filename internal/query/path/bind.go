package path

import (
	"iter"
	"slices"
	"sync/atomic"

	"koine/kg"
)

// Options bounds an evaluation. A zero field means its default.
type Options struct {
	// Graph restricts the path to one graph; zero merges all graphs in view.
	Graph kg.ID
	// Nodes bounds the memory of one call. Statements bounds the statements that
	// all calls on the Bound read or look up together.
	Nodes, Statements int
}

// Bound is a path bound to a snapshot. It is safe for concurrent use until the
// snapshot is closed.
type Bound struct {
	path              *Path
	snapshot          *kg.Snapshot
	graph             kg.ID
	nodes, statements int
	read              atomic.Int64
	forward, backward boundAutomaton
	start             startSide
}

// boundAutomaton is an automaton with labels in ids.
type boundAutomaton struct {
	*automaton
	labels []boundLabel
}

// boundLabel is a label with ids: one is its predicate; none are the excluded
// predicates, sorted. A dead label matches nothing.
type boundLabel struct {
	one     kg.ID
	none    []kg.ID
	inverse bool
	dead    bool
}

// Bind resolves the predicates of the path. An unknown predicate matches nothing;
// the rest of the path still does.
func (p *Path) Bind(s *kg.Snapshot, o Options) (*Bound, error) {
	b := &Bound{path: p, snapshot: s, graph: o.Graph, nodes: o.Nodes, statements: o.Statements}
	if b.nodes <= 0 {
		b.nodes = DefaultNodes
	}
	if b.statements <= 0 {
		b.statements = DefaultStatements
	}
	var err error
	if b.forward, err = bindAutomaton(s, p.forward); err == nil {
		b.backward, err = bindAutomaton(s, p.backward)
	}
	return b, err
}

func bindAutomaton(s *kg.Snapshot, a *automaton) (boundAutomaton, error) {
	out := boundAutomaton{automaton: a, labels: make([]boundLabel, len(a.labels))}
	for i, l := range a.labels {
		b := &out.labels[i]
		b.inverse = l.inverse
		for _, p := range l.predicates {
			id, known, err := s.ID(p)
			switch {
			case err != nil:
				return out, err
			case !known:
				b.dead = !l.negated
			case l.negated:
				b.none = append(b.none, id)
			default:
				b.one = id
			}
		}
		slices.SortFunc(b.none, kg.ID.Compare)
	}
	return out, nil
}

// StatementsRead returns the number of statements read or looked up so far, which
// Options.Statements bounds.
func (b *Bound) StatementsRead() int { return int(b.read.Load()) }

// Forward yields the ends of the path from a node, each once, nearest first. The
// zero id has none. An error ends the sequence.
func (b *Bound) Forward(from kg.ID) iter.Seq2[kg.ID, error] { return b.searchOne(&b.forward, from) }

// Backward yields the starts of the path to a node, as Forward does.
func (b *Bound) Backward(to kg.ID) iter.Seq2[kg.ID, error] { return b.searchOne(&b.backward, to) }

// End is an end of the path from the start with the given index.
type End struct {
	Start int
	ID    kg.ID
}

// ForwardAll yields the ends of the path from many nodes at once: each end once per
// start, starts interleaved. It takes as many passes over the index as the start
// that needs the most.
func (b *Bound) ForwardAll(from []kg.ID) iter.Seq2[End, error] { return b.searchFrom(&b.forward, from) }

// BackwardAll yields the starts of the path to many nodes, as ForwardAll does.
func (b *Bound) BackwardAll(to []kg.ID) iter.Seq2[End, error] { return b.searchFrom(&b.backward, to) }

// Connects reports whether the path leads from one node to the other.
func (b *Bound) Connects(from, to kg.ID) (bool, error) {
	for id, err := range b.Forward(from) {
		if err != nil || id == to {
			return err == nil, err
		}
	}
	return false, nil
}

func (b *Bound) searchOne(a *boundAutomaton, id kg.ID) iter.Seq2[kg.ID, error] {
	return func(yield func(kg.ID, error) bool) {
		for end, err := range b.searchFrom(a, []kg.ID{id}) {
			if !yield(end.ID, err) {
				return
			}
		}
	}
}

// countRead counts one statement read or looked up.
func (b *Bound) countRead() error {
	if b.read.Add(1) > int64(b.statements) {
		return tooManyStatements(b.statements)
	}
	return nil
}
