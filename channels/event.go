package channels

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"koine/channels/channel"
	"koine/channels/internal/access"
	"koine/channels/internal/vocab"
	"koine/channels/message"
	"koine/channels/scope"
	"koine/internal/plainjson"
	"koine/kg"
)

// auditMessage copies a message to the event log of the channel's scope, in the same
// commit. It returns the number of statements.
func auditMessage(tx *kg.Tx, e *access.Entry, m *message.Message, made *string) (n int, err error) {
	if !e.Audit || e.Scope == "" {
		return 0, nil
	}
	open := e.MemberPolicy == channel.ByScope && e.GrantsReadToAll() && !m.Private
	salt := ""
	if !open {
		if *made == "" {
			*made = newSalt()
		}
		salt = *made
		n++
		if err := tx.ApplyOwn(kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: m.ID.Entity(), Predicate: vocab.Salt, Object: kg.String(salt), Graph: m.ContentGraph()}}); err != nil {
			return n, err
		}
	}
	content, err := contentHash(m, salt)
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
		Parts       []json.RawMessage   `json:"parts,omitempty"`
		Metadata    json.RawMessage     `json:"metadata,omitempty"`
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
	event := scope.Event{Scope: e.Scope, Type: scope.EventMessage, Actor: m.Author, Data: raw}
	appended, err := event.AppendTo(tx)
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
func contentHash(m *message.Message, salt string) (string, error) {
	content := []any{m.Parts, json.RawMessage(m.Metadata)}
	if salt != "" {
		content = append(content, salt)
	}
	raw, err := plainjson.Encode(content)
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

// MaxScannedEvents bounds the events that ListEvents examines for one page.
const MaxScannedEvents = 5000

// ListEvents returns a page of the events of a scope that a query selects. next is the
// sequence with which the query continues (scope.EventQuery), 0 after the last page. Other
// pages may be short or empty.
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
	return scope.FindEvents(snapshot, id, q, size, MaxScannedEvents)
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
