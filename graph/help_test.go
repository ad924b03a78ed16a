package graph_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"koine/graph"
	"koine/graph/limit"
	"koine/internal/operation"
	"koine/internal/slowtest"
	"koine/kg"
)

const ex = "https://example.org/"

func iri(name string) kg.Term { return kg.IRI(ex + name) }

// clock gives the times of commits: a second later with each call, until it is stopped.
type clock struct {
	mu      sync.Mutex
	now     time.Time
	stopped bool
}

func (c *clock) tick() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.stopped {
		c.now = c.now.Add(time.Second)
	}
	return c.now
}

// seconds returns the time that the clock shows, which each call of tick advances.
func (c *clock) seconds() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return int(c.now.Unix())
}

// stop stops the clock, half a second later.
func (c *clock) stop() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now, c.stopped = c.now.Add(time.Second/2), true
	return c.now
}

func (c *clock) configure(o *kg.Options) { o.Clock = c.tick }

var reader = kg.Principal{ID: "agent://reader", ActFor: []kg.AgentID{kg.Anybody}, Method: "test"}

// bench is an engine over an empty store of its own.
type bench struct {
	t      testing.TB
	store  *kg.Store
	engine *graph.Engine
	log    *logBuffer
	clock  *clock
	// reading is the caller; nil: reader.
	reading *kg.Principal
}

func newBench(t testing.TB, options graph.Options, configure ...func(*kg.Options)) *bench {
	t.Helper()
	if options.Limits.Duration == 0 {
		options.Limits.Duration = slowtest.Slack(limit.DefaultDuration)
	}
	c := &clock{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	log := &logBuffer{}
	o := kg.Options{ReserveBytes: 1, Clock: c.tick, Logger: slog.New(slog.DiscardHandler)}
	for _, f := range configure {
		f(&o)
	}
	store, err := kg.Open(t.TempDir(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	prefixes, err := kg.NewPrefixes(map[string]string{"ex": ex})
	if err != nil {
		t.Fatal(err)
	}
	deps := graph.Deps{Store: store, Prefixes: prefixes, Logger: slog.New(slog.NewTextHandler(log, nil))}
	return &bench{t: t, store: store, engine: graph.NewEngine(deps, options), log: log, clock: c}
}

// of is the same bench for a test inside of its test.
func (b *bench) of(t testing.TB) *bench {
	c := *b
	c.t = t
	return &c
}

// logBuffer is the output of the engine's log.
type logBuffer struct{ strings.Builder }

// update makes one commit.
func (b *bench) update(patches ...kg.Patch) kg.Receipt {
	b.t.Helper()
	return b.updateFor("test", patches...)
}

// updateFor makes one commit, for a reason.
func (b *bench) updateFor(why string, patches ...kg.Patch) kg.Receipt {
	b.t.Helper()
	receipt, err := b.store.Update(context.Background(), kg.Meta{Principal: kg.Principal{ID: "agent://writer", Roles: []string{kg.RoleAdmin}}, Justification: why}, func(tx *kg.Tx) error {
		for _, p := range patches {
			if err := tx.Apply(p); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return receipt
}

func add(s, p, o kg.Term) kg.Patch {
	return kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: s, Predicate: p, Object: o, Graph: kg.DefaultGraph}}
}

func in(graph kg.Term, p kg.Patch) kg.Patch {
	p.Quad.Graph = graph
	return p
}

func by(source kg.AgentID, certainty float64, p kg.Patch) kg.Patch {
	p.Source, p.Certainty, p.HasCertainty = source, certainty, certainty >= 0
	return p
}

// execute runs an operation as reader.
func (b *bench) execute(query, variables string) operation.Result {
	b.t.Helper()
	return b.engine.Execute(context.Background(), b.request(query, variables))
}

func (b *bench) request(query, variables string) operation.Request {
	b.t.Helper()
	who := reader
	if b.reading != nil {
		who = *b.reading
	}
	return operation.Request{Query: query, Variables: decodeVariables(b.t, variables), Principal: who}
}

func decodeVariables(t testing.TB, text string) (v map[string]any) {
	t.Helper()
	if strings.TrimSpace(text) == "" {
		return nil
	}
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// data runs a query that must have no errors and decodes its data.
func (b *bench) data(query, variables string, into any) operation.Result {
	b.t.Helper()
	result := b.execute(query, variables)
	if len(result.Errors) > 0 {
		b.t.Fatalf("%s: %v", query, result.Errors)
	}
	if err := json.Unmarshal(result.Data, into); err != nil {
		b.t.Fatalf("%s: %v\n%s", query, err, result.Data)
	}
	return result
}

// team fills the store with the small graph that the answers are about:
// people and a city with values of all kinds, two graphs, several sources.
func (b *bench) team() {
	name, age, knows, born, likes := iri("name"), iri("age"), iri("knows"), iri("born"), iri("likes")
	ada, bob, cy, rome := iri("ada"), iri("bob"), iri("cy"), iri("rome")
	label, rdfType := kg.IRI(kg.RDFSLabel), kg.IRI(kg.RDFType)
	b.update(
		add(ada, rdfType, iri("Person")), add(bob, rdfType, iri("Person")), add(rome, rdfType, iri("City")),
		add(ada, label, kg.String("Ada")), add(bob, label, kg.LangString("Bob", "en")), add(bob, label, kg.LangString("Robert", "fr")),
		add(ada, name, kg.String("Ada Lovelace")), add(bob, name, kg.String("Bob \"the\" Builder\n")),
	)
	b.update(
		add(ada, age, kg.Integer(36)), add(bob, age, kg.Typed("36.5", kg.XSDDecimal)), add(cy, age, kg.Double(7)),
		add(ada, born, kg.Typed("1815-12-10", kg.XSDDate)), add(bob, born, kg.Typed("1963-05-01T12:00:00Z", kg.XSDDateTime)),
		add(ada, likes, kg.Boolean(true)), add(rome, name, kg.LangString("Roma", "it")), add(rome, name, kg.LangString("Rome", "en-GB")),
	)
	b.update(
		by("agent://scout", 0.9, add(ada, knows, bob)), by("agent://doubter", 0.3, add(ada, knows, bob)),
		by("agent://scout", 0.4, add(ada, knows, cy)), by("agent://scout", -1, add(bob, knows, kg.Blank("b1"))),
		by("agent://scout", 0.5, in(iri("g"), add(bob, iri("lives"), rome))),
		by("agent://scout", 0.8, add(bob, iri("mood"), kg.String("glad"))), by("agent://doubter", 0.6, add(bob, iri("mood"), kg.String("sad"))),
	)
	b.update(in(kg.SystemGraph, add(iri("secret"), name, kg.String("koine's own"))))
}
