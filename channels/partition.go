package channels

import (
	"koine/channels/internal/check"
	"koine/channels/internal/vocab"
	"koine/channels/message"
	"koine/kg"
)

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
