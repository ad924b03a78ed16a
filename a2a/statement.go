package a2a

import (
	"encoding/json"
	"strings"

	"koine/kg"
)

// The structures of the knowledge graph extension, section 2. koine adds
// object.language, validFrom and validTo.
type (
	wireStatement struct {
		Subject    wireResource    `json:"subject"`
		Predicate  wireResource    `json:"predicate"`
		Object     wireObject      `json:"object"`
		Graph      string          `json:"graph,omitempty"`
		Certainty  *float64        `json:"certainty,omitempty"`
		ValidFrom  string          `json:"validFrom,omitempty"`
		ValidTo    string          `json:"validTo,omitempty"`
		Provenance json.RawMessage `json:"provenance,omitempty"`
	}
	wireResource struct {
		ID   string `json:"id"`
		Type string `json:"type,omitempty"`
	}
	// wireObject has an id or a value; the other is absent, never null.
	wireObject struct {
		ID       string          `json:"id,omitempty"`
		Value    json.RawMessage `json:"value,omitempty"`
		Type     string          `json:"type,omitempty"`
		Language string          `json:"language,omitempty"`
	}
)

// encodeQuad encodes a statement without its assertions, with external ids.
func encodeQuad(q kg.Quad) wireStatement {
	s := wireStatement{
		Subject:   wireResource{ID: q.Subject.ExternalID()},
		Predicate: wireResource{ID: q.Predicate.ExternalID()},
		Object:    encodeObject(q.Object),
	}
	if q.Graph != kg.DefaultGraph {
		s.Graph = q.Graph.ExternalID()
	}
	return s
}

// encodeObject encodes a literal so that it decodes to the same term: its type is
// omitted if the value determines it, as for plain strings.
func encodeObject(t kg.Term) wireObject {
	if t.IsResource() {
		return wireObject{ID: t.ExternalID()}
	}
	o := wireObject{Value: t.ValueJSON(), Language: t.Lang()}
	if datatype := t.Datatype(); datatype != kg.XSDString && t.Lang() == "" {
		o.Type = shortDatatype(datatype)
	}
	return o
}

func shortDatatype(iri string) string {
	if name, ok := strings.CutPrefix(iri, kg.XSD); ok && name != "" {
		return "xsd:" + name
	}
	return iri
}

// encodeStatement encodes a statement with one assertion.
func encodeStatement(q kg.Quad, a kg.Assertion) wireStatement {
	s := encodeQuad(q)
	if a.HasCertainty {
		s.Certainty = &a.Certainty
	}
	if v := a.Validity; !v.From.IsZero() {
		s.ValidFrom = formatTime(v.From)
	}
	if v := a.Validity; !v.Until.IsZero() {
		s.ValidTo = formatTime(v.Until)
	}
	s.Provenance = a.Provenance
	return s
}

// strongestAssertion returns the assertion to show with a statement: that of the greatest
// certainty, and among these the newest.
func strongestAssertion(s kg.Statement) kg.Assertion {
	var best kg.Assertion
	for i, a := range s.Assertions {
		c, d := a.EffectiveCertainty(), best.EffectiveCertainty()
		if i == 0 || c > d || c == d && a.Time.After(best.Time) {
			best = a
		}
	}
	return best
}
