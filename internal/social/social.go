// Package social generates a social network of any size for benchmarks: people with
// profiles and acquaintances, posts with replies and tags, and likes. The output is
// deterministic for a size and is never held in memory.
package social

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"strconv"
	"time"

	"koine/kg"
)

// Namespace is the namespace of the entities; Vocabulary is that of the properties.
const (
	Namespace  = "https://social.example/"
	Vocabulary = Namespace + "ns#"
)

// The statements generated for each person: friends, posts and likes.
const (
	friendsEach = 8
	postsEach   = 5
	likesEach   = 12
	tags        = 500
)

var began = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

var words = [...]string{"morning", "coffee", "river", "train", "music", "window", "garden", "winter", "letter", "bridge", "market", "forest", "evening", "harbour", "ticket", "mountain"}

// propertyIRI returns an IRI of the vocabulary.
func propertyIRI(name string) kg.Term { return kg.IRI(Vocabulary + name) }

var (
	isA       = kg.IRI(kg.RDFType)
	person    = propertyIRI("Person")
	post      = propertyIRI("Post")
	name      = propertyIRI("name")
	joined    = propertyIRI("joined")
	age       = propertyIRI("age")
	city      = propertyIRI("city")
	knows     = propertyIRI("knows")
	creator   = propertyIRI("creator")
	content   = propertyIRI("content")
	created   = propertyIRI("created")
	replyOf   = propertyIRI("replyOf")
	hasTag    = propertyIRI("tag")
	likes     = propertyIRI("likes")
	label     = kg.IRI(kg.RDFSLabel)
	languages = [...]string{"en", "de", "fr", "es"}
)

func personIRI(n int) kg.Term { return kg.IRI(Namespace + "person/" + strconv.Itoa(n)) }
func postIRI(n int) kg.Term   { return kg.IRI(Namespace + "post/" + strconv.Itoa(n)) }
func tagIRI(n int) kg.Term    { return kg.IRI(Namespace + "tag/" + strconv.Itoa(n)) }

// Statements yields the first n statements of the network, in the given graph. A few
// repeat an earlier one, as in real data.
func Statements(n int, graph kg.Term) iter.Seq[kg.Quad] {
	return func(yield func(kg.Quad) bool) {
		g := &generator{graph: graph, left: n, yield: yield, dice: rand.New(rand.NewPCG(1, 2))}
		for i := range tags {
			g.emitStatement(tagIRI(i), label, kg.String(g.randomWords(2)))
		}
		for i := 0; g.left > 0; i++ {
			g.emitPerson(i)
		}
	}
}

type generator struct {
	graph kg.Term
	left  int
	yield func(kg.Quad) bool
	dice  *rand.Rand
	posts int
}

func (g *generator) emitStatement(s, p, o kg.Term) {
	if g.left <= 0 {
		return
	}
	if g.left--; !g.yield(kg.Quad{Subject: s, Predicate: p, Object: o, Graph: g.graph}) {
		g.left = 0
	}
}

func (g *generator) randomWords(n int) string {
	text := ""
	for i := range n {
		if i > 0 {
			text += " "
		}
		text += words[g.dice.IntN(len(words))]
	}
	return text
}

// randomBelow returns a number below n, small ones more often: early members have
// more acquaintances.
func (g *generator) randomBelow(n int) int {
	a, b := g.dice.Float64(), g.dice.Float64()
	return int(a * b * float64(n))
}

func (g *generator) emitPerson(i int) {
	me := personIRI(i)
	g.emitStatement(me, isA, person)
	g.emitStatement(me, name, kg.LangString(fmt.Sprint(g.randomWords(1), " ", g.randomWords(1), " ", i), languages[g.dice.IntN(len(languages))]))
	g.emitStatement(me, joined, kg.DateTime(began.Add(time.Duration(i)*time.Minute)))
	g.emitStatement(me, age, kg.Integer(int64(16+g.dice.IntN(70))))
	g.emitStatement(me, city, kg.String(words[g.dice.IntN(len(words))]+" town"))
	for range friendsEach {
		g.emitStatement(me, knows, personIRI(g.randomBelow(i+1)))
	}
	for range postsEach {
		g.emitPost(i, me)
	}
	for range likesEach {
		g.emitStatement(me, likes, postIRI(g.randomBelow(g.posts)))
	}
}

func (g *generator) emitPost(by int, me kg.Term) {
	n := g.posts
	g.posts++
	p := postIRI(n)
	g.emitStatement(p, isA, post)
	g.emitStatement(p, creator, me)
	g.emitStatement(p, created, kg.DateTime(began.Add(time.Duration(by)*time.Minute+time.Duration(n%60)*time.Second)))
	g.emitStatement(p, content, kg.String(fmt.Sprint(g.randomWords(4+g.dice.IntN(12)), " ", n)))
	g.emitStatement(p, hasTag, tagIRI(g.randomBelow(tags)))
	if n > 0 && g.dice.IntN(2) == 0 {
		g.emitStatement(p, replyOf, postIRI(g.randomBelow(n)))
	}
}
