package policy

import (
	"github.com/google/uuid"

	"koine/kg"
)

// NewName generates the name of a graph that the principal may create by writing to it:
// any name if it may create all graphs, otherwise one below its own id. ok is false if
// the principal has no namespace of its own.
func (ps *Policies) NewName(principal kg.Principal) (graph kg.Term, ok bool) {
	principal.ID = kg.CanonicalAgent(string(principal.ID))
	graph = kg.IRI("urn:uuid:" + uuid.NewString())
	if ps.Allowed(principal, graph, kg.Create) {
		return graph, true
	}
	prefix := prefixOf(principal.ID)
	return kg.IRI(prefix + uuid.NewString()), prefix != ""
}

// CanRecreate reports whether the graph was deleted and the principal may create it
// again with Create.
func (ps *Policies) CanRecreate(principal kg.Principal, graph kg.Term) bool {
	principal.ID = kg.CanonicalAgent(string(principal.ID))
	return ps.table.Load().find(graph).canRecreate(&principal)
}

// Exists reports whether the graph has a policy that lets the principal read it. Such a
// graph exists even without statements.
func (ps *Policies) Exists(principal kg.Principal, graph kg.Term) bool {
	p := ps.table.Load().find(graph)
	return p != nil && ps.rightOf(&principal, graph, p) >= kg.Read
}
