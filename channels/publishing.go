package channels

import (
	"fmt"
	"slices"

	"koine/kg"
)

// publishOp is a publication on its way. What it is made of is made before the
// committer is asked; what it comes to is of the last time that it was tried.
type publishOp struct {
	service    *Service
	author     kg.AgentID
	by         Caller
	reader     kg.Principal // whose eyes the author has
	message    *Message
	patches    []kg.Patch
	implied    []bool     // of the patches
	newChannel *Channel   // that is to be made with the message; nil for one that is there
	peer       kg.AgentID // the other one of a direct channel that may have to be made
	statements []kg.Patch // that the message is stored as, but for those of its place
	prefetch   *kg.Foresight
	hash       string // of the content, where there is a key
	salt       string // for the event of the scope, the same in each try; "" until there is one
	dryRun     bool   // it is only tried

	// extra, if set, writes what else is koine's own in the commit of the message. Where
	// that is done already it gives the message that came with it.
	extra func(tx *kg.Tx, m *Message) (first *Message, err error)

	published  *Message
	replayed   bool
	ownChanges int // changes that are not of the facts
}

// newPublishOp checks a publication, counts it, and makes it ready for the commit.
func (s *Service) newPublishOp(by Caller, p Publication) (*publishOp, error) {
	pub, err := s.checkPublication(by, p)
	if err != nil {
		return nil, err
	}
	if err := s.admitMessage(by, pub.message); err != nil {
		return nil, err
	}
	return pub, pub.prepareStatements()
}

// newDryRunOp makes a publication ready that is only tried: it is not counted.
func (s *Service) newDryRunOp(by Caller, p Publication) (*publishOp, error) {
	pub, err := s.checkPublication(by, p)
	if err != nil {
		return nil, err
	}
	pub.dryRun = true
	return pub, pub.prepareStatements()
}

// checkPublication is a publication that was checked, and is not ready yet.
func (s *Service) checkPublication(by Caller, p Publication) (*publishOp, error) {
	author, err := by.actingAgent()
	if err != nil {
		return nil, err
	}
	m, err := p.newMessage(author)
	if err != nil {
		return nil, err
	}
	if m.ContentType == Notice && !by.Principal.Trusted() {
		return nil, errDenied("only koine itself publishes content of the type system").At("contentType")
	}
	if m.Channel, err = s.resolveTarget(author, &p); err != nil {
		return nil, err
	}
	id, err := newID()
	if err != nil {
		return nil, err
	}
	m.ID, m.FactCount = MessageID(id), p.countExplicit()
	return &publishOp{service: s, author: author, by: by, reader: by.readerPrincipal(author), message: m, patches: slices.Clone(p.Patches), implied: p.Implied, peer: p.To}, nil
}

// resolveTarget is the channel that a publication goes to.
func (s *Service) resolveTarget(author kg.AgentID, p *Publication) (ChannelID, error) {
	if p.To != "" {
		if p.Channel != "" {
			return "", kg.Errorf(kg.CodeInvalid, "a message goes to a channel or to an agent, not to both").At("to")
		}
		to, err := parseMember(p.To)
		if err != nil {
			return "", kg.AsError(err).At("to")
		}
		if to == author {
			return "", kg.Errorf(kg.CodeInvalid, "a direct channel is one of two agents").At("to")
		}
		p.To = to
		return DirectID(author, to), nil
	}
	if p.Channel == "" {
		return "", kg.Errorf(kg.CodeInvalid, "where to publish is missing").At("channelId")
	}
	if !p.Channel.isValid() {
		return "", errNoChannel()
	}
	if e := s.table.get(p.Channel); e == nil && p.Channel.IsDirect() {
		other := s.directPeer(p.Channel, author)
		if other == "" {
			return "", errNoChannel()
		}
		p.To = other
	}
	return p.Channel, nil
}

// prepareStatements makes what is written of what was said, as far as it can be made before.
func (p *publishOp) prepareStatements() (err error) {
	statements, err := p.message.storedStatements()
	if err != nil {
		return err
	}
	if p.message.IdempotencyKey != "" {
		if p.hash, err = p.hashContent(); err != nil {
			return err
		}
		statements = append(statements, statement{propContent, kg.String(p.hash)})
	}
	p.prefetch = p.service.store.Foresight(p.author, len(statements)+len(p.patches))
	p.statements = make([]kg.Patch, 0, len(statements))
	for _, st := range statements {
		if err := p.addStatement(st); err != nil {
			return err
		}
	}
	for i := range p.patches {
		q := &p.patches[i].Quad
		if q.Graph.IsZero() {
			e := p.service.table.get(p.message.Channel)
			if !e.isPublic() {
				q.Graph = p.message.Channel.FactsGraph()
			}
		}
		if err := p.prefetch.See(&p.patches[i]); err != nil {
			return kg.AsError(err).At(fmt.Sprintf("patches[%d]", i))
		}
	}
	return nil
}

// addStatement makes a statement about the message part of it. It is checked here, not while
// others wait for the committer.
func (p *publishOp) addStatement(st statement) error {
	q := kg.Quad{Predicate: st.property, Object: st.object}
	if len(p.statements) > 0 {
		q.Subject, q.Graph = p.statements[0].Quad.Subject, p.messagesGraph()
	} else {
		q.Subject, q.Graph = p.message.ID.Entity(), p.message.Channel.MessagesGraph()
	}
	p.statements = append(p.statements, kg.Patch{Op: kg.Add, Quad: q})
	return p.prefetch.See(&p.statements[len(p.statements)-1])
}

// messagesGraph is that of the channel's messages.
func (p *publishOp) messagesGraph() kg.Term { return p.statements[0].Quad.Graph }
