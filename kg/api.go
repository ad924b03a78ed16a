package kg

import (
	"context"
	"io"
	"sync/atomic"
	"time"

	"koine/kg/internal/archive"
	"koine/kg/internal/base"
	"koine/kg/internal/datadir"
	"koine/kg/internal/erasure"
)

// Constants of the vocabulary, of principals, and bounds.
const (
	// OwnGraphPrefix begins the IRI of every graph that koine keeps for itself.
	// The default view leaves these graphs out.
	OwnGraphPrefix = base.OwnGraphPrefix
	// JournalGraphPrefix begins the IRI of the graphs of koine's own that only
	// record: messages, receipts, events. Nothing is decided by what they hold, so
	// commits that touch no other graph of koine's are not told to
	// Options.OnSystemChange, and share their group with others.
	JournalGraphPrefix = base.JournalGraphPrefix
	// OwnVocabulary begins the IRI of every property and class that has a meaning to
	// koine itself. The prefix koine: stands for it.
	OwnVocabulary = base.OwnVocabulary
	// MaxLocalTerms bounds the local ids of a snapshot. It is more than an operation of
	// GraphQL can name: two ends of each of 64 triples in each of 50 fields.
	MaxLocalTerms = base.MaxLocalTerms
	// KeptName is where EraseOptions.Keep leaves the files of before.
	KeptName = datadir.KeptName
	// ForeignIDPrefix begins the IRI under which an id is kept that is no IRI
	// itself: the protocols allow "a URI or unique identifier".
	ForeignIDPrefix = base.ForeignIDPrefix
	// MaxKeptPrefixes bounds the prefixes that a store keeps beside the built-in ones.
	MaxKeptPrefixes = base.MaxKeptPrefixes
	// MethodLocal is that of who works on the data directory itself: whoever may open
	// its files may do everything.
	MethodLocal = base.MethodLocal
	// MethodOpen is that of a server without credentials, where callers say who they are
	// and everybody is an administrator.
	MethodOpen = base.MethodOpen
	// Anybody, in Principal.ActFor, is every agent.
	Anybody = base.Anybody
	// Anonymous is the caller that gave no name.
	Anonymous = base.Anonymous
	// System is koine itself, as the author of what no caller asked for.
	System = base.System
	// EndOfCommit is the index of a position behind all changes of its commit.
	EndOfCommit = base.EndOfCommit
	// MaxResourceBytes bounds an IRI and the label of a blank node (RDF 1.1 Concepts,
	// section 3, sets no bound of its own).
	MaxResourceBytes = base.MaxResourceBytes
	// MaxLiteralKindBytes bounds the datatype or the language tag of a literal. Each
	// is a key of the index, and a key beyond Badger's 64 KiB ends the process while
	// it is written, and again whenever the log is applied.
	MaxLiteralKindBytes = base.MaxLiteralKindBytes
	// MaxBelieved bounds the sources that a view names.
	MaxBelieved = base.MaxBelieved
)

// Terms and errors that have a name.
var (
	// SystemGraph holds koine's own settings.
	SystemGraph = base.SystemGraph
	// ShapesGraph holds the shapes that updates are judged by. Everybody reads it.
	ShapesGraph = base.ShapesGraph
	// Sequence is the property that numbers what stands in a journal: 1, 2, 3 …
	// Statements of it are also kept in the order of their numbers, graph by graph.
	Sequence = base.Sequence
	// Parts is the property of what the entry of a journal says. Of koine's own
	// statements these alone count for the share of their source (Options.MaxBacked):
	// they are what the entry takes, and go when it is taken back.
	Parts = base.Parts
	// Evicted is the property of the entry of a journal whose content is no longer kept.
	// How many there are says which is the oldest that is.
	Evicted = base.Evicted
	// ErrNoStore is wrapped by the error of opening a directory that is not that of a
	// store, and in which none is to be made: there is none with Options.MustExist, or
	// the files there are somebody else's. Its code is CodeFormatUnknown.
	ErrNoStore = datadir.ErrNoStore
	// DefaultGraphID stands for DefaultGraph in every store.
	DefaultGraphID = base.DefaultGraphID
	// BuiltinPrefixes are registered in every store.
	BuiltinPrefixes = base.BuiltinPrefixes
	// DefaultGraph names the graph that has no name.
	DefaultGraph = base.DefaultGraph
)

// Right is what a graph's policy decides about.
type Right = base.Right

// The rights (DESIGN 3.5).
const (
	Discover = base.Discover
	Read     = base.Read
	Write    = base.Write
	// Create is asked beside Read and Write where the graph holds no statement:
	// whether it may come into being by this write.
	Create = base.Create
	Manage = base.Manage
)

// Access decides who may do what with a graph. It is asked inside the scan,
// inside the watch and inside the commit, so that no adapter can forget it. It
// must be fast, safe for concurrent use, and answer from the newest policy.
type Access = base.Access

// Hider is an Access that also hides single statements from those who may read
// their graph. What is hidden is not there in any read: it is asked inside the
// scan, the counts and the watch. The statements that it tells apart are those
// for which counts are kept, so that these agree with what is scanned.
type Hider = base.Hider

// Front is what an Access has in common that stands in front of another one, and
// answers for some graphs itself: embed it, and have an Allowed that asks the other.
type Front = base.Front

// Hidden is what an Access hides from the principal, nil for nothing.
func Hidden(a Access, p Principal) func(predicate Term, graph Term) bool { return base.Hidden(a, p) }

// AllowAll is the Access of a store without policies.
type AllowAll = base.AllowAll

// ProposalGraphPrefix begins the IRI of the graph of each proposal, PendingGraphPrefix
// that of the graph with the statements that it would add.
const (
	ProposalGraphPrefix = base.ProposalGraphPrefix
	PendingGraphPrefix  = base.PendingGraphPrefix
)

// Ordered is one of the properties by which what stands in a graph is found in an
// order: their statements, too, are also kept in the order of their numbers, graph by
// graph. What the numbers of one mean is for the package to say that writes them.
func Ordered(n uint8) Term { return base.Ordered(n) }

// IsOwnGraph tells whether koine keeps the graph for itself.
func IsOwnGraph(graph Term) bool { return base.IsOwnGraph(graph) }

// IsPendingGraph tells whether the graph holds what a proposal would add.
func IsPendingGraph(graph Term) bool { return base.IsPendingGraph(graph) }

// Reserved tells whether the statement is one of koine's own: in one of its
// graphs, with one of its properties, or of one of its classes. Only the domain
// package that it belongs to writes it, with Tx.ApplyOwn.
func Reserved(q Quad) bool { return base.Reserved(q) }

// BackupInfo says what a backup holds: it is its header.
type BackupInfo = archive.BackupInfo

// VerifyBackup reads a whole backup and says what it holds. It fails with
// CodeFormatUnknown for what is none, or one of a newer koine, and with
// CodeLogDamaged for one that is damaged or breaks off. Progress, which may be
// nil, is called now and then with how many entries there were.
func VerifyBackup(ctx context.Context, r io.Reader, progress func(done uint64, total uint64)) (BackupInfo, error) {
	return archive.VerifyBackup(ctx, r, progress)
}

// IsLocal tells whether LocalID made the id.
func IsLocal(id ID) bool { return base.IsLocal(id) }

// Bounds on the texts of Meta, in bytes.
const (
	MaxJustificationBytes  = base.MaxJustificationBytes
	MaxIdempotencyKeyBytes = base.MaxIdempotencyKeyBytes
	MaxReferenceBytes      = base.MaxReferenceBytes // task, session, message
)

// Commit is an accepted update: what changed, and who, when and why. Not to be
// changed by who gets it.
type Commit = base.Commit

// GraphReplacement is the exchange of a whole graph's content.
type GraphReplacement = base.GraphReplacement

// Change is one effect inside a commit. The log holds atomic changes, Add and
// Remove; a reader sees the add of a Replace with what it removed.
type Change = base.Change

// Dependency is something that a verdict was made from. The verdict is good for
// as long as no commit changes it. It is one of
//   - a statement with this Node as its subject and this Predicate, or, where
//     Predicate is zero, with any;
//   - with Inverse, one with this Node as its object and this Predicate;
//   - with Graph, which is one of koine's own, any statement in it.
type Dependency = base.Dependency

// Doubts are the agents whose assertions do not count, each with the time from
// which on: what it recorded then or later is not there for any read. Nil for
// nobody; not changed once it is given out.
type Doubts = base.Doubts

// Distrust knows whose assertions do not count. The newest doubts decide, also
// for reads of the past and of the log. They are about what agents say of the
// world: koine's own graphs (policies, proposals, records of agents) are not a
// matter of belief, and stay as they are. Nothing is removed: who is trusted again
// is read again. It must be fast and safe for concurrent use.
type Distrust = base.Distrust

// EraseOptions says what is erased: what fits all that is set. Something must be.
type EraseOptions = erasure.EraseOptions

// Excerpt is the text if it has at most so many bytes, and else its beginning of at most so
// many, in whole characters and with "…" behind it: for texts from outside in messages.
func Excerpt(text string, most int) string { return base.Excerpt(text, most) }

// ResourceFromID is the resource that an id from outside names: an absolute
// IRI, a blank node ("_:label"), or, reversibly, any other text.
// Term.ExternalID gives the id back as it was sent.
func ResourceFromID(id string) (Term, error) { return base.ResourceFromID(id) }

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
type Forgetter = base.Forgetter

// IsIANAScheme tells whether a name, in lower case, is in IANA's registry of URI
// schemes, permanent, provisional or historical. Names with a full stop, which are
// those of single products, are left out.
func IsIANAScheme(name string) bool { return base.IsIANAScheme(name) }

// ID stands for a term inside one store: fixed in size, comparable, and the
// same after every rebuild. Small values are in the id itself. It means
// nothing outside the store.
type ID = base.ID

// IDQuad is a quad in ids.
type IDQuad = base.IDQuad

// IDPattern selects quads: a zero ID stands for any.
type IDPattern = base.IDPattern

// IntegerOf is the value of an id that holds an xsd:integer itself, as those do
// that fit into 64 bits and are written in the canonical way. It spares the
// term where only the number is wanted.
func IntegerOf(id ID) (n int64, ok bool) { return base.IntegerOf(id) }

// ParseIRI checks that text is an absolute IRI (RFC 3987, section 2.2, as far
// as RDF 1.1 Concepts, section 3.2, asks for) and gives its term. A text that
// begins with "_:" is the blank node of that label.
func ParseIRI(text string) (Term, error) { return base.ParseIRI(text) }

// IsAbsoluteIRI tells whether text can be used as an IRI as it is.
func IsAbsoluteIRI(text string) bool { return base.IsAbsoluteIRI(text) }

// Code says what kind of failure an Error is. Codes are the one vocabulary of
// failures in koine: adapters turn them into their protocol's own by one table
// each, and clients see them as `reason`. The list only ever grows.
type Code = base.Code

// The codes.
const (
	CodeInternal            = base.CodeInternal            // a fault of ours; details belong in the log only
	CodeInvalid             = base.CodeInvalid             // the request itself is wrong
	CodeLimitExceeded       = base.CodeLimitExceeded       // a named bound was passed
	CodeBudgetExceeded      = base.CodeBudgetExceeded      // the budget that the caller set does not reach
	CodeNotFound            = base.CodeNotFound            // absent, or not to be seen
	CodeGraphNotFound       = base.CodeGraphNotFound       // absent, or not to be seen, said of a graph
	CodePermissionDenied    = base.CodePermissionDenied    // it may be seen but not done
	CodeSourceForbidden     = base.CodeSourceForbidden     // acting for an agent without the right to
	CodeReserved            = base.CodeReserved            // koine's own vocabulary, changed by its own calls only
	CodeConstraintViolation = base.CodeConstraintViolation // refused by verification
	CodeRevisionConflict    = base.CodeRevisionConflict    // changed since the expected revision
	CodeIdempotencyConflict = base.CodeIdempotencyConflict // the key was used with other content
	CodeOverloaded          = base.CodeOverloaded          // a queue is full: try again after RetryAfter
	CodeTimeout             = base.CodeTimeout             // a time bound was passed
	CodeDiskFull            = base.CodeDiskFull            // below the reserve of free space; reads go on
	CodeOutcomeUnknown      = base.CodeOutcomeUnknown      // the store failed while writing; ask again with the same key
	CodeReadOnly            = base.CodeReadOnly            // the store takes no updates until it is reopened
	CodeLogDamaged          = base.CodeLogDamaged          // the log does not hold what it must; opened read-only
	CodeDataDirInUse        = base.CodeDataDirInUse        // another process has the data directory
	CodeFormatUnknown       = base.CodeFormatUnknown       // written by a newer koine, or not by koine
	CodeCursorForeign       = base.CodeCursorForeign       // of another store, query, view or caller, or changed
	CodeCursorGone          = base.CodeCursorGone          // its revision can no longer be read
	CodePositionGone        = base.CodePositionGone        // of another log, or the log there was trimmed
	CodeRevisionGone        = base.CodeRevisionGone        // older than the history that is kept
	CodeRevisionAhead       = base.CodeRevisionAhead       // newer than the newest
	CodeResync              = base.CodeResync              // a watcher cannot go on from where it is
	CodeClosed              = base.CodeClosed              // the store was closed
	CodeUnauthenticated     = base.CodeUnauthenticated     // no valid credential, or it has ended
	CodeRateLimited         = base.CodeRateLimited         // more than the caller's share: try again after RetryAfter
	CodeAccessChanged       = base.CodeAccessChanged       // what the caller may see is no longer what it was: read anew
	CodeAlignmentViolation  = base.CodeAlignmentViolation  // a rule of the operator's refuses what was asked
	CodeJudgeLimit          = base.CodeJudgeLimit          // judging the update takes more than it may
	CodeProposalClosed      = base.CodeProposalClosed      // it has been decided, was withdrawn, or has expired
	CodeChannelNotFound     = base.CodeChannelNotFound     // absent, or not to be seen, said of a channel
	CodeVersionConflict     = base.CodeVersionConflict     // an entity is no longer of the version that the caller knows
	CodeLastOwner           = base.CodeLastOwner           // nobody would be left who owns it
	CodeScopeNotFound       = base.CodeScopeNotFound       // absent, or not to be seen, said of a scope
	CodeScopeEnded          = base.CodeScopeEnded          // nothing new comes into a scope that has ended
	CodeChannelClosed       = base.CodeChannelClosed       // it is read on, but takes no message any more
	CodeNameTaken           = base.CodeNameTaken           // another of the same scope has it
	CodeNotMember           = base.CodeNotMember           // whom a message is addressed to takes no part in its channel
	CodeNoRecipient         = base.CodeNoRecipient         // nobody has the role that a message is addressed to
	CodeMessageExpired      = base.CodeMessageExpired      // it is not answered or acknowledged any more
	CodeTaskNotFound        = base.CodeTaskNotFound        // absent, or not to be seen, said of a task
	CodeTaskEnded           = base.CodeTaskEnded           // a task that has ended does not change any more
	CodeAgentNotFound       = base.CodeAgentNotFound       // nobody takes tasks under the name
	CodeContentType         = base.CodeContentType         // of a kind that an agent can do nothing with
	CodeUnknownPrefix       = base.CodeUnknownPrefix       // a name with neither a registered prefix nor a known URI scheme
)

// Class is a group of codes that callers handle alike: see Code.Class.
type Class = base.Class

// The classes of codes.
const (
	ClassInternal    = base.ClassInternal    // a defect of the server, or damage: retrying does not help
	ClassInvalid     = base.ClassInvalid     // the request is wrong and stays wrong
	ClassNotFound    = base.ClassNotFound    // absent, or hidden from the caller
	ClassDenied      = base.ClassDenied      // the caller may not do it, or a rule refuses it
	ClassConflict    = base.ClassConflict    // the state is not the one that the request expects
	ClassLimit       = base.ClassLimit       // a bound is exceeded: ask for less
	ClassRate        = base.ClassRate        // too much at once: retry after RetryAfter
	ClassUnavailable = base.ClassUnavailable // the server or its store cannot do it now
)

// Error is a failure with its code. Message is meant for the caller and holds
// nothing that it may not see; Err is meant for the log.
type Error = base.Error

// Errorf makes an Error with a message. A %w verb sets what it wraps.
func Errorf(code Code, format string, args ...any) *Error { return base.Errorf(code, format, args...) }

// CodeOf is the code of the first Error in err's chain, CodeInternal if there
// is none, and "" for nil.
func CodeOf(err error) Code { return base.CodeOf(err) }

// AsError is the first Error in err's chain; an error of another kind becomes
// one with CodeInternal and a fixed message.
func AsError(err error) *Error { return base.AsError(err) }

// FixIRI percent-encodes what stands in an IRI and may not (RFC 3987, section 3.1). What
// that cannot mend, such as a missing scheme or a port of letters, stays as it is, and
// Term.ValidNew refuses it. An IRI that is valid comes back unchanged.
func FixIRI(s string) string { return base.FixIRI(s) }

// VersionedAccess is an Access whose answers can be kept from one read to the
// next, so that a read of many graphs asks about none of them again.
//
// Its answers for Read depend on nothing of the principal but ID, Method and
// Roles, and stay what they are for as long as the version does; those for graphs
// of koine's own may change at any time and are never kept. Who changes the
// answers first lets Allowed give the new ones and then moves the version on,
// never back, and before the commit that changed them is shown to any reader
// (OnSystemChange is such a time).
type VersionedAccess = base.VersionedAccess

// VersionOf is the version of an Access, for one that adds to it and keeps to the
// same rules; nil when it has none.
func VersionOf(a Access) *atomic.Uint64 { return base.VersionOf(a) }

// LiteralFromJSON is the literal that a JSON value stands for. Numbers keep
// their kind and all digits: one without fraction and exponent is an
// xsd:integer, any other an xsd:double, unless datatype (an IRI or an "xsd:"
// name; "" for none) says otherwise. A datatype must fit the value. lang is
// for strings only.
func LiteralFromJSON(raw []byte, datatype string, lang string) (Term, error) {
	return base.LiteralFromJSON(raw, datatype, lang)
}

// Moment names a place in history: a revision or, where Time is set, a time,
// which stands for the newest revision that was committed by then.
type Moment = base.Moment

// ParseMoment reads the number of a revision or an RFC 3339 time.
func ParseMoment(text string) (Moment, error) { return base.ParseMoment(text) }

// Op is what a patch asks for, and what a change is seen as.
type Op = base.Op

// The operations (knowledge graph extension, section 3, PatchOperationType).
const (
	// Add asserts the statement for its source. Again: updates that source's
	// assertion.
	Add = base.Add
	// Remove takes the statement away with all its assertions, or, where the
	// patch names a source, that source's assertion only: the statement lives
	// while another source backs it.
	Remove = base.Remove
	// Replace removes every statement with the same subject, predicate and
	// graph and adds this one.
	Replace = base.Replace
)

// Pattern selects statements: a zero Term stands for any. Graph may be
// DefaultGraph.
type Pattern = base.Pattern

// Prefixes are the short names of IRI namespaces that people may write in
// place of them. Those of a store (Store.Prefixes) follow its log; all others stay as
// they were made. They may be used concurrently.
type Prefixes = base.Prefixes

// NewPrefixes registers the built-in prefixes and these, which win. A prefix
// must be a name of letters, digits, "-", "_" and "." that is no URI scheme in
// use, and its namespace an absolute IRI.
func NewPrefixes(more map[string]string) (*Prefixes, error) { return base.NewPrefixes(more) }

// IsScheme tells whether a name is one of the URI schemes in use that no prefix
// may be called by. Those of a store are more: see Store.KnowsScheme.
func IsScheme(name string) bool { return base.IsScheme(name) }

// BareNameError is the cause of the error about a name without a prefix where an IRI is
// asked for.
type BareNameError = base.BareNameError

// Prefix is a short name and the namespace IRI that it stands for.
type Prefix = base.Prefix

// Principal is who is calling.
type Principal = base.Principal

// The roles that have a meaning to koine. The last three confine who has no other one:
// see CheckWrite and CheckRead.
const (
	RoleAdmin    = base.RoleAdmin
	RoleReviewer = base.RoleReviewer
	RoleReader   = base.RoleReader  // reads what its agent may
	RoleMetrics  = base.RoleMetrics // reads the server's metrics
	RoleBackup   = base.RoleBackup  // takes backups
)

// SystemPrincipal is koine itself where it reads and writes on its own behalf. It
// never comes from outside.
func SystemPrincipal() Principal { return base.SystemPrincipal() }

// CommonRoles lists the roles of a principal whose rights are narrowed to those of a
// further credential: those that both have. Who is confined by either stays confined.
func CommonRoles(p Principal, further Principal) []string { return base.CommonRoles(p, further) }

// CanonicalAgent is the one spelling under which an agent id is stored,
// compared and hashed: a bare id x and agent://x are the same agent.
func CanonicalAgent(id string) AgentID { return base.CanonicalAgent(id) }

// RestoreOptions configures Restore. The zero value works.
type RestoreOptions = archive.RestoreOptions

// Restore makes a data directory of a full backup and the incremental ones that
// follow on it, in order. The directory must be empty or not there. It gets an
// epoch and a secret of its own: positions, cursors and other tokens of the store
// that was backed up are not of this one. Its index is made when it is opened.
// After an error nothing is left in it, and it is not there if it was not before.
//
// It fails with CodeInvalid for a directory that is not empty and for backups
// that do not follow each other, and as VerifyBackup does for what is wrong with
// one.
func Restore(ctx context.Context, dir string, backups []io.Reader, o RestoreOptions) (info BackupInfo, err error) {
	return archive.Restore(ctx, dir, backups, o)
}

// Revision numbers the commits of a store: 1, 2, 3 … without gaps. 0 is the
// store before its first commit.
type Revision = base.Revision

// Epoch tells one log from another. It is made when a data directory is
// created or restored, so that positions and cursors of another log are
// recognised.
type Epoch = base.Epoch

// Position is where a reader stands in the log: behind the change with this
// index in the commit of this revision. The zero Revision with EndOfCommit is
// before the first commit. Outside it is an opaque token: Store.FormatPosition
// and Store.ParsePosition.
type Position = base.Position

// AgentID names who says or does something, in its canonical form
// ("agent://x" for a bare id x; see CanonicalAgent).
type AgentID = base.AgentID

// Quad is what a statement says: subject, predicate, object, and the graph
// that holds it. The graph is DefaultGraph, an IRI or a blank node; a zero Graph
// in what is handed in means DefaultGraph.
type Quad = base.Quad

// Assertion is one source's backing of a statement. A statement has at most
// one assertion of each source.
type Assertion = base.Assertion

// Statement is a quad with the assertions that back it, as far as the view
// admits them: at least one. The slice is not to be changed.
type Statement = base.Statement

// Bounds on what backs one statement.
const (
	MaxAssertions      = base.MaxAssertions      // sources of one statement
	MaxProvenanceBytes = base.MaxProvenanceBytes // JSON of one assertion
	MaxAgentIDBytes    = base.MaxAgentIDBytes
)

// Kind tells what a Term is.
type Kind = base.Kind

// The kinds of terms. The zero Kind is no term at all: in a Pattern it stands
// for "any".
const (
	KindNone         = base.KindNone
	KindDefaultGraph = base.KindDefaultGraph
	KindIRI          = base.KindIRI
	KindBlank        = base.KindBlank
	KindLiteral      = base.KindLiteral
)

// Datatype IRIs that the store itself gives a meaning to.
const (
	XSD           = base.XSD
	XSDString     = base.XSDString
	XSDBoolean    = base.XSDBoolean
	XSDInteger    = base.XSDInteger
	XSDDecimal    = base.XSDDecimal
	XSDDouble     = base.XSDDouble
	XSDDateTime   = base.XSDDateTime
	XSDDate       = base.XSDDate
	RDF           = base.RDF
	RDFType       = base.RDFType
	RDFLangString = base.RDFLangString
	// RDFDirLangString is refused in what comes in: see Term.ValidNew.
	RDFDirLangString = base.RDFDirLangString
	RDFSLabel        = base.RDFSLabel
)

// Bounds of the lexical form of a literal. What a store takes is between
// MinLiteralBytes and MaxLiteralBytes (Options.LiteralBytes); what it has is read
// whatever it takes.
const (
	MinLiteralBytes     = base.MinLiteralBytes
	DefaultLiteralBytes = base.DefaultLiteralBytes
	MaxLiteralBytes     = base.MaxLiteralBytes
)

// Term is an IRI, a blank node, a literal, or the name of the default graph
// (RDF 1.1 Concepts, section 3). Terms are values: they compare with == and
// serve as map keys. Two literals are the same term only when lexical form,
// datatype and language tag are the same.
type Term = base.Term

// IRI is the IRI term with the text given, which is not checked: see ParseIRI.
func IRI(text string) Term { return base.IRI(text) }

// Blank is the blank node with this label, without "_:". Labels are unique in
// a store: whoever reads a document gives its blank nodes labels of their own.
func Blank(label string) Term { return base.Blank(label) }

// String is a plain literal (xsd:string).
func String(text string) Term { return base.String(text) }

// LangString is a literal with a language tag (BCP 47). Tags that differ in case only
// give one term.
func LangString(text string, lang string) Term { return base.LangString(text, lang) }

// Typed is a literal with this lexical form and datatype IRI.
func Typed(lexical string, datatype string) Term { return base.Typed(lexical, datatype) }

// Integer is an xsd:integer literal.
func Integer(n int64) Term { return base.Integer(n) }

// Boolean is an xsd:boolean literal.
func Boolean(b bool) Term { return base.Boolean(b) }

// Double is an xsd:double literal in the shortest form that reads back equal.
func Double(f float64) Term { return base.Double(f) }

// DateTime is an xsd:dateTime literal in UTC with milliseconds where needed.
func DateTime(t time.Time) Term { return base.DateTime(t) }

// TimeSpan is the time from From until before Until; a zero time leaves that end
// open.
type TimeSpan = base.TimeSpan

// View says what a read sees. The zero View sees the newest revision of what
// the anonymous caller may read.
type View = base.View
