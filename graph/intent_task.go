package graph

import (
	"context"
	"encoding/json"
	"time"

	"koine/internal/intents"
)

// IntentTask is a task of an intent as the caller sees it.
type IntentTask struct{ record *intents.Task }

func sizeOfIntentTask(t *intents.Task) int {
	return len(t.Description) + len(t.Input) + len(t.Output) + len(t.Metadata) + len(t.Error)
}

// TaskID is the id of the task and of its scope.
func (t *IntentTask) TaskID() string { return string(t.record.ID) }

// IntentID is the id of the intent.
func (t *IntentTask) IntentID() string { return string(t.record.Intent) }

// ExternalID is the id that the creator chose, nil for none.
func (t *IntentTask) ExternalID() *string { return nilIfEmpty(t.record.ExternalID) }

// Name is nil if the task has none.
func (t *IntentTask) Name() *string { return nilIfEmpty(t.record.Name) }

// Description is nil if the task has none.
func (t *IntentTask) Description() *string { return nilIfEmpty(t.record.Description) }

// Status is the status of the task.
func (t *IntentTask) Status() IntentTaskStatus { return IntentTaskStatus(inSchema(t.record.Status)) }

// Priority is nil if the task has none.
func (t *IntentTask) Priority() *string { return nilIfEmpty(t.record.Priority) }

// Input is nil if the task has none.
func (t *IntentTask) Input() json.RawMessage { return t.record.Input }

// Output is nil if the task has none.
func (t *IntentTask) Output() json.RawMessage { return t.record.Output }

// Error is nil if the task has none.
func (t *IntentTask) Error() *string { return nilIfEmpty(t.record.Error) }

// AssignedAgent is the name that was given, nil for none.
func (t *IntentTask) AssignedAgent() *string { return nilIfEmpty(t.record.AssignedAgent) }

// BlockedReason is nil if none was given.
func (t *IntentTask) BlockedReason() *string { return nilIfEmpty(t.record.BlockedReason) }

// Capabilities are those that the task requires.
func (t *IntentTask) Capabilities() []string { return notNil(t.record.Capabilities) }

// DependsOn names the tasks that this one waits for.
func (t *IntentTask) DependsOn() []string { return notNil(t.record.DependsOn) }

// Metadata is nil if the task has none.
func (t *IntentTask) Metadata() json.RawMessage { return t.record.Metadata }

// CreatedBy is the agent that created the task.
func (t *IntentTask) CreatedBy() *Agent { return agentOf(t.record.CreatedBy) }

// CreatedAt is when the task was created.
func (t *IntentTask) CreatedAt() time.Time { return t.record.CreatedAt }

// StartedAt is when the task was first running, nil before.
func (t *IntentTask) StartedAt() *time.Time { return timeOrNil(t.record.StartedAt) }

// CompletedAt is when the task ended, nil before.
func (t *IntentTask) CompletedAt() *time.Time { return timeOrNil(t.record.CompletedAt) }

// Version increases with each update.
func (t *IntentTask) Version() int64 { return t.record.Version }

// Scope is the scope of the task.
func (t *IntentTask) Scope(ctx context.Context) (*Scope, error) { return scopeIfAny(ctx, t.record.ID) }

// Tasks reads the tasks of the intent.
func (it *Intent) Tasks(ctx context.Context, status *IntentTaskStatus) ([]IntentTask, error) {
	r := runOf(ctx)
	service, by, err := r.intentService()
	if err != nil {
		return nil, err
	}
	list, err := service.Tasks().List(ctx, by, it.record.ID, intents.TaskStatus(inDomain(deref(status))))
	if err != nil {
		return nil, err
	}
	out := make([]IntentTask, len(list))
	for i, t := range list {
		out[i] = IntentTask{t}
	}
	return out, chargeAll(r, list, func(t **intents.Task) int { return sizeOfIntentTask(*t) })
}
