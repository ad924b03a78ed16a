package intents

import (
	"cmp"
	"encoding/json"
	"strconv"

	"koine/channels/scope"
	"koine/internal/plainjson"
	"koine/internal/systemgraph"
	"koine/kg"
)

// Change is the change of the state or the status of an intent by a commit.
type Change struct {
	// OldState and NewState have the members of the state that differ, as they were and as
	// they are; {} for a change of status.
	OldState, NewState   json.RawMessage
	OldStatus, NewStatus Status // "" for a change of state
	// Version is that of the intent after the change.
	Version int64
	Actor   kg.AgentID
}

var (
	statusOfScope = systemgraph.Property("scopeStatus")
	isState       = systemgraph.Property("intentState")
	isStatus      = systemgraph.Property("intentStatus")
)

// changeIn returns the change by the commit of an event; nil for an event of another type.
func changeIn(c *kg.Commit, id scope.ID, e *scope.Event) *Change {
	if e.Type != EventStatePatched && e.Type != EventStatusChanged {
		return nil
	}
	var data struct {
		Status  Status `json:"status"`
		Version int64  `json:"version"`
	}
	_ = json.Unmarshal(e.Data, &data)
	out := &Change{OldState: emptyObject, NewState: emptyObject, Version: data.Version, Actor: e.Actor}
	var before, after json.RawMessage
	graph := recordGraph(id)
	oldStatus := Status("")
	for i := range c.Changes {
		q := &c.Changes[i].Quad
		removed := c.Changes[i].Op == kg.Remove
		switch {
		case q.Graph != graph:
		case q.Predicate == isState && removed:
			before = json.RawMessage(q.Object.Value())
		case q.Predicate == isState:
			after = json.RawMessage(q.Object.Value())
		case q.Predicate == isStatus && removed:
			oldStatus = Status(q.Object.Value())
		case q.Predicate == isStatus && data.Version <= 2: // the first change of a scope without a record
			oldStatus = cmp.Or(oldStatus, Active)
		}
	}
	if e.Type == EventStatusChanged {
		out.OldStatus, out.NewStatus = cmp.Or(oldStatus, data.Status), data.Status
		return out
	}
	if old, now, err := changedMembers(before, after); err == nil { // else the content was erased
		out.OldState, out.NewState = old, now
	}
	return out
}

// endedElsewhere returns an event for a scope that was ended by channels.Scopes.End, which
// appends none; nil for other changes. It is not in the log of the intent, and has no
// sequence.
func endedElsewhere(c *kg.Commit, ch *kg.Change, id scope.ID) *scope.Event {
	status := Status(ch.Quad.Object.Value())
	if !status.IsFinal() || c.ChangesGraph(recordGraph(id)) {
		return nil
	}
	data, err := plainjson.Encode(map[string]any{"status": status})
	if err != nil {
		return nil
	}
	return &scope.Event{Scope: id, Type: EventStatusChanged, Actor: cmp.Or(c.Actor, c.Principal), Time: c.Time, Data: data}
}

// integerOf returns the integer that a term holds, 0 for another term.
func integerOf(t kg.Term) int64 {
	n, _ := strconv.ParseInt(t.Value(), 10, 64)
	return n
}
