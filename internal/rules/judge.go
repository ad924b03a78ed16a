package rules

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"koine/kg"
)

// Reasons of verdicts that are not a rule's own.
const reasonUnclear = "Rule Failed"

// Verify judges an update by the rules on updates (kg.Verifier): each change by
// each rule. The hardest effect counts. Changes of koine's own graphs are not
// judged, nor is who works on the data directory itself, and a rule that the
// update's proposal has satisfied does not hold it again.
func (s *Set) Verify(ctx context.Context, j kg.Judgement) (kg.Verdict, error) {
	list := s.rules[OnUpdate]
	if len(list) == 0 || j.Meta.Principal.Trusted() {
		return kg.Verdict{}, nil
	}
	b := s.budget(ctx)
	defer b.cancel()
	fixed := shared(j.Meta.Principal, j.Meta.Actor, Call{Method: j.Meta.Method, TaskID: j.Meta.TaskID, SessionID: j.Meta.SessionID, Metadata: j.Meta.Metadata})
	fixed["justification"] = j.Meta.Justification
	var sum verdict
	for i := range j.Changes {
		c := &j.Changes[i]
		if kg.Reserved(c.Quad) {
			continue
		}
		vars := make(map[string]any, len(fixed)+4)
		for k, v := range fixed {
			vars[k] = v
		}
		vars["patch"] = patchValue(c)
		vars["statement"] = statementValue(kg.Statement{Quad: c.Quad, Assertions: c.Before})
		vars["before"] = before(&j, c)
		vars["entity"] = entity(&j, c.Quad.Subject)
		for _, r := range list {
			if r.Effect == Review && slices.Contains(j.Meta.Reviewed, r.Name) || sum.has(r) {
				continue
			}
			holds, failed, err := b.holds(r, vars)
			if err != nil {
				return kg.Verdict{}, err
			}
			if holds {
				sum.add(r, c, failed)
			}
		}
	}
	return sum.Verdict, nil
}

// verdict is the sum of what the rules say.
type verdict struct {
	kg.Verdict
	spoken map[*Rule]bool
}

// has tells whether the rule has spoken: once is enough.
func (v *verdict) has(r *Rule) bool { return v.spoken[r] }

func (v *verdict) add(r *Rule, c *kg.Change, failed error) {
	if v.spoken == nil {
		v.spoken = map[*Rule]bool{}
	}
	v.spoken[r] = true
	next := kg.Verdict{Reason: r.text(), Details: fmt.Sprintf("%s: %s %s", r.Name, c.Quad.Subject, c.Quad.Predicate)}
	switch r.Effect {
	case Reject:
		next.Outcome = kg.Rejected
	case Violation:
		next.Outcome = kg.Violation
	case Review:
		next.Outcome, next.Hold = kg.Held, r.Hold
	}
	// The status tells one reason only, and of what is held none.
	if message := r.Message; failed == nil && message != "" && (r.Effect == Review || next.Outcome == v.Outcome) {
		next.Details += ": " + message
	}
	if failed != nil {
		next.Details += " (the rule could not be evaluated: " + oneLine(failed) + ")"
		if r.Effect != Violation {
			next.Outcome, next.Reason, next.Hold = kg.Rejected, reasonUnclear, nil
		}
	}
	v.Verdict = v.Verdict.And(next)
}

// Call is what came with a request beside what it asks for.
type Call struct {
	// Method is how it was asked, such as "knowledge/update".
	Method            string
	TaskID, SessionID string
	Metadata          []byte // JSON object; nil for none
}

// shared are the variables that all rules have but those that hide.
func shared(p kg.Principal, actor kg.AgentID, c Call) map[string]any {
	metadata := map[string]any{}
	if json.Unmarshal(c.Metadata, &metadata) != nil || metadata == nil {
		metadata = map[string]any{}
	}
	return map[string]any{
		"caller": callerValue(p, actor), "method": c.Method, "taskId": c.TaskID, "sessionId": c.SessionID, "metadata": metadata,
	}
}
