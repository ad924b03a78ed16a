package update

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"io"
	"time"

	"koine/kg"
)

// contentVersion is the start of the hashed text. Receipts of idempotent updates are
// remembered for days, so the format below may only change together with it.
const contentVersion = "koine update 1\n"

// content is the canonical form of a step: members in alphabetical order, one line
// each. Members added later are omitted if empty, so that requests without them keep
// their hash.
type content struct {
	Certainty  *float64        `json:"certainty,omitempty"`
	Embedding  *kg.Embedding   `json:"embedding,omitempty"`
	Graph      string          `json:"graph"`
	Implied    bool            `json:"implied,omitempty"`
	Object     string          `json:"object"`
	Op         string          `json:"op"`
	Predicate  string          `json:"predicate"`
	Provenance json.RawMessage `json:"provenance,omitempty"`
	Source     kg.AgentID      `json:"source,omitempty"`
	Subject    string          `json:"subject"`
	ValidFrom  *time.Time      `json:"validFrom,omitempty"`
	ValidTo    *time.Time      `json:"validTo,omitempty"`
}

// textOf returns an object in N-Triples notation with its language tag in lower case,
// so that a retry matches however it spells the tag.
func textOf(t kg.Term) string {
	text := t.String()
	return text[:len(text)-len(t.Lang())] + t.LangKey()
}

// contentHash returns the SHA-256 of the canonical JSON of the steps. Terms are in
// N-Triples notation.
func contentHash(steps []step) (sum [32]byte) {
	h := sha256.New()
	io.WriteString(h, contentVersion)
	enc := json.NewEncoder(h)
	for i := range steps {
		s := &steps[i]
		c := content{
			Embedding: s.Embedding,
			Graph:     s.Quad.Graph.String(), Implied: s.implied, Object: textOf(s.Quad.Object), Op: s.Op.String(),
			Predicate: s.Quad.Predicate.String(), Provenance: canonicalJSON(s.Provenance), Source: s.Source, Subject: s.Quad.Subject.String(),
		}
		if s.HasCertainty {
			c.Certainty = &s.Certainty
		}
		if v := &s.Validity; !v.From.IsZero() {
			c.ValidFrom = &v.From
		}
		if v := &s.Validity; !v.Until.IsZero() {
			c.ValidTo = &v.Until
		}
		if err := enc.Encode(c); err != nil {
			// Only a certainty of NaN or infinity fails to encode, and the store
			// refuses it: the hash of such a request is never stored.
			io.WriteString(h, err.Error())
		}
	}
	h.Sum(sum[:0])
	return sum
}

// canonicalJSON returns the JSON with sorted members and without spaces; numbers keep their
// digits. It returns nil for invalid JSON, which the store refuses.
func canonicalJSON(raw []byte) json.RawMessage {
	if len(raw) == 0 {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return nil
	}
	out, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return out
}
