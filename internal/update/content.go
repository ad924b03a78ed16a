package update

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"io"
	"time"

	"koine/kg"
)

// contentVersion goes first into the hash. Answers to idempotent updates are
// remembered for days: what follows it may only change together with it.
const contentVersion = "koine update 1\n"

// content is the canonical form of a step: members in the order of their
// names, one line each. A member that came later is left out where it is not
// set, so that what asks for nothing of it keeps its hash.
type content struct {
	Certainty  *float64        `json:"certainty,omitempty"`
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

// textOf is an object in N-Triples notation, its language tag in lower case: a retry of a
// request is recognised however its tags are spelled.
func textOf(t kg.Term) string {
	text := t.String()
	return text[:len(text)-len(t.Lang())] + t.LangKey()
}

// contentHash is the SHA-256 of the canonical JSON of the steps. Terms stand
// in it in N-Triples notation.
func contentHash(steps []step) (sum [32]byte) {
	h := sha256.New()
	io.WriteString(h, contentVersion)
	enc := json.NewEncoder(h)
	for i := range steps {
		s := &steps[i]
		c := content{
			Graph: s.Quad.Graph.String(), Implied: s.implied, Object: textOf(s.Quad.Object), Op: s.Op.String(),
			Predicate: s.Quad.Predicate.String(), Provenance: canonical(s.Provenance), Source: s.Source, Subject: s.Quad.Subject.String(),
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
			// Only a certainty that is no number gets here, and the store
			// refuses it: the hash of such a request is never kept.
			io.WriteString(h, err.Error())
		}
	}
	h.Sum(sum[:0])
	return sum
}

// canonical is the JSON with its members in the order of their names and no
// space between; numbers keep their digits. What is no JSON stays absent: the
// store refuses it.
func canonical(raw []byte) json.RawMessage {
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
