package graph

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"koine/channels"
	"koine/channels/message"
	"koine/channels/scope"
	"koine/graph/internal/knowledge"
	"koine/kg"
)

// ScopeEvent is an event of a scope.
type ScopeEvent struct{ record *scope.Event }

// Events reads a page of the scope's event log.
func (s *Scope) Events(ctx context.Context, sinceSequence *int64, first *int, after *Cursor, last *int, before *Cursor) (*ScopeEventConnection, error) {
	r := runOf(ctx)
	service, by, err := r.channelService()
	if err != nil {
		return nil, err
	}
	p, err := r.openDomainRange("scope.events", knowledge.PageArgs{First: first, After: after, Last: last, Before: before}, channels.MaxPage, s.record.ID)
	if err != nil {
		return nil, err
	}
	since := deref(sinceSequence)
	if since < 0 {
		return nil, kg.Errorf(kg.CodeInvalid, "sinceSequence must not be negative").At("sinceSequence")
	}
	newest, err := service.Scopes().LastEvent(ctx, by, s.record.ID)
	if err != nil {
		return nil, err
	}
	from, to := p.numbers(since, newest)
	var list []*scope.Event
	if to >= from {
		list, err = service.Scopes().Events(ctx, by, s.record.ID, from, int(to-from+1))
	}
	if err == nil {
		err = chargeAll(r, list, func(e **scope.Event) int { return len((*e).Data) })
	}
	if err != nil {
		return nil, err
	}
	more := to < newest
	if p.backward {
		slices.Reverse(list)
		more = from > since+1
	}
	page := newListPage(p, list, more, "", func(e **scope.Event) string { return strconv.FormatInt((*e).Sequence, 10) }, func(e **scope.Event) ScopeEvent { return ScopeEvent{*e} })
	page.count = exactly(int(max(0, newest-since)))
	return page, nil
}

// VerifyEvents verifies the hash chain of the scope's events.
func (s *Scope) VerifyEvents(ctx context.Context, fromSequence int64) (*ScopeEventCheck, error) {
	service, by, err := runOf(ctx).channelService()
	if err != nil {
		return nil, err
	}
	if fromSequence < 1 {
		return nil, kg.Errorf(kg.CodeInvalid, "fromSequence must be at least 1").At("fromSequence")
	}
	check, err := service.Scopes().VerifyEvents(ctx, by, s.record.ID, fromSequence)
	if err != nil {
		return nil, withFieldNames(err, map[string]string{"from": "fromSequence"})
	}
	return &ScopeEventCheck{VerifiedCount: check.Verified, LastHash: nilIfEmpty(check.Head), NextSequence: unlessZero(check.Next)}, nil
}

// Sequence is the number of the event in its scope.
func (e *ScopeEvent) Sequence() int64 { return e.record.Sequence }

// Type is the type of the event.
func (e *ScopeEvent) Type() string { return e.record.Type }

// Actor is the agent that caused the event.
func (e *ScopeEvent) Actor() *Agent { return agentOf(e.record.Actor) }

// ActorID is the id of that agent.
func (e *ScopeEvent) ActorID() string { return string(e.record.Actor) }

// Time is when the event happened.
func (e *ScopeEvent) Time() time.Time { return e.record.Time }

// Data is a JSON object.
func (e *ScopeEvent) Data() json.RawMessage { return e.record.Data }

// Message is the message that the event copies, nil if the caller may not read
// it.
func (e *ScopeEvent) Message(ctx context.Context) (*Message, error) {
	var data struct{ MessageID message.ID }
	if e.record.Type != scope.EventMessage || json.Unmarshal(e.record.Data, &data) != nil {
		return nil, nil
	}
	return messageIfAny(ctx, data.MessageID)
}

// PreviousHash is nil for the first event.
func (e *ScopeEvent) PreviousHash() *string { return nilIfEmpty(e.record.Previous) }

// Hash is the hash of the event and of all events before it.
func (e *ScopeEvent) Hash() string { return e.record.Hash }
