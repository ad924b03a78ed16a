package channels

import (
	"slices"

	"github.com/tidwall/btree"

	"koine/kg"
)

// skeleton is the set of message properties that all readers of the channel may see,
// even if the message is addressed to some.
var skeleton = map[kg.Term]bool{
	kg.Sequence: true, rdfType: true, propChannel: true, propAuthor: true, propSent: true,
	propInteraction: true, propTo: true, propRecipient: true, propPayload: true,
}

// partitionReaders maps partition graphs to their readers.
type partitionReaders map[kg.Term][]kg.AgentID

// applyStatement adds a statement of a channel's record.
func (l partitionReaders) applyStatement(q kg.Quad) {
	if q.Predicate != propLaneReader {
		return
	}
	id, part := channelOfGraph(q.Subject)
	if part == partitionPart && q.Graph == id.RecordGraph() {
		l[q.Subject] = append(l[q.Subject], kg.AgentID(q.Object.Value()))
	}
}

// addPartitions adds partitions to the table. Until then, no agent can read them. The
// caller holds the lock of the table.
func (t *table) addPartitions(lanes partitionReaders) {
	for graph, readers := range lanes {
		slices.Sort(readers)
		t.partitions.Store(graph, readers)
		id, _ := channelOfGraph(graph)
		reindex(t.byPartition, id, nil, readers, func(a kg.AgentID) kg.AgentID { return a })
	}
}

// inboxChannels lists the channels that the agent is a member of or has a partition in,
// sorted by id.
func (t *table) inboxChannels(agent kg.AgentID) []ChannelID {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var list []ChannelID
	for _, index := range []map[kg.AgentID]*btree.Set[ChannelID]{t.byMember, t.byPartition} {
		if set := index[agent]; set != nil {
			list = append(list, set.Keys()...)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// openPartition records the readers of the partition of an addressed message, unless it
// exists. It returns the number of statements written.
func openPartition(tx *kg.Tx, m *Message, most int) (made int, err error) {
	record, lane := m.Channel.RecordGraph(), m.contentGraph()
	for _, err := range tx.MatchOwn(kg.Pattern{Subject: lane, Predicate: propLaneReader, Graph: record}) {
		return 0, err
	}
	n, err := tx.CountOwn(record, propLane)
	if err != nil {
		return 0, err
	}
	if n >= uint64(most) {
		e := errTooMuch("recipient", "channel has messages to %d different sets of agents, which is the limit", n)
		e.Hint = "address everyone, or use a direct channel or a channel of these agents"
		return 0, e
	}
	list := []kg.Quad{{Subject: m.Channel.Entity(), Predicate: propLane, Object: lane, Graph: record}}
	for _, agent := range m.readerSet() {
		list = append(list, kg.Quad{Subject: lane, Predicate: propLaneReader, Object: kg.IRI(string(agent)), Graph: record})
	}
	for _, q := range list {
		if err := tx.ApplyOwn(kg.Patch{Op: kg.Add, Quad: q}); err != nil {
			return made, err
		}
		made++
	}
	return made, nil
}

// readerSet returns the readers of a private message: its author and its recipients.
func (m *Message) readerSet() []kg.AgentID {
	list := append([]kg.AgentID{m.Author}, m.Recipients...)
	slices.Sort(list)
	return slices.Compact(list)
}

// isReadableBy reports whether the agent, which can read the channel, can read the
// content.
func (m *Message) isReadableBy(agent kg.AgentID) bool {
	return !m.Private || agent == m.Author || slices.Contains(m.Recipients, agent)
}

// contentGraph returns the graph of the content.
func (m *Message) contentGraph() kg.Term {
	if m.Private {
		return m.Channel.partitionGraph(m.readerSet())
	}
	return m.Channel.MessagesGraph()
}
