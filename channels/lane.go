package channels

import (
	"slices"

	"github.com/tidwall/btree"

	"koine/kg"
)

// skeleton are the properties of a message that everybody who reads the channel
// may know, also where it is addressed to some only.
var skeleton = map[kg.Term]bool{
	kg.Sequence: true, rdfType: true, propChannel: true, propAuthor: true, propSent: true,
	propInteraction: true, propTo: true, propRecipient: true, propPayload: true,
}

// partitionReaders are the readers of lanes, by the graph.
type partitionReaders map[kg.Term][]kg.AgentID

// applyStatement takes a statement of a channel's record in.
func (l partitionReaders) applyStatement(q kg.Quad) {
	if q.Predicate != propLaneReader {
		return
	}
	id, part := channelOfGraph(q.Subject)
	if part == partitionPart && q.Graph == id.RecordGraph() {
		l[q.Subject] = append(l[q.Subject], kg.AgentID(q.Object.Value()))
	}
}

// addPartitions makes lanes known. Nobody reads one before. The table is locked.
func (t *table) addPartitions(lanes partitionReaders) {
	for graph, readers := range lanes {
		slices.Sort(readers)
		t.partitions.Store(graph, readers)
		id, _ := channelOfGraph(graph)
		reindex(t.byPartition, id, nil, readers, func(a kg.AgentID) kg.AgentID { return a })
	}
}

// inboxChannels lists the channels that the agent is a member of or has a lane in, in the
// order of their ids.
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

// openPartition writes down who reads the content of a message that is addressed to
// some only, unless that stands already. made counts what was written.
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
		e := errTooMuch("recipient", "messages of the channel were addressed to %d sets of agents alone already, as many as may be", n)
		e.Hint = "address everybody, or use a direct channel or one for these agents"
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

// readerSet are those who read a private message: its author and its recipients.
func (m *Message) readerSet() []kg.AgentID {
	list := append([]kg.AgentID{m.Author}, m.Recipients...)
	slices.Sort(list)
	return slices.Compact(list)
}

// isReadableBy tells whether the agent, who reads the channel, reads the content.
func (m *Message) isReadableBy(agent kg.AgentID) bool {
	return !m.Private || agent == m.Author || slices.Contains(m.Recipients, agent)
}

// contentGraph is the graph with what only some may know of the message.
func (m *Message) contentGraph() kg.Term {
	if m.Private {
		return m.Channel.partitionGraph(m.readerSet())
	}
	return m.Channel.MessagesGraph()
}
