package kg

import (
	"context"
	"io"
	"sync/atomic"
	"time"

	"koine/kg/base"
	"koine/kg/internal/archive"
	"koine/kg/internal/datadir"
	"koine/kg/internal/erasure"
)

// Constants of the data model; package base describes each.
const (
	// The vocabulary, principals, and bounds.

	OwnGraphPrefix      = base.OwnGraphPrefix
	JournalGraphPrefix  = base.JournalGraphPrefix
	CopyGraphPrefix     = base.CopyGraphPrefix
	OwnVocabulary       = base.OwnVocabulary
	MaxLocalTerms       = base.MaxLocalTerms
	KeptName            = datadir.KeptName
	ForeignIDPrefix     = base.ForeignIDPrefix
	MaxKeptPrefixes     = base.MaxKeptPrefixes
	MethodLocal         = base.MethodLocal
	MethodOpen          = base.MethodOpen
	Anybody             = base.Anybody
	Anonymous           = base.Anonymous
	System              = base.System
	EndOfCommit         = base.EndOfCommit
	MaxResourceBytes    = base.MaxResourceBytes
	MaxLiteralKindBytes = base.MaxLiteralKindBytes
	MaxBelieved         = base.MaxBelieved

	// The rights on a graph.

	Discover = base.Discover
	Read     = base.Read
	Write    = base.Write
	Create   = base.Create
	Manage   = base.Manage

	// ProposalGraphPrefix is the prefix of the IRI of each proposal's graph, and
	// PendingGraphPrefix that of the graph with the statements that the proposal would add.

	ProposalGraphPrefix = base.ProposalGraphPrefix
	PendingGraphPrefix  = base.PendingGraphPrefix

	// Bounds of the texts of Meta, in bytes.

	MaxJustificationBytes  = base.MaxJustificationBytes
	MaxIdempotencyKeyBytes = base.MaxIdempotencyKeyBytes
	MaxReferenceBytes      = base.MaxReferenceBytes

	// The codes.

	CodeInternal            = base.CodeInternal
	CodeInvalid             = base.CodeInvalid
	CodeLimitExceeded       = base.CodeLimitExceeded
	CodeBudgetExceeded      = base.CodeBudgetExceeded
	CodeNotFound            = base.CodeNotFound
	CodeGraphNotFound       = base.CodeGraphNotFound
	CodePermissionDenied    = base.CodePermissionDenied
	CodeSourceForbidden     = base.CodeSourceForbidden
	CodeReserved            = base.CodeReserved
	CodeConstraintViolation = base.CodeConstraintViolation
	CodeRevisionConflict    = base.CodeRevisionConflict
	CodeIdempotencyConflict = base.CodeIdempotencyConflict
	CodeOverloaded          = base.CodeOverloaded
	CodeTimeout             = base.CodeTimeout
	CodeDiskFull            = base.CodeDiskFull
	CodeOutcomeUnknown      = base.CodeOutcomeUnknown
	CodeReadOnly            = base.CodeReadOnly
	CodeLogDamaged          = base.CodeLogDamaged
	CodeDataDirInUse        = base.CodeDataDirInUse
	CodeFormatUnknown       = base.CodeFormatUnknown
	CodeCursorForeign       = base.CodeCursorForeign
	CodeCursorGone          = base.CodeCursorGone
	CodePositionGone        = base.CodePositionGone
	CodeRevisionGone        = base.CodeRevisionGone
	CodeRevisionAhead       = base.CodeRevisionAhead
	CodeResync              = base.CodeResync
	CodeClosed              = base.CodeClosed
	CodeUnauthenticated     = base.CodeUnauthenticated
	CodeRateLimited         = base.CodeRateLimited
	CodeAccessChanged       = base.CodeAccessChanged
	CodeAlignmentViolation  = base.CodeAlignmentViolation
	CodeJudgeLimit          = base.CodeJudgeLimit
	CodeProposalClosed      = base.CodeProposalClosed
	CodeChannelNotFound     = base.CodeChannelNotFound
	CodeVersionConflict     = base.CodeVersionConflict
	CodeLastOwner           = base.CodeLastOwner
	CodeScopeNotFound       = base.CodeScopeNotFound
	CodeScopeEnded          = base.CodeScopeEnded
	CodeChannelClosed       = base.CodeChannelClosed
	CodeNameTaken           = base.CodeNameTaken
	CodeLeaseHeld           = base.CodeLeaseHeld
	CodeNotMember           = base.CodeNotMember
	CodeNoRecipient         = base.CodeNoRecipient
	CodeMessageExpired      = base.CodeMessageExpired
	CodeTaskNotFound        = base.CodeTaskNotFound
	CodeTaskEnded           = base.CodeTaskEnded
	CodeAgentNotFound       = base.CodeAgentNotFound
	CodeContentType         = base.CodeContentType
	CodeContentHeld         = base.CodeContentHeld
	CodeUnknownPrefix       = base.CodeUnknownPrefix

	// The classes of codes.

	ClassInternal    = base.ClassInternal
	ClassInvalid     = base.ClassInvalid
	ClassNotFound    = base.ClassNotFound
	ClassDenied      = base.ClassDenied
	ClassConflict    = base.ClassConflict
	ClassLimit       = base.ClassLimit
	ClassRate        = base.ClassRate
	ClassUnavailable = base.ClassUnavailable

	// The operations (knowledge graph extension, section 3, PatchOperationType).

	Add     = base.Add
	Remove  = base.Remove
	Replace = base.Replace

	// The roles that koine knows. The last three confine a principal without other roles: see
	// CheckWrite and CheckRead.

	RoleAdmin    = base.RoleAdmin
	RoleReviewer = base.RoleReviewer
	RoleReader   = base.RoleReader
	RoleMetrics  = base.RoleMetrics
	RoleBackup   = base.RoleBackup

	// Bounds of the assertions of one statement.

	MaxAssertions      = base.MaxAssertions
	MaxProvenanceBytes = base.MaxProvenanceBytes
	MaxAgentIDBytes    = base.MaxAgentIDBytes

	// Bounds of an embedding.

	MaxEmbeddingNumbers    = base.MaxEmbeddingNumbers
	MaxEmbeddingModelBytes = base.MaxEmbeddingModelBytes

	// The kinds of terms. The zero Kind is no term; in a Pattern it matches any.

	KindNone         = base.KindNone
	KindDefaultGraph = base.KindDefaultGraph
	KindIRI          = base.KindIRI
	KindBlank        = base.KindBlank
	KindLiteral      = base.KindLiteral

	// Datatype IRIs with a meaning to the store.

	XSD              = base.XSD
	XSDString        = base.XSDString
	XSDBoolean       = base.XSDBoolean
	XSDInteger       = base.XSDInteger
	XSDDecimal       = base.XSDDecimal
	XSDDouble        = base.XSDDouble
	XSDDateTime      = base.XSDDateTime
	XSDDate          = base.XSDDate
	RDF              = base.RDF
	RDFType          = base.RDFType
	RDFLangString    = base.RDFLangString
	RDFDirLangString = base.RDFDirLangString
	RDFSLabel        = base.RDFSLabel

	// Bounds of the lexical form of a literal. Options.LiteralBytes, between MinLiteralBytes and
	// MaxLiteralBytes, applies to new literals; longer stored ones stay readable.

	MinLiteralBytes     = base.MinLiteralBytes
	DefaultLiteralBytes = base.DefaultLiteralBytes
	MaxLiteralBytes     = base.MaxLiteralBytes
)

// Terms and errors that have a name.
var (
	SystemGraph = base.SystemGraph
	ShapesGraph = base.ShapesGraph
	Sequence    = base.Sequence
	Parts       = base.Parts
	// Evicted is the property of a journal's entry whose content is no longer kept. Its count
	// gives the oldest entry with content.
	Evicted = base.Evicted
	// ErrNoStore is wrapped by the error of opening a directory that is not a store, if none
	// may be created in it: because of Options.MustExist, or because it contains other files.
	// The code is CodeFormatUnknown.
	ErrNoStore      = datadir.ErrNoStore
	DefaultGraphID  = base.DefaultGraphID
	BuiltinPrefixes = base.BuiltinPrefixes
	DefaultGraph    = base.DefaultGraph
)

// Right is a kind of access to a graph, granted by its policy.
type Right = base.Right

// Access decides the rights of principals on graphs. The store calls it within scans, watches
// and commits, so that no adapter can forget it. It must be fast, safe for concurrent use, and
// answer by the newest policies.
type Access = base.Access

// Hider is an Access that also hides single statements from principals that may read their
// graph. Hidden statements are absent from all reads: the store calls it within scans, counts
// and watches. It decides by predicate and graph, for which the catalogue has counts, so that
// counts agree with scans.
type Hider = base.Hider

// Front is the common part of an Access that wraps another one and decides about some graphs
// itself: embed it, and write an Allowed that calls the wrapped Access for the others.
type Front = base.Front

// Hidden returns the predicate that reports statements hidden from the principal, nil for
// none.
func Hidden(a Access, p Principal) func(predicate Term, graph Term) bool { return base.Hidden(a, p) }

// AllowAll is the Access of a store without policies.
type AllowAll = base.AllowAll

// Ordered returns one of the properties whose statements the index also has in the order of
// their numbers, graph by graph. The package that writes them defines their meaning.
func Ordered(n uint8) Term { return base.Ordered(n) }

// IsOwnGraph reports whether the graph is one of koine's own.
func IsOwnGraph(graph Term) bool { return base.IsOwnGraph(graph) }

// IsPendingGraph reports whether the graph holds the statements that a proposal would add.
func IsPendingGraph(graph Term) bool { return base.IsPendingGraph(graph) }

// Reserved reports whether the statement is one of koine's own: in one of its graphs, or with
// one of its properties or classes. Only the package that owns it writes it, with Tx.ApplyOwn.
func Reserved(q Quad) bool { return base.Reserved(q) }

// BackupInfo is the header of a backup, which describes its content.
type BackupInfo = archive.BackupInfo

// VerifyBackup reads a whole backup and returns its header. It fails with CodeFormatUnknown if
// r is not a backup, or one of a newer koine, and with CodeLogDamaged if it is damaged or
// truncated. progress, which may be nil, is called from time to time with the number of
// entries read.
func VerifyBackup(ctx context.Context, r io.Reader, progress func(done uint64, total uint64)) (BackupInfo, error) {
	return archive.VerifyBackup(ctx, r, progress)
}

// IsLocal reports whether the id is from Snapshot.LocalID.
func IsLocal(id ID) bool { return base.IsLocal(id) }

// Commit is an accepted update in the log: its changes, the principal, the time and the
// reason. It is read-only.
type Commit = base.Commit

// GraphReplacement is the replacement of a whole graph's content.
type GraphReplacement = base.GraphReplacement

// Change is one effect of a commit. The log has atomic changes, Add and Remove; a reader sees
// the Add of a Replace together with the statements removed by it.
type Change = base.Change

// Dependency is an input of a verdict, which holds until a commit changes one. It is one of
//   - the statements with this Node as their subject and this Predicate, or any predicate if
//     Predicate is zero;
//   - with Inverse, those with this Node as their object and this Predicate;
//   - with Graph, one of koine's own, all statements in it.
type Dependency = base.Dependency

// Doubts are the agents in quarantine, each with the time from which on its assertions do not
// count: reads do not show those recorded then or later. Nil means none. It is read-only.
type Doubts = base.Doubts

// Distrust returns the agents in quarantine. The newest state applies, also to reads of the
// past and of the log. It does not apply to koine's own graphs, such as policies, proposals
// and records of agents. Nothing is removed: ending the quarantine makes the assertions
// visible again. It must be fast and safe for concurrent use.
type Distrust = base.Distrust

// EraseOptions selects the content to erase: everything that satisfies all fields that are
// set, of which there must be one.
type EraseOptions = erasure.EraseOptions

// Excerpt returns the text, cut to at most most bytes of whole characters and followed by "…"
// if it is longer. Use it for texts from outside in messages.
func Excerpt(text string, most int) string { return base.Excerpt(text, most) }

// ResourceFromID returns the resource for an id from outside: an absolute IRI, a blank node
// ("_:label"), or, reversibly, any other text. Term.ExternalID returns the id.
func ResourceFromID(id string) (Term, error) { return base.ResourceFromID(id) }

// Forgetter is an Access that hides the past of some graphs from some of their readers. Such a
// reader sees the current statements and none that are gone, at whichever revision it reads
// and wherever it begins to read the log. Scans and watches call it for the past only: reads
// of current statements cost nothing more.
//
// A watcher of such a graph is told of removals while it watches, because it could read the
// statements until then: see Watcher.View. A watcher that resumes before a removal that it may
// not know of gets CodeAccessChanged and reads a new snapshot. A history shows neither the
// addition nor the removal.
type Forgetter = base.Forgetter

// ID represents a term within one store: of fixed size, comparable, and the same after each
// rebuild. Small values are encoded in the id itself. It means nothing outside the store.
type ID = base.ID

// IDQuad is a quad of ids.
type IDQuad = base.IDQuad

// IDPattern selects quads: a zero ID matches any.
type IDPattern = base.IDPattern

// IntegerOf returns the value of an id that encodes an xsd:integer itself, as for canonical
// values of 64 bits. It avoids decoding the term.
func IntegerOf(id ID) (n int64, ok bool) { return base.IntegerOf(id) }

// ParseIRI validates an absolute IRI (RFC 3987, section 2.2, as far as RDF 1.1 Concepts,
// section 3.2, requires) and returns its term. A text that begins with "_:" is a blank node
// with that label.
func ParseIRI(text string) (Term, error) { return base.ParseIRI(text) }

// IsAbsoluteIRI reports whether text is a valid absolute IRI.
func IsAbsoluteIRI(text string) bool { return base.IsAbsoluteIRI(text) }

// Code classifies an Error. Codes are koine's common vocabulary of failures: each adapter maps
// them to its protocol with one table, and clients see them as `reason`. Codes are only ever
// added.
type Code = base.Code

// Answers is the table of a protocol: its answer to each class of errors, and to the codes
// that have an answer of their own.
type Answers[T any] = base.Answers[T]

// Class is a group of codes that callers handle alike: see Code.Class.
type Class = base.Class

// Error is a failure with its code. Message is for the caller and contains only what it may
// see; Err is for the log.
type Error = base.Error

// Errorf returns an Error with a message. A %w verb sets the wrapped error.
func Errorf(code Code, format string, args ...any) *Error { return base.Errorf(code, format, args...) }

// CodeOf returns the code of the first Error in err's chain, CodeInternal if there is none,
// and "" for nil.
func CodeOf(err error) Code { return base.CodeOf(err) }

// AsError returns the first Error in err's chain. Any other error becomes one with
// CodeInternal and a fixed message.
func AsError(err error) *Error { return base.AsError(err) }

// FixIRI percent-encodes the characters that an IRI may not contain (RFC 3987, section 3.1).
// It leaves other faults, such as a missing scheme or an invalid port, for Term.ValidNew to
// refuse, and valid IRIs unchanged.
func FixIRI(s string) string { return base.FixIRI(s) }

// VersionedAccess is an Access whose decisions may be cached from one read to the next.
//
// Its decisions on Read depend on the principal's ID, Method and Roles only, and do not change
// while the version stays; those on koine's own graphs may change at any time and are not
// cached. To change a decision, first make Allowed return the new one, then increase the
// version, before the commit that caused the change becomes visible (OnSystemChange is such a
// moment).
type VersionedAccess = base.VersionedAccess

// VersionOf returns the version of an Access, for an Access that wraps it and keeps the same
// rules; nil if it has none.
func VersionOf(a Access) *atomic.Uint64 { return base.VersionOf(a) }

// LiteralFromJSON returns the literal for a JSON value. Numbers keep their kind and all
// digits: one without fraction and exponent is an xsd:integer, any other an xsd:double, unless
// datatype (an IRI, an "xsd:" name, or "") says otherwise. A datatype must fit the value. lang
// is for strings only.
func LiteralFromJSON(raw []byte, datatype string, lang string) (Term, error) {
	return base.LiteralFromJSON(raw, datatype, lang)
}

// Moment is a point in history: a revision, or, if Time is set, the newest revision committed
// by then.
type Moment = base.Moment

// ParseMoment parses a revision number or an RFC 3339 time.
func ParseMoment(text string) (Moment, error) { return base.ParseMoment(text) }

// Op is the operation of a patch or a change.
type Op = base.Op

// Pattern selects statements: a zero Term matches any. Graph may be DefaultGraph.
type Pattern = base.Pattern

// Prefixes are short names of IRI namespaces. Those of a store (Store.Prefixes) follow its
// log; others do not change. They are safe for concurrent use.
type Prefixes = base.Prefixes

// NewPrefixes returns the built-in prefixes with more, which override them. A prefix must be a
// name of letters, digits, "-", "_" and "." that is not a URI scheme in use, and its namespace
// an absolute IRI.
func NewPrefixes(more map[string]string) (*Prefixes, error) { return base.NewPrefixes(more) }

// IsScheme reports whether a name is a URI scheme that no prefix may have. A store may know
// more: see Store.KnowsScheme.
func IsScheme(name string) bool { return base.IsScheme(name) }

// BareNameError is the cause of the error for a name without a prefix in place of an IRI.
type BareNameError = base.BareNameError

// Prefix is a short name with its namespace IRI.
type Prefix = base.Prefix

// Principal is the authenticated caller.
type Principal = base.Principal

// SystemPrincipal returns the principal for reads and writes by koine itself. It never comes
// from outside.
func SystemPrincipal() Principal { return base.SystemPrincipal() }

// CommonRoles returns the roles of a principal limited by a further credential: those that
// both have. If either is confined, the result is.
func CommonRoles(p Principal, further Principal) []string { return base.CommonRoles(p, further) }

// CanonicalAgent returns the form in which an agent id is stored, compared and hashed: a bare
// id x and agent://x are the same agent.
func CanonicalAgent(id string) AgentID { return base.CanonicalAgent(id) }

// RestoreOptions configures Restore. The zero value works.
type RestoreOptions = archive.RestoreOptions

// Restore creates a data directory from a full backup and the incremental ones that continue
// it, in order. The directory must be empty or absent. It gets its own epoch and secret, which
// invalidates the positions, cursors and other tokens of the original store. The index is
// built on the first open. After an error Restore leaves the directory as it was.
//
// It fails with CodeInvalid if the directory is not empty or the backups do not continue each
// other, and as VerifyBackup does for an invalid backup.
func Restore(ctx context.Context, dir string, backups []io.Reader, o RestoreOptions) (info BackupInfo, err error) {
	return archive.Restore(ctx, dir, backups, o)
}

// Revision numbers the commits of a store: 1, 2, 3 … without gaps. 0 is the
// store before its first commit.
type Revision = base.Revision

// Epoch identifies a log. A data directory gets a new one when it is created, restored or
// erased from, so that positions and cursors of another log are recognised.
type Epoch = base.Epoch

// Position is a place in the log: behind the change with this index in the commit of this
// revision. Revision 0 with EndOfCommit is before the first commit. Clients see an opaque
// token: Store.FormatPosition and Store.ParsePosition.
type Position = base.Position

// AgentID names an agent in canonical form ("agent://x" for a bare id x; see CanonicalAgent).
type AgentID = base.AgentID

// Quad is the content of a statement: subject, predicate, object, and graph. The graph is
// DefaultGraph, an IRI or a blank node; a zero Graph in arguments means DefaultGraph.
type Quad = base.Quad

// Assertion is the claim of one source that a statement holds. A statement has at most one
// assertion of each source.
type Assertion = base.Assertion

// Embedding is a vector that belongs to an assertion.
type Embedding = base.Embedding

// ParseVector parses the numbers of an embedding from a JSON list.
func ParseVector(raw []byte) ([]float32, error) { return base.ParseVector(raw) }

// Statement is a quad with its visible assertions, at least one. The slice is read-only.
type Statement = base.Statement

// Kind is the kind of a Term.
type Kind = base.Kind

// Term is an IRI, a blank node, a literal, or the name of the default graph (RDF 1.1 Concepts,
// section 3). Terms are values: they compare with == and serve as map keys. Two literals are
// equal if lexical form, datatype and language tag are.
type Term = base.Term

// IRI returns the IRI term with this text, without validation: see ParseIRI.
func IRI(text string) Term { return base.IRI(text) }

// Blank returns the blank node with this label, without "_:". Labels are unique in a store: a
// reader of documents must give their blank nodes new labels.
func Blank(label string) Term { return base.Blank(label) }

// String returns a plain literal (xsd:string).
func String(text string) Term { return base.String(text) }

// LangString returns a literal with a language tag (BCP 47). Tags that differ only in case
// give one term.
func LangString(text string, lang string) Term { return base.LangString(text, lang) }

// Typed returns a literal with this lexical form and datatype IRI.
func Typed(lexical string, datatype string) Term { return base.Typed(lexical, datatype) }

// Integer returns an xsd:integer literal.
func Integer(n int64) Term { return base.Integer(n) }

// Boolean returns an xsd:boolean literal.
func Boolean(b bool) Term { return base.Boolean(b) }

// Double returns an xsd:double literal in the shortest form that parses to the same value.
func Double(f float64) Term { return base.Double(f) }

// DateTime returns an xsd:dateTime literal in UTC, with milliseconds if they are not zero.
func DateTime(t time.Time) Term { return base.DateTime(t) }

// TimeSpan is the time from From until before Until; a zero time leaves that end open.
type TimeSpan = base.TimeSpan

// View states the conditions of a read: the principal, the revision, and bounds on graphs and
// assertions. The zero View reads the newest revision as the anonymous caller.
type View = base.View

// IDRange is a range of ids in the order of the index.
type IDRange = base.IDRange

// Objects selects the objects of statements, for Sweep.SeekObjects.
type Objects = base.Objects

// ValueKind is a kind of literals of the dictionary.
type ValueKind = base.ValueKind

// The kinds of literals.
const (
	OtherValues  = base.OtherValues
	NumberValues = base.NumberValues
	MomentValues = base.MomentValues
)

// Rank places a number or a moment among all others of its kind: a lesser value never has a greater
// rank.
type Rank = base.Rank

// RankRange is the ranks from First to Last of a kind, both included.
type RankRange = base.RankRange

// ValueSet selects literals by their values.
type ValueSet = base.ValueSet

// The ranks of values; package base describes each.
var (
	RankOf       = base.RankOf
	RankOfNumber = base.RankOfNumber
	RankOfMoment = base.RankOfMoment
	AllRanks     = base.AllRanks
)

// MomentKind is the datatype of a date, a time or a dateTime, and whether it has a time zone.
type MomentKind = base.MomentKind

// The kinds of moments that have ids in the order of their values.
const (
	DateTimeKind  = base.DateTimeKind
	LocalDateKind = base.LocalDateKind
)

// Values of the literals of XML Schema; package base describes each.
var (
	ParseNumber     = base.ParseNumber
	ParseTemporal   = base.ParseTemporal
	CompareDecimals = base.CompareDecimals
	DecimalKey      = base.DecimalKey
	IsNumeric       = base.IsNumeric
	IsTemporal      = base.IsTemporal
	HasLongYear     = base.HasLongYear
)

// TermPrefix selects terms by the beginning of their text.
type TermPrefix = base.TermPrefix

// PrefixKind is a kind of terms that are selected by a prefix.
type PrefixKind = base.PrefixKind

// The kinds of terms that are selected by a prefix.
const (
	OfIRIs     = base.OfIRIs
	OfTexts    = base.OfTexts
	OfLiterals = base.OfLiterals
)

// Ranges of the ids of literals by their values; package base describes each.
var (
	ResourceIDs        = base.ResourceIDs
	NumberedLiteralIDs = base.NumberedLiteralIDs
	BooleanIDs         = base.BooleanIDs
	IntegerIDs         = base.IntegerIDs
	DoubleIDs          = base.DoubleIDs
	DateTimeIDs        = base.DateTimeIDs
	DateIDs            = base.DateIDs
	TextIDs            = base.TextIDs
	TextPrefixIDs      = base.TextPrefixIDs
	IntersectIDs       = base.IntersectIDs
	UniteIDs           = base.UniteIDs
	Unite              = base.Unite
)
