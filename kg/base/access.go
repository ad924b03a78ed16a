package base

import (
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Right is a kind of access to a graph, granted by its policy.
type Right uint8

// The rights.
const (
	Discover Right = iota + 1
	Read
	Write
	// Create is asked beside Read and Write where the graph holds no statement:
	// whether it may come into being by this write.
	Create
	Manage
)

// Access decides the rights of principals on graphs. The store calls it within scans, watches
// and commits, so that no adapter can forget it. It must be fast, safe for concurrent use, and
// answer by the newest policies.
type Access interface {
	// Allowed reports whether the principal has the right on the graph, which is
	// DefaultGraph, an IRI or a blank node.
	Allowed(p Principal, graph Term, right Right) bool
}

// Hider is an Access that also hides single statements from principals that may read their
// graph. Hidden statements are absent from all reads: the store calls it within scans, counts
// and watches. It decides by predicate and graph, for which the catalogue has counts, so that
// counts agree with scans.
type Hider interface {
	// Hides returns a predicate that reports whether the statements with a predicate in a
	// graph are hidden from the principal; nil if none are. It is used for one read.
	Hides(p Principal) func(predicate, graph Term) bool
}

// Front is the common part of an Access that wraps another one and decides about some graphs
// itself: embed it, and write an Allowed that calls the wrapped Access for the others.
type Front struct{ Access }

// Version returns the version of the wrapped Access.
func (f Front) Version() *atomic.Uint64 { return VersionOf(f.Access) }

// Unwrap returns the wrapped Access.
func (f Front) Unwrap() Access { return f.Access }

// Hides returns the predicate of the wrapped Access.
func (f Front) Hides(p Principal) func(predicate, graph Term) bool { return Hidden(f.Access, p) }

// Forgets returns the predicate of the wrapped Access.
func (f Front) Forgets(p Principal) func(graph Term) bool { return Forgetful(f.Access, p) }

// Hidden returns the predicate that reports statements hidden from the principal, nil for
// none.
func Hidden(a Access, p Principal) func(predicate, graph Term) bool {
	if h, ok := a.(Hider); ok {
		return h.Hides(p)
	}
	return nil
}

// AllowAll is the Access of a store without policies.
type AllowAll struct{}

// Allowed returns true.
func (AllowAll) Allowed(Principal, Term, Right) bool { return true }

// Version returns a version that never changes.
func (AllowAll) Version() *atomic.Uint64 { return &noPolicies }

var noPolicies atomic.Uint64

// OwnGraphPrefix is the prefix of the IRIs of koine's own graphs. The default view omits
// them.
const OwnGraphPrefix = "urn:koine:graph:"

// ProposalGraphPrefix begins the IRI of the graph of each proposal, PendingGraphPrefix
// that of the graph with the statements that it would add.
const (
	ProposalGraphPrefix = OwnGraphPrefix + "proposal:"
	PendingGraphPrefix  = OwnGraphPrefix + "pending:"
)

// JournalGraphPrefix is the prefix of the IRIs of journals: graphs of koine's own that
// only record messages, receipts and events. They control nothing. Commits that change no
// other graph of koine's own are not reported to Governor.OnSystemChange, and share their
// group with others.
const JournalGraphPrefix = OwnGraphPrefix + "journal:"

// CopyGraphPrefix is the prefix of the IRIs of the journals that copy entries of others: that
// of the journal JournalGraphPrefix+x has the name CopyGraphPrefix+x. What is erased in a
// journal is erased in its copy.
const CopyGraphPrefix = JournalGraphPrefix + "copy:"

// CopiedGraph returns the journal that a graph has copies of, or the zero term.
func CopiedGraph(graph Term) Term {
	name, ok := strings.CutPrefix(graph.value, CopyGraphPrefix)
	if !ok {
		return Term{}
	}
	return IRI(JournalGraphPrefix + name)
}

// SystemGraph holds koine's settings.
var SystemGraph = IRI(OwnGraphPrefix + "system")

// ShapesGraph holds the shapes that updates are checked against. Everybody may read it.
var ShapesGraph = IRI(OwnGraphPrefix + "shapes")

// OwnVocabulary is the prefix of the IRIs of the properties and classes that koine itself
// interprets. Its registered prefix is koine:.
const OwnVocabulary = "urn:koine:vocab:"

// Sequence is the property that numbers the entries of a journal: 1, 2, 3 … The index also
// has its statements in the order of their numbers, graph by graph.
var Sequence = IRI(OwnVocabulary + "sequence")

// Ordered returns one of the properties whose statements the index also has in the order of
// their numbers, graph by graph. The package that writes them defines their meaning.
func Ordered(n uint8) Term { return IRI(orderedPrefix + strconv.Itoa(int(n))) }

const orderedPrefix = OwnVocabulary + "ordered/"

// Parts is the property for the content of a journal's entry. Of the statements in koine's
// own graphs only these count for the statement quota (Options.MaxSourceStatements): they
// hold the entry's text, and are removed when it is evicted.
var Parts = IRI(OwnVocabulary + "parts")

// Evicted is the property of a journal's entry without content, after its removal. Its count
// gives the oldest entry with content.
var Evicted = IRI(OwnVocabulary + "evicted")

// CountsForQuota reports whether a statement counts toward the quotas of its sources.
func CountsForQuota(predicate, graph Term) bool {
	return !IsOwnGraph(graph) || predicate == Parts && strings.HasPrefix(graph.value, JournalGraphPrefix)
}

// IsOwnGraph reports whether the graph is one of koine's own.
func IsOwnGraph(graph Term) bool { return strings.HasPrefix(graph.value, OwnGraphPrefix) }

// IsControlGraph reports whether the content of a graph can control koine: it is one of
// koine's own and not a journal.
func IsControlGraph(graph Term) bool {
	return IsOwnGraph(graph) && !strings.HasPrefix(graph.value, JournalGraphPrefix)
}

// IsPendingGraph reports whether the graph holds the statements that a proposal would add.
func IsPendingGraph(graph Term) bool { return strings.HasPrefix(graph.value, PendingGraphPrefix) }

// Reserved reports whether the statement is one of koine's own: in one of its graphs, or with
// one of its properties or classes. Only the package that owns it writes it, with Tx.ApplyOwn.
func Reserved(q Quad) bool {
	return IsOwnGraph(q.Graph) || strings.HasPrefix(q.Predicate.value, OwnVocabulary) ||
		q.Predicate.value == RDFType && q.Object.kind == KindIRI && strings.HasPrefix(q.Object.value, OwnVocabulary)
}

// Doubts are the agents in quarantine, each with the time from which on its assertions do not
// count: reads do not show those recorded then or later. Nil means none. It is read-only.
type Doubts map[AgentID]time.Time

// Excludes reports whether the assertion does not count.
func (d Doubts) Excludes(a *Assertion) bool {
	since, doubted := d[a.Source]
	return doubted && !a.Time.Before(since)
}

// Distrust returns the agents in quarantine. The newest state applies, also to reads of the
// past and of the log. It does not apply to koine's own graphs, such as policies, proposals
// and records of agents. Nothing is removed: ending the quarantine makes the assertions
// visible again. It must be fast and safe for concurrent use.
type Distrust interface {
	// Doubted is called once for each read, and for each assertion that a watcher
	// examines.
	Doubted() Doubts
	// DoubtsChanged reports whether the doubts changed in a commit after the revision, and
	// up to which revision the answer holds (at least after). It is called for every
	// commit that a watcher examines.
	DoubtsChanged(after Revision) (changed bool, upTo Revision)
}

// TrustAll is the Distrust of a store without quarantine.
type TrustAll struct{}

// Doubted returns nil.
func (TrustAll) Doubted() Doubts { return nil }

// DoubtsChanged reports no change.
func (TrustAll) DoubtsChanged(after Revision) (bool, Revision) { return false, after }

// ApplyDistrust sets the doubts of the view. It returns CodePermissionDenied if the view
// admits agents under quarantine and the principal is not an administrator.
func (v *View) ApplyDistrust(d Distrust) error {
	v.Doubts = nil
	if !v.Doubted {
		v.Doubts = d.Doubted()
		return nil
	}
	if !v.Principal.IsAdmin() {
		return Errorf(CodePermissionDenied, "only administrators may read assertions of agents under quarantine")
	}
	return nil
}

// Forgetter is an Access that hides the past of some graphs from some of their readers. Such a
// reader sees the current statements and none that are gone, at whichever revision it reads
// and wherever it begins to read the log. Scans and watches call it for the past only: reads
// of current statements cost nothing more.
//
// A watcher of such a graph is told of removals while it watches, because it could read the
// statements until then: see Watcher.View. A watcher that resumes before a removal that it may
// not know of gets CodeAccessChanged and reads a new snapshot. A history shows neither the
// addition nor the removal.
type Forgetter interface {
	// Forgets returns a predicate that reports whether the past of a graph is hidden from
	// the principal; nil if no graph's is. Its answers must not change. It is used for one
	// read.
	Forgets(p Principal) func(graph Term) bool
}

// Forgetful returns the predicate of Forgetter for the principal, nil for an Access that
// is no Forgetter.
func Forgetful(a Access, p Principal) func(graph Term) bool {
	if f, ok := a.(Forgetter); ok {
		return f.Forgets(p)
	}
	return nil
}

// VersionedAccess is an Access whose decisions may be cached from one read to the next.
//
// Its decisions on Read depend on the principal's ID, Method and Roles only, and do not change
// while the version stays; those on koine's own graphs may change at any time and are not
// cached. To change a decision, first make Allowed return the new one, then increase the
// version, before the commit that caused the change becomes visible (OnSystemChange is such a
// moment).
type VersionedAccess interface {
	Access
	// Version returns the counter of the versions, always the same one. It returns nil if
	// answers may change without a new version; then they are not cached.
	Version() *atomic.Uint64
}

// VersionOf returns the version of an Access, for an Access that wraps it and keeps the same
// rules; nil if it has none.
func VersionOf(a Access) *atomic.Uint64 {
	if v, ok := a.(VersionedAccess); ok {
		return v.Version()
	}
	return nil
}
