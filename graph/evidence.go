package graph

import (
	"context"
	"fmt"
	"math"
	"slices"

	"koine/channels/message"
	"koine/graph/internal/views"
	"koine/graph/limit"
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
		text, err := l.render(func(w *writer) error { return l.writeOrigins(w, f, &n.statement) })
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

// writeOrigins writes a page of the messages or the tasks of the commits of a
// statement's assertions, the oldest first.
func (l *loader) writeOrigins(w *writer, f *statementField, st *kg.Statement) error {
	revisions := make([]kg.Revision, len(st.Assertions))
	for i, a := range st.Assertions {
		revisions[i] = a.Revision
	}
	slices.Sort(revisions)
	revisions = slices.Compact(revisions)
	if f.kind == statementTasks {
		page, err := pageOfOrigins(l.run, "statement.tasks", f, st, revisions, func(r kg.Revision) (*Task, error) { return l.run.taskOfCommit(w.Ctx, r) }, (*Task).ID)
		if err != nil {
			return err
		}
		return w.Object(f.origins.On(taskConnectionObject), page)
	}
	page, err := pageOfOrigins(l.run, "statement.evidence", f, st, revisions, func(r kg.Revision) (*Message, error) { return l.run.messageOfCommit(w.Ctx, r) }, (*Message).ID)
	if err != nil {
		return err
	}
	return w.Object(f.origins.On(messageConnectionObject), page)
}

// origin is what a commit was made for. Its key is the revision.
type origin[T any] struct {
	value *T
	key   string
}

// pageOfOrigins returns a page of what find finds for the revisions, each once.
func pageOfOrigins[T any](r *run, list string, f *statementField, st *kg.Statement, revisions []kg.Revision, find func(kg.Revision) (*T, error), id func(*T) string) (*listPage[T], error) {
	p, err := r.openRange(list, f.page, limit.DefaultPageSize, math.MaxInt, views.KeyOfStatement(st.Quad))
	if err != nil {
		return nil, err
	}
	var found []origin[T]
	known := map[string]bool{}
	for _, revision := range revisions {
		v, err := find(revision)
		if err != nil {
			return nil, err
		}
		if v == nil || known[id(v)] {
			continue
		}
		known[id(v)] = true
		found = append(found, origin[T]{v, fmt.Sprintf("%020d", revision)})
	}
	return pageOfSlice(p, found, func(o *origin[T]) string { return o.key }, func(o *origin[T]) T { return *o.value }), nil
}
