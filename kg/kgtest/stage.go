package kgtest

import (
	"bytes"
	"slices"
	"time"

	"koine/kg"
)

// Stamp is the part of an update's result that the store chooses: its revision and time.
type Stamp struct {
	Revision kg.Revision
	Time     time.Time
}

// Stage is an uncommitted update of a Model: the model's Tx.
type Stage struct {
	// Changes are the changes of the update so far, in order.
	Changes []kg.Change

	model   *Model
	meta    kg.Meta
	stamp   Stamp
	current map[kg.Quad][]kg.Assertion // assertions that this update changed; empty if removed
	touched map[pair]bool
}

// Stage begins an update.
func (m *Model) Stage(meta kg.Meta, st Stamp) *Stage {
	return &Stage{model: m, meta: meta, stamp: st, current: map[kg.Quad][]kg.Assertion{}, touched: map[pair]bool{}}
}

// assertionsOf returns the assertions of the statement as this update sees it, and since
// when they exist.
func (s *Stage) assertionsOf(q kg.Quad) ([]kg.Assertion, kg.Revision) {
	assertions, since := s.model.stateAt(q, s.model.Head())
	if own, ok := s.current[q]; ok {
		assertions, since = own, s.stamp.Revision
	}
	if len(assertions) == 0 {
		return nil, 0
	}
	return assertions, since
}

// Apply applies a valid patch and returns the code of its rejection, or "".
func (s *Stage) Apply(p kg.Patch) kg.Code {
	if p.Quad.Graph.IsZero() {
		p.Quad.Graph = kg.DefaultGraph
	}
	if !s.model.access.Allowed(s.meta.Principal, p.Quad.Graph, kg.Read) {
		return kg.CodeGraphNotFound
	}
	if !s.model.access.Allowed(s.meta.Principal, p.Quad.Graph, kg.Write) {
		return kg.CodePermissionDenied
	}
	if p.Quad.Graph != kg.DefaultGraph && !s.hasStatements(p.Quad.Graph) && !s.model.access.Allowed(s.meta.Principal, p.Quad.Graph, kg.Create) {
		return kg.CodeGraphNotFound
	}
	s.touched[pair{p.Quad.Graph, p.Quad.Subject}] = true
	switch p.Op {
	case kg.Add:
		s.addAssertion(p, nil)
	case kg.Remove:
		s.removeAssertions(p.Quad, p.Source, -1)
	case kg.Replace:
		s.replaceStatements(p)
	}
	return ""
}

// hasStatements reports whether the graph has a statement.
func (s *Stage) hasStatements(graph kg.Term) bool {
	for q := range s.current {
		if q.Graph == graph && len(s.current[q]) > 0 {
			return true
		}
	}
	for _, st := range s.model.Match(kg.View{Principal: kg.SystemPrincipal(), AllGraphs: true, Doubted: true}, kg.Pattern{Graph: graph}) {
		if _, changed := s.current[st.Quad]; !changed {
			return true
		}
	}
	return false
}

func (s *Stage) addAssertion(p kg.Patch, replaces []uint32) bool {
	made := kg.Assertion{
		Source: p.Source, Certainty: p.Certainty, HasCertainty: p.HasCertainty,
		Validity: p.Validity, Time: s.stamp.Time, Provenance: p.Provenance, Embedding: p.Embedding, Revision: s.stamp.Revision,
	}
	if made.Source == "" {
		made.Source = actor(s.meta)
	}
	before, since := s.assertionsOf(p.Quad)
	after := slices.Clone(before)
	if i := bySource(before, made.Source); i < 0 {
		after = append(after, made)
	} else {
		if sameAssertion(before[i], made) {
			return false
		}
		after[i] = made
	}
	s.recordChange(kg.Change{
		Op: kg.Add, Quad: p.Quad, Assertion: made,
		Before: before, Since: since, After: after, Replaces: replaces, ReplacedBy: -1,
	})
	return true
}

// removeAssertions removes one source's assertion, or all for the source "".
func (s *Stage) removeAssertions(q kg.Quad, source kg.AgentID, replacedBy int) {
	before, since := s.assertionsOf(q)
	if len(before) == 0 {
		return
	}
	gone, after := before[0], []kg.Assertion(nil)
	if source != "" {
		i := bySource(before, source)
		if i < 0 {
			return
		}
		gone, after = before[i], slices.Delete(slices.Clone(before), i, i+1)
	}
	s.recordChange(kg.Change{
		Op: kg.Remove, Quad: q, Assertion: gone,
		Before: before, Since: since, After: after, ReplacedBy: replacedBy,
	})
}

// replaceStatements removes the other statements with the same subject, predicate and
// graph, and adds this one.
func (s *Stage) replaceStatements(p kg.Patch) {
	from := len(s.Changes)
	for _, other := range s.matchView(kg.Pattern{Subject: p.Quad.Subject, Predicate: p.Quad.Predicate, Graph: p.Quad.Graph}, kg.View{Doubted: true}) {
		if other.Quad != p.Quad {
			s.removeAssertions(other.Quad, "", -1)
		}
	}
	var replaces []uint32
	for i := from; i < len(s.Changes); i++ {
		replaces = append(replaces, uint32(i))
	}
	if s.addAssertion(p, replaces) {
		for _, i := range replaces {
			s.Changes[i].ReplacedBy = len(s.Changes) - 1
		}
	}
}

func (s *Stage) recordChange(c kg.Change) {
	s.current[c.Quad] = c.After
	s.Changes = append(s.Changes, c)
}

// Match returns the result of Tx.Match: the current statements of every graph that the
// caller may read, with the effects of this update.
func (s *Stage) Match(p kg.Pattern) []kg.Statement { return s.matchView(p, kg.View{}) }

func (s *Stage) matchView(p kg.Pattern, v kg.View) []kg.Statement {
	var out []kg.Statement
	seen := func(q kg.Quad) {
		assertions, _ := s.assertionsOf(q)
		if assertions = s.model.admittedAssertions(v, q.Graph, assertions); len(assertions) > 0 && p.Matches(q) && s.model.access.Allowed(s.meta.Principal, q.Graph, kg.Read) {
			out = append(out, kg.Statement{Quad: q, Assertions: assertions})
		}
	}
	for q := range s.model.past {
		seen(q)
	}
	for q := range s.current {
		if _, known := s.model.past[q]; !known {
			seen(q)
		}
	}
	slices.SortFunc(out, func(a, b kg.Statement) int { return compareQuads(a.Quad, b.Quad) })
	return out
}

// changedAfter reports whether a statement of an affected subject changed after the revision.
func (s *Stage) changedAfter(r kg.Revision) bool {
	for p := range s.touched {
		if max(s.model.changed[p], s.model.floors[p.graph]) > r {
			return true
		}
	}
	return false
}

func bySource(assertions []kg.Assertion, source kg.AgentID) int {
	return slices.IndexFunc(assertions, func(a kg.Assertion) bool { return a.Source == source })
}

func sameAssertion(a, b kg.Assertion) bool {
	return a.Source == b.Source && a.HasCertainty == b.HasCertainty && a.Certainty == b.Certainty &&
		bytes.Equal(a.Provenance, b.Provenance) && a.Validity == b.Validity && a.Embedding.Equal(b.Embedding)
}
