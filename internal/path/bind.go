package path

import (
	"bytes"
	"iter"
	"slices"
	"sync/atomic"

	"koine/kg"
)

// Options of an evaluation. Zero members mean their defaults.
type Options struct {
	// Graph is the graph to stay in; zero reads all that the view shows as one.
	Graph kg.ID
	// Nodes bounds what one call holds in memory, Statements what all calls on
	// the Bound read or look for together.
	Nodes, Statements int
}

// Bound is a path tied to a snapshot. It may be used concurrently, until the
// snapshot is closed.
type Bound struct {
	path              *Path
	snapshot          *kg.Snapshot
	graph             kg.ID
	nodes, statements int
	read              atomic.Int64
	forward, backward boundAutomaton
}

// boundAutomaton is an automaton whose labels are ids.
type boundAutomaton struct {
	*automaton
	labels []boundLabel
}

// boundLabel is a label in ids. one is its predicate, or none the predicates
// that it must not be, in order. A dead label matches nothing.
type boundLabel struct {
	one     kg.ID
	none    []kg.ID
	inverse bool
	dead    bool
}

// Bind looks the predicates up. One that the store does not know matches
// nothing; the rest of the path still does.
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
		slices.SortFunc(b.none, compareIDs)
	}
	return out, nil
}

func compareIDs(a, b kg.ID) int { return bytes.Compare(a[:], b[:]) }

// Path is what was bound.
func (b *Bound) Path() *Path { return b.path }

// StatementsRead is how many statements were read or looked for so far: what
// Options.Statements bounds.
func (b *Bound) StatementsRead() int { return int(b.read.Load()) }

// Forward yields the nodes that the path leads to from a node, each once, the
// nearest first. A zero id leads nowhere. An error is the last that comes.
func (b *Bound) Forward(from kg.ID) iter.Seq2[kg.ID, error] { return b.from(&b.forward, from) }

// Backward yields the nodes from which the path leads to a node, as Forward does.
func (b *Bound) Backward(to kg.ID) iter.Seq2[kg.ID, error] { return b.from(&b.backward, to) }

// End is a node that the path leads to from the start with this index.
type End struct {
	Start int
	ID    kg.ID
}

// ForwardAll follows the path from many nodes at once. Each start has its own
// ends, each of them once; those of different starts come mixed. All starts
// together take as many passes over the index as the one that takes most.
func (b *Bound) ForwardAll(from []kg.ID) iter.Seq2[End, error] { return b.walk(&b.forward, from) }

// BackwardAll follows the path against its direction, as ForwardAll does.
func (b *Bound) BackwardAll(to []kg.ID) iter.Seq2[End, error] { return b.walk(&b.backward, to) }

// Connects tells whether the path leads from one node to the other.
func (b *Bound) Connects(from, to kg.ID) (bool, error) {
	for id, err := range b.Forward(from) {
		if err != nil || id == to {
			return err == nil, err
		}
	}
	return false, nil
}

func (b *Bound) from(a *boundAutomaton, id kg.ID) iter.Seq2[kg.ID, error] {
	return func(yield func(kg.ID, error) bool) {
		for end, err := range b.walk(a, []kg.ID{id}) {
			if !yield(end.ID, err) {
				return
			}
		}
	}
}

// charge counts what was read or looked for.
func (b *Bound) charge() error {
	if b.read.Add(1) > int64(b.statements) {
		return tooManyStatements(b.statements)
	}
	return nil
}
