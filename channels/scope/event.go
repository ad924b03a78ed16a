package scope

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"sort"
	"strconv"
	"time"

	"koine/channels/internal/check"
	"koine/channels/internal/vocab"
	"koine/internal/systemgraph"
	"koine/kg"
)

// EventMessage is the event type of a published message.
const EventMessage = "channel_message"

// EventOverseen is the event type of the first read of an audited channel by an overseer, its
// actor.
const EventOverseen = "channel_overseen"

// Limits of the events of a scope.
const (
	MaxTypeRunes    = 128       // of Event.Type
	MaxTraceRunes   = 256       // of Event.TraceID
	MaxDataBytes    = 512 << 10 // of Event.Data: a copy of a message with all of its content fits
	MaxEvents       = 200       // per page
	MaxVerifyEvents = 10_000    // per call of VerifyEvents
)

// Event is an entry in the append-only event log of a scope. Each event carries
// the hash of the previous one.
type Event struct {
	Scope    ID
	Sequence int64 // 1, 2, 3 … in the scope
	Type     string
	Actor    kg.AgentID
	Time     time.Time
	// Data is a JSON object. For a message it has the channel, message id, sequence,
	// purpose, address, and content hash, and the correlation if everyone with access to the
	// scope may read the message. The hash includes a salt, so that the content cannot be
	// guessed from it: salt and content are in the copy.
	Data json.RawMessage
	// Copy is the content of the message that the event copies, nil if the reader may not
	// read it, if the message was retracted or erased, and for other events.
	Copy *Copy
	// TraceID names the trace that the event belongs to, ParentEvent the event of the scope
	// that it follows from, by its sequence; "" and 0 for none.
	TraceID     string
	ParentEvent int64
	// Previous is the hash of the previous event, "" for the first. Hash covers the
	// whole event.
	Previous, Hash string
}

// Copy is the audit copy of a message. It outlives the message: eviction, expiry, deletion
// of the channel and the end of the scope leave it. Its readers are those of the channel, for
// an addressed message its author and recipients, who still have access to the scope.
type Copy struct {
	Parts    []json.RawMessage
	Metadata json.RawMessage // a JSON object, or nil
	// Salt is the last element of the JSON array that contentHash is the hash of: parts, metadata
	// or null, salt. Copies that earlier builds kept in Event.Data have none.
	Salt string
	// TraceID is the text trace_id of the metadata, or "".
	TraceID string
}

// JSON returns an object with parts, metadata and salt, of which contentHash is the SHA-256 if
// it is written as an array. The parts and the metadata are as published.
func (c *Copy) JSON() json.RawMessage {
	var b bytes.Buffer
	b.WriteString(`{"parts":[`)
	for i, part := range c.Parts {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(part)
	}
	b.WriteString(`],"metadata":`)
	if c.Metadata == nil {
		b.WriteString("null")
	}
	b.Write(c.Metadata)
	b.WriteString(`,"salt":` + strconv.Quote(c.Salt) + `}`)
	return b.Bytes()
}

// Size returns the size of data and copy in bytes.
func (e *Event) Size() int {
	n := len(e.Data)
	if e.Copy != nil {
		n += len(e.Copy.Metadata)
		for _, part := range e.Copy.Parts {
			n += len(part)
		}
	}
	return n
}

// ComputeHash returns the hash of the event. Trace and parent are part of it only if the
// event has one of them: events without have the hash that they had before there were any.
func (e *Event) ComputeHash() string {
	content := []any{e.Scope, e.Sequence, e.Type, e.Actor, e.Time.UnixMilli(), string(e.Data), e.Previous}
	if e.TraceID != "" || e.ParentEvent != 0 {
		content = append(content, e.TraceID, e.ParentEvent)
	}
	raw, err := json.Marshal(content)
	if err != nil {
		panic(err) // cannot fail for strings and numbers
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// entityTerm returns the event as an entity of the graph.
func (e *Event) entityTerm() kg.Term {
	return kg.IRI(eventPrefix + string(e.Scope) + ":" + strconv.FormatInt(e.Sequence, 10))
}

// applyStatement adds one statement to the event.
func (e *Event) applyStatement(property, object kg.Term) {
	switch property {
	case kg.Sequence:
		e.Sequence = vocab.IntegerOf(object)
	case vocab.EventType:
		e.Type = object.Value()
	case vocab.EventActor:
		e.Actor = kg.AgentID(object.Value())
	case vocab.EventAt:
		e.Time, _ = object.DateTimeValue()
	case vocab.EventData:
		e.Data = json.RawMessage(object.Value())
	case vocab.EventPrevious:
		e.Previous = object.Value()
	case vocab.EventHash:
		e.Hash = object.Value()
	case vocab.EventTrace:
		e.TraceID = object.Value()
	case vocab.EventParent:
		e.ParentEvent = vocab.IntegerOf(object)
	}
}

// AppendTo appends the event to the log of its scope and sets its sequence, time and
// hashes. It returns the number of statements. An error is about the event: its type, which
// must not be EventMessage or EventOverseen, a trace or data beyond the limits, or a parent that the log does
// not have.
func (e *Event) AppendTo(tx *kg.Tx) (int, error) {
	if e.Type == EventMessage || e.Type == EventOverseen {
		return 0, kg.Errorf(kg.CodeInvalid, "event type %s is reserved for messages and overseers of audited channels", e.Type).At("type")
	}
	return e.AppendAudit(tx)
}

// AppendAudit is AppendTo for the event of a message or of an overseer.
func (e *Event) AppendAudit(tx *kg.Tx) (int, error) {
	if err := e.validate(); err != nil {
		return 0, err
	}
	graph := e.Scope.EventsGraph()
	last, err := tx.CountOwn(graph, kg.Sequence)
	if err != nil {
		return 0, err
	}
	if e.ParentEvent < 0 || e.ParentEvent > int64(last) {
		return 0, kg.Errorf(kg.CodeInvalid, "scope has no event %d", e.ParentEvent).At("parentEvent")
	}
	if last > 0 {
		before := Event{Scope: e.Scope, Sequence: int64(last)}
		st, _, err := systemgraph.First(tx.MatchOwn, kg.Pattern{Subject: before.entityTerm(), Predicate: vocab.EventHash, Graph: graph})
		if err != nil {
			return 0, err
		}
		e.Previous = st.Object.Value()
	}
	e.Sequence, e.Time = int64(last)+1, tx.Time()
	e.Hash = e.ComputeHash()
	list := []vocab.Statement{
		vocab.NewStatement(vocab.Type, vocab.ClassEvent),
		vocab.NewStatement(vocab.EventType, kg.String(e.Type)),
		vocab.NewStatement(vocab.EventActor, kg.IRI(string(e.Actor))),
		vocab.NewStatement(vocab.EventAt, kg.DateTime(e.Time)),
		vocab.NewStatement(vocab.EventData, vocab.JSON(e.Data)),
		vocab.NewStatement(vocab.EventHash, kg.String(e.Hash)),
		vocab.NewStatement(kg.Sequence, kg.Integer(e.Sequence)),
	}
	if e.Previous != "" {
		list = append(list, vocab.NewStatement(vocab.EventPrevious, kg.String(e.Previous)))
	}
	if e.TraceID != "" {
		list = append(list, vocab.NewStatement(vocab.EventTrace, kg.String(e.TraceID)))
	}
	if e.ParentEvent != 0 {
		list = append(list, vocab.NewStatement(vocab.EventParent, kg.Integer(e.ParentEvent)))
	}
	for i, st := range list {
		q := kg.Quad{Subject: e.entityTerm(), Predicate: st.Property, Object: st.Object, Graph: graph}
		if err := tx.ApplyOwn(kg.Patch{Op: kg.Add, Quad: q}); err != nil {
			return i, err
		}
	}
	return len(list), nil
}

// validate returns an error for an event that cannot be stored.
func (e *Event) validate() error {
	if e.Type == "" {
		return kg.Errorf(kg.CodeInvalid, "event type is required").At("type")
	}
	if err := check.Text("type", e.Type, MaxTypeRunes); err != nil {
		return err
	}
	if err := check.Text("traceId", e.TraceID, MaxTraceRunes); err != nil {
		return err
	}
	data, err := check.JSONObject("data", e.Data, MaxDataBytes)
	if err != nil {
		return err
	}
	if e.Data = data; data == nil {
		e.Data = json.RawMessage("{}")
	}
	return nil
}

func ReadEvents(snapshot *kg.Snapshot, scope ID, from int64, n int) (out []*Event, err error) {
	graph := scope.EventsGraph()
	for row, err := range snapshot.Numbered(graph, from) {
		if err != nil {
			return nil, err
		}
		subject, err := snapshot.Term(row.Subject)
		if err != nil {
			return nil, err
		}
		e := &Event{Scope: scope}
		for st, err := range snapshot.Match(kg.Pattern{Subject: subject, Graph: graph}) {
			if err != nil {
				return nil, err
			}
			e.applyStatement(st.Predicate, st.Object)
		}
		if out = append(out, e); len(out) == n {
			break
		}
	}
	return out, nil
}

// property returns the object of a property of the event, or the zero term.
func (e *Event) property(snapshot *kg.Snapshot, property kg.Term) (kg.Term, error) {
	st, _, err := systemgraph.First(snapshot.Match, kg.Pattern{Subject: e.entityTerm(), Predicate: property, Graph: e.Scope.EventsGraph()})
	return st.Object, err
}

// readEvent reads the event of a scope with this sequence. It returns nil if its type is none
// of the given types, unless there are none.
func readEvent(snapshot *kg.Snapshot, scope ID, sequence int64, types []string) (*Event, error) {
	e := &Event{Scope: scope, Sequence: sequence}
	if len(types) > 0 {
		if is, err := e.property(snapshot, vocab.EventType); err != nil || !slices.Contains(types, is.Value()) {
			return nil, err
		}
	}
	for st, err := range snapshot.Match(kg.Pattern{Subject: e.entityTerm(), Graph: scope.EventsGraph()}) {
		if err != nil {
			return nil, err
		}
		e.applyStatement(st.Predicate, st.Object)
	}
	return e, nil
}

// firstSince returns the sequence of the first event from first to last that is not before a
// time, last+1 if there is none. Commit times never decrease.
func firstSince(snapshot *kg.Snapshot, scope ID, first, last int64, since time.Time) (int64, error) {
	var failed error
	n := sort.Search(int(last-first+1), func(i int) bool {
		e := &Event{Scope: scope, Sequence: first + int64(i)}
		is, err := e.property(snapshot, vocab.EventAt)
		if err != nil {
			failed = err
		}
		at, _ := is.DateTimeValue()
		return !at.Before(since)
	})
	return first + int64(n), failed
}

// FindEvents returns up to n events that the query selects, and the sequence with which it
// continues, 0 at the end. It examines at most most events.
func FindEvents(snapshot *kg.Snapshot, scope ID, q EventQuery, n, most int) (page []*Event, next int64, err error) {
	count, err := snapshot.Count(kg.Pattern{Predicate: kg.Sequence, Graph: scope.EventsGraph()})
	if err != nil {
		return nil, 0, err
	}
	first, last := max(q.After, 0)+1, int64(count)
	if q.Before > 0 {
		last = min(last, q.Before-1)
	}
	if !q.Since.IsZero() && first <= last { // commit times do not decrease
		if first, err = firstSince(snapshot, scope, first, last, q.Since); err != nil {
			return nil, 0, err
		}
	}
	at, step := first, int64(1)
	if q.Descending {
		at, step = last, -1
	}
	for ; first <= at && at <= last; at += step {
		if len(page) == n || most == 0 {
			return page, at - step, nil
		}
		most--
		e, err := readEvent(snapshot, scope, at, q.Types)
		if err != nil {
			return nil, 0, err
		}
		if e != nil {
			page = append(page, e)
		}
	}
	return page, 0, nil
}

// EventCheck is the result of VerifyEvents.
type EventCheck struct {
	Verified int64  // events
	Head     string // hash of the last verified event, or of the one before the range if the range is empty
	// Next is the sequence at which to continue, 0 at the end of the log.
	Next int64
}
