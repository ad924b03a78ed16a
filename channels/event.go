package channels

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"time"

	"koine/internal/plainjson"
	"koine/kg"
)

// EventMessage is the event type of a published message.
const EventMessage = "channel_message"

// Limits of reading the events of a scope.
const (
	MaxEvents       = 200    // per page
	MaxVerifyEvents = 10_000 // per call of VerifyEvents
)

// ScopeEvent is an entry in the append-only event log of a scope. Each event carries
// the hash of the previous one.
type ScopeEvent struct {
	Scope    ScopeID
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

// computeHash returns the hash of the event.
func (e *ScopeEvent) computeHash() string {
	raw, err := json.Marshal([]any{e.Scope, e.Sequence, e.Type, e.Actor, e.Time.UnixMilli(), string(e.Data), e.Previous})
	if err != nil {
		panic(err) // cannot fail for strings and numbers
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// entityTerm returns the event as an entity of the graph.
func (e *ScopeEvent) entityTerm() kg.Term {
	return kg.IRI(eventPrefix + string(e.Scope) + ":" + strconv.FormatInt(e.Sequence, 10))
}

// applyStatement adds one statement to the event.
func (e *ScopeEvent) applyStatement(property, object kg.Term) {
	switch property {
	case kg.Sequence:
		e.Sequence = integerValue(object)
	case propEventType:
		e.Type = object.Value()
	case propEventActor:
		e.Actor = kg.AgentID(object.Value())
	case propEventAt:
		e.Time, _ = object.DateTimeValue()
	case propEventData:
		e.Data = json.RawMessage(object.Value())
	case propEventPrevious:
		e.Previous = object.Value()
	case propEventHash:
		e.Hash = object.Value()
	}
}

// appendTo appends the event to the log of its scope. It returns the number of
// statements.
func (e *ScopeEvent) appendTo(tx *kg.Tx) (int, error) {
	graph := e.Scope.EventsGraph()
	last, err := tx.CountOwn(graph, kg.Sequence)
	if err != nil {
		return 0, err
	}
	if last > 0 {
		before := ScopeEvent{Scope: e.Scope, Sequence: int64(last)}
		for st, err := range tx.MatchOwn(kg.Pattern{Subject: before.entityTerm(), Predicate: propEventHash, Graph: graph}) {
			if err != nil {
				return 0, err
			}
			e.Previous = st.Object.Value()
		}
	}
	e.Sequence, e.Time = int64(last)+1, tx.Time()
	e.Hash = e.computeHash()
	list := []statement{
		{rdfType, ClassEvent}, {propEventType, kg.String(e.Type)}, {propEventActor, kg.IRI(string(e.Actor))}, {propEventAt, kg.DateTime(e.Time)},
		{propEventData, jsonLiteral(e.Data)}, {propEventHash, kg.String(e.Hash)}, {kg.Sequence, kg.Integer(e.Sequence)},
	}
	if e.Previous != "" {
		list = append(list, statement{propEventPrevious, kg.String(e.Previous)})
	}
	for i, st := range list {
		q := kg.Quad{Subject: e.entityTerm(), Predicate: st.property, Object: st.object, Graph: graph}
		if err := tx.ApplyOwn(kg.Patch{Op: kg.Add, Quad: q}); err != nil {
			return i, err
		}
	}
	return len(list), nil
}

// auditMessage copies a message to the event log of the channel's scope, in the same
// commit. It returns the number of statements.
func (e *entry) auditMessage(tx *kg.Tx, m *Message, made *string) (n int, err error) {
	if !e.Audit || e.Scope == "" {
		return 0, nil
	}
	open := e.MemberPolicy == ByScope && e.policy.Read == Everybody && !m.Private
	salt := ""
	if !open {
		if *made == "" {
			*made = newSalt()
		}
		salt = *made
		n++
		if err := tx.ApplyOwn(kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: m.ID.Entity(), Predicate: propSalt, Object: kg.String(salt), Graph: m.contentGraph()}}); err != nil {
			return n, err
		}
	}
	content, err := contentHash(m, salt)
	if err != nil {
		return n, err
	}
	data := struct {
		Channel     ChannelID         `json:"channelId"`
		Name        string            `json:"channelName"`
		Message     MessageID         `json:"messageId"`
		Sequence    int64             `json:"sequence"`
		Interaction Interaction       `json:"messageType,omitempty"`
		To          string            `json:"to,omitempty"`
		Correlation MessageID         `json:"correlationId,omitempty"`
		Retracts    MessageID         `json:"retracts,omitempty"`
		Content     string            `json:"contentHash"`
		Parts       []json.RawMessage `json:"parts,omitempty"`
		Metadata    json.RawMessage   `json:"metadata,omitempty"`
	}{
		Channel: e.ID, Name: e.Name, Message: m.ID, Sequence: m.Sequence, Interaction: m.Interaction, To: m.To, Retracts: m.Retracts, Content: content,
	}
	if open {
		data.Correlation, data.Parts, data.Metadata = m.Correlation, m.Parts, m.Metadata
	}
	raw, err := plainjson.Encode(data)
	if err != nil {
		return n, err
	}
	event := ScopeEvent{Scope: e.Scope, Type: EventMessage, Actor: m.Author, Data: raw}
	appended, err := event.appendTo(tx)
	return n + appended, err
}

// newSalt returns 128 random bits in hexadecimal.
func newSalt() string {
	var bits [16]byte
	rand.Read(bits[:])
	return hex.EncodeToString(bits[:])
}

// contentHash returns the SHA-256 of a compact JSON array of the parts, the metadata,
// and the salt unless it is "".
func contentHash(m *Message, salt string) (string, error) {
	content := []any{m.Parts, json.RawMessage(m.Metadata)}
	if salt != "" {
		content = append(content, salt)
	}
	raw, err := plainjson.Encode(content)
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:]), err
}

// ScopeEvents reads up to n events of a scope in order, starting with sequence from; n
// is clamped to 1…MaxEvents.
//
// Errors: CodeScopeNotFound.
func (s *Service) ScopeEvents(ctx context.Context, by Caller, scope ScopeID, from int64, n int) ([]*ScopeEvent, error) {
	agent, _, err := s.accessibleScope(by, scope)
	if err != nil {
		return nil, err
	}
	snapshot, err := s.store.View(ctx, kg.View{Principal: by.readerPrincipal(agent), AllGraphs: true})
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	return readEvents(snapshot, scope, from, min(max(n, 1), MaxEvents))
}

func readEvents(snapshot *kg.Snapshot, scope ScopeID, from int64, n int) (out []*ScopeEvent, err error) {
	graph := scope.EventsGraph()
	for row, err := range snapshot.Numbered(graph, from) {
		if err != nil {
			return nil, err
		}
		subject, err := snapshot.Term(row.Subject)
		if err != nil {
			return nil, err
		}
		e := &ScopeEvent{Scope: scope}
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

// VerifyEvents verifies up to MaxVerifyEvents events of a scope, starting with sequence
// from: that the sequences have no gap, and that each hash matches the event and its
// predecessor.
//
// Errors: CodeLogDamaged, which names the first damaged event; CodeScopeNotFound.
func (s *Service) VerifyEvents(ctx context.Context, by Caller, scope ScopeID, from int64) (*EventCheck, error) {
	check := &EventCheck{}
	next := max(from, 1)
	if next > 1 {
		before, err := s.ScopeEvents(ctx, by, scope, next-1, 1)
		if err != nil {
			return nil, err
		}
		if len(before) == 0 || before[0].Sequence != next-1 {
			return nil, kg.Errorf(kg.CodeInvalid, "scope has no event %d", next-1).At("from")
		}
		check.Head = before[0].Hash
	}
	for check.Verified < MaxVerifyEvents {
		page, err := s.ScopeEvents(ctx, by, scope, next, MaxEvents)
		if err != nil {
			return nil, err
		}
		for _, e := range page {
			if e.Sequence != next || e.Previous != check.Head || e.Hash != e.computeHash() {
				return nil, kg.Errorf(kg.CodeLogDamaged, "event %d of the scope does not match its hash", next)
			}
			check.Head = e.Hash
			check.Verified++
			next++
		}
		if len(page) < MaxEvents {
			return check, nil
		}
	}
	check.Next = next
	return check, nil
}
