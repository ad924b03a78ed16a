package channels

import (
	"fmt"

	"koine/kg"
)

// withFacts publishes the message with its facts.
func (p *publishing) withFacts(tx *kg.Tx) error {
	done, err := p.publish(tx, "")
	if err != nil || done {
		return err
	}
	for i := range p.patches {
		if i < len(p.implied) && p.implied[i] {
			if said, err := backs(tx, &p.patches[i]); said || err != nil {
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

// backs tells whether the source of a patch backs its statement.
func backs(tx *kg.Tx, p *kg.Patch) (bool, error) {
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

// withoutFacts publishes the message while its facts wait in a proposal.
func (p *publishing) withoutFacts(tx *kg.Tx, proposal string) error {
	_, err := p.publish(tx, proposal)
	return err
}

// publish writes the message. replayed tells that it is there already.
func (p *publishing) publish(tx *kg.Tx, proposal string) (replayed bool, err error) {
	m := *p.message
	p.done, p.replayed, p.own = &m, false, 0
	e, err := p.may(tx)
	if err != nil {
		return false, err
	}
	first, err := p.before(tx, e, &m)
	if err != nil {
		return false, err
	}
	if first != nil {
		p.done, p.replayed = first, true
		return true, nil
	}
	n, err := tx.CountOwn(p.graph(), kg.Sequence)
	if err != nil {
		return false, err
	}
	m.Sequence, m.Time, m.ProposalID = int64(n)+1, tx.Time(), proposal
	address := addressing{tx: tx, entry: e, message: &m}
	if err := address.find(); err != nil {
		return false, err
	}
	if err := p.write(tx, e, &m, address.request); err != nil {
		return false, err
	}
	evicted, err := p.service.evict(tx, e, m.Sequence)
	if p.own += evicted; err != nil {
		return false, err
	}
	audited, err := e.audit(tx, &m, &p.salt)
	p.own += audited
	return false, err
}

// before gives the message that says already what this one does, nil for none: then the
// channel is open, and what comes along with the message is written.
func (p *publishing) before(tx *kg.Tx, e *entry, m *Message) (*Message, error) {
	if first, err := p.first(tx); err != nil || first != nil {
		return first, err
	}
	if err := p.service.mustBeOpen(tx, &e.Channel); err != nil || p.also == nil {
		return nil, err
	}
	return p.also(tx, m)
}

// write writes the message, which has its number, its time and its recipients. request
// is that which it answers, nil for none.
func (p *publishing) write(tx *kg.Tx, e *entry, m *Message, request *Message) error {
	graph := p.graph()
	content := graph
	if len(m.Recipients) > 0 && e.Kind != Direct { // both read all of a direct channel
		m.Private = true
		content = m.contentGraph()
		made, err := openLane(tx, m, p.service.options.MaxPartitions)
		if p.own += made; err != nil {
			return err
		}
	}
	write := func(st statement) error {
		p.own++
		patch, err := p.statements[0].With(st.property, st.object)
		if err != nil {
			return err
		}
		if !skeleton[st.property] {
			patch.Quad.Graph = content
		}
		return tx.ApplyOwn(patch)
	}
	for _, patch := range p.statements {
		p.own++
		if !skeleton[patch.Quad.Predicate] {
			patch.Quad.Graph = content
		}
		if err := tx.ApplyOwn(patch); err != nil {
			return err
		}
	}
	if m.Private {
		if err := write(statement{propPayload, content}); err != nil {
			return err
		}
	}
	placed := m.address()
	if m.FactCount > 0 {
		placed = append(placed, statement{propFactCount, kg.Integer(int64(m.FactCount))})
	}
	if m.ProposalID != "" {
		placed = append(placed, statement{propProposal, kg.String(m.ProposalID)})
	}
	for _, st := range placed {
		if err := write(st); err != nil {
			return err
		}
	}
	if request != nil && request.Answered == "" {
		n, err := p.service.answer(tx, request, m.ID)
		if p.own += n; err != nil {
			return err
		}
	}
	if err := write(statement{propSent, tx.TimeTerm()}); err != nil {
		return err
	}
	return write(statement{kg.Sequence, kg.Integer(m.Sequence)})
}

// may refuses an author who may not publish, and makes a channel that begins with the
// message. It gives the channel as it is in the update.
func (p *publishing) may(tx *kg.Tx) (*entry, error) {
	e := p.service.table.get(p.message.Channel).at(tx.Time()).as(p.reader).seenBy(p.by)
	switch {
	case e == nil && p.make != nil:
		return p.makeFirst(tx)
	case e == nil && p.direct != "":
		return p.makeDirect(tx)
	case p.message.ContentType == Notice && e != nil && !e.deleted: // of koine's own
		return e, nil
	case p.message.Retracts != "":
		return e, e.mustTakeBack(p.author)
	default:
		return e, e.mustPost(p.author)
	}
}
