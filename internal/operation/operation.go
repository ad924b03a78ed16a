// Package operation is the form in which a GraphQL operation passes between a
// protocol adapter and the engine: package graph implements it, package a2a and
// others ask for it, and neither knows the other.
package operation

import (
	"encoding/json"
	"iter"
	"time"

	"github.com/vektah/gqlparser/v2/gqlerror"

	"koine/kg"
)

// Request is one operation to execute.
type Request struct {
	Query         string
	OperationName string
	// Variables as decoded JSON; numbers are json.Number, so that none loses
	// digits.
	Variables  map[string]any
	Extensions map[string]any

	Principal kg.Principal
	Actor     kg.AgentID // "" means the principal itself
	TaskID    string
	SessionID string

	// View is that of the whole operation; an explicit view argument in the
	// query can only narrow it. Its Principal is set from the one above.
	View kg.View

	// QueriesOnly refuses mutations, as HTTP GET must.
	QueriesOnly bool
	// Resume says where a subscription starts, when it is not said in the
	// operation itself.
	Resume Resume
}

// Result is the answer to a query or a mutation, or one event of a
// subscription.
type Result struct {
	// Data is the content of GraphQL's `data`; nil when nothing could be given.
	Data   json.RawMessage
	Errors gqlerror.List

	// Position behind the revision that was read, or that a mutation made.
	Position       kg.Position
	StatementsRead int64
	Sources        []kg.AgentID // whose assertions were read, up to 20
	Duration       time.Duration
}

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
}

// Event is one element of a subscription. Exactly one of these holds: Change is
// set (something changed, or stood in the snapshot), or UpToDate.
type Event struct {
	// Change that caused the event. For an element of a snapshot it has Op Add
	// and no Commit.
	Change *kg.Event
	// Snapshot tells that the event is of the snapshot, SnapshotEnd that it is
	// the last of it. An empty snapshot ends with an UpToDate event.
	Snapshot, SnapshotEnd bool
	// UpToDate tells that nothing more matches up to Position.
	UpToDate bool
	// Position to resume from behind this event; zero inside a snapshot.
	Position kg.Position
	// Result is what the operation selected.
	Result Result
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
