package base

import (
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

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
	// DefaultGraph, an IRI or a blank node.
	Allowed(p Principal, graph Term, right Right) bool
}

// Hider is an Access that also hides single statements from those who may read
// their graph. What is hidden is not there in any read: it is asked inside the
// scan, the counts and the watch. The statements that it tells apart are those
// for which counts are kept, so that these agree with what is scanned.
type Hider interface {
	// Hides gives a function that tells whether the statements with a predicate in
	// a graph are hidden from the principal; nil where nothing is. It is used for
	// one read.
	Hides(p Principal) func(predicate, graph Term) bool
}

// Front is what an Access has in common that stands in front of another one, and
// answers for some graphs itself: embed it, and have an Allowed that asks the other.
type Front struct{ Access }

// Version is that of the access behind it.
func (f Front) Version() *atomic.Uint64 { return VersionOf(f.Access) }

// Unwrap is the access behind it.
func (f Front) Unwrap() Access { return f.Access }

// Hides passes on what the access behind it hides.
func (f Front) Hides(p Principal) func(predicate, graph Term) bool { return Hidden(f.Access, p) }

// Forgets passes on what the access behind it forgets.
func (f Front) Forgets(p Principal) func(graph Term) bool { return Forgetful(f.Access, p) }

// Hidden is what an Access hides from the principal, nil for nothing.
func Hidden(a Access, p Principal) func(predicate, graph Term) bool {
	if h, ok := a.(Hider); ok {
		return h.Hides(p)
	}
	return nil
}

// AllowAll is the Access of a store without policies.
type AllowAll struct{}

// Allowed says yes.
func (AllowAll) Allowed(Principal, Term, Right) bool { return true }

// Version never moves.
func (AllowAll) Version() *atomic.Uint64 { return &noPolicies }

var noPolicies atomic.Uint64

// OwnGraphPrefix begins the IRI of every graph that koine keeps for itself.
// The default view leaves these graphs out.
const OwnGraphPrefix = "urn:koine:graph:"

// ProposalGraphPrefix begins the IRI of the graph of each proposal, PendingGraphPrefix
// that of the graph with the statements that it would add.
const (
	ProposalGraphPrefix = OwnGraphPrefix + "proposal:"
	PendingGraphPrefix  = OwnGraphPrefix + "pending:"
)

// JournalGraphPrefix begins the IRI of the graphs of koine's own that only
// record: messages, receipts, events. Nothing is decided by what they hold, so
// commits that touch no other graph of koine's are not told to
// Options.OnSystemChange, and share their group with others.
const JournalGraphPrefix = OwnGraphPrefix + "journal:"

// SystemGraph holds koine's own settings.
var SystemGraph = IRI(OwnGraphPrefix + "system")

// ShapesGraph holds the shapes that updates are judged by. Everybody reads it.
var ShapesGraph = IRI(OwnGraphPrefix + "shapes")

// OwnVocabulary begins the IRI of every property and class that has a meaning to
// koine itself. The prefix koine: stands for it.
const OwnVocabulary = "urn:koine:vocab:"

// Sequence is the property that numbers what stands in a journal: 1, 2, 3 …
// Statements of it are also kept in the order of their numbers, graph by graph.
var Sequence = IRI(OwnVocabulary + "sequence")

// Ordered is one of the properties by which what stands in a graph is found in an
// order: their statements, too, are also kept in the order of their numbers, graph by
// graph. What the numbers of one mean is for the package to say that writes them.
func Ordered(n uint8) Term { return IRI(orderedPrefix + strconv.Itoa(int(n))) }

const orderedPrefix = OwnVocabulary + "ordered/"

// Parts is the property of what the entry of a journal says. Of koine's own
// statements these alone count for the share of their source (Options.MaxBacked):
// they are what the entry takes, and go when it is taken back.
var Parts = IRI(OwnVocabulary + "parts")

// Evicted is the property of the entry of a journal whose content is no longer kept.
// How many there are says which is the oldest that is.
var Evicted = IRI(OwnVocabulary + "evicted")

// CountsForQuota tells whether a statement counts for the share of its sources.
func CountsForQuota(predicate, graph Term) bool {
	return !IsOwnGraph(graph) || predicate == Parts && strings.HasPrefix(graph.value, JournalGraphPrefix)
}

// IsOwnGraph tells whether koine keeps the graph for itself.
func IsOwnGraph(graph Term) bool { return strings.HasPrefix(graph.value, OwnGraphPrefix) }

// IsControlGraph tells whether something may be decided by what the graph holds: it is
// one of koine's own, and no journal.
func IsControlGraph(graph Term) bool {
	return IsOwnGraph(graph) && !strings.HasPrefix(graph.value, JournalGraphPrefix)
}

// IsPendingGraph tells whether the graph holds what a proposal would add.
func IsPendingGraph(graph Term) bool { return strings.HasPrefix(graph.value, PendingGraphPrefix) }

// Reserved tells whether the statement is one of koine's own: in one of its
// graphs, with one of its properties, or of one of its classes. Only the domain
// package that it belongs to writes it, with Tx.ApplyOwn.
func Reserved(q Quad) bool {
	return IsOwnGraph(q.Graph) || strings.HasPrefix(q.Predicate.value, OwnVocabulary) ||
		q.Predicate.value == RDFType && q.Object.kind == KindIRI && strings.HasPrefix(q.Object.value, OwnVocabulary)
}

// Doubts are the agents whose assertions do not count, each with the time from
// which on: what it recorded then or later is not there for any read. Nil for
// nobody; not changed once it is given out.
type Doubts map[AgentID]time.Time

// Excludes tells whether the assertion is one that does not count.
func (d Doubts) Excludes(a *Assertion) bool {
	since, doubted := d[a.Source]
	return doubted && !a.Time.Before(since)
}

// Distrust knows whose assertions do not count. The newest doubts decide, also
// for reads of the past and of the log. They are about what agents say of the
// world: koine's own graphs (policies, proposals, records of agents) are not a
// matter of belief, and stay as they are. Nothing is removed: who is trusted again
// is read again. It must be fast and safe for concurrent use.
type Distrust interface {
	// Doubted is asked once for each read, and for each assertion that a watcher
	// looks at.
	Doubted() Doubts
	// DoubtsChanged tells whether they changed in a commit behind the revision, and
	// up to which revision that is the answer, which is not before after. It is
	// asked at every commit that a watcher looks at.
	DoubtsChanged(after Revision) (changed bool, upTo Revision)
}

// TrustAll is the Distrust of a store without any.
type TrustAll struct{}

func (TrustAll) Doubted() Doubts                               { return nil }
func (TrustAll) DoubtsChanged(after Revision) (bool, Revision) { return false, after }

// ApplyDistrust fills in whose assertions the view leaves out.
func (v *View) ApplyDistrust(d Distrust) error {
	v.Doubts = nil
	if !v.Doubted {
		v.Doubts = d.Doubted()
		return nil
	}
	if !v.Principal.IsAdmin() {
		return Errorf(CodePermissionDenied, "only administrators see what agents under quarantine said")
	}
	return nil
}

// Forgetter is an Access under which what is taken away from a graph is gone for
// some of those who read it: of such a graph they see what stands, and nothing
// that no longer does, whichever revision they read and wherever they begin to
// read the log. It is asked inside the scan and the watch, and only about the
// past: reads of what stands cost nothing for it.
//
// Who follows the graph is told what goes while it does, because it could read
// that until then: see Watcher.View. One that comes back to a position before
// something went that it may have been told of gets CodeAccessChanged, and reads
// anew; in a history there is neither that it came nor that it went.
type Forgetter interface {
	// Forgets gives a function that tells whether the past of a graph is kept from
	// the principal; nil where that of none is. It must not change its answers, and
	// is used for one read.
	Forgets(p Principal) func(graph Term) bool
}

// Forgetful is what an Access forgets for the principal.
func Forgetful(a Access, p Principal) func(graph Term) bool {
	if f, ok := a.(Forgetter); ok {
		return f.Forgets(p)
	}
	return nil
}

// VersionedAccess is an Access whose answers can be kept from one read to the
// next, so that a read of many graphs asks about none of them again.
//
// Its answers for Read depend on nothing of the principal but ID, Method and
// Roles, and stay what they are for as long as the version does; those for graphs
// of koine's own may change at any time and are never kept. Who changes the
// answers first lets Allowed give the new ones and then moves the version on,
// never back, and before the commit that changed them is shown to any reader
// (OnSystemChange is such a time).
type VersionedAccess interface {
	Access
	// Version is the counter of the versions, always the same one; nil when
	// answers may change without one, and are not kept.
	Version() *atomic.Uint64
}

// VersionOf is the version of an Access, for one that adds to it and keeps to the
// same rules; nil when it has none.
func VersionOf(a Access) *atomic.Uint64 {
	if v, ok := a.(VersionedAccess); ok {
		return v.Version()
	}
	return nil
}
