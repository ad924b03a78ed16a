package channels

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"koine/channels/channel"
	"koine/channels/internal/access"
	"koine/channels/internal/journal"
	"koine/channels/internal/vocab"
	"koine/channels/message"
	"koine/internal/systemgraph"
	"koine/kg"
)

// HeldReviews keeps the proposals of held messages (proposals.Service).
type HeldReviews interface {
	// HoldMessage stores a proposal for a message within the commit that holds it, and
	// returns its id. recipient is the address of the message, "" for everyone.
	HoldMessage(tx *kg.Tx, h *kg.HeldUpdate, channel, recipient string) (id string, err error)
	// ExpireHeld ends some proposals of messages that have expired. It reports whether
	// there may be more.
	ExpireHeld(ctx context.Context) (more bool, err error)
}

// heldPieceBytes is the size of the text in one statement of a held message.
const heldPieceBytes = 128 << 10

// heldCheckPause is the interval at which expired holds are ended.
const heldCheckPause = 30 * time.Second

// heldPublication is the stored form of a held message. Its facts are the patches of
// the proposal.
type heldPublication struct {
	Author       kg.AgentID          `json:"author"`
	Peer         kg.AgentID          `json:"peer,omitempty"` // of a direct channel
	Parts        []string            `json:"parts"`          // byte for byte
	Metadata     *string             `json:"metadata,omitempty"`
	Embedding    *kg.Embedding       `json:"embedding,omitempty"`
	ArtifactRefs []string            `json:"artifactRefs,omitempty"`
	Interaction  message.Interaction `json:"messageType,omitempty"`
	ContentType  message.ContentType `json:"contentType,omitempty"`
	Format       string              `json:"format,omitempty"`
	Tags         []string            `json:"tags,omitempty"`
	To           string              `json:"to,omitempty"`
	Correlation  message.ID          `json:"correlationId,omitempty"`
	ExpiresAt    *time.Time          `json:"expiresAt,omitempty"`
	ReplyTo      message.ID          `json:"replyToId,omitempty"`
	Thread       string              `json:"threadId,omitempty"`
	Key          string              `json:"idempotencyKey,omitempty"`
	Hash         string              `json:"hash,omitempty"`
	Implied      []bool              `json:"implied,omitempty"`
	FactCount    int                 `json:"facts,omitempty"`
}

func errContentHeld(proposal string) *kg.Error {
	e := kg.Errorf(kg.CodeContentHeld, "message is held for review in the proposal %s", proposal)
	e.ProposalID = proposal
	e.Hint = "nothing was published: the message is published when the proposal is approved; otherwise the reason comes in a message of agent://koine"
	return e
}

// holdPublication stores the message and its facts for a review.
func (s *Service) holdPublication(ctx context.Context, meta kg.Meta, p *publishOp, v kg.Verdict) (*Receipt, error) {
	if len(p.patches) > 0 { // facts that are refused anyway need no review
		trial := meta
		trial.WhenHeld = p.publishWithoutFacts
		facts, err := s.tryPublication(ctx, trial, p.publishWithFacts)
		switch {
		case err != nil:
			return nil, err
		case facts.Verdict.Outcome == kg.Held:
			v = v.And(facts.Verdict)
		case facts.Verdict.Outcome != kg.Accepted:
			return &Receipt{Verdict: facts.Verdict}, nil
		}
	}
	pieces, err := p.heldPieces()
	if err != nil {
		return nil, err
	}
	var id string
	receipt, err := systemgraph.UpdateWithReceipt(ctx, s.store, meta, func(tx *kg.Tx) (err error) {
		id, err = p.hold(tx, v, pieces)
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case p.replayed:
		return p.newReceipt(receipt), nil
	}
	return nil, errContentHeld(id)
}

// hold writes the held message in the commit that creates its proposal. A channel that
// is created by name with the message is created now, a direct channel with its first
// message.
func (p *publishOp) hold(tx *kg.Tx, v kg.Verdict, pieces []string) (string, error) {
	p.published, p.replayed, p.earlier, p.ownChanges = nil, false, nil, 0
	e, err := p.authorizeHold(tx)
	if err != nil {
		return "", err
	}
	first, err := p.findEarlier(tx)
	if err != nil || first != nil {
		p.published, p.replayed = first, first != nil
		return "", err
	}
	if err := journal.MustBeOpen(tx, &e.Channel); err != nil {
		return "", err
	}
	to := p.message.To
	if e.Kind == channel.Direct || to == message.Everyone {
		to = "" // both agents of a direct channel read everything
	} else if p.message.Interaction == message.Response {
		to = string(p.message.Correlation) // the author of that request: not an address that anyone has
	}
	patches := slices.Clone(p.patches)
	for i := range patches {
		if q := &patches[i]; q.Quad.Graph.IsZero() {
			q.Quad.Graph = kg.DefaultGraph
		}
		if patches[i].Source == "" {
			patches[i].Source = p.author
		}
	}
	id, err := p.service.options.Reviews.HoldMessage(tx, &kg.HeldUpdate{Meta: tx.Meta(), Patches: patches, Verdict: v}, string(p.message.Channel), to)
	if err != nil {
		return "", err
	}
	statements := []vocab.Statement{vocab.NewStatement(vocab.Verdict, kg.String(storedHeld)), vocab.NewStatement(vocab.Proposal, kg.String(id))}
	for _, piece := range pieces {
		statements = append(statements, vocab.NewStatement(vocab.Held, kg.String(piece)))
	}
	return id, p.writeVerdict(tx, statements...)
}

// authorizeHold returns the channel of a message to hold, or an error if its author may
// not publish there.
func (p *publishOp) authorizeHold(tx *kg.Tx) (*access.Entry, error) {
	if p.peer == "" || p.service.table.Get(p.message.Channel) != nil {
		return p.authorizeAuthor(tx)
	}
	if err := tx.CheckAgent(p.peer); err != nil {
		return nil, kg.AsError(err).At("to")
	}
	e := p.service.table.NewDirectEntry(p.author, p.peer).AtTime(tx.Time())
	return e, e.MustPost(p.author)
}

// heldPieces returns the stored form of the message in numbered pieces.
func (p *publishOp) heldPieces() (pieces []string, err error) {
	m := p.message
	h := heldPublication{
		Author: p.author, Peer: p.peer, Embedding: m.Embedding, ArtifactRefs: m.ArtifactRefs, Interaction: m.Interaction, ContentType: m.ContentType, Format: m.Format, Tags: m.Tags,
		To: m.To, Correlation: m.Correlation, ReplyTo: m.ReplyTo, Thread: m.Thread, Key: m.IdempotencyKey, Hash: p.hash, Implied: p.implied, FactCount: m.FactCount,
	}
	for _, part := range m.Parts {
		h.Parts = append(h.Parts, string(part))
	}
	if m.Metadata != nil {
		text := string(m.Metadata)
		h.Metadata = &text
	}
	if !m.ExpiresAt.IsZero() {
		h.ExpiresAt = &m.ExpiresAt
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(h); err != nil {
		return nil, err
	}
	for text := b.String(); text != ""; {
		n := min(heldPieceBytes, len(text))
		for n < len(text) && !utf8.RuneStart(text[n]) {
			n--
		}
		pieces = append(pieces, fmt.Sprintf("%06d%s", len(pieces), text[:n]))
		text = text[n:]
	}
	return pieces, nil
}

// message returns the message of a held publication.
func (h *heldPublication) message(id message.ID, of channel.ID) *message.Message {
	m := &message.Message{
		ID: id, Channel: of, Author: h.Author, Embedding: h.Embedding, ArtifactRefs: h.ArtifactRefs, IdempotencyKey: h.Key, FactCount: h.FactCount,
		Envelope: message.Envelope{Interaction: h.Interaction, ContentType: h.ContentType, Format: h.Format, Tags: h.Tags, To: h.To, Correlation: h.Correlation, ReplyTo: h.ReplyTo, Thread: h.Thread},
	}
	for _, part := range h.Parts {
		m.Parts = append(m.Parts, json.RawMessage(part))
	}
	if h.Metadata != nil {
		m.Metadata = []byte(*h.Metadata)
	}
	if h.ExpiresAt != nil {
		m.ExpiresAt = *h.ExpiresAt
	}
	return m
}

// readHeld reads a held message; nil if its review has ended or it was erased.
func (s *Service) readHeld(ctx context.Context, of channel.ID, id message.ID) (*heldPublication, error) {
	snapshot, err := s.journal.SystemView(ctx)
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	quads, err := systemgraph.Quads(snapshot.Match, kg.Pattern{Subject: id.Entity(), Predicate: vocab.Held, Graph: of.VerdictsGraph()})
	if err != nil || len(quads) == 0 {
		return nil, err
	}
	var pieces []string
	for i := range quads {
		pieces = append(pieces, quads[i].Object.Value())
	}
	slices.Sort(pieces)
	var b strings.Builder
	for _, piece := range pieces {
		b.WriteString(piece[min(6, len(piece)):])
	}
	h := new(heldPublication)
	if err := json.Unmarshal([]byte(b.String()), h); err != nil {
		return nil, kg.Errorf(kg.CodeInternal, "held message cannot be read: %w", err)
	}
	return h, nil
}

// Held is the part of a Service for messages that wait for a review (proposals.Messages).
type Held struct{ service *Service }

// NewHeld returns the part of a service for messages that wait for a review.
func NewHeld(s *Service) *Held { return &Held{service: s} }

// MayReview reports whether a principal may see a held message, apart from its author:
// addressed readers of the channel, and administrators.
func (h *Held) MayReview(p kg.Principal, author kg.AgentID, of, recipient string) bool {
	return h.service.table.MayReview(p, author, channel.ID(of), recipient)
}

// Message returns a message that waits for its review, nil if the review has ended
// or the channel was deleted. The caller must have access to the proposal.
func (h *Held) Message(ctx context.Context, of channel.ID, id message.ID) (*message.Message, error) {
	if e := h.service.table.Get(of); e != nil && e.Deleted {
		return nil, nil
	}
	p, err := h.service.readHeld(ctx, of, id)
	if p == nil || err != nil {
		return nil, err
	}
	return p.message(id, of), nil
}

// PrepareHeld prepares the publication of an approved message with its facts, in the
// name of its author with the author's present rights. publish is called in the commit
// that ends the proposal, done after it.
//
// Errors, also of publish: those of Publish.
func (h *Held) PrepareHeld(ctx context.Context, author kg.Principal, actor kg.AgentID, of, id string, patches []kg.Patch) (publish func(*kg.Tx) error, done func(), err error) {
	s := h.service
	stored, err := s.readHeld(ctx, channel.ID(of), message.ID(id))
	if err != nil {
		return nil, nil, err
	}
	if stored == nil {
		return nil, nil, kg.Errorf(kg.CodeInvalid, "held message no longer exists")
	}
	by := Caller{Principal: author, Actor: actor}
	agent, err := by.ActingAgent()
	if err != nil {
		return nil, nil, err
	}
	p := &publishOp{
		service: s, author: agent, by: by, reader: by.ReaderPrincipal(agent), message: stored.message(message.ID(id), channel.ID(of)),
		patches: slices.Clone(patches), implied: stored.Implied, peer: stored.Peer, hash: stored.Hash, reviewed: true,
	}
	if err := p.prepareStatements(); err != nil {
		return nil, nil, err
	}
	release := func() {}
	if coming := p.pendingEntry(); coming != nil {
		release = s.table.AddPending(coming)
	}
	done = func() {
		release()
		if m := p.published; m != nil && m.Sequence > 0 {
			s.counter.NotePublished(m.Channel, m.Sequence)
		}
	}
	return p.publishWithFacts, done, nil
}

// EndHeld removes the content of a held message in the commit that ends its proposal.
// The key of a message that was not published keeps its answer. If why is given, a
// message of koine tells the author.
func (h *Held) EndHeld(tx *kg.Tx, of, id, proposal string, author kg.AgentID, published bool, why string) error {
	s := h.service
	c, subject := channel.ID(of), message.ID(id).Entity()
	graph := c.VerdictsGraph()
	_, keyed, err := systemgraph.First(tx.MatchOwn, kg.Pattern{Subject: subject, Predicate: vocab.Once, Graph: graph})
	if err != nil {
		return err
	}
	gone := kg.Pattern{Subject: subject, Graph: graph}
	if keyed && !published {
		gone.Predicate = vocab.Held
	}
	if err := systemgraph.Remove(tx, gone); err != nil {
		return err
	}
	if keyed && !published {
		if err := s.trimVerdicts(tx, graph); err != nil {
			return err
		}
		kept := kg.Quad{Subject: subject, Predicate: vocab.Verdict, Object: kg.String(storedRejected), Graph: graph}
		if err := tx.ApplyOwn(kg.Patch{Op: kg.Replace, Quad: kept, Source: author}); err != nil {
			return err
		}
	}
	if why == "" || s.table.ChannelCount() >= s.options.MaxChannels {
		return nil
	}
	return s.tellAuthor(tx, c, id, proposal, author, why)
}

// tellAuthor publishes the reason for which a held message was not published, in the
// direct channel of koine and the author.
func (s *Service) tellAuthor(tx *kg.Tx, of channel.ID, id, proposal string, author kg.AgentID, why string) error {
	part, err := json.Marshal(map[string]string{"type": "text", "text": "A message of yours was not published. " + why})
	if err != nil {
		return err
	}
	about, err := json.Marshal(map[string]string{"event": "messageRefused", "proposalId": proposal, "messageId": id, "channelId": string(of)})
	if err != nil {
		return err
	}
	notice, err := s.newPublishOp(Caller{Principal: kg.SystemPrincipal()}, Publication{
		To: author, Parts: []json.RawMessage{part}, Metadata: about, Envelope: message.Envelope{Interaction: message.Notification, ContentType: message.Notice},
	})
	if err != nil {
		return err
	}
	_, err = notice.publishMessage(tx, "")
	return err
}

// expireHeld ends expired holds until the context is done, so that their authors are
// told in time.
func (s *Service) expireHeld(ctx context.Context) error {
	tick := time.NewTicker(heldCheckPause)
	defer tick.Stop()
	for {
		more, err := s.options.Reviews.ExpireHeld(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil && more:
			continue
		}
		select { // a store that cannot write now may later
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
