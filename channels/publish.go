package channels

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"unicode/utf8"

	"koine/channels/channel"
	"koine/channels/internal/check"
	"koine/channels/message"
	"koine/kg"
)

// Publication describes a message to publish.
type Publication struct {
	// Channel is the target or, for a direct channel, To is the other agent.
	Channel channel.ID
	To      kg.AgentID
	// Parts are 1 to MaxParts JSON objects, stored byte for byte.
	Parts        []json.RawMessage
	ArtifactRefs []string
	Metadata     []byte // a JSON object, or nil
	Embedding    *kg.Embedding
	// Envelope is the header of the message. Recipients is ignored: it is resolved from
	// To.
	message.Envelope
	// IdempotencyKey, if set, makes a repeated publication return the first message.
	IdempotencyKey string
	// KeepMessages is that of a channel that PublishByName makes; 0 keeps all.
	KeepMessages int64
	// Patches are facts asserted with the message, which is their evidence. A patch
	// without a graph goes to the default graph if the channel is public, and otherwise
	// to the channel's own facts.
	Patches []kg.Patch
	// Implied, if set, marks the Patches to skip if their source already asserts the
	// statement.
	Implied []bool
	// Justification, TaskID and SessionID are recorded with the commit.
	Justification, TaskID, SessionID string
}

// Receipt is the result of a publication.
type Receipt struct {
	// Message is the published message, or the earlier one with the same key. It is nil
	// if the message or its facts were rejected, which rejects both.
	Message *message.Message
	// Replayed means that Message is the earlier one, or Verdict the earlier verdict.
	Replayed bool
	// Verdict is the verdict on the facts. If it is kg.Held, the message was published,
	// and Message.ProposalID names the proposal that holds the facts.
	Verdict kg.Verdict
	// Affected is the number of changes made by the facts.
	Affected int
}

// Publish appends a message to a channel. It requires the right Rights.Post.
//
// Errors: CodeChannelNotFound; CodePermissionDenied; CodeChannelClosed;
// CodeIdempotencyConflict for a key that was used for a different message;
// CodeLimitExceeded; CodeRateLimited; CodeNotMember and CodeNoRecipient for an address
// that no agent in the channel has; CodeMessageExpired for a response to an expired
// request; CodeContentHeld, with Error.ProposalID, for a message that waits for a
// review; those of kg.Tx.Apply for the patches.
func (s *Service) Publish(ctx context.Context, by Caller, p Publication) (*Receipt, error) {
	return s.publishTo(ctx, by, p, nil)
}

// publishTo publishes in an existing channel or, if make is not nil, in a channel that
// is created with the message.
func (s *Service) publishTo(ctx context.Context, by Caller, p Publication, make *channel.Channel) (*Receipt, error) {
	pub, err := s.newPublishOp(by, p)
	if err != nil {
		return nil, err
	}
	pub.newChannel = make
	if coming := pub.pendingEntry(); coming != nil {
		defer s.table.AddPending(coming)()
	}
	meta := by.UpdateMeta("channels/publish")
	meta.MessageID, meta.Justification, meta.TaskID, meta.SessionID = string(pub.message.ID), p.Justification, p.TaskID, p.SessionID
	if s.needsScan(pub) {
		ctx = s.options.OneAdmission(ctx)
		answer, err := s.scanPublication(ctx, meta, pub)
		if errors.Is(err, errVerdictGiven) {
			return pub.earlier.receipt()
		}
		if answer != nil || err != nil {
			return answer, err
		}
	}
	if len(p.Patches) > 0 {
		meta.WhenHeld = pub.publishWithoutFacts
	}
	receipt, err := s.store.Update(ctx, meta, pub.publishWithFacts)
	if errors.Is(err, errVerdictGiven) {
		return pub.earlier.receipt()
	}
	if err != nil {
		return nil, err
	}
	return pub.newReceipt(receipt), nil
}

// newReceipt converts the receipt of the store.
func (p *publishOp) newReceipt(r kg.Receipt) *Receipt {
	out := &Receipt{Message: p.published, Replayed: p.replayed, Verdict: r.Verdict}
	switch {
	case p.replayed:
		out.Verdict = kg.Verdict{}
		if p.published.ProposalID != "" {
			out.Verdict = kg.Verdict{Outcome: kg.Held, Reason: kg.ReasonHeld}
		}
	case r.Verdict.Outcome != kg.Accepted && r.Verdict.Outcome != kg.Held:
		out.Message = nil
	default:
		p.published.Revision = r.Revision
		if !p.dryRun {
			p.service.counter.NotePublished(p.published.Channel, p.published.Sequence)
		}
		if r.Verdict.Outcome == kg.Accepted {
			out.Affected = r.Affected - p.ownChanges
		}
	}
	return out
}

// countExplicit returns the number of patches that are not implied.
func (p *Publication) countExplicit() (n int) {
	for i := range p.Patches {
		if i >= len(p.Implied) || !p.Implied[i] {
			n++
		}
	}
	return n
}

// newMessage validates a publication and returns its message, without a channel or
// sequence.
func (p *Publication) newMessage(author kg.AgentID) (*message.Message, error) {
	if n := len(p.Parts); n == 0 {
		return nil, kg.Errorf(kg.CodeInvalid, "parts must have at least one part").At("parts")
	} else if n > message.MaxParts {
		return nil, check.TooMuch("parts", "parts has %d parts; the limit is %d", n, message.MaxParts)
	}
	m := &message.Message{Author: author, ArtifactRefs: p.ArtifactRefs, Envelope: p.Envelope, IdempotencyKey: p.IdempotencyKey}
	m.Recipients = nil
	if err := m.Envelope.Normalize(); err != nil {
		return nil, err
	}
	size := 0
	for i, part := range p.Parts {
		part = bytes.TrimSpace(part)
		if len(part) == 0 || part[0] != '{' || !json.Valid(part) || !utf8.Valid(part) {
			return nil, kg.Errorf(kg.CodeInvalid, "part %d is not a JSON object", i).At("parts")
		}
		size += len(part)
		m.Parts = append(m.Parts, part)
	}
	var err error
	if m.Metadata, err = check.JSONObject("metadata", p.Metadata, channel.MaxMetadataBytes); err != nil {
		return nil, err
	}
	size += len(m.Metadata)
	if n := len(p.ArtifactRefs); n > message.MaxArtifactRefs {
		return nil, check.TooMuch("artifactRefs", "artifactRefs has %d references; the limit is %d", n, message.MaxArtifactRefs)
	}
	for _, ref := range p.ArtifactRefs {
		if ref == "" || !utf8.ValidString(ref) {
			return nil, kg.Errorf(kg.CodeInvalid, "artifact reference must be non-empty valid UTF-8").At("artifactRefs")
		}
		if len(ref) > message.MaxReferenceBytes {
			return nil, check.TooMuch("artifactRefs", "artifact reference has more than %d bytes", message.MaxReferenceBytes)
		}
		size += len(ref)
	}
	if size > channel.MaxMessageBytes {
		return nil, check.TooMuch("parts", "message has %d bytes; the limit is %d", size, channel.MaxMessageBytes)
	}
	if m.Embedding = p.Embedding; m.Embedding != nil {
		if err := m.Embedding.Valid(); err != nil {
			return nil, kg.AsError(err).At("embedding")
		}
	}
	if !utf8.ValidString(p.IdempotencyKey) {
		return nil, kg.Errorf(kg.CodeInvalid, "idempotencyKey must be valid UTF-8").At("idempotencyKey")
	}
	if err := checkKey(p.IdempotencyKey); err != nil {
		return nil, err
	}
	if n := len(p.Patches); n > kg.MaxPatches {
		return nil, check.TooMuch("patches", "patches has %d patches; the limit is %d", n, kg.MaxPatches)
	}
	return m, nil
}
