// Package operation is the form in which a GraphQL operation passes between a
// protocol adapter and the engine: package graph implements it, package a2a and
// others ask for it, and neither knows the other.
package operation

import (
	"encoding/json"
	"iter"
	"time"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"koine/kg"
)

// Request is one operation to execute. Its document is Query, or that of a
// DocumentID or of the extension persistedQuery that the engine knows.
type Request struct {
	Query         string
	DocumentID    string
	OperationName string
	// Variables as decoded JSON; numbers are json.Number, so that none loses
	// digits.
	Variables  map[string]any
	Extensions map[string]any

	Principal kg.Principal
	Actor     kg.AgentID // "" means the principal itself
	TaskID    string
	SessionID string
	// Method is how the operation came, such as "knowledge/query", and Metadata the
	// JSON object that came with it; the operator's rules look at them.
	Method   string
	Metadata json.RawMessage

	// View is that of the whole operation; an explicit view argument in the
	// query can only narrow it. Its Principal is set from the one above.
	View kg.View

	// Budget bounds the answer to a query, beside what the document says.
	Budget Budget

	// QueriesOnly refuses mutations, as HTTP GET must.
	QueriesOnly bool
	// Resume says where a subscription starts, when it is not said in the
	// operation itself.
	Resume Resume
}

// Result is the answer to a query or a mutation, or one event of a
// subscription.
type Result struct {
	// Kind is what was executed; "" where it did not come to that.
	Kind ast.Operation
	// Data is the content of GraphQL's `data`; nil when nothing could be given.
	Data   json.RawMessage
	Errors gqlerror.List
	// Cuts are the places at which a budget ended a list, up to MaxCuts.
	Cuts []Cut
	// Hints are for who wonders why there is nothing, up to MaxHints.
	Hints []Hint

	// Position behind the revision that was read, or that a mutation made.
	Position       kg.Position
	StatementsRead int64
	// Scans counts the walks over the index: one reads a whole level of the
	// answer, however many rows it has.
	Scans    int64
	Sources  []kg.AgentID // whose assertions were read, up to 20
	Duration time.Duration
}

// Budget is how much of an answer is wanted at the most. A zero member bounds
// nothing.
type Budget struct {
	MaxBytes      int // of Result.Data
	MaxTokens     int // the same, as one token for every three bytes
	MaxStatements int // read for it
}

// Cut is a place at which a budget ended a list early. As JSON it looks the
// same in every protocol.
type Cut struct {
	Path   ast.Path  `json:"path"` // of the list's field
	Reason CutReason `json:"reason"`
	Cursor string    `json:"cursor"` // to go on from, for the field's argument `after`
}

// CutReason says which part of a budget was used up.
type CutReason string

// The reasons.
const (
	CutBytes      CutReason = "BYTES"
	CutTokens     CutReason = "TOKENS"
	CutStatements CutReason = "STATEMENTS"
)

// Hint is about something that an operation names and that finds nothing, such
// as a predicate that does not occur in what the caller may see; or about something that
// an update writes and that looks like a slip.
type Hint struct {
	Path    ast.Path `json:"path"` // of the field that names it, without indexes
	Message string   `json:"message"`
	Nearest []string `json:"nearest,omitempty"` // IRIs, as they may be written, that may have been meant
}

// PartOf is the path of a part of the patch at an index, as "3.statement.predicate".
func PartOf(index int, part string) ast.Path {
	return ast.Path{ast.PathIndex(index), ast.PathName("statement"), ast.PathName(part)}
}

// Under puts names before a hint's path.
func (h Hint) Under(names ...string) Hint {
	path := make(ast.Path, 0, len(names)+len(h.Path))
	for _, name := range names {
		path = append(path, ast.PathName(name))
	}
	h.Path = append(path, h.Path...)
	return h
}

// MaxHints bounds what a Result lists.
const MaxHints = 10

// MaxCuts bounds the places that a Result lists.
const MaxCuts = 100

// Start is where a subscription starts.
type Start uint8

// The starts. The zero Start leaves it to the operation's own `resume`
// argument, and without one shows the future only.
const (
	Unsaid Start = iota
	Latest
	Earliest
	Snapshot // what matches now, then what changes after that revision
	After    // exclusive of Resume.After
)

// Resume is a Start with its position.
type Resume struct {
	Start Start
	After kg.Position
	// Said names what of the request says so, where the operation may not say another
	// start then. "" of a client that comes back: what it says is newer than its operation.
	Said string
}

// Event is one element of a subscription: what a commit changed, something that
// stood in the snapshot, or UpToDate.
type Event struct {
	// Changes that caused the event, in the order of the log: of one commit, and
	// at least one. In a snapshot it is the statement that stands, with Op Add and
	// no Commit; none where what stands is no statement.
	Changes []kg.Event
	// Standing is one of the statements behind an event of a snapshot that has no
	// Changes, or nil. Protocols whose events are about statements need it.
	Standing *kg.Statement
	// Nothing tells that the event of a snapshot shows no statement.
	Nothing bool
	// Snapshot tells that the event is of the snapshot, SnapshotEnd that it is
	// the last of it. An empty snapshot ends with an UpToDate event.
	Snapshot, SnapshotEnd bool
	// Revision and Taken, in a snapshot, are which it shows and when it was taken.
	Revision kg.Revision
	Taken    time.Time
	// UpToDate tells that nothing more matches up to Position.
	UpToDate bool
	// Position to resume from behind this event; zero inside a snapshot.
	Position kg.Position
	// Result is what the operation selected.
	Result Result
}

// Replaced tells of the graph whose content was exchanged as a whole, nil where the event
// is another: it is its only change then.
func (e *Event) Replaced() *kg.GraphReplacement {
	if len(e.Changes) != 1 {
		return nil
	}
	return e.Changes[0].Replaced
}

// Subscription is an established one: valid, authorised and registered. Events
// is used once, from one goroutine, and ends with an error when the stream
// cannot go on. Position may be called at any time and gives the position
// scanned to, and the zero Position until the snapshot is out: one that is cut
// short can only be begun again. Close frees it.
type Subscription interface {
	Events() iter.Seq2[Event, error]
	Position() kg.Position
	Close()
}

// InvalidError says that an operation does not parse, validate, or is of the
// wrong kind: it was not executed.
type InvalidError struct{ Errors gqlerror.List }

func (e *InvalidError) Error() string { return e.Errors.Error() }
