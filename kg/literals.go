package kg

import "koine/kg/internal/keys"

// inlineDatatypes are those whose values may be in the id itself, so that no
// literal of theirs need be in the dictionary.
var inlineDatatypes = []string{XSDBoolean, XSDInteger, XSDDouble, XSDDateTime, XSDDate}

// Literals lists the literals with this text that the store knows, in whatever
// language and datatype: what a text without either may mean. That there is one
// does not mean that the view shows a statement with it.
func (s *Snapshot) Literals(text string) ([]Term, error) {
	candidates := []Term{String(text)}
	for _, lang := range s.listed(keys.LanguagePrefix()) {
		candidates = append(candidates, Term{kind: KindLiteral, value: text, lang: lang})
	}
	for _, datatype := range inlineDatatypes {
		t := Typed(text, datatype)
		if _, inline := inlineID(t); inline {
			candidates = append(candidates, t)
		}
	}
	for _, datatype := range s.listed(keys.DatatypePrefix()) {
		t := Typed(text, datatype)
		if _, inline := inlineID(t); !inline {
			candidates = append(candidates, t)
		}
	}
	known := candidates[:0]
	for i, t := range candidates {
		if i%checkEvery == 0 && s.ctx != nil && s.ctx.Err() != nil {
			return nil, s.ctx.Err()
		}
		_, ok, err := s.dict.id(t)
		if err != nil {
			return nil, err
		}
		if ok {
			known = append(known, t)
		}
	}
	return known, nil
}

// listed gives what follows a prefix in the keys that begin with it.
func (s *Snapshot) listed(prefix []byte) []string {
	c := s.kv.scan(prefix)
	defer c.close()
	var out []string
	for ; c.valid(); c.next() {
		out = append(out, string(c.key()[1:]))
	}
	return out
}
