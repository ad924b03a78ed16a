package channels

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"koine/channels/channel"
	"koine/channels/internal/vocab"
	"koine/channels/message"
	"koine/internal/systemgraph"
	"koine/kg"
)

// Scanner judges the content of messages before they are published. It is called on the
// goroutine of the author's request, before the update is queued.
type Scanner interface {
	// Needed reports whether a message has to be scanned; keyed means that it has an
	// idempotency key. It must be cheap.
	Needed(keyed bool) bool
	// Scan judges a message. An error refuses it, and is for its author.
	Scan(ctx context.Context, m *ScannedMessage) (Ruling, error)
}

// ScannedMessage is a message that is about to be published.
type ScannedMessage struct {
	JudgedMessage
	// Patches are the facts of the message.
	Patches []kg.Patch
	// Meta is the context of the request.
	Meta kg.Meta
}

// Ruling is the verdict of a Scanner.
type Ruling struct {
	// Verdict is Accepted, Rejected or Held. Depends and Own are not used.
	kg.Verdict
	// Tags are added to the tags of the message.
	Tags []string
	// Transient means that the content was not judged: a repeated request is judged
	// anew, even with an idempotency key.
	Transient bool
}

// MaxAddedTags bounds the tags of a Ruling.
const MaxAddedTags = 16

// Outcomes as stored.
const (
	storedHeld     = "held"
	storedRejected = "rejected"
)

// errVerdictGiven reports that the message with this key was held or refused before
// (publishOp.earlier).
var errVerdictGiven = errors.New("message was held or refused before")

// needsScan reports whether the message has to be scanned.
func (s *Service) needsScan(p *publishOp) bool {
	return s.options.Scanner != nil && s.options.Scanner.Needed(p.message.IdempotencyKey != "") && !p.by.Principal.Trusted()
}

// scanPublication judges a message. It returns nil if the message is to be published.
func (s *Service) scanPublication(ctx context.Context, meta kg.Meta, p *publishOp) (*Receipt, error) {
	// A trial finds the errors that do not depend on the scanner: rights, an earlier answer to the
	// key, the recipients, and the rules that refuse messages.
	trial, err := s.tryPublication(ctx, meta, func(tx *kg.Tx) error { _, err := p.publishMessage(tx, ""); return err })
	if err != nil {
		return nil, err
	}
	if p.replayed {
		return p.newReceipt(trial), nil
	}
	ruling := Ruling{Verdict: trial.Verdict}
	if ruling.Outcome == kg.Accepted {
		if ruling, err = s.scan(ctx, meta, p); err != nil {
			return nil, err
		}
	}
	switch ruling.Outcome {
	case kg.Accepted:
		return nil, p.addTags(ruling.Tags)
	case kg.Held:
		if err := p.addTags(ruling.Tags); err != nil {
			return nil, err
		}
		return s.holdPublication(ctx, meta, p, ruling.Verdict)
	}
	if p.message.IdempotencyKey != "" && !ruling.Transient {
		err = systemgraph.Update(ctx, s.store, meta, func(tx *kg.Tx) error { return p.recordRejection(tx, ruling.Verdict) })
	}
	return &Receipt{Verdict: ruling.Verdict}, err
}

// tryPublication runs an update without effect.
func (s *Service) tryPublication(ctx context.Context, meta kg.Meta, fn func(*kg.Tx) error) (kg.Receipt, error) {
	meta.DryRun = true
	return s.store.Update(ctx, meta, fn)
}

// scan asks the scanner about a message after its trial.
func (s *Service) scan(ctx context.Context, meta kg.Meta, p *publishOp) (Ruling, error) {
	e := s.table.Get(p.message.Channel)
	if e == nil {
		e = s.table.PendingEntry(p.message.Channel)
	}
	if e == nil {
		return Ruling{}, channel.ErrNotFound()
	}
	m := *p.published
	m.Sequence = 0 // it has none yet
	return s.options.Scanner.Scan(ctx, &ScannedMessage{JudgedMessage: JudgedMessage{Message: &m, Channel: &e.Channel}, Patches: p.patches, Meta: meta})
}

// addTags adds tags to the message. Those of the author beyond the limit are dropped.
func (p *publishOp) addTags(tags []string) error {
	if len(tags) == 0 {
		return nil
	}
	all := message.Envelope{Tags: tags}
	if err := all.Normalize(); err != nil {
		return kg.Errorf(kg.CodeInternal, "tags of a rule or of the content hook: %w", err)
	}
	own := slices.DeleteFunc(slices.Clone(p.message.Tags), func(tag string) bool { return slices.Contains(all.Tags, tag) })
	all.Tags = append(all.Tags, own[:min(len(own), message.MaxTags-len(all.Tags))]...)
	slices.Sort(all.Tags)
	p.message.Tags = all.Tags
	return p.prepareStatements()
}

// scanRetraction judges the reason of a retraction. It cannot wait for a review: a
// ruling that holds it refuses it.
func (s *Service) scanRetraction(ctx context.Context, meta kg.Meta, p *publishOp) (*Receipt, error) {
	e := s.table.Get(p.message.Channel)
	if !s.needsScan(p) || e == nil {
		return nil, nil
	}
	ruling, err := s.options.Scanner.Scan(ctx, &ScannedMessage{JudgedMessage: JudgedMessage{Message: p.message, Channel: &e.Channel}, Meta: meta})
	if err != nil || ruling.Outcome == kg.Accepted {
		return nil, err
	}
	return &Receipt{Verdict: kg.Verdict{Outcome: kg.Rejected, Reason: ruling.Reason, Details: ruling.Details}}, nil
}

// earlierVerdict is the verdict that the first message of a key got.
type earlierVerdict struct {
	verdict  kg.Verdict
	proposal string // for a held message
}

// receipt returns the answer to a repetition: that of the first message.
func (v *earlierVerdict) receipt() (*Receipt, error) {
	if v.proposal != "" {
		return nil, errContentHeld(v.proposal)
	}
	return &Receipt{Verdict: v.verdict, Replayed: true}, nil
}

// storedReason is the JSON of vocab.Reason.
type storedReason struct {
	Reason  string `json:"reason"`
	Details string `json:"details,omitempty"`
}

// readEarlierVerdict sets p.earlier to the verdict on a message with the same key, and
// returns errVerdictGiven.
func (p *publishOp) readEarlierVerdict(tx *kg.Tx, subject kg.Term) error {
	v := &earlierVerdict{verdict: kg.Verdict{Outcome: kg.Rejected}}
	for st, err := range tx.MatchOwn(kg.Pattern{Subject: subject, Graph: p.message.Channel.VerdictsGraph()}) {
		if err != nil {
			return err
		}
		switch st.Predicate {
		case vocab.Content:
			if st.Object.Value() != p.hash {
				return kg.Errorf(kg.CodeIdempotencyConflict, "idempotencyKey was used for a different message").At("idempotencyKey")
			}
		case vocab.Proposal:
			v.proposal = st.Object.Value()
		case vocab.Reason:
			var why storedReason
			if err := json.Unmarshal([]byte(st.Object.Value()), &why); err != nil {
				return err
			}
			v.verdict.Reason, v.verdict.Details = why.Reason, why.Details
		}
	}
	p.earlier = v
	return errVerdictGiven
}

// trimVerdicts removes the oldest refusals of a channel if there is no room for another.
func (s *Service) trimVerdicts(tx *kg.Tx, graph kg.Term) error {
	old, err := systemgraph.Subjects(tx.MatchOwn, kg.Pattern{Predicate: vocab.Verdict, Object: kg.String(storedRejected), Graph: graph})
	if err != nil || len(old) < s.options.MaxVerdicts {
		return err
	}
	slices.SortFunc(old, func(a, b kg.Term) int { return strings.Compare(a.Value(), b.Value()) }) // ids grow with time
	for _, subject := range old[:len(old)-s.options.MaxVerdicts+1] {
		if err := systemgraph.Remove(tx, kg.Pattern{Subject: subject, Graph: graph}); err != nil {
			return err
		}
	}
	return nil
}

// recordRejection records that the message was refused, for repetitions of its key.
func (p *publishOp) recordRejection(tx *kg.Tx, v kg.Verdict) error {
	if first, err := p.findEarlier(tx); err != nil || first != nil {
		return err
	}
	if err := p.service.trimVerdicts(tx, p.message.Channel.VerdictsGraph()); err != nil {
		return err
	}
	reason, err := json.Marshal(storedReason{v.Reason, v.Details})
	if err != nil {
		return err
	}
	return p.writeVerdict(tx, vocab.NewStatement(vocab.Verdict, kg.String(storedRejected)), vocab.NewStatement(vocab.Reason, vocab.JSON(reason)))
}

// writeVerdict writes statements about the message to the graph of verdicts, with its
// key.
func (p *publishOp) writeVerdict(tx *kg.Tx, statements ...vocab.Statement) error {
	if key := p.message.IdempotencyKey; key != "" {
		statements = append(statements, vocab.NewStatement(vocab.Once, message.OnceKey(p.message.Channel, p.author, key)), vocab.NewStatement(vocab.Content, kg.String(p.hash)))
	}
	for _, st := range statements {
		q := kg.Quad{Subject: p.message.ID.Entity(), Predicate: st.Property, Object: st.Object, Graph: p.message.Channel.VerdictsGraph()}
		if err := tx.ApplyOwn(kg.Patch{Op: kg.Add, Quad: q, Source: p.author}); err != nil {
			return err
		}
	}
	return nil
}
