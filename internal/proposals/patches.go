package proposals

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"koine/kg"
)

// MaxPatchBytes limits the patches of one proposal, as JSON. A larger update that needs
// review is refused.
const MaxPatchBytes = 3 << 20

// pieceBytes is the size of the JSON piece in one statement, far below the limit of a
// term.
const pieceBytes = 128 << 10

// storedTerm is the exact form of a term; the JSON of the protocols uses a form for
// people instead.
type storedTerm struct {
	IRI      string  `json:"iri,omitempty"`
	Blank    string  `json:"blank,omitempty"`
	Literal  *string `json:"literal,omitempty"`
	Datatype string  `json:"datatype,omitempty"`
	Lang     string  `json:"lang,omitempty"`
}

type storedPatch struct {
	Op         string          `json:"op"`
	Subject    storedTerm      `json:"subject"`
	Predicate  storedTerm      `json:"predicate"`
	Object     storedTerm      `json:"object"`
	Graph      *storedTerm     `json:"graph,omitempty"` // nil: the default graph
	Source     kg.AgentID      `json:"source,omitempty"`
	Certainty  *float64        `json:"certainty,omitempty"`
	ValidFrom  *time.Time      `json:"validFrom,omitempty"`
	ValidTo    *time.Time      `json:"validTo,omitempty"`
	Provenance json.RawMessage `json:"provenance,omitempty"`
	Embedding  *kg.Embedding   `json:"embedding,omitempty"`
}

func storeTerm(t kg.Term) storedTerm {
	switch t.Kind() {
	case kg.KindIRI:
		return storedTerm{IRI: t.Value()}
	case kg.KindBlank:
		return storedTerm{Blank: t.Value()}
	}
	text := t.Value()
	s := storedTerm{Literal: &text, Lang: t.Lang()}
	if s.Lang == "" {
		s.Datatype = t.Datatype()
	}
	return s
}

func (s storedTerm) toTerm() kg.Term {
	switch {
	case s.IRI != "":
		return kg.IRI(s.IRI)
	case s.Blank != "":
		return kg.Blank(s.Blank)
	case s.Literal == nil:
		return kg.Term{}
	case s.Lang != "":
		return kg.LangString(*s.Literal, s.Lang)
	}
	return kg.Typed(*s.Literal, s.Datatype)
}

// encodePatches returns the JSON of the patches in numbered pieces.
func encodePatches(patches []kg.Patch) ([]string, error) {
	list := make([]storedPatch, len(patches))
	for i, p := range patches {
		s := storedPatch{
			Op: p.Op.String(), Subject: storeTerm(p.Quad.Subject), Predicate: storeTerm(p.Quad.Predicate), Object: storeTerm(p.Quad.Object),
			Source: p.Source, Provenance: p.Provenance, Embedding: p.Embedding,
		}
		if p.Quad.Graph != kg.DefaultGraph {
			g := storeTerm(p.Quad.Graph)
			s.Graph = &g
		}
		if p.HasCertainty {
			s.Certainty = &p.Certainty
		}
		if v := p.Validity; !v.From.IsZero() {
			s.ValidFrom = &v.From
		}
		if v := p.Validity; !v.Until.IsZero() {
			s.ValidTo = &v.Until
		}
		list[i] = s
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(list); err != nil {
		return nil, err
	}
	text := b.String()
	if len(text) > MaxPatchBytes {
		e := kg.Errorf(kg.CodeLimitExceeded, "the update needs review, and its patches have %d bytes, more than the limit of %d", len(text), MaxPatchBytes)
		e.Hint = "Split the update."
		return nil, e
	}
	var pieces []string
	for len(text) > 0 {
		n := min(pieceBytes, len(text))
		for n < len(text) && !utf8.RuneStart(text[n]) {
			n--
		}
		pieces = append(pieces, fmt.Sprintf("%06d%s", len(pieces), text[:n]))
		text = text[n:]
	}
	return pieces, nil
}

// decodePatches assembles the pieces.
func decodePatches(pieces []string) ([]kg.Patch, error) {
	slices.Sort(pieces)
	var b strings.Builder
	for _, p := range pieces {
		b.WriteString(p[min(6, len(p)):])
	}
	var list []storedPatch
	if err := json.Unmarshal([]byte(b.String()), &list); err != nil {
		return nil, kg.Errorf(kg.CodeInternal, "the patches of a proposal cannot be read: %w", err)
	}
	patches := make([]kg.Patch, len(list))
	for i, s := range list {
		p := kg.Patch{Source: s.Source, Embedding: s.Embedding, Quad: kg.Quad{Subject: s.Subject.toTerm(), Predicate: s.Predicate.toTerm(), Object: s.Object.toTerm(), Graph: kg.DefaultGraph}}
		if s.Graph != nil {
			p.Quad.Graph = s.Graph.toTerm()
		}
		if s.Certainty != nil {
			p.Certainty, p.HasCertainty = *s.Certainty, true
		}
		if s.ValidFrom != nil {
			p.Validity.From = *s.ValidFrom
		}
		if s.ValidTo != nil {
			p.Validity.Until = *s.ValidTo
		}
		if len(s.Provenance) > 0 {
			p.Provenance = s.Provenance
		}
		for _, op := range [...]kg.Op{kg.Add, kg.Remove, kg.Replace} {
			if op.String() == s.Op {
				p.Op = op
			}
		}
		patches[i] = p
	}
	return patches, nil
}
