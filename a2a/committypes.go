package a2a

import "koine/kg"

// commitTypes finds the types that a commit asserted of its resources, to repeat them
// in the commit's other events (docs/reference/knowledge.md). It holds those of one commit, because the
// events of a commit come together.
type commitTypes struct {
	revision kg.Revision
	types    map[typed]kg.Term
}

type typed struct{ graph, resource kg.Term }

var rdfType = kg.IRI(kg.RDFType)

// addTypes sets the types of the subject and the object in the statement. It reads the
// statement's own graph only, which the reader may read.
func (c *commitTypes) addTypes(commit *kg.Commit, ev *kg.Event, s *wireStatement) {
	if ev.Op == kg.Remove {
		return
	}
	if c.types == nil || c.revision != commit.Revision {
		c.revision, c.types = commit.Revision, typesOf(commit)
	}
	if len(c.types) == 0 {
		return
	}
	q := ev.Statement.Quad
	if t, ok := c.types[typed{q.Graph, q.Subject}]; ok {
		s.Subject.Type = t.ExternalID()
	}
	if t, ok := c.types[typed{q.Graph, q.Object}]; ok && q.Object.IsResource() {
		s.Object.Type = t.ExternalID()
	}
}

// typesOf returns the first type of each resource that the commit typed.
func typesOf(commit *kg.Commit) map[typed]kg.Term {
	types := map[typed]kg.Term{}
	for _, change := range commit.Changes {
		q := change.Quad
		if change.Op == kg.Remove || q.Predicate != rdfType || !q.Object.IsResource() {
			continue
		}
		key := typed{q.Graph, q.Subject}
		if _, ok := types[key]; !ok {
			types[key] = q.Object
		}
	}
	return types
}
