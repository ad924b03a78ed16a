package kgtest

import (
	"fmt"
	"maps"
	"slices"

	"koine/kg"
)

// Skip applies a commit without visible changes, such as one that writes a part of a graph that is
// being replaced as a whole.
func (m *Model) Skip(c *kg.Commit) error {
	if len(c.Changes) > 0 || c.Replaced != nil {
		return fmt.Errorf("commit %d changes something: %d changes, %s", c.Revision, len(c.Changes), replacedText(c.Replaced))
	}
	return m.Replay(c)
}

// Exchange applies the commit that makes a graph hold exactly the quads, and fails if the
// commit differs. Statements that stay keep their assertions; statements that the caller
// cannot see stay.
func (m *Model) Exchange(c *kg.Commit, graph kg.Term, quads []kg.Quad) error {
	if c.Revision != m.Head()+1 || len(c.Changes) > 0 || c.Replaced == nil {
		return fmt.Errorf("commit %d after commit %d replaces no graph: %d changes, %s", c.Revision, m.Head(), len(c.Changes), replacedText(c.Replaced))
	}
	became := map[kg.Quad][]kg.Assertion{}
	said := kg.GraphReplacement{Graph: graph, Began: c.Replaced.Began}
	wanted := map[kg.Quad]bool{}
	for _, q := range quads {
		wanted[q] = true
	}
	for q := range m.past {
		stood, _ := m.stateAt(q, m.Head())
		switch {
		case q.Graph != graph || len(stood) == 0 || wanted[q]:
		case len(m.admittedAssertions(kg.View{}, graph, stood)) == 0:
			said.Statements++
		default:
			became[q], said.Removed = nil, said.Removed+1
		}
	}
	for q := range wanted {
		stood, _ := m.stateAt(q, m.Head())
		made := kg.Assertion{Source: c.Actor, Time: c.Time, Revision: c.Revision}
		i := bySource(stood, made.Source)
		said.Statements++
		switch after := slices.Clone(stood); {
		case i < 0:
			became[q], said.Added = append(after, made), said.Added+1
		case !sameAssertion(stood[i], made):
			after[i] = made
			became[q], said.Added = after, said.Added+1
		}
	}
	if len(m.Doubts) > 0 { // the counts may include hidden statements
		said = kg.GraphReplacement{Graph: graph}
	}
	if want, got := replacedText(&said), replacedText(c.Replaced); want != got {
		return fmt.Errorf("commit %d says that %s, want %s", c.Revision, got, want)
	}
	kept := *c
	m.Commits = append(m.Commits, &kept)
	for q, assertions := range became {
		m.past[q] = append(m.past[q], version{m.Head(), assertions})
	}
	m.floors[graph] = m.Head()
	return nil
}

// Drop applies the commit that deletes a graph: its statements exist at no revision any more.
func (m *Model) Drop(c *kg.Commit, graph kg.Term) error {
	if err := m.Skip(c); err != nil {
		return err
	}
	inGraph := func(q kg.Quad, _ []version) bool { return q.Graph == graph }
	maps.DeleteFunc(m.past, inGraph)
	maps.DeleteFunc(m.changed, func(p pair, _ kg.Revision) bool { return p.graph == graph })
	delete(m.floors, graph)
	m.began[graph] = m.Head()
	return nil
}

// hasWritten reports whether anything was written to a graph since it was dropped.
func (m *Model) hasWritten(graph kg.Term) bool {
	for q := range m.past {
		if q.Graph == graph {
			return true
		}
	}
	return false
}

// countStatements counts the statements of a graph.
func (m *Model) countStatements(graph kg.Term) (n uint64) {
	for q := range m.past {
		if stood, _ := m.stateAt(q, m.Head()); q.Graph == graph && len(stood) > 0 {
			n++
		}
	}
	return n
}

// isDropped reports whether a graph was dropped after the revision.
func (m *Model) isDropped(graph kg.Term, r kg.Revision) bool { return r < m.began[graph] }

// Resyncs returns the positions of the resyncs of a watcher with the filter that starts behind the
// position: one for each graph in its view that was replaced as a whole.
func (m *Model) Resyncs(f kg.Filter, from kg.Position) (out []kg.Position) {
	for _, c := range m.Commits {
		behind := kg.Position{Epoch: m.epoch, Revision: c.Revision, Index: kg.EndOfCommit}
		if c.Replaced == nil || behind.Compare(from) <= 0 {
			continue
		}
		graph := c.Replaced.Graph
		follows := f.Patterns == nil || slices.ContainsFunc(f.Patterns, func(p kg.Pattern) bool { return p.Graph.IsZero() || p.Graph == graph })
		if follows && m.isVisible(f.View, graph) && !m.isDropped(graph, c.Revision) {
			out = append(out, behind)
		}
	}
	return out
}

// shownCommit returns a commit as the principal sees it: without changes in graphs that
// were dropped since. It returns nil if no change is left.
func (m *Model) shownCommit(c *kg.Commit, p kg.Principal) *kg.Commit {
	out := *c
	if r := out.Replaced; r != nil && m.isDropped(r.Graph, c.Revision) {
		out.Replaced = nil
	}
	if !slices.ContainsFunc(c.Changes, func(ch kg.Change) bool { return m.isDropped(ch.Quad.Graph, c.Revision) }) {
		return &out
	}
	out.Changes, out.ContentHash = nil, [32]byte{}
	if c.Principal != p.ID && c.Actor != p.ID {
		out.Justification, out.TaskID, out.SessionID, out.MessageID, out.IdempotencyKey = "", "", "", "", ""
	}
	for _, ch := range c.Changes {
		if !m.isDropped(ch.Quad.Graph, c.Revision) {
			ch.Replaces, ch.ReplacedBy = nil, -1
			out.Changes = append(out.Changes, ch)
		}
	}
	if out.Changes == nil {
		return nil
	}
	return &out
}

func replacedText(r *kg.GraphReplacement) string {
	if r == nil {
		return "no graph is replaced"
	}
	return fmt.Sprintf("%s has %d statements, %d came, %d went, begun in %d, deleted %t", r.Graph, r.Statements, r.Added, r.Removed, r.Began, r.Deleted)
}
