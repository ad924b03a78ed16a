package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"time"
)

// Values of Subscription.From, besides positions.
const (
	Latest   = "latest"   // new changes only
	Earliest = "earliest" // begin with the oldest change in the log
	Snapshot = "snapshot" // begin with the current content, as additions
)

// Subscription selects the changes to subscribe to.
type Subscription struct {
	// Query is a GraphQL subscription: statementChanged, entityChanged, matchChanged
	// or another field that knowledge/subscribe supports.
	Query     string
	Operation string
	Variables map[string]any
	// From is Latest, Earliest, Snapshot, or the position of a change, a query or an
	// update to begin after. It overrides the arguments of the query. "" uses those
	// arguments (sinceSequence, resume), or Latest.
	From string
	// OnPosition, if set, is called with the value of From that resumes here: after each
	// change, when the loop asks for the next one, and occasionally without a change. A
	// program that stores it resumes without a gap after a restart. It must not block.
	OnPosition func(from string)
	// RereadGraph, if set, is called after an OpGraphReplaced. It reads the new content of
	// the graph, as of the revision of the change. The subscription then resumes after the
	// replacement, without OpResync and a full snapshot. An error of the server (*Error)
	// causes these anyway. Any other error ends the subscription.
	RereadGraph func(context.Context, *Change) error
	// RequiredCertainty, from 0 to 1, excludes assertions that are less certain.
	RequiredCertainty float64
	TaskID            string
	SessionID         string
}

// Op is the kind of a change.
type Op string

// The kinds of changes.
const (
	OpAdd     Op = "add"
	OpRemove  Op = "remove"
	OpReplace Op = "replace" // replaces another statement, or an earlier assertion of the same source
	// OpGraphReplaced reports that the content of Change.Graph was replaced as a whole.
	// There are no changes of its single statements. OpResync follows.
	OpGraphReplaced Op = "graphReplaced"
	// OpResync is made by the client: earlier changes may no longer describe the graph.
	// A complete snapshot follows, as with From: Snapshot.
	OpResync Op = "resync"
)

// Change is an event of a subscription.
type Change struct {
	Op Op `json:"op"`
	// Statement is the changed statement. In a snapshot of entityChanged or matchChanged
	// it is one of the statements that the event is derived from. It is empty for OpResync
	// and OpGraphReplaced.
	Statement Statement `json:"statement"`
	// Graph is the replaced graph of OpGraphReplaced. "" is the default graph.
	Graph    string         `json:"graph"`
	ID       string         `json:"changeId"` // stable across deliveries
	Time     time.Time      `json:"timestamp"`
	Metadata ChangeMetadata `json:"changeMetadata"`
	// Raw is the event as the server sent it.
	Raw json.RawMessage `json:"-"`
}

// ChangeMetadata describes the origin of a change.
type ChangeMetadata struct {
	// Position is the position after the change; "" within a snapshot.
	Position         string      `json:"position"`
	Revision         uint64      `json:"revision"`
	CommitID         string      `json:"commitId"`
	Actor            string      `json:"actor"`  // the author of the commit
	Source           string      `json:"source"` // the source of the assertion
	Justification    string      `json:"justification"`
	Previous         []Statement `json:"previous"` // the assertions that an OpReplace replaces
	StatementRemains bool        `json:"statementRemains"`
	Snapshot         bool        `json:"snapshot"`    // part of a snapshot
	SnapshotEnd      bool        `json:"snapshotEnd"` // the last event of a snapshot
	// Counts are set for OpGraphReplaced, unless part of the graph may be hidden from the
	// caller.
	Counts *ReplacedCounts `json:"counts"`
	// Data is the selection of the subscription. Errors are the failures of its fields.
	Data   json.RawMessage `json:"data"`
	Errors []GraphQLError  `json:"errors"`
}

// ReplacedCounts counts the statements of a replaced graph.
type ReplacedCounts struct {
	Before  uint64 `json:"statementsBefore"`
	After   uint64 `json:"statementsAfter"`
	Added   uint64 `json:"statementsAdded"` // including those with a changed assertion
	Removed uint64 `json:"statementsRemoved"`
}

// Subscribe returns the changes of the graph. It ends with an error, or when the caller
// stops or the context is done. It reconnects by itself and resumes after the last
// position, without gaps or duplicates.
//
// If the server cannot resume there, because retention removed the log, a graph was
// replaced as a whole, or the caller's access has changed, Subscribe returns an OpResync
// and then a snapshot. It does the same after a connection that was lost within a
// snapshot. If the position in From is no longer available, it fails with PositionGone.
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
			resumed, err := f.resumeAfterReplace(ctx, err)
			if resumed {
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

// subscriptionState is the state of a subscription across connections.
type subscriptionState struct {
	client       *Client
	subscription Subscription
	from         string
	yield        func(*Change, error) bool

	established bool // an event or a position has arrived
	snapshot    int  // the connection that is within a snapshot; 0 for none
	failed      int  // consecutive streams without an event

	connection   int     // the connection of the last event
	lastReplaced *Change // set while the last event of this connection is an OpGraphReplaced
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
			f.snapshot = 0 // a position alone ends an empty snapshot
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

// resumeAfterReplace calls RereadGraph if the stream ended because a graph was replaced, and
// resumes after the replacement. Otherwise it returns cause.
func (f *subscriptionState) resumeAfterReplace(ctx context.Context, cause error) (resumed bool, err error) {
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

// reportPosition calls OnPosition. Within a snapshot there is no position.
func (f *subscriptionState) reportPosition(from string) {
	if from != "" && f.subscription.OnPosition != nil {
		f.subscription.OnPosition(from)
	}
}

// restartsSnapshot reports whether the change restarts a snapshot that was interrupted by a
// lost connection.
func (f *subscriptionState) restartsSnapshot(change *Change, connection int) bool {
	restarted := f.snapshot != 0 && f.snapshot != connection
	f.snapshot = connection
	if m := &change.Metadata; !m.Snapshot || m.SnapshotEnd {
		f.snapshot = 0
	}
	return restarted
}

// requestParams returns the parameters of the request, and the position to resume after, or "".
// The position is sent as Last-Event-ID, which takes precedence over the arguments of the
// query.
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
		return nil, &Error{Message: "cannot decode the event: " + err.Error()}
	}
	return change, nil
}
