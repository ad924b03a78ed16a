package kg

import "strings"

// Right is what a graph's policy decides about.
type Right uint8

// The rights (DESIGN 3.5).
const (
	Discover Right = iota + 1
	Read
	Write
	// Create is asked beside Read and Write where the graph holds no statement:
	// whether it may come into being by this write.
	Create
	Manage
)

// Access decides who may do what with a graph. It is asked inside the scan,
// inside the watch and inside the commit, so that no adapter can forget it. It
// must be fast, safe for concurrent use, and answer from the newest policy.
type Access interface {
	// Allowed tells whether the principal has the right in the graph, which is
	// DefaultGraph or an IRI.
	Allowed(p Principal, graph Term, right Right) bool
}

// AllowAll is the Access of a store without policies.
type AllowAll struct{}

// Allowed says yes.
func (AllowAll) Allowed(Principal, Term, Right) bool { return true }

// OwnGraphPrefix begins the IRI of every graph that koine keeps for itself.
// The default view leaves these graphs out.
const OwnGraphPrefix = "urn:koine:graph:"

// SystemGraph holds koine's own settings.
var SystemGraph = IRI(OwnGraphPrefix + "system")

// OwnVocabulary begins the IRI of every property and class that has a meaning to
// koine itself. The prefix koine: stands for it.
const OwnVocabulary = "urn:koine:vocab:"

// IsOwnGraph tells whether koine keeps the graph for itself.
func IsOwnGraph(graph Term) bool { return strings.HasPrefix(graph.value, OwnGraphPrefix) }

// Reserved tells whether the statement is one of koine's own: in one of its
// graphs, with one of its properties, or of one of its classes. Only the domain
// package that it belongs to writes it, with Tx.ApplyOwn.
func Reserved(q Quad) bool {
	return IsOwnGraph(q.Graph) || strings.HasPrefix(q.Predicate.value, OwnVocabulary) ||
		q.Predicate.value == RDFType && q.Object.kind == KindIRI && strings.HasPrefix(q.Object.value, OwnVocabulary)
}
