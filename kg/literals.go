package kg

import "koine/kg/internal/keys"

// inlineDatatypes are those whose values may be in the id itself, so that no
// literal of theirs need be in the dictionary.
var inlineDatatypes = []string{XSDBoolean, XSDInteger, XSDDouble, XSDDateTime, XSDDate}

// MaxLiteralKinds is up to how many languages, and how many datatypes, a text is
// looked up in each of them.
const MaxLiteralKinds = 256

// Literals lists the literals with this text that the store knows, in whatever
// language and datatype: what a text without either may mean. That there is one
// does not mean that the view shows a statement with it. It is not complete when
// the store has too many languages or datatypes: then the values have to be
// read.
func (s *Snapshot) Literals(text string) (known []Term, complete bool, err error) {
	languages, datatypes := s.listed(keys.LanguagePrefix()), s.listed(keys.DatatypePrefix())
	if len(languages) > MaxLiteralKinds || len(datatypes) > MaxLiteralKinds {
		return nil, false, nil
	}
	candidates := []Term{String(text)}
	for _, lang := range languages {
		candidates = append(candidates, literalOfKind(text, tagged(lang)))
	}
	for _, datatype := range inlineDatatypes {
		t := Typed(text, datatype)
		if _, inline := inlineID(t); inline {
			candidates = append(candidates, t)
		}
	}
	for _, datatype := range datatypes {
		t := Typed(text, datatype)
		if _, inline := inlineID(t); !inline {
			candidates = append(candidates, t)
		}
	}
	for _, t := range candidates {
		_, ok, err := s.dict.id(t)
		if err != nil {
			return nil, false, err
		}
		if ok {
			known = append(known, t)
		}
	}
	return known, true, nil
}

// HasDatatype tells whether the store has a literal of the datatype, be it in what the
// view shows or not.
func (s *Snapshot) HasDatatype(iri string) (bool, error) {
	return s.dict.kv.get(keys.Datatype(iri), func([]byte) error { return nil })
}

// HasLiteralOf tells whether the view shows a statement of the predicate whose object is
// a literal, by one look behind the resources.
func (s *Snapshot) HasLiteralOf(predicate ID) (bool, error) {
	last := ID{}
	for i := range last {
		last[i] = 0xff
	}
	resources := last
	resources[0] = keys.TagLiteral - 1
	for _, err := range s.MatchIDs(IDPattern{Predicate: predicate}, &IDQuad{Subject: last, Predicate: predicate, Object: resources, Graph: last}) {
		return err == nil, err
	}
	return false, nil
}

// listed gives what follows a prefix in the keys that begin with it, one more
// than MaxLiteralKinds at the most.
func (s *Snapshot) listed(prefix []byte) []string {
	c := s.kv.scan(prefix)
	defer c.close()
	var out []string
	for ; c.valid() && len(out) <= MaxLiteralKinds; c.next() {
		out = append(out, string(c.key()[1:]))
	}
	return out
}
