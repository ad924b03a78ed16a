package channels

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"koine/channels/channel"
	"koine/channels/internal/access"
	"koine/channels/message"
	"koine/channels/scope"
	"koine/internal/plainjson"
	"koine/kg"
)

// auditMessage appends an event about a message to the event log of the channel's scope, and
// writes the audit copy of its content, in the same commit. The salt of the hash is made if it
// is "". It returns the number of statements.
func auditMessage(tx *kg.Tx, e *access.Entry, m *message.Message, made *string) (n int, err error) {
	if !e.Audit || e.Scope == "" {
		return 0, nil
	}
	if *made == "" {
		*made = newSalt()
	}
	if n, err = m.WriteCopy(tx, *made); err != nil {
		return n, err
	}
	content, err := contentHash(m, *made)
	if err != nil {
		return n, err
	}
	data := struct {
		Channel     channel.ID          `json:"channelId"`
		Name        string              `json:"channelName"`
		Message     message.ID          `json:"messageId"`
		Sequence    int64               `json:"sequence"`
		Interaction message.Interaction `json:"messageType,omitempty"`
		To          string              `json:"to,omitempty"`
		Correlation message.ID          `json:"correlationId,omitempty"`
		Retracts    message.ID          `json:"retracts,omitempty"`
		Content     string              `json:"contentHash"`
	}{
		Channel: e.ID, Name: e.Name, Message: m.ID, Sequence: m.Sequence, Interaction: m.Interaction, To: m.To, Retracts: m.Retracts, Content: content,
	}
	if e.MemberPolicy == channel.ByScope && e.GrantsReadToAll() && !m.Private {
		data.Correlation = m.Correlation // everybody with access to the scope may read the message
	}
	raw, err := plainjson.Encode(data)
	if err != nil {
		return n, err
	}
	event := scope.Event{Scope: e.Scope, Type: scope.EventMessage, Actor: m.Author, Data: raw}
	appended, err := event.AppendAudit(tx)
	return n + appended, err
}

// newSalt returns 128 random bits in hexadecimal.
func newSalt() string {
	var bits [16]byte
	rand.Read(bits[:])
	return hex.EncodeToString(bits[:])
}

// contentHash returns the SHA-256 of a compact JSON array of the parts, the metadata, and the
// salt.
func contentHash(m *message.Message, salt string) (string, error) {
	raw, err := plainjson.Encode([]any{m.Parts, json.RawMessage(m.Metadata), salt})
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:]), err
}

// Events reads up to n events of a scope in order, starting with sequence from; n
// is clamped to 1…MaxEvents.
//
// Errors: CodeScopeNotFound.
func (s *Scopes) Events(ctx context.Context, by Caller, id scope.ID, from int64, n int) ([]*scope.Event, error) {
	agent, _, err := s.table.RequireScope(by, id)
	if err != nil {
		return nil, err
	}
	snapshot, err := s.store.View(ctx, kg.View{Principal: by.ReaderPrincipal(agent), AllGraphs: true})
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	return scope.ReadEvents(snapshot, id, from, min(max(n, 1), scope.MaxEvents))
}

// EventCopy returns the audit copy of the message that an event copies, nil for other events
// and if the caller may not read it, or it was retracted or erased.
//
// Errors: CodeScopeNotFound.
func (s *Scopes) EventCopy(ctx context.Context, by Caller, e *scope.Event) (*scope.Copy, error) {
	agent, _, err := s.table.RequireScope(by, e.Scope)
	if err != nil {
		return nil, err
	}
	reader := by.ReaderPrincipal(agent)
	snapshot, err := s.store.View(ctx, kg.View{Principal: reader, AllGraphs: true})
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	return s.readCopy(snapshot, reader, e)
}

// readCopy returns the audit copy of an event, nil if there is none that the reader may read.
func (s *Scopes) readCopy(snapshot *kg.Snapshot, reader kg.Principal, e *scope.Event) (*scope.Copy, error) {
	if e.Type != scope.EventMessage {
		return nil, nil
	}
	var data struct {
		Message  message.ID        `json:"messageId"`
		Parts    []json.RawMessage `json:"parts"` // of events that an earlier build wrote, for all with access
		Metadata json.RawMessage   `json:"metadata"`
	}
	if json.Unmarshal(e.Data, &data) != nil || data.Message == "" {
		return nil, nil
	}
	if data.Parts != nil {
		return message.NewCopy(data.Parts, data.Metadata, ""), nil
	}
	return message.ReadCopy(snapshot.Match, data.Message, func(graph kg.Term) bool { return s.table.MayReadCopy(reader, graph) })
}

// MaxScannedEvents bounds the events that ListEvents examines for one page.
const MaxScannedEvents = 5000

// ListEvents returns a page of the events of a scope that a query selects. next is the
// sequence with which the query continues (scope.EventQuery), 0 after the last page. Other
// pages may be short or empty; a page ends earlier if its content exceeds
// message.MaxPageBytes. Events that copy a message have the copy if the caller may read it.
//
// Errors: CodeScopeNotFound.
func (s *Scopes) ListEvents(ctx context.Context, by Caller, id scope.ID, q scope.EventQuery) (page []*scope.Event, next int64, err error) {
	agent, _, err := s.table.RequireScope(by, id)
	if err != nil {
		return nil, 0, err
	}
	snapshot, err := s.store.View(ctx, kg.View{Principal: by.ReaderPrincipal(agent), AllGraphs: true})
	if err != nil {
		return nil, 0, err
	}
	defer snapshot.Close()
	size := scope.MaxEvents
	if q.PageSize != 0 {
		size = min(max(q.PageSize, 1), scope.MaxEvents)
	}
	if page, next, err = scope.FindEvents(snapshot, id, q, size, MaxScannedEvents); err != nil {
		return nil, 0, err
	}
	bytes := 0
	for i, e := range page {
		if e.Copy, err = s.readCopy(snapshot, by.ReaderPrincipal(agent), e); err != nil {
			return nil, 0, err
		}
		if bytes += e.Size(); bytes > message.MaxPageBytes && i > 0 {
			return page[:i], page[i-1].Sequence, nil
		}
	}
	return page, next, nil
}

// LastEvent returns the sequence of the scope's newest event, 0 if it has none.
//
// Errors: CodeScopeNotFound.
func (s *Scopes) LastEvent(ctx context.Context, by Caller, id scope.ID) (int64, error) {
	agent, _, err := s.table.RequireScope(by, id)
	if err != nil {
		return 0, err
	}
	snapshot, err := s.store.View(ctx, kg.View{Principal: by.ReaderPrincipal(agent), AllGraphs: true})
	if err != nil {
		return 0, err
	}
	defer snapshot.Close()
	n, err := snapshot.Count(kg.Pattern{Predicate: kg.Sequence, Graph: id.EventsGraph()})
	return int64(n), err
}

// VerifyEvents verifies up to MaxVerifyEvents events of a scope, starting with sequence
// from: that the sequences have no gap, and that each hash matches the event and its
// predecessor.
//
// Errors: CodeLogDamaged, which names the first damaged event; CodeScopeNotFound.
func (s *Scopes) VerifyEvents(ctx context.Context, by Caller, id scope.ID, from int64) (*scope.EventCheck, error) {
	check := &scope.EventCheck{}
	next := max(from, 1)
	if next > 1 {
		before, err := s.Events(ctx, by, id, next-1, 1)
		if err != nil {
			return nil, err
		}
		if len(before) == 0 || before[0].Sequence != next-1 {
			return nil, kg.Errorf(kg.CodeInvalid, "scope has no event %d", next-1).At("from")
		}
		check.Head = before[0].Hash
	}
	for check.Verified < scope.MaxVerifyEvents {
		page, err := s.Events(ctx, by, id, next, scope.MaxEvents)
		if err != nil {
			return nil, err
		}
		for _, e := range page {
			if e.Sequence != next || e.Previous != check.Head || e.Hash != e.ComputeHash() {
				return nil, kg.Errorf(kg.CodeLogDamaged, "event %d of the scope does not match its hash", next)
			}
			check.Head = e.Hash
			check.Verified++
			next++
		}
		if len(page) < scope.MaxEvents {
			return check, nil
		}
	}
	check.Next = next
	return check, nil
}
