package channels

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"koine/kg"
)

// onceKey returns the literal under which the message of an author's key in a channel
// is stored.
func onceKey(id ChannelID, author kg.AgentID, key string) kg.Term {
	sum := sha256.Sum256([]byte(string(id) + "\n" + string(author) + "\n" + key))
	return kg.String(base64.RawURLEncoding.EncodeToString(sum[:]))
}

// canonicalContent returns the same bytes for equal publications, regardless of how
// their JSON is written.
func (m *Message) canonicalContent(patches []byte) ([]byte, error) {
	list := make([]any, 0, len(m.Parts)+3)
	for _, part := range append(m.Parts[:len(m.Parts):len(m.Parts)], m.Metadata, patches) {
		value, err := decodeJSON(part)
		if err != nil {
			return nil, err
		}
		list = append(list, value)
	}
	refs := m.ArtifactRefs
	if refs == nil {
		refs = []string{}
	}
	return json.Marshal(append(list, refs, m.Envelope.canonicalFields()))
}

// decodeJSON decodes a JSON value and keeps its numbers as written.
func decodeJSON(raw []byte) (value any, err error) {
	if len(raw) == 0 {
		return nil, nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	err = d.Decode(&value)
	return value, err
}

// sameJSON reports whether two JSON values are equal.
func sameJSON(a, b []byte) (bool, error) {
	if bytes.Equal(a, b) {
		return true, nil
	}
	x, err := decodeJSON(a)
	if err != nil {
		return false, err
	}
	y, err := decodeJSON(b)
	return err == nil && reflect.DeepEqual(x, y), err
}

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
	content, err := p.message.canonicalContent([]byte(canonicalPatches(p.patches)))
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:]), nil
}

// findEarlier returns the message that the key created before, or nil. It fails with
// CodeIdempotencyConflict if that message has different content.
func (p *publishOp) findEarlier(tx *kg.Tx) (m *Message, err error) {
	if p.message.IdempotencyKey == "" {
		return nil, nil
	}
	object := onceKey(p.message.Channel, p.author, p.message.IdempotencyKey)
	for st, err := range tx.MatchOwn(kg.Pattern{Predicate: propOnce, Object: object}) {
		if err != nil {
			return nil, err
		}
		if m, err = readMessage(tx.MatchOwn, p.message.Channel, messageIDIn(st.Subject)); err != nil {
			return nil, err
		}
		break
	}
	if m == nil {
		return nil, nil
	}
	for st, err := range tx.MatchOwn(kg.Pattern{Subject: m.ID.Entity(), Predicate: propContent, Graph: m.contentGraph()}) {
		if err != nil {
			return nil, err
		}
		if st.Object.Value() != p.hash { // a removed message has no hash, and matches
			return nil, kg.Errorf(kg.CodeIdempotencyConflict, "idempotencyKey was used for a different message").At("idempotencyKey")
		}
	}
	m.redactFor(viewer{p.author, tx.Time()})
	return m, nil
}
