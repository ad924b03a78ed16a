package graph

import (
	"context"
	"slices"

	"koine/channels/message"
	"koine/kg"
)

// messageOfCommit returns the message that a commit came with, or whose held
// facts it applied. It returns nil if there is none or the caller may not read
// it. The commit's reference alone is not trusted: the message must refer to
// the commit as well.
func (r *run) messageOfCommit(ctx context.Context, revision kg.Revision) (*Message, error) {
	if r.engine.deps.Channels == nil || revision == 0 {
		return nil, nil
	}
	return ofCommit(r, &r.commitMessages, revision, func() (*Message, error) { return r.findBehind(ctx, revision) })
}

// ofCommit returns the result of find for a commit, cached for the run.
func ofCommit[T any](r *run, found *map[kg.Revision]T, revision kg.Revision, find func() (T, error)) (T, error) {
	r.mu.Lock()
	of, known := (*found)[revision]
	r.mu.Unlock()
	if known {
		return of, nil
	}
	of, err := find()
	if err != nil {
		return of, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if *found == nil {
		*found = map[kg.Revision]T{}
	}
	(*found)[revision] = of
	return of, nil
}

func (r *run) findBehind(ctx context.Context, revision kg.Revision) (*Message, error) {
	// The commit is read as the system: the caller may be allowed to read the
	// message without all the changes that came with it.
	c, err := r.engine.deps.Store.Commit(ctx, kg.SystemPrincipal(), revision)
	switch kg.CodeOf(err) {
	case kg.CodeNotFound, kg.CodeRevisionGone:
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	m, err := messageIfAny(ctx, message.ID(c.MessageID))
	if m == nil || err != nil {
		return nil, err
	}
	applied := c.ProposalID != "" && !c.Held && m.record.ProposalID == c.ProposalID
	if m.record.Revision != revision && !applied {
		return nil, nil
	}
	return m, nil
}

// loadOrigins loads, for one field of all statements, the messages or the tasks of
// the commits that made their assertions.
func (l *loader) loadOrigins(plan *statementPlan, field int, nodes []statementNode) error {
	f := &plan.fields[field]
	ctx := context.WithValue(l.ctx, runKey{}, l.run)
	find := l.appendEvidence
	if f.kind == statementTasks {
		find = l.appendMadeFor
	}
	for i := range nodes {
		n := &nodes[i]
		text, err := l.appendOrigins(n.statement.Assertions, f.first, func(b []byte, revision kg.Revision, told map[string]bool) ([]byte, error) {
			return find(ctx, b, f.inside, revision, told)
		})
		if err != nil {
			return err
		}
		if err := l.run.chargeBytes(len(text)); err != nil {
			return err
		}
		if n.texts == nil {
			n.texts = make(map[int][]byte, 1)
		}
		n.texts[field] = text
	}
	return nil
}

// appendOrigins lists up to most results of find for the commits of assertions,
// the oldest first. find appends results that are not in told and adds them to
// it.
func (l *loader) appendOrigins(assertions []kg.Assertion, most int, find func(b []byte, revision kg.Revision, told map[string]bool) ([]byte, error)) (b []byte, err error) {
	revisions := make([]kg.Revision, len(assertions))
	for i, a := range assertions {
		revisions[i] = a.Revision
	}
	slices.Sort(revisions)
	b = append(b, '[')
	told := map[string]bool{}
	for _, revision := range slices.Compact(revisions) {
		if len(told) == most {
			break
		}
		before := len(told)
		if before > 0 {
			b = append(b, ',')
		}
		if b, err = find(b, revision, told); err != nil {
			return nil, err
		}
		if before > 0 && len(told) == before {
			b = b[:len(b)-1]
		}
	}
	return append(b, ']'), nil
}

func (l *loader) appendEvidence(ctx context.Context, b []byte, plan *insidePlan, revision kg.Revision, told map[string]bool) ([]byte, error) {
	m, err := l.run.messageOfCommit(ctx, revision)
	if m == nil || err != nil || told[string(m.record.ID)] {
		return b, err
	}
	told[string(m.record.ID)] = true
	return l.appendMessage(b, plan, m)
}

func (l *loader) appendMadeFor(ctx context.Context, b []byte, plan *insidePlan, revision kg.Revision, told map[string]bool) ([]byte, error) {
	t, err := l.run.taskOfCommit(ctx, revision)
	if t == nil || err != nil || told[t.ID()] {
		return b, err
	}
	told[t.ID()] = true
	return l.appendTask(b, plan, t)
}
