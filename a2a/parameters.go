package a2a

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"koine/kg"
)

// parameters reads query parameters like the members of an object.
type parameters struct {
	failure *failure
	values  url.Values
	reader  reader
}

func (p *parameters) all(name string) []string {
	all := p.values[name]
	delete(p.values, name)
	return all
}

func (p *parameters) one(name string) string {
	all := p.all(name)
	if len(all) == 0 {
		return ""
	}
	if len(all) > 1 {
		p.fail(name, "must occur once")
	}
	return all[0]
}

func (p *parameters) fail(name, format string, args ...any) {
	p.failure.set(name, kg.Errorf(kg.CodeInvalid, format, args...))
}

func (p *parameters) flag(name string) bool {
	text := p.one(name)
	if text == "" {
		return false
	}
	on, err := strconv.ParseBool(text)
	if err != nil {
		p.fail(name, "must be true or false")
	}
	return on
}

func (p *parameters) certainty(name string) float64 {
	text := p.one(name)
	if text == "" {
		return 0
	}
	c, err := strconv.ParseFloat(text, 64)
	if err != nil || !(c >= 0 && c <= 1) {
		p.fail(name, "must be between 0 and 1")
	}
	return c
}

func (p *parameters) resource(name string) kg.Term {
	text := p.one(name)
	if text == "" {
		return kg.Term{}
	}
	t, err := p.reader.named(text)
	if err != nil {
		p.failure.set(name, kg.AsError(err))
	}
	return t
}

// pattern reads subject, predicate and the object: a resource as "object", or a literal
// as "value" with "type" and "language".
func (p *parameters) pattern() kg.Pattern {
	pattern := kg.Pattern{Subject: p.resource("subject"), Predicate: p.resource("predicate"), Object: p.resource("object")}
	_, hasValue := p.values["value"]
	value, datatype, language := p.one("value"), p.one("type"), p.one("language")
	switch {
	case !hasValue && (datatype != "" || language != ""):
		p.fail("value", "is required with type or language")
	case hasValue && !pattern.Object.IsZero():
		p.fail("object", "object and value are mutually exclusive")
	case hasValue:
		literal, err := p.literal(value, datatype, language)
		if err != nil {
			p.failure.set("value", err)
		}
		pattern.Object = literal
	}
	return pattern
}

// literal returns a plain string, unless the type or the language is set.
func (p *parameters) literal(value, datatype, language string) (kg.Term, *kg.Error) {
	raw, err := appendJSON(nil, value)
	if err != nil {
		return kg.Term{}, kg.AsError(err)
	}
	t, err := kg.LiteralFromJSON(raw, p.reader.datatype(datatype), language)
	if err != nil {
		return t, kg.AsError(err)
	}
	return t, nil
}

func (p *parameters) ops(name string) (ops []kg.Op) {
	for _, text := range p.all(name) {
		for word := range strings.SplitSeq(text, ",") {
			op, ok := opNamed(word)
			if !ok {
				p.fail(name, "must be add, remove or replace, not %q", clip(word))
			}
			ops = append(ops, op)
		}
	}
	return ops
}

// graphs reads the graphs to watch; an empty name is the default graph.
func (p *parameters) graphs(name string) (graphs []kg.Term) {
	for _, text := range p.all(name) {
		if text == "" {
			graphs = append(graphs, kg.DefaultGraph)
			continue
		}
		t, err := p.reader.prefixes.Resource(text)
		if err != nil {
			p.failure.set(name, kg.AsError(err))
		}
		graphs = append(graphs, t)
	}
	return graphs
}

func (p *parameters) done() {
	for _, name := range slices.Sorted(maps.Keys(p.values)) {
		p.fail(clip(name), "unknown parameter")
	}
}
