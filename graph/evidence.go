package graph

import (
	"context"
	"slices"

	"koine/channels"
	"koine/kg"
)

// messageBehind is the message that a commit came with, or whose held facts it
// applied; nil for none and for one that the caller may not read. What a commit says
// of its message is not taken for true: the message says it too.
func (r *run) messageBehind(ctx context.Context, revision kg.Revision) (*Message, error) {
	if r.engine.deps.Channels == nil || revision == 0 {
		return nil, nil
	}
	r.mu.Lock()
	m, known := r.came[revision]
	r.mu.Unlock()
	if known {
		return m, nil
	}
	m, err := r.findBehind(ctx, revision)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.came == nil {
		r.came = map[kg.Revision]*Message{}
	}
	r.came[revision] = m
	return m, nil
}

func (r *run) findBehind(ctx context.Context, revision kg.Revision) (*Message, error) {
	// Not as the caller, who may read the message and not all that came with it.
	c, err := r.engine.deps.Store.Commit(ctx, kg.SystemPrincipal(), revision)
	switch kg.CodeOf(err) {
	case kg.CodeNotFound, kg.CodeRevisionGone:
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	m, err := messageIfAny(ctx, channels.MessageID(c.MessageID))
	if m == nil || err != nil {
		return nil, err
	}
	applied := c.ProposalID != "" && !c.Held && m.of.ProposalID == c.ProposalID
	if m.of.Revision != revision && !applied {
		return nil, nil
	}
	return m, nil
}

// evidence loads, for a field of all statements, the messages that their assertions
// came with.
func (l *loader) evidence(plan *statementPlan, field int, nodes []statementNode) error {
	f := &plan.fields[field]
	for i := range nodes {
		n := &nodes[i]
		text, err := l.evidenceOf(n.statement.Assertions, f.inside, f.first)
		if err != nil {
			return err
		}
		if err := l.run.charge(len(text)); err != nil {
			return err
		}
		if n.texts == nil {
			n.texts = make(map[int][]byte, 1)
		}
		n.texts[field] = text
	}
	return nil
}

func (l *loader) evidenceOf(assertions []kg.Assertion, plan *insidePlan, most int) (b []byte, err error) {
	ctx := context.WithValue(l.ctx, runKey{}, l.run)
	revisions := make([]kg.Revision, len(assertions))
	for i, a := range assertions {
		revisions[i] = a.Revision
	}
	slices.Sort(revisions)
	b = append(b, '[')
	told := map[channels.MessageID]bool{}
	for _, revision := range slices.Compact(revisions) {
		m, err := l.run.messageBehind(ctx, revision)
		if err != nil {
			return nil, err
		}
		if m == nil || told[m.of.ID] || len(told) == most {
			continue
		}
		if told[m.of.ID] = true; len(told) > 1 {
			b = append(b, ',')
		}
		if b, err = l.appendMessage(b, plan, m); err != nil {
			return nil, err
		}
	}
	return append(b, ']'), nil
}
