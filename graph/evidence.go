package graph

import (
	"context"
	"fmt"
	"math"
	"slices"

	"koine/channels/channel"
	"koine/channels/message"
	"koine/graph/executor"
	"koine/graph/internal/knowledge"
	"koine/graph/internal/views"
	"koine/graph/limit"
	"koine/internal/tasks"
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
	of, known := (*found)[revision]
	if known {
		return of, nil
	}
	of, err := find()
	if err != nil {
		return of, err
	}
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

// tableObjects writes channels, messages, tasks and agents inside of entities and
// statements.
type tableObjects struct{}

// WriteTyped writes the channel, message or task that an entity is.
func (tableObjects) WriteTyped(w *executor.Writer, f *executor.Selected, entity kg.Term) error {
	switch f.Definition.Type.Name() {
	case taskObject.Name:
		t, err := taskIfAny(w.Ctx, tasks.IDOf(entity))
		return writeOptional(w, f, taskObject, t, err)
	case messageObject.Name:
		m, err := messageIfAny(w.Ctx, message.IDOf(entity))
		return writeOptional(w, f, messageObject, m, err)
	}
	id := channel.IDOf(entity)
	if id == "" {
		return w.Nil(f)
	}
	c, err := unlessGone(readChannel(w.Ctx, string(id)))
	return writeOptional(w, f, channelObject, c, err)
}

// ReadsRecord reports whether a selection shows more of an agent than is known
// without its record.
func (tableObjects) ReadsRecord(f *executor.Selected) bool { return readsRecord(f) }

// ReadAgent reads the record of an agent.
func (tableObjects) ReadAgent(ctx context.Context, id kg.AgentID) error {
	_, err := runOf(ctx).agentRecord(ctx, id)
	return err
}

// WriteAgent writes an agent after ReadAgent.
func (tableObjects) WriteAgent(w *executor.Writer, f *executor.Selected, id kg.AgentID) {
	writePlannedAgent(w, f, id)
}

// writeOptional writes an object that may be nil.
func writeOptional[T any](w *writer, f *executor.Selected, object *executor.Object, of *T, err error) error {
	switch {
	case err != nil:
		return err
	case of == nil:
		return w.Nil(f)
	}
	return w.Object(f.On(object), of)
}

// WriteOrigins writes a page of the messages or the tasks of the commits of a
// statement's assertions, the oldest first.
func (tableObjects) WriteOrigins(w *executor.Writer, f *executor.Selected, args knowledge.PageArgs, st *kg.Statement) error {
	r := runOf(w.Ctx)
	revisions := make([]kg.Revision, len(st.Assertions))
	for i, a := range st.Assertions {
		revisions[i] = a.Revision
	}
	slices.Sort(revisions)
	revisions = slices.Compact(revisions)
	if f.Definition.Type.Name() == taskConnectionObject.Name {
		page, err := pageOfOrigins(r, "statement.tasks", args, st, revisions, func(at kg.Revision) (*Task, error) { return r.taskOfCommit(w.Ctx, at) }, (*Task).ID)
		if err != nil {
			return err
		}
		return w.Object(f.On(taskConnectionObject), page)
	}
	page, err := pageOfOrigins(r, "statement.evidence", args, st, revisions, func(at kg.Revision) (*Message, error) { return r.messageOfCommit(w.Ctx, at) }, (*Message).ID)
	if err != nil {
		return err
	}
	return w.Object(f.On(messageConnectionObject), page)
}

// origin is the message or the task behind a commit. Its key is the revision.
type origin[T any] struct {
	value *T
	key   string
}

// pageOfOrigins returns a page of the values that find finds for the revisions, each once.
func pageOfOrigins[T any](r *run, list string, args knowledge.PageArgs, st *kg.Statement, revisions []kg.Revision, find func(kg.Revision) (*T, error), id func(*T) string) (*listPage[T], error) {
	p, err := r.openRange(list, args, limit.DefaultPageSize, math.MaxInt, views.KeyOfStatement(st.Quad))
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
