package intents

import (
	"context"
	"encoding/json"
	"slices"

	"koine/channels"
	"koine/channels/scope"
	"koine/kg"
)

// Types of the events of an intent and its access. Those of leases, tasks and access requests
// stand beside these.
const (
	EventCreated       = "intent_created"
	EventStatePatched  = "state_patched"
	EventStatusChanged = "status_changed"
	EventAssigned      = "agent_assigned"
	EventUnassigned    = "agent_unassigned"
	EventGranted       = "access_granted"
	EventRevoked       = "access_revoked"
)

// MaxEventBytes bounds the data of an event that AppendEvent appends.
const MaxEventBytes = 256 << 10

// written lists the types of the events that only the change that they tell of appends.
// EventAssigned is none of them: an agent that delegates work appends such an event before it assigns
// the agent.
var written = []string{
	EventCreated, EventStatePatched, EventStatusChanged, EventUnassigned, EventGranted, EventRevoked,
	EventLeaseAcquired, EventLeaseReleased, EventAccessRequested, EventAccessApproved, EventAccessDenied, scope.EventMessage, scope.EventOverseen,
}

// NewEvent describes an event to append.
type NewEvent struct {
	Type string
	Data json.RawMessage // a JSON object
	// TraceID and ParentEvent are those of scope.Event.
	TraceID     string
	ParentEvent int64
}

// AppendEvent appends an event of the acting agent to the log of an intent, also of one that
// has ended. It requires the level Write. An event of a type that stands for a change is
// appended by the change alone.
//
// Errors: CodeInvalid; CodeLimitExceeded; those of channels.Scopes.Change.
func (s *Service) AppendEvent(ctx context.Context, by channels.Caller, id scope.ID, e NewEvent) (*scope.Event, error) {
	self, err := by.ActingAgent()
	if err != nil {
		return nil, err
	}
	if slices.Contains(written, e.Type) {
		return nil, kg.Errorf(kg.CodeInvalid, "events of type %s are appended by the change that they tell of", e.Type).At("type")
	}
	data, err := checkJSON("data", e.Data, MaxEventBytes, "{")
	if err != nil {
		return nil, err
	}
	if data == nil {
		data = emptyObject
	}
	var made scope.Event
	_, err = s.scopes.Change(ctx, by, id, scope.Write, "intents/appendEvent", func(tx *kg.Tx, _ *scope.Scope) error {
		made = scope.Event{Scope: id, Type: e.Type, Actor: self, Data: data, TraceID: e.TraceID, ParentEvent: e.ParentEvent}
		_, err := made.AppendTo(tx)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &made, nil
}

// Events returns a page of the events of an intent that a query selects. next is the sequence
// with which the query continues, 0 after the last page. Other pages may be short or empty.
//
// Errors: CodeScopeNotFound.
func (s *Service) Events(ctx context.Context, by channels.Caller, id scope.ID, q scope.EventQuery) (page []*scope.Event, next int64, err error) {
	return s.scopes.ListEvents(ctx, by, id, q)
}

// VerifyEvents verifies up to scope.MaxVerifyEvents events of an intent, as
// channels.Scopes.VerifyEvents does.
//
// Errors: CodeLogDamaged, which names the first damaged event; CodeScopeNotFound.
func (s *Service) VerifyEvents(ctx context.Context, by channels.Caller, id scope.ID, from int64) (*scope.EventCheck, error) {
	return s.scopes.VerifyEvents(ctx, by, id, from)
}
