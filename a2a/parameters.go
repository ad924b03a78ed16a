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

func (p *parameters) takeAll(name string) []string {
	all := p.values[name]
	delete(p.values, name)
	return all
}

func (p *parameters) takeOne(name string) string {
	all := p.takeAll(name)
	if len(all) == 0 {
		return ""
	}
	if len(all) > 1 {
		p.failAt(name, "must occur once")
	}
	return all[0]
}

func (p *parameters) failAt(name, format string, args ...any) {
	p.failure.setAt(name, kg.Errorf(kg.CodeInvalid, format, args...))
}

func (p *parameters) readFlag(name string) bool {
	text := p.takeOne(name)
	if text == "" {
		return false
	}
	on, err := strconv.ParseBool(text)
	if err != nil {
		p.failAt(name, "must be true or false")
	}
	return on
}

func (p *parameters) readCertainty(name string) float64 {
	text := p.takeOne(name)
	if text == "" {
		return 0
	}
	c, err := strconv.ParseFloat(text, 64)
	if err != nil || !(c >= 0 && c <= 1) {
		p.failAt(name, "must be between 0 and 1")
	}
	return c
}

func (p *parameters) readResource(name string) kg.Term {
	text := p.takeOne(name)
	if text == "" {
		return kg.Term{}
	}
	t, err := p.reader.resourceNamed(text)
	if err != nil {
		p.failure.setAt(name, kg.AsError(err))
	}
	return t
}

// readPattern reads subject, predicate and the object: a resource as "object", or a literal
// as "value" with "type" and "language".
func (p *parameters) readPattern() kg.Pattern {
	pattern := kg.Pattern{Subject: p.readResource("subject"), Predicate: p.readResource("predicate"), Object: p.readResource("object")}
	_, hasValue := p.values["value"]
	value, datatype, language := p.takeOne("value"), p.takeOne("type"), p.takeOne("language")
	switch {
	case !hasValue && (datatype != "" || language != ""):
		p.failAt("value", "is required with type or language")
	case hasValue && !pattern.Object.IsZero():
		p.failAt("object", "object and value are mutually exclusive")
	case hasValue:
		literal, err := p.parseLiteral(value, datatype, language)
		if err != nil {
			p.failure.setAt("value", err)
		}
		pattern.Object = literal
	}
	return pattern
}

// parseLiteral returns a plain string, unless the type or the language is set.
func (p *parameters) parseLiteral(value, datatype, language string) (kg.Term, *kg.Error) {
	raw, err := appendJSON(nil, value)
	if err != nil {
		return kg.Term{}, kg.AsError(err)
	}
	t, err := kg.LiteralFromJSON(raw, p.reader.expandDatatype(datatype), language)
	if err != nil {
		return t, kg.AsError(err)
	}
	return t, nil
}

func (p *parameters) readOps(name string) (ops []kg.Op) {
	for _, text := range p.takeAll(name) {
		for word := range strings.SplitSeq(text, ",") {
			op, ok := opNamed(word)
			if !ok {
				p.failAt(name, "must be add, remove or replace, not %q", clipText(word))
			}
			ops = append(ops, op)
		}
	}
	return ops
}

// readGraphs reads the graphs to watch; an empty name is the default graph.
func (p *parameters) readGraphs(name string) (graphs []kg.Term) {
	for _, text := range p.takeAll(name) {
		if text == "" {
			graphs = append(graphs, kg.DefaultGraph)
			continue
		}
		t, err := p.reader.prefixes.Resource(text)
		if err != nil {
			p.failure.setAt(name, kg.AsError(err))
		}
		graphs = append(graphs, t)
	}
	return graphs
}

func (p *parameters) checkAllRead() {
	for _, name := range slices.Sorted(maps.Keys(p.values)) {
		p.failAt(clipText(name), "unknown parameter")
	}
}
