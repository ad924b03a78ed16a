package query

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"koine/internal/query/path"
	"koine/internal/query/pattern"
	"koine/internal/query/valuespace"
	"koine/internal/suggest"
	"koine/kg"
	"koine/kg/base"
)

// PatternInput is a graph pattern as clients write it: a variable is "?name".
type PatternInput struct {
	Triples                    []TriplePattern
	Text                       []TextPattern
	Filter                     []VariableFilter
	Optional, Union, NotExists []PatternInput
}

// TriplePattern is a statement with variables. Its object is O or Value.
type TriplePattern struct {
	S, P     string
	O        *string
	Value    json.RawMessage
	Language *string
	Datatype *base.Term
	G        *string
}

// TextPattern binds a variable to the entities and messages that a search finds.
type TextPattern struct {
	Var        string // without "?"
	Query      string
	Predicates []base.Term // of the texts; nil for all
	Score      *string     // variable of the score
}

// VariableFilter is a condition on a variable.
type VariableFilter struct {
	Var                                        string
	Exists                                     *bool
	Value                                      *ValueFilter
	EqVar, NeVar, LtVar, LteVar, GtVar, GteVar *string
	Or                                         []VariableFilter
	Not                                        *VariableFilter
}

// Pattern converts a pattern. If s is set, texts are looked up in it.
func (c Compiler) Pattern(in *PatternInput, s *kg.Snapshot) (pattern.Group, error) {
	r := &patternReader{Compiler: c, snapshot: s}
	r.collectVariables(in)
	g, err := r.readGroup(in)
	return g, atField(err, "pattern")
}

// shownLiterals returns the literals with this text that occur in a statement
// that the view shows. Others would be revealed by the explanation.
func shownLiterals(s *kg.Snapshot, text string) (shown []kg.Term, complete bool, err error) {
	known, complete, err := s.Literals(text)
	for _, t := range known {
		id, _, err := s.ID(t)
		if err != nil {
			return nil, false, err
		}
		there, err := Shows(s, kg.IDPattern{Object: id})
		if err != nil {
			return nil, false, err
		}
		if there {
			shown = append(shown, t)
		}
	}
	return shown, complete, err
}

// patternReader converts a PatternInput to a pattern.
type patternReader struct {
	Compiler
	snapshot *kg.Snapshot // nil: values are only checked
	names    []string     // of the variables in the triples
	hidden   int          // number of variables that represent a `value`
}

// hiddenVariable names the variable that represents a value. The name is not
// valid in a query.
func hiddenVariable(n int) string { return fmt.Sprintf(" %d", n) }

// Variables returns the variables that rows of the pattern can show.
func Variables(p *pattern.Pattern) (names []string) {
	for _, name := range p.Names() {
		if !strings.HasPrefix(name, " ") {
			names = append(names, name)
		}
	}
	return names
}

// collectVariables notes the variables of all triples.
func (r *patternReader) collectVariables(in *PatternInput) {
	for i := range in.Triples {
		t := &in.Triples[i]
		for _, text := range []*string{&t.S, &t.P, t.O, t.G} {
			if text == nil {
				continue
			}
			if name, ok := strings.CutPrefix(*text, "?"); ok && !slices.Contains(r.names, name) {
				r.names = append(r.names, name)
			}
		}
	}
	for i := range in.Text {
		for _, name := range []*string{&in.Text[i].Var, in.Text[i].Score} {
			if name != nil && !slices.Contains(r.names, *name) {
				r.names = append(r.names, *name)
			}
		}
	}
	for _, list := range [][]PatternInput{in.Optional, in.Union, in.NotExists} {
		for i := range list {
			r.collectVariables(&list[i])
		}
	}
}

func (r *patternReader) readGroup(in *PatternInput) (g pattern.Group, err error) {
	for i := range in.Triples {
		if err := r.readTriple(&g, &in.Triples[i]); err != nil {
			return g, kg.AsError(err).At(fmt.Sprintf("triples[%d]", i))
		}
	}
	for i := range in.Text {
		if err := r.readText(&g, &in.Text[i]); err != nil {
			return g, kg.AsError(err).At(fmt.Sprintf("text[%d]", i))
		}
	}
	for i := range in.Filter {
		f, err := r.readFilter(&in.Filter[i])
		if err != nil {
			return g, kg.AsError(err).At(fmt.Sprintf("filter[%d]", i))
		}
		g.Filters = append(g.Filters, f)
	}
	if g.Optional, err = r.readGroups("optional", in.Optional); err != nil {
		return g, err
	}
	if g.NotExists, err = r.readGroups("notExists", in.NotExists); err != nil {
		return g, err
	}
	if in.Union == nil {
		return g, nil
	}
	union, err := r.readGroups("union", in.Union)
	g.Unions = [][]pattern.Group{union}
	return g, err
}

func (r *patternReader) readGroups(field string, list []PatternInput) (out []pattern.Group, err error) {
	for i := range list {
		g, err := r.readGroup(&list[i])
		if err != nil {
			return nil, kg.AsError(err).At(fmt.Sprintf("%s[%d]", field, i))
		}
		out = append(out, g)
	}
	return out, nil
}

func (r *patternReader) readTriple(g *pattern.Group, in *TriplePattern) (err error) {
	var t pattern.Triple
	if t.Subject, err = r.readNode(in.S); err != nil {
		return kg.AsError(err).At("s")
	}
	if err := r.readPredicate(&t, in.P); err != nil {
		return kg.AsError(err).At("p")
	}
	if in.G != nil {
		if t.Graph, err = r.readNode(*in.G); err != nil {
			return kg.AsError(err).At("g")
		}
		if t.Path != nil && strings.HasPrefix(*in.G, "?") {
			return kg.Errorf(kg.CodeInvalid, "g of a path cannot be a variable: a path is evaluated in one graph or in the union of all").At("g")
		}
	}
	value := in.Value != nil && string(in.Value) != "null"
	switch {
	case (in.O != nil) == value:
		return kg.Errorf(kg.CodeInvalid, "exactly one of o and value is required").At("o")
	case in.O != nil:
		t.Object, err = r.readNode(*in.O)
		err = atField(err, "o")
	default:
		err = r.readValue(g, &t, in)
	}
	g.Triples = append(g.Triples, t)
	return err
}

func (r *patternReader) readText(g *pattern.Group, in *TextPattern) (err error) {
	t := pattern.Text{Var: in.Var}
	if _, err := parseVariable(in.Var); err != nil {
		return kg.AsError(err).At("var")
	}
	if in.Score != nil {
		if t.Score = *in.Score; t.Score != "" {
			_, err = parseVariable(t.Score)
		}
		if err != nil {
			return kg.AsError(err).At("score")
		}
	}
	if r.Texts == nil {
		return kg.Errorf(kg.CodeInvalid, "text cannot be followed, because misspelt words depend on all texts; searchChanged follows a search")
	}
	if t.Source, err = r.Texts(in.Query, in.Predicates); err != nil {
		return kg.AsError(err).At("query")
	}
	g.Texts = append(g.Texts, t)
	return nil
}

func atField(err error, field string) error {
	if err == nil {
		return nil
	}
	return kg.AsError(err).At(field)
}

// readNode parses a variable, or an IRI like the scalar IRI.
func (r *patternReader) readNode(text string) (pattern.Node, error) {
	if name, ok := strings.CutPrefix(text, "?"); ok {
		return parseVariable(name)
	}
	t, err := ParseResource(r.Prefixes, text)
	return pattern.Term(t), err
}

func parseVariable(name string) (pattern.Node, error) {
	if name == "" || strings.ContainsFunc(name, func(c rune) bool { return c <= ' ' || c == '?' }) {
		return pattern.Node{}, kg.Errorf(kg.CodeInvalid, "%q is not a valid variable name", name)
	}
	return pattern.Var(name), nil
}

// readPredicate parses a variable, a full IRI, or a path.
func (r *patternReader) readPredicate(t *pattern.Triple, text string) (err error) {
	scheme, _, _ := strings.Cut(text, ":")
	switch {
	case strings.HasPrefix(text, "?"):
		t.Predicate, err = parseVariable(text[1:])
		return err
	case kg.IsScheme(scheme) && !strings.ContainsAny(text, "<>|^*(){} ") && !path.TwoIRIs(text):
		t.Predicate, err = r.readNode(text)
		return err
	}
	way, err := path.Parse(text, r.Prefixes)
	if err != nil {
		return err
	}
	if one, inverted, ok := way.Single(); ok && !inverted {
		t.Predicate = pattern.Term(one)
		return nil
	}
	t.Path = way
	return nil
}

// readValue sets the object of a triple to the literals equal to a value. A text
// is looked up. Other equal literals cannot be enumerated, so they are
// represented by a hidden variable with a condition.
func (r *patternReader) readValue(g *pattern.Group, t *pattern.Triple, in *TriplePattern) error {
	o, err := parseOperand(in.Value)
	if err != nil {
		return kg.AsError(err).At("value")
	}
	equal := comparison{operand: o, holds: isZero}
	objects := o.coverBy(valuespace.Value.Equal)
	byText := o.Kind == valuespace.KindText && !o.hasMoment
	equals := func(l kg.Term) bool { return equal.testValue(valuespace.Of(l)) }
	if in.Datatype != nil && o.Kind == valuespace.KindText {
		// A string with its datatype is a complete literal: "1" of xsd:integer
		// also equals 01.
		if written := kg.Typed(o.Text, in.Datatype.Value()); valuespace.Of(written).Kind != valuespace.KindText {
			equals = func(l kg.Term) bool {
				c, _, known := valuespace.CompareTerms(l, written)
				return known && c == 0
			}
			byText, objects = false, nil
			if v := valuespace.Of(written); v.Kind != valuespace.KindOther {
				objects = v.Equal()
			}
		}
	}
	holds := func(terms []kg.Term) bool {
		l := terms[0]
		return l.IsLiteral() && (in.Language == nil || strings.EqualFold(l.Lang(), *in.Language)) &&
			(in.Datatype == nil || l.Datatype() == in.Datatype.Value()) && equals(l)
	}
	if byText && r.snapshot != nil {
		known, complete, err := shownLiterals(r.snapshot, o.Text)
		if err != nil {
			return err
		}
		if complete {
			t.Object = pattern.OneOf(slices.DeleteFunc(known, func(l kg.Term) bool { return !holds([]kg.Term{l}) })...)
			return nil
		}
	}
	name := hiddenVariable(r.hidden)
	r.hidden++
	t.Object = pattern.Var(name)
	g.Filters = append(g.Filters, pattern.Filter{Vars: []string{name}, Holds: holds, Objects: objects})
	return nil
}

// checkVariable checks that a variable occurs in a triple.
func (r *patternReader) checkVariable(name, field string) error {
	if slices.Contains(r.names, name) {
		return nil
	}
	return UnknownVariable(name, r.names).At(field)
}

// UnknownVariable reports a name that is not among the known ones.
func UnknownVariable(name string, known []string) *kg.Error {
	e := kg.Errorf(kg.CodeInvalid, "the pattern has no variable %.40q", name)
	bare := strings.TrimPrefix(name, "?")
	switch near := suggest.Name(bare, known); {
	case bare != name && slices.Contains(known, bare):
		e.Hint = "Leave the question mark out."
	case near != "":
		e.Hint = "Did you mean " + near + "?"
	case len(known) > 0:
		e.Hint = "It has " + strings.Join(known[:min(len(known), 10)], ", ") + "."
	}
	return e
}
