package kgtest

import (
	"fmt"
	"math/rand/v2"
	"time"

	"koine/kg"
)

// The vocabulary of the tests is small, so that random operations interact.
var (
	subjects = []kg.Term{
		kg.IRI("urn:s:1"), kg.IRI("urn:s:2"), kg.IRI("urn:s:3"), kg.Blank("b1"),
	}
	predicates = []kg.Term{
		kg.IRI("urn:p:1"), kg.IRI("urn:p:2"), kg.IRI(kg.RDFType), kg.IRI(kg.RDFSLabel),
	}
	objects = []kg.Term{
		kg.IRI("urn:s:1"), kg.IRI("urn:c:1"), kg.IRI("urn:c:2"), kg.Blank("b1"),
		kg.String("x"), kg.String(""), kg.LangString("x", "en"),
		kg.Integer(1), kg.Typed("01", kg.XSDInteger), kg.Boolean(true),
		kg.Typed("2031-05-04", kg.XSDDate), kg.String("a string that is too long to stand in an id"),
	}
	ownGraph = kg.IRI(kg.OwnGraphPrefix + "test")
	graphs   = []kg.Term{kg.DefaultGraph, kg.IRI("urn:g:1"), kg.IRI("urn:g:2"), ownGraph}

	sources     = []kg.AgentID{"agent://a", "agent://b", "agent://c"}
	certainties = []float64{0, 0.25, 0.5, 0.75, 1}
	provenances = [][]byte{nil, []byte(`{"n":1}`), []byte(`{"n":2}`)}
	embeddings  = []*kg.Embedding{{Model: "m", Vector: []float32{1, 0}}, {Model: "m", Vector: []float32{0, -1}}, {Model: "n", Vector: []float32{1, 0}}}
	years       = []time.Time{year(1969), year(1990), year(2031), year(2032)}
	validities  = []kg.TimeSpan{
		{From: years[1]}, {Until: years[1]}, {From: years[0], Until: years[2]}, {From: years[1], Until: years[1].Add(time.Millisecond)},
	}
)

func year(n int) time.Time { return time.Date(n, 1, 1, 0, 0, 0, 0, time.UTC) }

// marker is a subject that no random patch has.
var marker = kg.IRI("urn:s:marker")

var tester = kg.Principal{ID: "agent://tester", Method: "local"}

// dice is the source of randomness of a run.
type dice struct{ *rand.Rand }

func newDice(seed uint64) dice { return dice{rand.New(rand.NewPCG(seed, 0x6b6f696e65))} }

// chance reports an event with a probability of n percent.
func (d dice) chance(n int) bool { return d.IntN(100) < n }

func pick[T any](d dice, from []T) T { return from[d.IntN(len(from))] }

// quad returns a quad of the vocabulary, sometimes with a new object.
func (d dice) quad() kg.Quad {
	q := kg.Quad{Subject: pick(d, subjects), Predicate: pick(d, predicates), Object: pick(d, objects), Graph: pick(d, graphs)}
	switch n := d.IntN(100); {
	case n < 4:
		q.Object = kg.IRI(fmt.Sprint("urn:new:", d.Uint32()))
	case n < 8:
		q.Object = kg.String(fmt.Sprint("a new text: ", d.Uint32()))
	}
	return q
}

func (d dice) patch() kg.Patch {
	p := kg.Patch{Quad: d.quad()}
	switch n := d.IntN(100); {
	case n < 55:
		p.Op = kg.Add
	case n < 80:
		p.Op = kg.Remove
	default:
		p.Op = kg.Replace
	}
	if d.chance(70) {
		p.Source = pick(d, sources)
	}
	if p.Op == kg.Remove {
		return p
	}
	if d.chance(70) {
		p.Certainty, p.HasCertainty = pick(d, certainties), true
	}
	p.Provenance = pick(d, provenances)
	if d.chance(40) {
		p.Validity = pick(d, validities)
	}
	if d.chance(30) {
		p.Embedding = pick(d, embeddings)
	}
	return p
}

func (d dice) patches() []kg.Patch {
	patches := make([]kg.Patch, 1+d.IntN(6))
	for i := range patches {
		patches[i] = d.patch()
		if i > 0 && d.chance(30) { // interact within the update
			patches[i].Quad = patches[i-1].Quad
		}
	}
	return patches
}

// pattern binds or omits each position; all sixteen combinations are equally likely.
func (d dice) pattern() kg.Pattern {
	var p kg.Pattern
	bound := d.IntN(16)
	if bound&1 != 0 {
		p.Subject = pick(d, subjects)
	}
	if bound&2 != 0 {
		p.Predicate = pick(d, predicates)
	}
	if bound&4 != 0 {
		p.Object = pick(d, objects)
	}
	if bound&8 != 0 {
		p.Graph = pick(d, graphs)
	}
	return p
}

// caller returns tester, which has all rights, or sometimes reader.
func (d dice) caller() kg.Principal {
	if d.chance(15) {
		return reader
	}
	return tester
}

// view returns a random view of the newest revision.
func (d dice) view() kg.View {
	v := kg.View{Principal: d.caller()}
	switch d.IntN(4) {
	case 0:
		v.AllGraphs = true
	case 1:
		for _, g := range graphs {
			if d.chance(50) {
				v.Graphs = append(v.Graphs, g)
			}
		}
	}
	if d.chance(40) {
		v.MinCertainty = pick(d, certainties)
	}
	if d.chance(30) {
		v.MaxAge = time.Duration(1+d.IntN(4000)) * time.Millisecond
	}
	if d.chance(20) {
		v.Recorded = d.span()
	}
	if d.chance(25) {
		v.ValidAt = pick(d, years)
	}
	v.Doubted = d.chance(15)
	if d.chance(30) {
		v.Believed = append(v.Believed, pick(d, sources), pick(d, sources))
	}
	return v
}

// span returns a span of the time in which most runs take place.
func (d dice) span() (s kg.TimeSpan) {
	s.From = noon.Add(time.Duration(d.IntN(20_000)) * time.Millisecond)
	if d.chance(50) {
		s.Until = s.From.Add(time.Duration(1+d.IntN(20_000)) * time.Millisecond)
	}
	if d.chance(30) && !s.Until.IsZero() {
		s.From = time.Time{}
	}
	return s
}

func (d dice) filter() kg.Filter {
	f := kg.Filter{View: d.view()}
	f.View.MaxAge = 0                  // MaxAge is invalid in a watch
	for range d.IntN(12) * d.IntN(2) { // from none to more than are matched one by one
		p := d.pattern()
		if d.chance(30) {
			p.Subject, p.Object = kg.Term{}, kg.Term{}
		}
		f.Patterns = append(f.Patterns, p)
	}
	if d.chance(30) {
		f.Ops = []kg.Op{pick(d, []kg.Op{kg.Add, kg.Remove, kg.Replace}), pick(d, []kg.Op{kg.Add, kg.Remove, kg.Replace})}
	}
	if d.chance(30) {
		f.Keep = func(s kg.Statement) bool { return !s.Object.IsLiteral() }
	}
	return f
}

// orElse returns v, or other if v is the zero value.
func orElse[T comparable](v, other T) T {
	var zero T
	if v == zero {
		return other
	}
	return v
}
