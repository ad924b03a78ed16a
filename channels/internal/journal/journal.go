// Package journal reads the messages of channels: pages of them from a snapshot, the one
// that a commit published, and the sequence that belongs to a time or a revision. It also
// tells whether a channel is open, which depends on the time of its last message.
//
// Begin with Read. A Journal decodes each commit once for all streams, and knows which
// messages have to be read again because a later commit changed how they are shown.
package journal

import (
	"context"
	"time"

	"koine/channels/channel"
	"koine/channels/internal/access"
	"koine/channels/message"
	"koine/kg"
)

// Journal reads the messages of the store. Create it before the store, and connect the two
// with open.
type Journal struct {
	Store   *kg.Store
	table   *access.Table
	clock   func() time.Time
	decoded decodedCache
	revised revisedIndex
}

func New(table *access.Table, clock func() time.Time) *Journal {
	return &Journal{table: table, clock: clock}
}

// Open connects the journal to its store, and follows it until stop is called.
func (j *Journal) Open(store *kg.Store) (stop func()) {
	j.Store = store
	return store.Observe(j.observeCommit)
}

// SystemView returns a snapshot of all graphs.
func (j *Journal) SystemView(ctx context.Context) (*kg.Snapshot, error) {
	return j.Store.View(ctx, kg.View{Principal: kg.SystemPrincipal(), AllGraphs: true})
}

// ViewerOf returns a viewer for the agent at the current time.
func (j *Journal) ViewerOf(agent kg.AgentID) message.Viewer {
	return message.Viewer{Agent: agent, Now: j.clock()}
}

// ViewerIn is ViewerOf for the agent of a caller that reads a channel, maybe as an overseer.
func (j *Journal) ViewerIn(by access.Caller, agent kg.AgentID, id channel.ID) message.Viewer {
	v := j.ViewerOf(agent)
	v.Oversees = j.table.Oversees(by.ReaderPrincipal(agent), id)
	return v
}

// Count returns the number of published messages without reading any.
func Count(snapshot *kg.Snapshot, id channel.ID) (int64, error) {
	return countOf(snapshot, id, kg.Sequence)
}

// countOf returns the number of messages that have a property, for properties with at
// most one value.
func countOf(snapshot *kg.Snapshot, id channel.ID, property kg.Term) (int64, error) {
	graph, known, err := snapshot.ID(id.MessagesGraph())
	if !known || err != nil {
		return 0, err
	}
	predicate, known, err := snapshot.ID(property)
	if !known || err != nil {
		return 0, err
	}
	n, _, err := snapshot.Estimate(kg.IDPattern{Graph: graph, Predicate: predicate})
	return int64(n), err
}

// ReadableView returns the agent of a caller that can read the channel, the channel's
// entry, and a snapshot of all graphs, which the caller must close.
func (j *Journal) ReadableView(ctx context.Context, by access.Caller, id channel.ID) (kg.AgentID, *access.Entry, *kg.Snapshot, error) {
	agent, e, err := j.table.OpenReadable(ctx, by, id)
	if err != nil {
		return "", nil, nil, err
	}
	snapshot, err := j.SystemView(ctx)
	return agent, e, snapshot, err
}
