package channels

import (
	"fmt"

	"koine/channels/channel"
	"koine/channels/internal/access"
	"koine/channels/internal/check"
	"koine/channels/internal/journal"
	"koine/channels/internal/retention"
	"koine/channels/internal/vocab"
	"koine/channels/message"
	"koine/kg"
)

// publishWithFacts publishes the message and its facts.
func (p *publishOp) publishWithFacts(tx *kg.Tx) error {
	done, err := p.publishMessage(tx, "")
	if err != nil || done {
		return err
	}
	for i := range p.patches {
		if i < len(p.implied) && p.implied[i] {
			if asserted, err := hasAssertionBy(tx, &p.patches[i]); asserted || err != nil {
				if err != nil {
					return err
				}
				continue
			}
		}
		if err := tx.Apply(p.patches[i]); err != nil {
			return kg.AsError(err).At(fmt.Sprintf("patches[%d]", i))
		}
	}
	return nil
}

// hasAssertionBy reports whether the source of a patch already asserts its statement.
func hasAssertionBy(tx *kg.Tx, p *kg.Patch) (bool, error) {
	for st, err := range tx.Match(kg.Pattern(p.Quad)) {
		if err != nil {
			return false, err
		}
		for i := range st.Assertions {
			if st.Assertions[i].Source == p.Source {
				return true, nil
			}
		}
	}
	return false, nil
}

// publishWithoutFacts publishes the message while its facts await review in a proposal.
func (p *publishOp) publishWithoutFacts(tx *kg.Tx, proposal string) error {
	_, err := p.publishMessage(tx, proposal)
	return err
}

// publishMessage writes the message. replayed reports that its idempotency key found an
// earlier one.
func (p *publishOp) publishMessage(tx *kg.Tx, proposal string) (replayed bool, err error) {
	m := *p.message
	p.published, p.replayed, p.earlier, p.ownChanges = &m, false, nil, 0
	e, err := p.authorizeAuthor(tx)
	if err != nil {
		return false, err
	}
	first, err := p.checkEarlier(tx, e, &m)
	if err != nil {
		return false, err
	}
	if first != nil {
		p.published, p.replayed = first, true
		return true, nil
	}
	n, err := tx.CountOwn(p.messagesGraph(), kg.Sequence)
	if err != nil {
		return false, err
	}
	m.Sequence, m.Time, m.ProposalID = int64(n)+1, tx.Time(), proposal
	address := recipientResolver{tx: tx, entry: e, message: &m}
	if err := address.resolveRecipients(); err != nil {
		return false, err
	}
	if err := p.writeMessage(tx, e, &m, address.request); err != nil {
		return false, err
	}
	evicted, err := retention.EvictOldest(tx, e, m.Sequence)
	if p.ownChanges += evicted; err != nil {
		return false, err
	}
	audited, err := auditMessage(tx, e, &m, &p.salt)
	p.ownChanges += audited
	return false, err
}

// checkEarlier returns the earlier message of the same request, or nil. If there is
// none, it verifies that the channel is open and runs p.extra.
func (p *publishOp) checkEarlier(tx *kg.Tx, e *access.Entry, m *message.Message) (*message.Message, error) {
	if first, err := p.findEarlier(tx); err != nil || first != nil {
		return first, err
	}
	if err := journal.MustBeOpen(tx, &e.Channel); err != nil || p.extra == nil {
		return nil, err
	}
	return p.extra(tx, m)
}

// writeMessage writes the message, which has its sequence, time and recipients. request
// is the request that it answers, or nil.
func (p *publishOp) writeMessage(tx *kg.Tx, e *access.Entry, m *message.Message, request *message.Message) error {
	graph := p.messagesGraph()
	content := graph
	if len(m.Recipients) > 0 && e.Kind != channel.Direct { // both agents of a direct channel read everything
		m.Private = true
		content = m.ContentGraph()
		made, err := openPartition(tx, m, p.service.options.MaxPartitions)
		if p.ownChanges += made; err != nil {
			return err
		}
	}
	write := func(st vocab.Statement) error {
		p.ownChanges++
		patch, err := p.statements[0].With(st.Property, st.Object)
		if err != nil {
			return err
		}
		if !message.Skeleton[st.Property] {
			patch.Quad.Graph = content
		}
		return tx.ApplyOwn(patch)
	}
	for _, patch := range p.statements {
		p.ownChanges++
		if !message.Skeleton[patch.Quad.Predicate] {
			patch.Quad.Graph = content
		}
		if err := tx.ApplyOwn(patch); err != nil {
			return err
		}
	}
	if m.Private {
		if err := write(vocab.NewStatement(vocab.Payload, content)); err != nil {
			return err
		}
	}
	placed := m.AddressStatements()
	if m.FactCount > 0 {
		placed = append(placed, vocab.NewStatement(vocab.FactCount, kg.Integer(int64(m.FactCount))))
	}
	if m.ProposalID != "" {
		placed = append(placed, vocab.NewStatement(vocab.Proposal, kg.String(m.ProposalID)))
	}
	for _, st := range placed {
		if err := write(st); err != nil {
			return err
		}
	}
	if request != nil && request.Answered == "" {
		n, err := p.service.markAnswered(tx, request, m.ID)
		if p.ownChanges += n; err != nil {
			return err
		}
	}
	if err := write(vocab.NewStatement(vocab.Sent, tx.TimeTerm())); err != nil {
		return err
	}
	return write(vocab.NewStatement(kg.Sequence, kg.Integer(m.Sequence)))
}

// authorizeAuthor returns an error if the author may not publish, and creates the
// channel if the message is its first. It returns the entry as of the update.
func (p *publishOp) authorizeAuthor(tx *kg.Tx) (*access.Entry, error) {
	e := p.service.table.Get(p.message.Channel).AtTime(tx.Time()).AsPrincipal(p.reader).SeenBy(p.by)
	switch {
	case e == nil && p.newChannel != nil:
		return p.createFirstChannel(tx)
	case e == nil && p.peer != "":
		return p.createDirect(tx)
	case p.message.ContentType == message.Notice && e != nil && !e.Deleted: // published by koine itself
		return e, nil
	case p.message.Retracts != "":
		return e, e.MustRetract(p.author)
	default:
		return e, e.MustPost(p.author)
	}
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
