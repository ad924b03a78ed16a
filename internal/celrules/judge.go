package celrules

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"koine/channels"
	"koine/channels/message"
	"koine/kg"
)

// Reasons of verdicts that do not come from a rule.
const reasonUnclear = "Rule Failed"

// Verify judges an update (kg.Verifier): its messages by the rules on messages, and
// each change by the rules on updates. The most severe effect counts. It does not judge
// changes of koine's own graphs, notices, and principals that work on the data
// directory itself. A rule that the update's proposal has satisfied does not hold it
// again.
func (s *Set) Verify(ctx context.Context, j kg.Judgement) (kg.Verdict, error) {
	says, changes := len(s.rules[OnMessage]) > 0 && publishesMessage(&j), len(s.rules[OnUpdate]) > 0 && countFacts(&j) > 0
	if !says && !changes || j.Meta.Principal.Trusted() {
		return kg.Verdict{}, nil
	}
	b := s.newBudget(ctx)
	defer b.cancel()
	judging := judgement{set: s, budget: b, j: &j, messages: s.messagesOnce(b, &j)}
	if says {
		if err := judging.judgeMessages(); err != nil {
			return kg.Verdict{}, err
		}
	}
	if changes {
		if err := judging.judgeChanges(); err != nil {
			return kg.Verdict{}, err
		}
	}
	return judging.sum.Verdict, nil
}

// judgement is one judgement of an update in progress.
type judgement struct {
	set      *Set
	budget   *budget
	j        *kg.Judgement
	messages func() ([]channels.JudgedMessage, error)
	fixed    map[string]any // variables of the update
	sum      verdict
}

// commonVars returns the variables common to all rules, for the caller to extend.
func (g *judgement) commonVars() map[string]any {
	if g.fixed == nil {
		m := &g.j.Meta
		g.fixed = sharedVars(m.Principal, m.Actor, Call{Method: m.Method, TaskID: m.TaskID, SessionID: m.SessionID, Metadata: m.Metadata})
		g.fixed["justification"] = m.Justification
	}
	vars := make(map[string]any, len(g.fixed)+5)
	maps.Copy(vars, g.fixed)
	return vars
}

func (g *judgement) evaluateRules(list []*Rule, vars map[string]any, about string) error {
	for _, r := range list {
		if r.Effect == Review && slices.Contains(g.j.Meta.Reviewed, r.Name) || g.sum.counted[r] {
			continue
		}
		holds, failed, err := g.budget.evaluate(r, vars)
		if err != nil {
			return err
		}
		if holds {
			g.sum.addResult(r, about, failed)
		}
	}
	return nil
}

func (g *judgement) judgeMessages() error {
	messages, err := g.messages()
	if err != nil {
		return err
	}
	for i := range messages {
		m := &messages[i]
		if m.Message.ContentType == message.Notice {
			continue
		}
		g.dependOn(m)
		if err := g.budget.chargeRead(messageSize(m.Message)); err != nil {
			return err
		}
		vars := g.commonVars()
		vars["message"] = messageValue(m, countFacts(g.j))
		if err := g.evaluateRules(g.set.rules[OnMessage], vars, "the message"); err != nil {
			return err
		}
	}
	return nil
}

// dependOn records that the verdict depends on a message.
func (g *judgement) dependOn(m *channels.JudgedMessage) {
	g.sum.Depends = append(g.sum.Depends, m.Depends...)
	g.sum.Own = append(g.sum.Own, m.Message.ID.Entity())
}

func (g *judgement) judgeChanges() error {
	message := g.messageVariable()
	for i := range g.j.Changes {
		c := &g.j.Changes[i]
		if kg.Reserved(c.Quad) {
			continue
		}
		if err := g.budget.chargeRead(byteSize(c.Quad.Object, c.Before) + len(c.Assertion.Provenance)); err != nil {
			return err
		}
		vars := g.commonVars()
		vars["patch"] = patchValue(c)
		vars["statement"] = statementValue(kg.Statement{Quad: c.Quad, Assertions: c.Before})
		vars["before"] = beforeVariable(g.budget, g.j, c)
		vars["entity"] = entityVariable(g.budget, g.j, c.Quad.Subject)
		vars["message"] = message
		if err := g.evaluateRules(g.set.rules[OnUpdate], vars, fmt.Sprintf("%s %s", c.Quad.Subject, c.Quad.Predicate)); err != nil {
			return err
		}
	}
	return nil
}

// verdict accumulates the results of the rules.
type verdict struct {
	kg.Verdict
	counted map[*Rule]bool // rules that have held: one result for each is enough
}

// addResult adds the result of a rule that holds.
func (v *verdict) addResult(r *Rule, about string, failed error) {
	if v.counted == nil {
		v.counted = map[*Rule]bool{}
	}
	v.counted[r] = true
	next := kg.Verdict{Reason: r.reason(), Details: r.Name + ": " + about}
	switch r.Effect {
	case Reject:
		next.Outcome = kg.Rejected
	case Violation:
		next.Outcome = kg.Violation
	case Review:
		next.Outcome, next.Hold = kg.Held, r.Hold
	}
	// The status shows one reason only, and none for a held update.
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

// Call is the context of a request.
type Call struct {
	// Method is the calling method, such as "knowledge/update".
	Method            string
	TaskID, SessionID string
	Metadata          []byte // JSON object; nil for none
}

// sharedVars returns the variables of all rules except those that hide.
func sharedVars(p kg.Principal, actor kg.AgentID, c Call) map[string]any {
	return map[string]any{
		"caller": callerValue(p, actor), "method": c.Method, "taskId": c.TaskID, "sessionId": c.SessionID, "metadata": jsonObject(c.Metadata),
	}
}

// Query is a query or a subscription before execution.
type Query struct {
	Principal     kg.Principal
	Actor         kg.AgentID
	Call          Call
	Subscription  bool
	Text          string
	OperationName string
	Fields        []string // root fields, without aliases
}

// CheckQuery returns an error with CodeAlignmentViolation if a rule refuses the query.
func (s *Set) CheckQuery(ctx context.Context, q Query) error {
	list := s.rules[OnQuery]
	if q.Subscription {
		list = s.rules[OnSubscribe]
	}
	if len(list) == 0 {
		return nil
	}
	b := s.newBudget(ctx)
	defer b.cancel()
	vars := sharedVars(q.Principal, q.Actor, q.Call)
	vars["query"] = map[string]any{"text": q.Text, "operationName": q.OperationName, "fields": q.Fields}
	for _, r := range list {
		holds, _, err := b.evaluate(r, vars)
		if err != nil {
			return err
		}
		if holds {
			return kg.Errorf(kg.CodeAlignmentViolation, "%s", r.reason())
		}
	}
	return nil
}

// Hides returns a function that reports whether statements with a predicate in a graph
// are hidden from the principal; nil if nothing is. It is for one read and does not
// cache: the caller does. Trusted principals see everything.
func (s *Set) Hides(p kg.Principal) func(predicate, graph kg.Term) bool {
	list := s.rules[OnRead]
	if len(list) == 0 || p.Trusted() {
		return nil
	}
	caller := callerValue(p, p.ID)
	return func(predicate, graph kg.Term) bool {
		b := s.newBudget(context.Background())
		defer b.cancel()
		vars := map[string]any{"caller": caller, "statement": map[string]any{"predicate": textOf(predicate), "graph": textOf(graph)}}
		for _, r := range list {
			if holds, _, err := b.evaluate(r, vars); holds || err != nil {
				return true
			}
		}
		return false
	}
}
