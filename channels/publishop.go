package channels

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"koine/channels/channel"
	"koine/channels/internal/check"
	"koine/channels/internal/vocab"
	"koine/channels/message"
	"koine/kg"
)

// publishOp is a publication in progress. The input is prepared before the update. The
// results are those of the last attempt, because the committer may retry.
type publishOp struct {
	service    *Service
	author     kg.AgentID
	by         Caller
	reader     kg.Principal // has the rights with which the author reads
	message    *message.Message
	patches    []kg.Patch
	implied    []bool           // parallel to patches
	newChannel *channel.Channel // channel to create with the message; nil if it exists
	peer       kg.AgentID       // other agent of a direct channel, which may have to be created
	entity     kg.Term          // the message
	statements []kg.Patch       // stored statements of the message, without those known only in the commit
	prefetch   *kg.TermPrefetch
	hash       string // content hash, if there is a key
	salt       string // for the event of the scope, the same in each attempt; "" until needed
	dryRun     bool   // dry run
	reviewed   bool   // a held message that was approved
	newID      bool   // the id of the message was made for it a moment ago

	// extra, if set, writes further system statements in the commit of the message. If
	// the work was done before, it returns the message that it was done with.
	extra func(tx *kg.Tx, m *message.Message) (first *message.Message, err error)

	published  *message.Message
	replayed   bool
	earlier    *earlierVerdict // verdict that the key got before; with errVerdictGiven
	ownChanges int             // changes other than the facts
}

// newPublishOp validates a publication, counts it against the rate limits, and prepares
// it for the commit.
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

// newDryRunOp is like newPublishOp for a dry run, which does not count against the rate
// limits.
func (s *Service) newDryRunOp(by Caller, p Publication) (*publishOp, error) {
	pub, err := s.checkPublication(by, p)
	if err != nil {
		return nil, err
	}
	pub.dryRun = true
	return pub, pub.prepareStatements()
}

// checkPublication validates a publication.
func (s *Service) checkPublication(by Caller, p Publication) (*publishOp, error) {
	author, err := by.ActingAgent()
	if err != nil {
		return nil, err
	}
	m, err := p.newMessage(author)
	if err != nil {
		return nil, err
	}
	if m.ContentType == message.Notice && !by.Principal.Trusted() {
		return nil, check.Denied("contentType system is reserved for koine itself").At("contentType")
	}
	if m.Channel, err = s.resolveTarget(author, &p); err != nil {
		return nil, err
	}
	id, err := newID()
	if err != nil {
		return nil, err
	}
	m.ID, m.FactCount = message.ID(id), p.countExplicit()
	return &publishOp{service: s, author: author, by: by, reader: by.ReaderPrincipal(author), message: m, patches: slices.Clone(p.Patches), implied: p.Implied, peer: p.To, newID: true}, nil
}

// resolveTarget returns the channel of a publication.
func (s *Service) resolveTarget(author kg.AgentID, p *Publication) (channel.ID, error) {
	if p.To != "" {
		if p.Channel != "" {
			return "", kg.Errorf(kg.CodeInvalid, "channelId and to are mutually exclusive").At("to")
		}
		to, err := channel.ParseMember(p.To)
		if err != nil {
			return "", kg.AsError(err).At("to")
		}
		if to == author {
			return "", kg.Errorf(kg.CodeInvalid, "to is the author: a direct channel needs another agent").At("to")
		}
		p.To = to
		return channel.DirectID(author, to), nil
	}
	if p.Channel == "" {
		return "", kg.Errorf(kg.CodeInvalid, "channelId or to is required").At("channelId")
	}
	if !p.Channel.IsValid() {
		return "", channel.ErrNotFound()
	}
	if e := s.table.Get(p.Channel); e == nil && p.Channel.IsDirect() {
		other := s.table.DirectPeer(p.Channel, author)
		if other == "" {
			return "", channel.ErrNotFound()
		}
		p.To = other
	}
	return p.Channel, nil
}

// prepareStatements prepares everything that does not depend on the commit.
func (p *publishOp) prepareStatements() (err error) {
	statements, err := p.message.StoredStatements()
	if err != nil {
		return err
	}
	if p.message.IdempotencyKey != "" {
		if p.hash == "" { // else the hash of the request, without the tags of a rule
			if p.hash, err = p.hashContent(); err != nil {
				return err
			}
		}
		statements = append(statements, vocab.NewStatement(vocab.Content, kg.String(p.hash)))
	}
	p.prefetch = p.service.store.NewTermPrefetch(p.author, len(statements)+len(p.patches))
	p.statements = make([]kg.Patch, 0, len(statements))
	p.entity = p.message.ID.Entity()
	if p.newID {
		p.prefetch.NoteNewSubject(p.entity)
	}
	for _, st := range statements {
		if err := p.addStatement(st); err != nil {
			return err
		}
	}
	for i := range p.patches {
		q := &p.patches[i].Quad
		if q.Graph.IsZero() {
			e := p.service.table.Get(p.message.Channel)
			if !e.IsPublic() {
				q.Graph = p.message.Channel.FactsGraph()
			}
		}
		if err := p.prefetch.Prefetch(&p.patches[i]); err != nil {
			return kg.AsError(err).At(fmt.Sprintf("patches[%d]", i))
		}
	}
	return nil
}

// addStatement adds a statement about the message. It validates the statement here,
// rather than while others wait for the committer.
func (p *publishOp) addStatement(st vocab.Statement) error {
	q := kg.Quad{Subject: p.entity, Predicate: st.Property, Object: st.Object}
	if len(p.statements) > 0 {
		q.Graph = p.messagesGraph()
	} else {
		q.Graph = p.message.Channel.MessagesGraph()
	}
	patch := kg.Patch{Op: kg.Add, Quad: q}
	if st.Property == vocab.Parts {
		patch.Embedding = p.message.Embedding
	}
	p.statements = append(p.statements, patch)
	return p.prefetch.Prefetch(&p.statements[len(p.statements)-1])
}

// messagesGraph returns the graph of the channel's messages.
func (p *publishOp) messagesGraph() kg.Term { return p.statements[0].Quad.Graph }

// canonicalPatches returns the same JSON for equal patches, "" for none.
func canonicalPatches(patches []kg.Patch) string {
	if len(patches) == 0 {
		return ""
	}
	var b strings.Builder
	for i := range patches {
		p := &patches[i]
		fmt.Fprintf(&b, "%s %s %s %s %s %s %t %v %v %v %s\n", p.Op, p.Quad.Subject, p.Quad.Predicate, p.Quad.Object, p.Quad.Graph, p.Source,
			p.HasCertainty, p.Certainty, p.Validity.From.UnixMilli(), p.Validity.Until.UnixMilli(), p.Provenance)
		if p.Embedding != nil {
			fmt.Fprintf(&b, "%s\n", p.Embedding)
		}
	}
	return strconv.Quote(hex.EncodeToString([]byte(b.String())))
}

// hashContent returns the hash of the publication.
func (p *publishOp) hashContent() (string, error) {
	content, err := p.message.CanonicalContent([]byte(canonicalPatches(p.patches)))
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:]), nil
}

// findEarlier returns the message that the key created before, or nil. It fails with
// CodeIdempotencyConflict if that message has different content, and with
// errVerdictGiven if the message was held or refused.
func (p *publishOp) findEarlier(tx *kg.Tx) (m *message.Message, err error) {
	if p.message.IdempotencyKey == "" {
		return nil, nil
	}
	object := message.OnceKey(p.message.Channel, p.author, p.message.IdempotencyKey)
	var judged kg.Term
	for st, err := range tx.MatchOwn(kg.Pattern{Predicate: vocab.Once, Object: object}) {
		if err != nil {
			return nil, err
		}
		if _, part := channel.OfGraph(st.Graph); part == channel.VerdictPart {
			if !p.reviewed {
				judged = st.Subject
			}
			continue
		}
		if m, err = message.Read(tx.MatchOwn, p.message.Channel, message.IDIn(st.Subject)); err != nil {
			return nil, err
		}
		break
	}
	if m == nil && !judged.IsZero() {
		return nil, p.readEarlierVerdict(tx, judged)
	}
	if m == nil {
		return nil, nil
	}
	for st, err := range tx.MatchOwn(kg.Pattern{Subject: m.ID.Entity(), Predicate: vocab.Content, Graph: m.ContentGraph()}) {
		if err != nil {
			return nil, err
		}
		if st.Object.Value() != p.hash { // a removed message has no hash, and matches
			return nil, kg.Errorf(kg.CodeIdempotencyConflict, "idempotencyKey was used for a different message").At("idempotencyKey")
		}
	}
	m.RedactFor(message.Viewer{Agent: p.author, Now: tx.Time()})
	return m, nil
}
