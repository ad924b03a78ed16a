package graph

import (
	"context"
	"slices"

	"koine/channels/message"
	"koine/graph/executor"
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
	for i := range nodes {
		n := &nodes[i]
		text, err := l.render(func(w *writer) error { return l.writeOrigins(w, f, n.statement.Assertions) })
		if err != nil {
			return err
		}
		if err := l.run.chargeBytes(len(text.json)); err != nil {
			return err
		}
		if n.texts == nil {
			n.texts = make(map[int]fragment, 1)
		}
		n.texts[field] = text
	}
	return nil
}

// writeOrigins lists the messages or the tasks of the commits of assertions, the
// oldest first.
func (l *loader) writeOrigins(w *writer, f *statementField, assertions []kg.Assertion) error {
	revisions := make([]kg.Revision, len(assertions))
	for i, a := range assertions {
		revisions[i] = a.Revision
	}
	slices.Sort(revisions)
	revisions = slices.Compact(revisions)
	if f.kind == statementTasks {
		return writeEach(w, f, taskObject, revisions, func(revision kg.Revision) (*Task, error) { return l.run.taskOfCommit(w.Ctx, revision) }, (*Task).ID)
	}
	return writeEach(w, f, messageObject, revisions, func(revision kg.Revision) (*Message, error) { return l.run.messageOfCommit(w.Ctx, revision) }, (*Message).ID)
}

// writeEach writes what find finds for the revisions, each once and up to the
// field's bound.
func writeEach[T any](w *writer, f *statementField, object *executor.Object, revisions []kg.Revision, find func(kg.Revision) (*T, error), id func(*T) string) error {
	var list []*T
	known := map[string]bool{}
	for _, revision := range revisions {
		if len(list) == f.first {
			break
		}
		found, err := find(revision)
		if err != nil {
			return err
		}
		if found == nil || known[id(found)] {
			continue
		}
		known[id(found)] = true
		list = append(list, found)
	}
	return executor.List(w, list, false, func(v **T) error { return w.Object(f.origins.On(object), *v) })
}
