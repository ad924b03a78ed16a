package intents

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"koine/channels/scope"
	"koine/internal/systemgraph"
	"koine/kg"
)

// Limits of intents.
const (
	MaxStateBytes       = 256 << 10
	MaxConstraintsBytes = 64 << 10
	MaxGovernanceBytes  = 64 << 10
	// MaxDepth bounds how deep objects and lists are nested in a state, constraints or a
	// governance policy.
	MaxDepth       = 64
	MaxDependsOn   = 100
	MaxReasonRunes = 1024 // of a change of status
	MaxConfidence  = 100
)

// Status is the status of an intent.
type Status string

// Statuses of an intent. Completed and Abandoned are final.
const (
	Draft     Status = "draft"
	Active    Status = "active"
	Blocked   Status = "blocked"
	Suspended Status = "suspended_awaiting_input"
	Completed Status = "completed"
	Abandoned Status = "abandoned"
)

// IsFinal reports whether an intent with the status has ended.
func (s Status) IsFinal() bool { return s == Completed || s == Abandoned }

// check returns an error for any other text.
func (s Status) check() error {
	if !slices.Contains([]Status{Draft, Active, Blocked, Suspended, Completed, Abandoned}, s) {
		return kg.Errorf(kg.CodeInvalid, "status must be draft, active, blocked, suspended_awaiting_input, completed or abandoned, not %.60q", s).At("status")
	}
	return nil
}

// Intent is a goal that agents work on together. Callers must not modify it.
type Intent struct {
	ID                 scope.ID
	Title, Description string
	CreatedBy          kg.AgentID
	// Parent is the intent that this one is a part of, "" for none, and DependsOn are those
	// that it waits for. Both are kept as they were given: they give no access.
	Parent    scope.ID
	DependsOn []scope.ID
	// Constraints is a JSON object or list, State and Governance are JSON objects; an absent
	// one is nil, except that State is then {}.
	Constraints, State, Governance json.RawMessage
	Status                         Status
	Confidence                     float64 // 0…MaxConfidence
	// Version starts at 1 and increases with each change of state or status.
	Version              int64
	CreatedAt, UpdatedAt time.Time
	// Replayed means that Create found the intent under its idempotency key.
	Replayed bool
}

const partName = "intent"

// recordGraph returns the graph of the record of an intent.
func recordGraph(id scope.ID) kg.Term { return id.PartGraph(partName) }

var emptyObject = json.RawMessage("{}")

// toRecord returns the stored form.
func (it *Intent) toRecord() systemgraph.Record {
	r := systemgraph.Record{
		systemgraph.Type: systemgraph.Class("Intent"), "intentDescription": systemgraph.Text(it.Description),
		"intentStatus": systemgraph.Text(string(it.Status)), "intentVersion": {kg.Integer(it.Version)}, "intentUpdatedAt": {kg.DateTime(it.UpdatedAt)},
		"intentConstraints": systemgraph.JSON(it.Constraints), "intentState": systemgraph.JSON(it.State), "intentGovernance": systemgraph.JSON(it.Governance),
		"intentConfidence": {kg.Double(it.Confidence)},
	}
	if it.Parent != "" {
		r["intentParent"] = []kg.Term{it.Parent.Entity()}
	}
	for _, id := range it.DependsOn {
		r["intentDependsOn"] = append(r["intentDependsOn"], id.Entity())
	}
	return r
}

// readIntent reads the intent of a scope.
func readIntent(match systemgraph.Matcher, sc *scope.Scope) (*Intent, error) {
	it := &Intent{ID: sc.ID, Title: sc.Title, CreatedBy: sc.CreatedBy, CreatedAt: sc.CreatedAt, UpdatedAt: sc.CreatedAt, State: emptyObject, Status: Active, Version: 1, Replayed: sc.Replayed}
	r, err := systemgraph.Read(match, recordGraph(sc.ID), sc.ID.Entity())
	if err != nil {
		return nil, err
	}
	if r != nil {
		it.applyRecord(r)
	}
	if sc.Ended() && !it.Status.IsFinal() { // by channels.Scopes.End
		it.Status, it.UpdatedAt = Status(sc.Status), sc.EndedAt
		it.Version++
	}
	return it, nil
}

// applyRecord sets the members from the record.
func (it *Intent) applyRecord(r systemgraph.Record) {
	it.Description, it.Status = r.Text("intentDescription"), Status(r.Text("intentStatus"))
	it.Version, it.UpdatedAt = r.Integer("intentVersion"), r.Time("intentUpdatedAt")
	it.Constraints, it.State, it.Governance = r.JSON("intentConstraints"), r.JSON("intentState"), r.JSON("intentGovernance")
	it.Confidence, _ = strconv.ParseFloat(r.Text("intentConfidence"), 64)
	for _, text := range r.Texts("intentParent") {
		it.Parent = scope.IDOf(kg.IRI(text))
	}
	for _, text := range r.Texts("intentDependsOn") {
		it.DependsOn = append(it.DependsOn, scope.IDOf(kg.IRI(text)))
	}
}
