// Package compact writes facts as lines of text that a language model reads at little
// cost, and reads the same lines back:
//
//	@prefix lab: <https://koine.example/demo/>
//	lab:finding-1 (Water in the crystal costs capacity)@en
//	  a lab:Finding
//	  lab:measured [lab:by lab:chen; lab:cycles 100], [lab:by lab:dora; lab:cycles 50]
//	  lab:measured / lab:by lab:bruno
//	  lab:supportedBy lab:run-7 (Run 7: 100 cycles at 1C), lab:run-8
//	  lab:quality "doubtful" [0.4, by bruno, at 2026-11-24]
//
// A line that is not indented begins a subject; the lines below it have a predicate and its
// objects. The text in parentheses behind a subject is its rdfs:label. Behind an object,
// and between a predicate and its object, it is for the reader's eyes only; alone it stands for
// the entity with that label. Brackets hold the certainty, the sources, the time of the assertion and its validity; behind a
// subject, those of all its lines that have none.
//
// Brackets in the place of an object are a blank node with its predicates and objects. Two
// predicates with a slash between them have blank nodes between them that have nothing else.
// A reader gives these nodes new names, the same ones for the same text.
//
// @graph names the graph of the lines below; without it they are of the default graph.
// Terms are those of Turtle, with two differences: a number with a fraction is an
// xsd:double, as in JSON, and a date stands without quotes.
package compact

import (
	"time"

	"koine/kg"
)

// Fact is a statement with the parts of its assertions that a line shows.
type Fact struct {
	Graph                      kg.Term
	Subject, Predicate, Object Ref
	// Certainty is from 0 to 1, and absent for a statement of fact.
	Certainty    float64
	HasCertainty bool
	Sources      []kg.AgentID
	// Time is when it was asserted. A zero time is not shown.
	Time     time.Time
	Validity kg.TimeSpan
}

// Ref is a term, or the label of the entity that is meant if Term is zero. Write shows the
// labels of objects and predicates behind their terms.
type Ref struct {
	Term  kg.Term
	Label string
}
