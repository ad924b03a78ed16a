package channels

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"koine/kg"
)

// Receipt is the answer to a publication.
type Receipt struct {
	// Message is the one that was published, or the first one with the same key;
	// nil when the facts were refused, and with them the message.
	Message *Message
	// Replayed tells that it is the first one.
	Replayed bool
	// Verdict is that on the facts. Where it is kg.Held, the message was published
	// and Message.ProposalID says where the facts wait.
	Verdict kg.Verdict
	// Affected counts the changes that the facts made.
	Affected int
}

// Publish appends a message to a channel. Members may.
//
// Errors: CodeChannelNotFound; CodePermissionDenied for who may read only; CodeChannelClosed;
// CodeIdempotencyConflict for a key that was used for another message;
// CodeLimitExceeded past a bound; CodeRateLimited past one in a minute; CodeNotMember and CodeNoRecipient for an address
// that nobody in the channel has; CodeMessageExpired for a response to a request
// that has expired; those of kg.Tx.Apply for the patches.
func (s *Service) Publish(ctx context.Context, by Caller, p Publication) (*Receipt, error) {
	return s.publishIn(ctx, by, p, nil)
}

// publishIn publishes in a channel that is there, or in one that is to be made.
func (s *Service) publishIn(ctx context.Context, by Caller, p Publication, make *Channel) (*Receipt, error) {
	pub, err := s.publishing(by, p)
	if err != nil {
		return nil, err
	}
	pub.make = make
	if coming := pub.coming(); coming != nil {
		s.table.coming.Store(coming.ID, coming)
		defer s.table.coming.CompareAndDelete(coming.ID, coming)
	}
	meta := by.meta("channels/publish")
	meta.MessageID, meta.Justification, meta.TaskID, meta.SessionID = string(pub.message.ID), p.Justification, p.TaskID, p.SessionID
	if len(p.Patches) > 0 {
		meta.WhenHeld = pub.withoutFacts
	}
	receipt, err := s.store.Update(ctx, meta, pub.withFacts)
	if err != nil {
		return nil, err
	}
	return pub.receipt(receipt), nil
}

// coming is the channel that is made with the message, as it will be; nil if it is
// there. Whoever may publish in it writes its facts in the same commit.
func (p *publishing) coming() *entry {
	switch t := &p.service.table; {
	case p.make != nil:
		return t.unborn(*p.make)
	case p.direct != "" && t.get(p.message.Channel) == nil:
		return t.directOf(p.author, p.direct)
	}
	return nil
}

// publishing checks a publication, counts it, and makes it ready for the commit.
func (s *Service) publishing(by Caller, p Publication) (*publishing, error) {
	pub, err := s.checked(by, p)
	if err != nil {
		return nil, err
	}
	if err := s.admit(by, pub.message); err != nil {
		return nil, err
	}
	return pub, pub.prepare()
}

// checked is a publication that was checked, and is not ready yet.
func (s *Service) checked(by Caller, p Publication) (*publishing, error) {
	author, err := by.agent()
	if err != nil {
		return nil, err
	}
	m, err := p.message(author)
	if err != nil {
		return nil, err
	}
	if m.ContentType == Notice && !by.Principal.Trusted() {
		return nil, errDenied("only koine itself publishes content of the type system").At("contentType")
	}
	if m.Channel, err = s.target(author, &p); err != nil {
		return nil, err
	}
	id, err := newID()
	if err != nil {
		return nil, err
	}
	m.ID = MessageID(id)
	return &publishing{service: s, author: author, by: by, reader: by.reader(author), message: m, patches: slices.Clone(p.Patches), implied: p.Implied, direct: p.To}, nil
}

// trying makes a publication ready that is only tried: it is not counted.
func (s *Service) trying(by Caller, p Publication) (*publishing, error) {
	pub, err := s.checked(by, p)
	if err != nil {
		return nil, err
	}
	pub.dry = true
	return pub, pub.prepare()
}

// receipt is what is answered, of what the store answered.
func (p *publishing) receipt(r kg.Receipt) *Receipt {
	out := &Receipt{Message: p.done, Replayed: p.replayed, Verdict: r.Verdict}
	switch {
	case p.replayed:
		out.Verdict = kg.Verdict{}
		if p.done.ProposalID != "" {
			out.Verdict = kg.Verdict{Outcome: kg.Held, Reason: kg.ReasonHeld}
		}
	case r.Verdict.Outcome != kg.Accepted && r.Verdict.Outcome != kg.Held:
		out.Message = nil
	default:
		p.done.Revision = r.Revision
		if !p.dry {
			p.service.counting.published(p.done.Channel, p.done.Sequence)
		}
		if r.Verdict.Outcome == kg.Accepted {
			out.Affected = r.Affected - p.own
		}
	}
	return out
}

// target is the channel that a publication goes to.
func (s *Service) target(author kg.AgentID, p *Publication) (ChannelID, error) {
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
	if !p.Channel.valid() {
		return "", errNoChannel()
	}
	if e := s.table.get(p.Channel); e == nil && p.Channel.IsDirect() {
		other := s.otherOf(p.Channel, author)
		if other == "" {
			return "", errNoChannel()
		}
		p.To = other
	}
	return p.Channel, nil
}

// publishing is a publication on its way. What it is made of is made before the
// committer is asked; what it comes to is of the last time that it was tried.
type publishing struct {
	service    *Service
	author     kg.AgentID
	by         Caller
	reader     kg.Principal // whose eyes the author has
	message    *Message
	patches    []kg.Patch
	implied    []bool     // of the patches
	make       *Channel   // that is to be made with the message; nil for one that is there
	direct     kg.AgentID // the other one of a direct channel that may have to be made
	statements []kg.Patch // that the message is stored as, but for those of its place
	hash       string     // of the content, where there is a key
	salt       string     // for the event of the scope, the same in each try; "" until there is one
	dry        bool       // it is only tried

	// also, if set, writes what else is koine's own in the commit of the message. Where
	// that is done already it gives the message that came with it.
	also func(tx *kg.Tx, m *Message) (first *Message, err error)

	done     *Message
	replayed bool
	own      int // changes that are not of the facts
}

func (p *publishing) prepare() (err error) {
	statements, err := p.message.statements()
	if err != nil {
		return err
	}
	if p.message.IdempotencyKey != "" {
		content, err := p.message.content([]byte(patchesText(p.patches)))
		if err != nil {
			return err
		}
		sum := sha256.Sum256(content)
		p.hash = hex.EncodeToString(sum[:])
		statements = append(statements, statement{propContent, kg.String(p.hash)})
	}
	p.statements = make([]kg.Patch, 0, len(statements))
	for _, st := range statements {
		if err := p.state(st); err != nil {
			return err
		}
	}
	for i := range p.patches {
		q := &p.patches[i].Quad
		if q.Graph.IsZero() {
			e := p.service.table.get(p.message.Channel)
			if !e.open() {
				q.Graph = p.message.Channel.FactsGraph()
			}
		}
		if err := p.patches[i].Normalise(p.author); err != nil {
			return kg.AsError(err).At(fmt.Sprintf("patches[%d]", i))
		}
	}
	return nil
}

// state makes a statement about the message part of it. It is checked here, not while
// others wait for the committer.
func (p *publishing) state(st statement) error {
	patch := kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: p.message.ID.Entity(), Predicate: st.property, Object: st.object, Graph: p.message.Channel.MessagesGraph()}}
	if err := patch.Normalise(p.author); err != nil {
		return err
	}
	p.statements = append(p.statements, patch)
	return nil
}

// patchesText is JSON that is the same for the same patches, "" for none.
func patchesText(patches []kg.Patch) string {
	if len(patches) == 0 {
		return ""
	}
	var b strings.Builder
	for i := range patches {
		p := &patches[i]
		fmt.Fprintf(&b, "%s %s %s %s %s %s %t %v %v %v %s\n", p.Op, p.Quad.Subject, p.Quad.Predicate, p.Quad.Object, p.Quad.Graph, p.Source,
			p.HasCertainty, p.Certainty, p.Validity.From.UnixMilli(), p.Validity.Until.UnixMilli(), p.Provenance)
	}
	return strconv.Quote(hex.EncodeToString([]byte(b.String())))
}

// withFacts publishes the message with its facts.
func (p *publishing) withFacts(tx *kg.Tx) error {
	done, err := p.publish(tx, "")
	if err != nil || done {
		return err
	}
	for i := range p.patches {
		if i < len(p.implied) && p.implied[i] {
			if said, err := says(tx, &p.patches[i]); said || err != nil {
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

// says tells whether the source of a patch backs its statement.
func says(tx *kg.Tx, p *kg.Patch) (bool, error) {
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
	if m.IdempotencyKey != "" {
		first, hash, err := p.first(tx)
		if err != nil {
			return false, err
		}
		if first != nil {
			if hash != p.hash && hash != "" { // whose content is gone, its hash is too
				return false, kg.Errorf(kg.CodeIdempotencyConflict, "the key was used for another message").At("idempotencyKey")
			}
			p.done, p.replayed = first, true
			return true, nil
		}
	}
	if err := p.service.mustBeOpen(tx, &e.Channel); err != nil {
		return false, err
	}
	if p.also != nil {
		first, err := p.also(tx, &m)
		if err != nil || first != nil {
			p.done, p.replayed = first, true
			return true, err
		}
	}
	graph, subject := m.Channel.MessagesGraph(), m.ID.Entity()
	n, err := tx.CountOwn(graph, kg.Sequence)
	if err != nil {
		return false, err
	}
	m.Sequence, m.Time, m.ProposalID = int64(n)+1, tx.Time(), proposal
	address := addressing{tx: tx, entry: e, message: &m}
	if err := address.find(); err != nil {
		return false, err
	}
	content := graph
	if len(m.Recipients) > 0 && e.Kind != Direct { // both read all of a direct channel
		m.Private = true
		content = m.contentGraph()
		made, err := openLane(tx, &m, p.service.options.MaxLanes)
		if p.own += made; err != nil {
			return false, err
		}
	}
	*p.done = m
	write := func(st statement) error {
		p.own++
		q := kg.Quad{Subject: subject, Predicate: st.property, Object: st.object, Graph: content}
		if skeleton[st.property] {
			q.Graph = graph
		}
		return tx.ApplyOwn(kg.Patch{Op: kg.Add, Quad: q})
	}
	for _, patch := range p.statements {
		p.own++
		if !skeleton[patch.Quad.Predicate] {
			patch.Quad.Graph = content
		}
		if err := tx.ApplyOwn(patch); err != nil {
			return false, err
		}
	}
	if m.Private {
		if err := write(statement{propPayload, content}); err != nil {
			return false, err
		}
	}
	for _, st := range m.address() {
		if err := write(st); err != nil {
			return false, err
		}
	}
	if proposal != "" {
		if err := write(statement{propProposal, kg.String(proposal)}); err != nil {
			return false, err
		}
	}
	if r := address.request; r != nil && r.Answered == "" {
		n, err := p.service.answer(tx, r, m.ID)
		if p.own += n; err != nil {
			return false, err
		}
	}
	if err := write(statement{propSent, kg.DateTime(m.Time)}); err != nil {
		return false, err
	}
	if err := write(statement{kg.Sequence, kg.Integer(m.Sequence)}); err != nil {
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

// may refuses an author who may not publish, and makes a direct channel at its
// first message. It gives the channel as it is in the update.
func (p *publishing) may(tx *kg.Tx) (*entry, error) {
	e := p.service.table.get(p.message.Channel).at(tx.Time()).as(p.reader).seenBy(p.by)
	switch {
	case e == nil && p.make != nil:
		return p.makeFirst(tx)
	case e == nil && p.direct != "":
		e = p.service.table.directOf(p.author, p.direct).at(tx.Time())
		if err := e.mustPost(p.author); err != nil {
			return nil, err
		}
		made, err := readChannel(tx.MatchOwn, p.message.Channel)
		if err != nil || made != nil {
			return e, err
		}
		n, err := p.service.makeDirect(tx, p.author, p.direct)
		p.own += n
		return e, err
	case p.message.ContentType == Notice && e != nil && !e.deleted: // of koine's own
		return e, nil
	case p.message.Retracts != "":
		return e, e.mustTakeBack(p.author)
	default:
		return e, e.mustPost(p.author)
	}
}

// first finds the message that the key made before, with the hash of its content.
func (p *publishing) first(tx *kg.Tx) (m *Message, hash string, err error) {
	object := once(p.message.Channel, p.author, p.message.IdempotencyKey)
	for st, err := range tx.MatchOwn(kg.Pattern{Predicate: propOnce, Object: object}) {
		if err != nil {
			return nil, "", err
		}
		if m, err = readMessage(tx.MatchOwn, p.message.Channel, messageOf(st.Subject)); err != nil || m == nil {
			return nil, "", err
		}
		break
	}
	if m == nil {
		return nil, "", nil
	}
	for st, err := range tx.MatchOwn(kg.Pattern{Subject: m.ID.Entity(), Predicate: propContent, Graph: m.contentGraph()}) {
		if err != nil {
			return nil, "", err
		}
		hash = st.Object.Value()
	}
	m.show(reading{p.author, tx.Time()})
	return m, hash, nil
}
