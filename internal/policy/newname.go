package policy

import (
	"github.com/google/uuid"

	"koine/kg"
)

// NewName makes up the name of a graph that the principal may make by writing into
// it: below its own id, or any for who may make all. ok is false for who has no
// names of its own.
func (ps *Policies) NewName(who kg.Principal) (graph kg.Term, ok bool) {
	who.ID = kg.CanonicalAgent(string(who.ID))
	graph = kg.IRI("urn:uuid:" + uuid.NewString())
	if ps.Allowed(who, graph, kg.Create) {
		return graph, true
	}
	prefix := prefixOf(who.ID)
	return kg.IRI(prefix + uuid.NewString()), prefix != ""
}

// CanRecreate tells whether the graph was deleted and the principal may make it again, by
// Create.
func (ps *Policies) CanRecreate(who kg.Principal, graph kg.Term) bool {
	who.ID = kg.CanonicalAgent(string(who.ID))
	return ps.table.Load().find(graph).canRecreate(&who)
}

// Exists tells whether the graph has a policy by which the principal may read it:
// such a graph is there though no statement may stand in it.
func (ps *Policies) Exists(who kg.Principal, graph kg.Term) bool {
	p := ps.table.Load().find(graph)
	return p != nil && ps.rightOf(&who, graph, p) >= kg.Read
}
