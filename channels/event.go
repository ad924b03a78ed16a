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

// EventMessage is the type of the event that a message was published.
const EventMessage = "channel_message"

// Bounds of reading the events of a scope.
const (
	MaxEvents       = 200    // of one page
	MaxVerifyEvents = 10_000 // that one call verifies
)

// ScopeEvent is an entry in the log of a scope, which is only appended to: each
// carries the hash of the one before.
type ScopeEvent struct {
	Scope    ScopeID
	Sequence int64 // 1, 2, 3 … in the scope
	Type     string
	Actor    kg.AgentID
	Time     time.Time
	// Data is a JSON object. Of a message it says where it is, what it was for and to
	// whom, and the hash of its content. The content itself, and what it answers, is in
	// it only where everybody who has access to the scope may read the message; where
	// not, the hash cannot be guessed at: the salt in it is stored with the content.
	Data json.RawMessage
	// Previous is the hash of the event before, "" for the first; Hash that of this
	// one, over all of it.
	Previous, Hash string
}

// computeHash is what the event's hash has to be.
func (e *ScopeEvent) computeHash() string {
	raw, err := json.Marshal([]any{e.Scope, e.Sequence, e.Type, e.Actor, e.Time.UnixMilli(), string(e.Data), e.Previous})
	if err != nil {
		panic(err) // texts and numbers
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// entityTerm is the event as an entity of the graph.
func (e *ScopeEvent) entityTerm() kg.Term {
	return kg.IRI(eventPrefix + string(e.Scope) + ":" + strconv.FormatInt(e.Sequence, 10))
}

// applyStatement takes one statement about the event in.
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

// appendTo writes the event behind the last of its scope, and tells of how many
// statements it is.
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

// auditMessage copies a message to the events of the channel's scope, in the same commit,
// and tells of how many statements that was.
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

// newSalt is 128 random bits as a text.
func newSalt() string {
	var bits [16]byte
	rand.Read(bits[:])
	return hex.EncodeToString(bits[:])
}

// contentHash is the SHA-256 of a JSON array of the parts, the metadata and, unless
// it is "", the salt, without white space that means nothing.
func contentHash(m *Message, salt string) (string, error) {
	content := []any{m.Parts, json.RawMessage(m.Metadata)}
	if salt != "" {
		content = append(content, salt)
	}
	raw, err := plainjson.Encode(content)
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:]), err
}

// ScopeEvents reads the events of a scope from a number on, up to n of them, in
// order; n is clamped to 1…MaxEvents.
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

// EventCheck is what VerifyEvents found.
type EventCheck struct {
	Verified int64  // events
	Head     string // the hash of the last of them, or of the one before where there was none
	// Next is where to go on, 0 at the end of the log.
	Next int64
}

// VerifyEvents checks the events of a scope from a number on, MaxVerifyEvents at
// most: that no number is missing, and that each event has the hash that its content
// and the event before give.
//
// Errors: CodeLogDamaged, naming the first event that is not as it was written;
// CodeScopeNotFound.
func (s *Service) VerifyEvents(ctx context.Context, by Caller, scope ScopeID, from int64) (*EventCheck, error) {
	check := &EventCheck{}
	next := max(from, 1)
	if next > 1 {
		before, err := s.ScopeEvents(ctx, by, scope, next-1, 1)
		if err != nil {
			return nil, err
		}
		if len(before) == 0 || before[0].Sequence != next-1 {
			return nil, kg.Errorf(kg.CodeInvalid, "the scope has no event %d", next-1).At("from")
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
				return nil, kg.Errorf(kg.CodeLogDamaged, "event %d of the scope is not as it was written", next)
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
