package channels

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"koine/kg"
)

// Publication is what is to be published.
type Publication struct {
	// Channel or, for a direct channel, To says where.
	Channel ChannelID
	To      kg.AgentID
	// Parts are 1 to MaxParts JSON objects, kept as they are.
	Parts        []json.RawMessage
	ArtifactRefs []string
	Metadata     []byte // a JSON object, or nil
	// Envelope says what the message is for. Recipients are found from To.
	Envelope
	// IdempotencyKey, if set, makes the same publication again no other message.
	IdempotencyKey string
	// Patches are facts that are asserted with the message, which is their evidence.
	// One without a graph goes to the default graph from a public channel, and to
	// the channel's own facts from any other.
	Patches []kg.Patch
	// Implied, if set, marks those of the Patches that are left out where their source
	// backs the statement already, whatever else it says of it.
	Implied []bool
	// Justification, TaskID and SessionID are those of the commit.
	Justification, TaskID, SessionID string
}

// countExplicit counts the patches that its author gave.
func (p *Publication) countExplicit() (n int) {
	for i := range p.Patches {
		if i >= len(p.Implied) || !p.Implied[i] {
			n++
		}
	}
	return n
}

// newMessage checks a publication and makes a message of it, without a place in a
// channel.
func (p *Publication) newMessage(author kg.AgentID) (*Message, error) {
	if n := len(p.Parts); n == 0 {
		return nil, kg.Errorf(kg.CodeInvalid, "a message has at least one part").At("parts")
	} else if n > MaxParts {
		return nil, errTooMuch("parts", "%d parts are more than the %d that a message has", n, MaxParts)
	}
	m := &Message{Author: author, ArtifactRefs: p.ArtifactRefs, Envelope: p.Envelope, IdempotencyKey: p.IdempotencyKey}
	m.Recipients = nil
	if err := m.Envelope.normalize(); err != nil {
		return nil, err
	}
	size := 0
	for i, part := range p.Parts {
		part = bytes.TrimSpace(part)
		if len(part) == 0 || part[0] != '{' || !json.Valid(part) || !utf8.Valid(part) {
			return nil, kg.Errorf(kg.CodeInvalid, "part %d is no JSON object", i).At("parts")
		}
		size += len(part)
		m.Parts = append(m.Parts, part)
	}
	var err error
	if m.Metadata, err = checkMetadata(p.Metadata); err != nil {
		return nil, err
	}
	size += len(m.Metadata)
	if n := len(p.ArtifactRefs); n > MaxArtifactRefs {
		return nil, errTooMuch("artifactRefs", "%d artifacts are more than the %d that a message refers to", n, MaxArtifactRefs)
	}
	for _, ref := range p.ArtifactRefs {
		if ref == "" || !utf8.ValidString(ref) {
			return nil, kg.Errorf(kg.CodeInvalid, "an artifact is named by its id").At("artifactRefs")
		}
		if len(ref) > MaxReferenceBytes {
			return nil, errTooMuch("artifactRefs", "the id of an artifact has at most %d bytes", MaxReferenceBytes)
		}
		size += len(ref)
	}
	if size > MaxMessageBytes {
		return nil, errTooMuch("parts", "a message of %d bytes is larger than the %d that one may have", size, MaxMessageBytes)
	}
	if !utf8.ValidString(p.IdempotencyKey) {
		return nil, kg.Errorf(kg.CodeInvalid, "a key is UTF-8").At("idempotencyKey")
	}
	if err := checkKey(p.IdempotencyKey); err != nil {
		return nil, err
	}
	if n := len(p.Patches); n > kg.MaxPatches {
		return nil, errTooMuch("patches", "%d patches are more than the %d of one update", n, kg.MaxPatches)
	}
	return m, nil
}
