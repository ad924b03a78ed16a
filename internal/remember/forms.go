package remember

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"koine/internal/compact"
	"koine/internal/plainjson"
	"koine/internal/rdf"
	"koine/kg"
)

// MaxDocumentBytes bounds a document of JSON-LD.
const MaxDocumentBytes = 1 << 20

// readTriples returns triples in words as facts. A string that is a name, a number, a date or
// a text in quotes is that; another one is a label, or a word of the vocabulary. loose are the
// facts with an object that may be a text.
func (r *Rememberer) readTriples(triples [][]json.RawMessage) (facts []compact.Fact, loose []int, err error) {
	for i, parts := range triples {
		if len(parts) != 3 {
			return nil, nil, atFact(kg.Errorf(kg.CodeInvalid, `a triple has %d parts; write three: ["Ada Lovelace", "wrote", "Note G"]`, len(parts)), i)
		}
		f := compact.Fact{Graph: kg.DefaultGraph}
		for part, ref := range [...]*compact.Ref{&f.Subject, &f.Predicate, &f.Object} {
			var text string
			switch json.Unmarshal(parts[part], &text) {
			case nil:
				if *ref, err = compact.ReadRef(text, r.Prefixes); err != nil {
					*ref, err = compact.Ref{Label: text}, nil
					if part == 2 {
						loose = append(loose, i)
					}
				}
			default:
				ref.Term, err = kg.LiteralFromJSON(parts[part], "", "")
			}
			if err != nil {
				return nil, nil, atFact(err, i)
			}
			if *ref == (compact.Ref{}) {
				return nil, nil, atFact(kg.Errorf(kg.CodeInvalid, "part %d of the triple is empty", part+1), i)
			}
			if ref.Term.IsLiteral() && part < 2 {
				return nil, nil, atFact(kg.Errorf(kg.CodeInvalid, "part %d of the triple is %s, and not a label or a name", part+1, ref.Term), i)
			}
		}
		facts = append(facts, f)
	}
	return facts, loose, nil
}

// replaceTexts makes objects texts where all values of the predicate are literals.
func (r *Rememberer) replaceTexts(s *kg.Snapshot, facts []compact.Fact, loose []int) error {
	for _, i := range loose {
		f := &facts[i]
		if !f.Object.Term.IsZero() {
			continue
		}
		text := slices.Contains(r.LabelPredicates, f.Predicate.Term.Value())
		if id, known, err := s.ID(f.Predicate.Term); err != nil {
			return err
		} else if known && !text {
			for row, err := range s.MatchIDs(kg.IDPattern{Predicate: id}, nil) { // resources come first
				if err != nil {
					return err
				}
				text = !row.Object.IsResource()
				break
			}
		}
		if text {
			f.Object = compact.Ref{Term: kg.String(f.Object.Label)}
		}
	}
	return nil
}

// ReadJSONLD returns the statements of a JSON-LD document as facts. The registered prefixes
// hold in it, and label is rdfs:label. A node without @id is the entity with its label and
// class. Contexts are never fetched.
func (r *Rememberer) ReadJSONLD(document []byte, graph kg.Term) ([]compact.Fact, error) {
	if len(document) > MaxDocumentBytes {
		return nil, kg.Errorf(kg.CodeLimitExceeded, "the document has %d bytes, more than the limit of %d", len(document), MaxDocumentBytes)
	}
	if !json.Valid(document) {
		return nil, kg.Errorf(kg.CodeInvalid, "JSON-LD: the document is not JSON")
	}
	context := map[string]any{"label": kg.RDFSLabel}
	for _, p := range r.Prefixes.All() {
		context[p.Name] = map[string]any{"@id": p.Namespace, "@prefix": true}
	}
	wrapped := slices.Concat([]byte(`{"@context":`), plainjson.MustEncode(context), []byte(`,"@graph":`), document, []byte(`}`))
	var dropped *rdf.SyntaxError
	options := rdf.Options{Name: "JSON-LD", Graph: graph, JSONLD: rdf.JSONLDOptions{MaxBytes: 4 * MaxDocumentBytes, Dropped: func(e *rdf.SyntaxError) {
		if dropped == nil {
			dropped = e
		}
	}}}
	var facts []compact.Fact
	for q, err := range rdf.Read(bytes.NewReader(wrapped), rdf.JSONLD, options) {
		if err != nil {
			return nil, errDocument(err)
		}
		if len(facts) == compact.MaxFacts {
			return nil, kg.Errorf(kg.CodeLimitExceeded, "the document has more than %d facts; send the rest in another one", compact.MaxFacts)
		}
		facts = append(facts, compact.Fact{Graph: q.Graph, Subject: compact.Ref{Term: q.Subject}, Predicate: compact.Ref{Term: q.Predicate}, Object: compact.Ref{Term: q.Object}})
	}
	if dropped != nil {
		return nil, errDocument(dropped)
	}
	return r.nameBlankNodes(facts)
}

func errDocument(err error) error {
	var syntax *rdf.SyntaxError
	if errors.As(err, &syntax) {
		return kg.Errorf(kg.CodeInvalid, "JSON-LD: %s", kg.AsError(syntax.Err).Message)
	}
	return err
}

// nameBlankNodes puts labels in place of the blank nodes that have them.
func (r *Rememberer) nameBlankNodes(facts []compact.Fact) ([]compact.Fact, error) {
	labels := map[kg.Term]string{}
	facts = slices.DeleteFunc(facts, func(f compact.Fact) bool {
		names := f.Subject.Term.Kind() == kg.KindBlank && f.Object.Term.IsLiteral() && slices.Contains(r.LabelPredicates, f.Predicate.Term.Value())
		if first := names && labels[f.Subject.Term] == ""; first {
			labels[f.Subject.Term] = f.Object.Term.Value()
			return true
		}
		return false
	})
	for i := range facts {
		for _, ref := range [...]*compact.Ref{&facts[i].Subject, &facts[i].Object} {
			if ref.Term.Kind() != kg.KindBlank || ref.Term.IsZero() {
				continue
			}
			label, ok := labels[ref.Term]
			if !ok {
				return nil, kg.Errorf(kg.CodeInvalid, "JSON-LD: a node has neither an @id nor a label; give it a label, such as %s, so that it can be found again", fmt.Sprintf("%q: %q", "label", "Note G"))
			}
			*ref = compact.Ref{Label: label}
		}
	}
	return facts, nil
}
