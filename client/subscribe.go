package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"time"
)

// Where a subscription begins, beside a position.
const (
	Latest   = "latest"   // with what comes
	Earliest = "earliest" // with the oldest change that there still is
	Snapshot = "snapshot" // with what there is, as additions; then what comes
)

// Subscription says what to follow.
type Subscription struct {
	// Query is a GraphQL subscription: statementChanged, entityChanged, matchChanged
	// or another that knowledge/subscribe takes.
	Query     string
	Operation string
	Variables map[string]any
	// From is Latest, Earliest, Snapshot, or the position of a change, a query or
	// an update: it begins behind that, whatever the query says. "" is where the query
	// itself says that it begins (sinceSequence, resume), or else Latest.
	From string
	// OnPosition, if set, is told what From would be to go on here: behind each change, when
	// the loop comes back for the next one, and now and then while nothing changes.
	// Whoever keeps it goes on after a restart without a gap. It must not block.
	OnPosition func(from string)
	// RereadGraph, if set, reads again what stands in a graph that was replaced as a whole, as
	// of the revision of the change, which is an OpGraphReplaced. The subscription then goes on
	// behind the replacement, without OpResync and a snapshot of everything; these follow all
	// the same where the error is one of the server (*Error). Any other ends the subscription.
	RereadGraph func(context.Context, *Change) error
	// RequiredCertainty, 0 to 1, leaves out what is less certain.
	RequiredCertainty float64
	TaskID            string
	SessionID         string
}

// Op is what happened to a statement.
type Op string

// What changes are.
const (
	OpAdd     Op = "add"
	OpRemove  Op = "remove"
	OpReplace Op = "replace" // of another, or of what its source said of it before
	// OpGraphReplaced tells that the content of Change.Graph was exchanged as a whole,
	// without a word of single statements. OpResync comes behind it.
	OpGraphReplaced Op = "graphReplaced"
	// OpResync comes of the client: what was told so far may not hold any more. A
	// snapshot follows, from its beginning, as with From: Snapshot.
	OpResync Op = "resync"
)

// Change is something that happened in the graph.
type Change struct {
	Op Op `json:"op"`
	// Statement is what it is about; of a snapshot of entityChanged or matchChanged, one of
	// the statements behind the event. It is empty for OpResync and OpGraphReplaced.
	Statement Statement `json:"statement"`
	// Graph, of OpGraphReplaced, is which; "" is the default graph.
	Graph    string         `json:"graph"`
	ID       string         `json:"changeId"` // the same whenever it is told again
	Time     time.Time      `json:"timestamp"`
	Metadata ChangeMetadata `json:"changeMetadata"`
	// Raw is all that the server sent.
	Raw json.RawMessage `json:"-"`
}

// ChangeMetadata says whence a change is.
type ChangeMetadata struct {
	// Position is where one goes on behind it; "" within a snapshot.
	Position         string      `json:"position"`
	Revision         uint64      `json:"revision"`
	CommitID         string      `json:"commitId"`
	Actor            string      `json:"actor"`  // who made it
	Source           string      `json:"source"` // whose assertion it is, or was
	Justification    string      `json:"justification"`
	Previous         []Statement `json:"previous"` // what an OpReplace is in place of
	StatementRemains bool        `json:"statementRemains"`
	Snapshot         bool        `json:"snapshot"`    // it stands already
	SnapshotEnd      bool        `json:"snapshotEnd"` // the last of these
	// Counts are those of OpGraphReplaced; nil where some of the graph may be hidden.
	Counts *ReplacedCounts `json:"counts"`
	// Data is what the subscription selected, Errors what of it could not be given.
	Data   json.RawMessage `json:"data"`
	Errors []GraphQLError  `json:"errors"`
}

// ReplacedCounts are of the statements of a graph that was replaced.
type ReplacedCounts struct {
	Before  uint64 `json:"statementsBefore"`
	After   uint64 `json:"statementsAfter"`
	Added   uint64 `json:"statementsAdded"` // or got another assertion
	Removed uint64 `json:"statementsRemoved"`
}

// Subscribe follows the graph until the caller stops, the context ends, or there is
// an error, which is the last thing told. It connects again by itself, and goes on
// behind the last position: nothing is left out or told twice.
//
// Where the server cannot go on from there (the log behind it is gone, a graph was
// replaced as a whole, or what the caller may see has changed) it tells OpResync and a snapshot. That a snapshot was
// cut short by a lost connection is told in the same way. A position in From that
// the server no longer has is an error, PositionGone.
func (c *Client) Subscribe(ctx context.Context, s Subscription) iter.Seq2[*Change, error] {
	return func(yield func(*Change, error) bool) {
		if err := c.requireGraphQL(); err != nil {
			yield(nil, err)
			return
		}
		f := &subscriptionState{client: c, subscription: s, from: s.From, yield: yield}
		for {
			err := f.readStream(ctx)
			if err == nil {
				return
			}
			if !errors.Is(err, resync) && !(f.established && errors.Is(err, PositionGone)) {
				yield(nil, err)
				return
			}
			goesOn, err := f.resumeAfterReplace(ctx, err)
			if goesOn {
				continue
			}
			if !errors.Is(err, resync) && !errors.Is(err, PositionGone) {
				yield(nil, err)
				return
			}
			f.failed++
			if f.failed == c.retry.Attempts {
				yield(nil, err)
				return
			}
			if err := c.retry.waitBackoff(ctx, err, f.failed); err != nil {
				yield(nil, err)
				return
			}
			f.from = Snapshot
			f.reportPosition(f.from)
			if !yield(&Change{Op: OpResync}, nil) {
				return
			}
			f.snapshot = 0
		}
	}
}

// subscriptionState is the state of a subscription across streams.
type subscriptionState struct {
	client       *Client
	subscription Subscription
	from         string
	yield        func(*Change, error) bool

	established bool // something was told, or a position: it is established
	snapshot    int  // the connection that tells a snapshot which has not ended; 0 for none
	failed      int  // streams in a row that told nothing new

	connection   int     // that told the last event, or its end
	lastReplaced *Change // an OpGraphReplaced that this connection told last; nil for none
}

// readStream reads one stream. It returns nil when the caller stops.
func (f *subscriptionState) readStream(ctx context.Context) error {
	params, behind := f.requestParams()
	for e, err := range f.client.streamRPC(ctx, "knowledge/subscribe", params, behind, f.established) {
		if e.connection != f.connection {
			f.connection, f.lastReplaced = e.connection, nil
		}
		if err != nil {
			return err
		}
		f.established = true
		if e.result == nil {
			f.snapshot = 0 // a position ends a snapshot of nothing
			f.reportPosition(e.position)
			continue
		}
		change, err := readChange(e.result)
		if err != nil {
			return err
		}
		if f.restartsSnapshot(change, e.connection) && !f.yield(&Change{Op: OpResync}, nil) {
			return nil
		}
		f.failed = 0
		if !f.yield(change, nil) {
			return nil
		}
		if f.lastReplaced = nil; change.Op == OpGraphReplaced {
			f.lastReplaced = change
		}
		f.reportPosition(change.Metadata.Position)
	}
	return nil
}

// resumeAfterReplace has the caller read a graph again that was replaced, and goes on behind
// that, where this is why the stream ended. Else it returns the error that stands.
func (f *subscriptionState) resumeAfterReplace(ctx context.Context, cause error) (goesOn bool, err error) {
	replaced := f.lastReplaced
	f.lastReplaced, f.connection = nil, 0
	var end *Error
	if replaced == nil || f.subscription.RereadGraph == nil || !errors.Is(cause, resync) || !errors.As(cause, &end) || end.OldestPosition == "" {
		return false, cause
	}
	err = f.subscription.RereadGraph(ctx, replaced)
	switch {
	case err == nil:
		f.from = end.OldestPosition
		f.reportPosition(f.from)
		return true, nil
	case ctx.Err() == nil && errors.As(err, new(*Error)):
		return false, cause
	}
	return false, err
}

// reportPosition tells where it is. Within a snapshot that is nowhere.
func (f *subscriptionState) reportPosition(from string) {
	if from != "" && f.subscription.OnPosition != nil {
		f.subscription.OnPosition(from)
	}
}

// restartsSnapshot tells whether the change begins a snapshot anew that a lost connection
// cut short.
func (f *subscriptionState) restartsSnapshot(change *Change, connection int) bool {
	cut := f.snapshot != 0 && f.snapshot != connection
	f.snapshot = connection
	if m := &change.Metadata; !m.Snapshot || m.SnapshotEnd {
		f.snapshot = 0
	}
	return cut
}

// requestParams are those of the request, which goes on behind a position, if that is not "". Who
// has one comes back: it is newer than a start that the query says, and no second one.
func (f *subscriptionState) requestParams() (p map[string]any, behind string) {
	s := &f.subscription
	p = map[string]any{"subscriptionQuery": s.Query}
	setNonZero(p, "operationName", s.Operation)
	setNonZero(p, "taskId", s.TaskID)
	setNonZero(p, "sessionId", s.SessionID)
	setNonZero(p, "requiredCertainty", s.RequiredCertainty)
	if len(s.Variables) > 0 {
		p["variables"] = s.Variables
	}
	switch f.from {
	case "":
	case Latest, Earliest, Snapshot:
		setControls(p, map[string]any{"resume": f.from})
	default:
		behind = f.from
	}
	return p, behind
}

func readChange(result json.RawMessage) (*Change, error) {
	change := &Change{Raw: result}
	numbers := json.NewDecoder(bytes.NewReader(result))
	numbers.UseNumber()
	if err := numbers.Decode(change); err != nil {
		return nil, &Error{Message: "the server's event is not understood: " + err.Error()}
	}
	return change, nil
}
