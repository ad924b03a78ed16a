package channels

import (
	"slices"

	"github.com/tidwall/btree"

	"koine/channels/channel"
	"koine/channels/internal/check"
	"koine/channels/internal/vocab"
	"koine/channels/message"
	"koine/kg"
)

// partitionReaders maps partition graphs to their readers.
type partitionReaders map[kg.Term][]kg.AgentID

// applyStatement adds a statement of a channel's record.
func (l partitionReaders) applyStatement(q kg.Quad) {
	if q.Predicate != vocab.LaneReader {
		return
	}
	id, part := channel.OfGraph(q.Subject)
	if part == channel.PartitionPart && q.Graph == id.RecordGraph() {
		l[q.Subject] = append(l[q.Subject], kg.AgentID(q.Object.Value()))
	}
}

// addPartitions adds partitions to the table. Until then, no agent can read them. The
// caller holds the lock of the table.
func (t *table) addPartitions(lanes partitionReaders) {
	for graph, readers := range lanes {
		slices.Sort(readers)
		t.partitions.Store(graph, readers)
		id, _ := channel.OfGraph(graph)
		reindex(t.byPartition, id, nil, readers, func(a kg.AgentID) kg.AgentID { return a })
	}
}

// inboxChannels lists the channels that the agent is a member of or has a partition in,
// sorted by id.
func (t *table) inboxChannels(agent kg.AgentID) []channel.ID {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var list []channel.ID
	for _, index := range []map[kg.AgentID]*btree.Set[channel.ID]{t.byMember, t.byPartition} {
		if set := index[agent]; set != nil {
			list = append(list, set.Keys()...)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// openPartition records the readers of the partition of an addressed message, unless it
// exists. It returns the number of statements written.
func openPartition(tx *kg.Tx, m *message.Message, most int) (made int, err error) {
	record, lane := m.Channel.RecordGraph(), m.ContentGraph()
	for _, err := range tx.MatchOwn(kg.Pattern{Subject: lane, Predicate: vocab.LaneReader, Graph: record}) {
		return 0, err
	}
	n, err := tx.CountOwn(record, vocab.Lane)
	if err != nil {
		return 0, err
	}
	if n >= uint64(most) {
		e := check.TooMuch("recipient", "channel has messages to %d different sets of agents, which is the limit", n)
		e.Hint = "address everyone, or use a direct channel or a channel of these agents"
		return 0, e
	}
	list := []kg.Quad{{Subject: m.Channel.Entity(), Predicate: vocab.Lane, Object: lane, Graph: record}}
	for _, agent := range m.ReaderSet() {
		list = append(list, kg.Quad{Subject: lane, Predicate: vocab.LaneReader, Object: kg.IRI(string(agent)), Graph: record})
	}
	for _, q := range list {
		if err := tx.ApplyOwn(kg.Patch{Op: kg.Add, Quad: q}); err != nil {
			return made, err
		}
		made++
	}
	return made, nil
}
