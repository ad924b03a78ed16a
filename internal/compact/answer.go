package compact

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"koine/internal/plainjson"
	"koine/kg"
)

// WriteAnswer writes the data of an answer of GraphQL: the statements in it as facts, and its
// other values, such as counts, as remarks before them, "# path: value". An entity has an iri,
// a statement a predicate and an object or a subject. Facts counts facts alone.
func WriteAnswer(data []byte, o Options) (Written, error) {
	root, err := decodeOrdered(json.NewDecoder(bytes.NewReader(data)))
	if err != nil {
		return Written{}, err
	}
	a := &answer{prefixes: o.Prefixes, seen: map[factKey]bool{}}
	if err := a.walkValue("", root, context{}); err != nil {
		return Written{}, err
	}
	remarks := a.writeRemarks(o.MaxTokens / 2)
	if o.MaxTokens > 0 {
		o.MaxTokens = max(1, o.MaxTokens-Tokens(remarks))
	}
	if len(a.facts) == 0 {
		return Written{Text: remarks}, nil
	}
	w := Write(a.bySubject(), o)
	w.Text = remarks + w.Text
	return w, nil
}

// members are those of a JSON object in their order.
type members struct {
	names  []string
	values map[string]any
}

func (m *members) text(name string) string {
	s, _ := m.values[name].(string)
	return s
}

// decodeOrdered decodes a value: members, []any, string, json.Number, bool or nil.
func decodeOrdered(d *json.Decoder) (any, error) {
	d.UseNumber()
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t {
	case json.Delim('['):
		list := []any{}
		for d.More() {
			v, err := decodeOrdered(d)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err = d.Token()
		return list, err
	case json.Delim('{'):
		m := &members{values: map[string]any{}}
		for d.More() {
			name, err := d.Token()
			if err != nil {
				return nil, err
			}
			v, err := decodeOrdered(d)
			if err != nil {
				return nil, err
			}
			m.names = append(m.names, name.(string))
			m.values[name.(string)] = v
		}
		_, err = d.Token()
		return m, err
	}
	return t, nil
}

// answer collects the facts and remarks of an answer.
type answer struct {
	prefixes *kg.Prefixes
	facts    []Fact
	seen     map[factKey]bool
	remarks  []string
}

type factKey struct{ subject, predicate, object, graph kg.Term }

// context is the entity around a value: the subject of statements in its member out, the
// object of those in its member in.
type context struct {
	subject, object Ref
	entity          string
}

func (a *answer) walkValue(path string, v any, in context) error {
	switch v := v.(type) {
	case []any:
		if len(v) == 0 {
			a.remarks = append(a.remarks, path+": none")
		}
		for i := range v {
			if err := a.walkValue(path, v[i], in); err != nil {
				return err
			}
		}
	case *members:
		return a.walkMembers(path, v, in)
	case nil:
		if !strings.Contains(path, ".") { // of a field of the query, and not of a node
			a.remarks = append(a.remarks, path+": null")
		}
	default:
		a.remarks = append(a.remarks, fmt.Sprintf("%s: %s", path, plainjson.MustEncode(v)))
	}
	return nil
}

func (a *answer) walkMembers(path string, m *members, in context) error {
	taken := map[string]bool{"__typename": true, "cursor": true}
	if page, ok := m.values["pageInfo"].(*members); ok {
		taken["pageInfo"] = true
		if page.values["hasNextPage"] == true {
			a.remarks = append(a.remarks, fmt.Sprintf("%s has more: continue with after: %q", path, page.text("endCursor")))
		}
	}
	if m.text("predicate") != "" || isRecord(m.values["predicate"]) {
		ok, err := a.addStatement(m, in)
		if err != nil {
			return err
		}
		if ok {
			for _, name := range []string{"predicate", "id", "statementId", "graph", "certainty", "object", "subject"} {
				taken[name] = true
			}
			for _, name := range []string{"subject", "object"} {
				if inner, is := m.values[name].(*members); is && inner.text("iri") != "" {
					if err := a.walkMembers(path+"."+name, inner, context{}); err != nil {
						return err
					}
				}
			}
		}
	}
	if iri := m.text("iri"); iri != "" {
		entity, err := kg.ResourceFromID(iri)
		if err != nil {
			return err
		}
		in = context{subject: Ref{Term: entity}, object: Ref{Term: entity}, entity: a.prefixes.Shorten(iri)}
		taken["iri"], taken["id"] = true, true
		if label := m.text("label"); label != "" {
			taken["label"] = true
			a.addFact(Fact{Subject: in.subject, Predicate: Ref{Term: kg.IRI(kg.RDFSLabel)}, Object: Ref{Term: kg.String(label)}})
		}
		if types, ok := m.values["types"].([]any); ok {
			taken["types"] = true
			for _, t := range types {
				class, err := kg.ResourceFromID(fmt.Sprint(t))
				if err != nil {
					return err
				}
				a.addFact(Fact{Subject: in.subject, Predicate: Ref{Term: kg.IRI(kg.RDFType)}, Object: Ref{Term: class}})
			}
		}
		path = in.entity
	}
	for _, name := range m.names {
		if taken[name] {
			continue
		}
		inner := in
		if name == "in" {
			inner.subject = Ref{}
		} else if name == "out" {
			inner.object = Ref{}
		}
		if err := a.walkValue(strings.TrimPrefix(path+"."+name, "."), m.values[name], inner); err != nil {
			return err
		}
	}
	return nil
}

func isRecord(v any) bool {
	m, ok := v.(*members)
	return ok && m.text("id") != ""
}

// addStatement adds a statement. It reports false if a part of it is not in the answer.
func (a *answer) addStatement(m *members, in context) (bool, error) {
	f := Fact{Subject: in.subject, Object: in.object}
	var err error
	for _, part := range []struct {
		name string
		ref  *Ref
	}{{"subject", &f.Subject}, {"predicate", &f.Predicate}, {"object", &f.Object}, {"graph", nil}} {
		v := m.values[part.name]
		if v == nil {
			continue
		}
		var ref Ref
		if ref, err = a.refOf(v); err != nil {
			return false, err
		}
		if part.ref == nil {
			f.Graph = ref.Term
		} else {
			*part.ref = ref
		}
	}
	if f.Subject.Term.IsZero() || f.Predicate.Term.IsZero() || f.Object.Term.IsZero() {
		return false, nil
	}
	if number, ok := m.values["certainty"].(json.Number); ok {
		if f.Certainty, err = number.Float64(); err != nil {
			return false, err
		}
		f.HasCertainty = true
	}
	f.Subject.Label = ""
	a.addFact(f)
	return true, nil
}

// refOf returns the term of a part of a statement: an IRI, an entity, a record or a literal.
func (a *answer) refOf(v any) (ref Ref, err error) {
	switch v := v.(type) {
	case string:
		ref.Term, err = kg.ResourceFromID(v)
	case *members:
		if id := v.text("iri") + v.text("id"); v.text("iri") != "" || v.values["value"] == nil && id != "" {
			if ref.Label = v.text("label"); v.text("iri") != "" {
				id = v.text("iri")
			}
			ref.Term, err = kg.ResourceFromID(id)
		} else if value := v.values["value"]; value != nil {
			datatype := v.text("datatype") + v.text("type")
			if v.text("language") != "" || datatype == kg.XSDString {
				datatype = ""
			}
			ref.Term, err = kg.LiteralFromJSON(plainjson.MustEncode(value), datatype, v.text("language"))
		}
	}
	return ref, err
}

func (a *answer) addFact(f Fact) {
	if f.Graph.IsZero() {
		f.Graph = kg.DefaultGraph
	}
	key := factKey{f.Subject.Term, f.Predicate.Term, f.Object.Term, f.Graph}
	if !a.seen[key] {
		a.seen[key] = true
		a.facts = append(a.facts, f)
	}
}

// bySubject returns the facts with those of one graph and subject together.
func (a *answer) bySubject() []Fact {
	type place struct{ graph, subject kg.Term }
	first := map[place]int{}
	for i := range a.facts {
		p := place{a.facts[i].Graph, a.facts[i].Subject.Term}
		if _, ok := first[p]; !ok {
			first[p] = i
		}
	}
	slices.SortStableFunc(a.facts, func(x, y Fact) int {
		return cmp.Compare(first[place{x.Graph, x.Subject.Term}], first[place{y.Graph, y.Subject.Term}])
	})
	return a.facts
}

// writeRemarks writes the remarks, the first ones within a number of tokens; 0 is no bound.
func (a *answer) writeRemarks(most int) string {
	var b strings.Builder
	rest := func(left int) string {
		return fmt.Sprintf("# %d more values; ask with a larger maxTokens, or for fewer of them\n", left)
	}
	n := 0
	for i, remark := range a.remarks {
		line := "# " + remark + "\n"
		n += Tokens(line)
		end := n
		if left := len(a.remarks) - i - 1; left > 0 {
			end += Tokens(rest(left))
		}
		if most > 0 && end > most {
			b.WriteString(rest(len(a.remarks) - i))
			break
		}
		b.WriteString(line)
	}
	return b.String()
}
