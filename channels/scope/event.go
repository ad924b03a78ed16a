package scope

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"time"

	"koine/channels/internal/vocab"
	"koine/internal/systemgraph"
	"koine/kg"
)

// EventMessage is the event type of a published message.
const EventMessage = "channel_message"

// Limits of reading the events of a scope.
const (
	MaxEvents       = 200    // per page
	MaxVerifyEvents = 10_000 // per call of VerifyEvents
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
	// purpose, address, and content hash. It has the content and the correlation only
	// if everyone with access to the scope may read the message. Otherwise the hash
	// includes a salt, which is stored with the content, so that the content cannot be
	// guessed from it.
	Data json.RawMessage
	// Previous is the hash of the previous event, "" for the first. Hash covers the
	// whole event.
	Previous, Hash string
}

// ComputeHash returns the hash of the event.
func (e *Event) ComputeHash() string {
	raw, err := json.Marshal([]any{e.Scope, e.Sequence, e.Type, e.Actor, e.Time.UnixMilli(), string(e.Data), e.Previous})
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
	}
}

// AppendTo appends the event to the log of its scope. It returns the number of
// statements.
func (e *Event) AppendTo(tx *kg.Tx) (int, error) {
	graph := e.Scope.EventsGraph()
	last, err := tx.CountOwn(graph, kg.Sequence)
	if err != nil {
		return 0, err
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
	for i, st := range list {
		q := kg.Quad{Subject: e.entityTerm(), Predicate: st.Property, Object: st.Object, Graph: graph}
		if err := tx.ApplyOwn(kg.Patch{Op: kg.Add, Quad: q}); err != nil {
			return i, err
		}
	}
	return len(list), nil
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

// EventCheck is the result of VerifyEvents.
type EventCheck struct {
	Verified int64  // events
	Head     string // hash of the last verified event, or of the one before the range if the range is empty
	// Next is the sequence at which to continue, 0 at the end of the log.
	Next int64
}
