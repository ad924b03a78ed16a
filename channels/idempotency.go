package channels

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"koine/channels/internal/vocab"
	"koine/channels/message"
	"koine/kg"
)

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
// CodeIdempotencyConflict if that message has different content.
func (p *publishOp) findEarlier(tx *kg.Tx) (m *message.Message, err error) {
	if p.message.IdempotencyKey == "" {
		return nil, nil
	}
	object := message.OnceKey(p.message.Channel, p.author, p.message.IdempotencyKey)
	for st, err := range tx.MatchOwn(kg.Pattern{Predicate: vocab.Once, Object: object}) {
		if err != nil {
			return nil, err
		}
		if m, err = message.Read(tx.MatchOwn, p.message.Channel, message.IDIn(st.Subject)); err != nil {
			return nil, err
		}
		break
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
