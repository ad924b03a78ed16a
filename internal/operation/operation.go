// Package operation defines the form in which a GraphQL operation passes between a
// protocol and the engine: package graph implements it, package a2a and others call it,
// and neither depends on the other.
package operation

import (
	"encoding/json"
	"iter"
	"time"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"koine/kg"
)

// Request is one operation to execute. Its document is Query, or the document with the
// DocumentID or the persistedQuery extension that the engine knows.
type Request struct {
	Query         string
	DocumentID    string
	OperationName string
	// Variables as decoded JSON; numbers are json.Number to keep all digits.
	Variables  map[string]any
	Extensions map[string]any

	Principal kg.Principal
	Actor     kg.AgentID // "" means the principal itself
	TaskID    string
	SessionID string
	// Method is the calling method, such as "knowledge/query", and Metadata the JSON
	// object of the request; the operator's rules read both.
	Method   string
	Metadata json.RawMessage

	// View is the view of the whole operation; a view argument in the query can only
	// narrow it. Its Principal is set from the one above.
	View kg.View

	// Budget limits the answer to a query, in addition to the limits in the document.
	Budget Budget

	// QueriesOnly refuses mutations, as HTTP GET requires.
	QueriesOnly bool
	// Resume is the start of a subscription, if the operation does not contain one.
	Resume Resume
}

// Result is the answer to a query or a mutation, or one event of a subscription.
type Result struct {
	// Kind is the kind of operation executed; "" if execution did not start.
	Kind ast.Operation
	// Data is GraphQL's `data`; nil if there is none.
	Data json.RawMessage
	// Shared reports that results for other streams may have the same Data, which must not
	// be changed.
	Shared bool
	Errors gqlerror.List
	// Cuts are the places at which a budget ended a list, up to MaxCuts.
	Cuts []Cut
	// Hints explain empty results, up to MaxHints.
	Hints []Hint

	// Position is the position after the revision read or written.
	Position       kg.Position
	StatementsRead int64
	// Scans counts index scans: one reads a whole level of the answer, however many
	// rows it has.
	Scans    int64
	Sources  []kg.AgentID // sources of the assertions read, up to 20
	Duration time.Duration
}

// Budget limits the size of an answer. A zero member is no limit.
type Budget struct {
	MaxBytes      int // of Result.Data
	MaxTokens     int // of Result.Data, counting one token for every three bytes
	MaxStatements int // read for the answer
}

// Cut is a place at which a budget ended a list early. Its JSON is the same in every
// protocol.
type Cut struct {
	Path   ast.Path  `json:"path"` // of the list's field
	Reason CutReason `json:"reason"`
	Cursor string    `json:"cursor"` // value of the field's argument `after` to continue
}

// CutReason is the part of a budget that was used up.
type CutReason string

// The reasons.
const (
	CutBytes      CutReason = "BYTES"
	CutTokens     CutReason = "TOKENS"
	CutStatements CutReason = "STATEMENTS"
)

// Hint explains a name in an operation that matches nothing, such as a predicate
// without visible statements, or a likely typing error in an update.
type Hint struct {
	Path    ast.Path `json:"path"` // of the field with the name, without indexes
	Message string   `json:"message"`
	Nearest []string `json:"nearest,omitempty"` // similar IRIs, in input form
}

// PartOf returns the path of a part of the patch at an index, as
// "3.statement.predicate".
func PartOf(index int, part string) ast.Path {
	return ast.Path{ast.PathIndex(index), ast.PathName("statement"), ast.PathName(part)}
}

// Under returns the hint with names put before its path.
func (h Hint) Under(names ...string) Hint {
	path := make(ast.Path, 0, len(names)+len(h.Path))
	for _, name := range names {
		path = append(path, ast.PathName(name))
	}
	h.Path = append(path, h.Path...)
	return h
}

// MaxHints limits the hints of a Result.
const MaxHints = 10

// MaxCuts limits the cuts of a Result.
const MaxCuts = 100

// Start is the start of a subscription.
type Start uint8

// The starts. The zero Start leaves it to the operation's own `resume` argument;
// without one the subscription delivers the future only.
const (
	DefaultStart Start = iota
	Latest
	Earliest
	Snapshot // present matches, then the changes after that revision
	After    // exclusive of Resume.After
)

// Resume is a Start with its position.
type Resume struct {
	Start Start
	After kg.Position
	// SetBy names the part of the request that sets the start; the operation must not
	// set another one then. It is "" for a reconnecting client: its position takes
	// precedence over its operation.
	SetBy string
}

// Event is one element of a subscription: the changes of a commit, an element of the
// snapshot, or UpToDate.
type Event struct {
	// Changes are the changes that caused the event, in log order, all of one commit
	// and at least one. In a snapshot it is the statement with Op Add and no Commit;
	// empty if the element is not a statement. Other streams may have the same slice: it must
	// not be changed.
	Changes []kg.Event
	// Statement is one of the statements of a snapshot event without Changes, or nil,
	// for protocols whose events need a statement.
	Statement *kg.Statement
	// Empty reports that the event of a snapshot shows no statement.
	Empty bool
	// Snapshot marks an event of the snapshot, SnapshotEnd the last of it. An empty
	// snapshot ends with an UpToDate event.
	Snapshot, SnapshotEnd bool
	// Revision and Taken are the revision and the time of the snapshot.
	Revision kg.Revision
	Taken    time.Time
	// UpToDate means that nothing more matches up to Position.
	UpToDate bool
	// Position is the position to resume from after this event; zero inside a snapshot.
	Position kg.Position
	// Result is the result of the operation for the event.
	Result Result
}

// Replaced returns the graph that was replaced as a whole; nil for another
// event. It is the only change of its event.
func (e *Event) Replaced() *kg.GraphReplacement {
	if len(e.Changes) != 1 {
		return nil
	}
	return e.Changes[0].Replaced
}

// Subscription is an established subscription: valid, authorised and registered. Use
// Events once, from one goroutine; it ends with an error when the stream cannot
// continue. Position is safe at any time: it is the position scanned to, and zero until
// the snapshot is delivered, because an interrupted snapshot can only be started again.
// Close releases it.
type Subscription interface {
	Events() iter.Seq2[Event, error]
	Position() kg.Position
	Close()
}

// InvalidError means that an operation does not parse or validate, or has the wrong
// kind. It was not executed.
type InvalidError struct{ Errors gqlerror.List }

func (e *InvalidError) Error() string { return e.Errors.Error() }
