package names_test

import (
	"fmt"
	"strings"
	"testing"

	"koine/internal/names"
	"koine/internal/update"
	"koine/kg"
)

// graphOf lets one agent read one graph, and all others everything.
type graphOf struct {
	kg.AllowAll
	agent kg.AgentID
	graph kg.Term
}

func (g graphOf) Allowed(p kg.Principal, graph kg.Term, _ kg.Right) bool {
	return p.ID != g.agent || graph == g.graph
}

func open(t testing.TB, access kg.Access) *kg.Store {
	t.Helper()
	s, err := kg.Open(t.TempDir(), kg.Options{Governor: kg.Governor{Access: access}, FreeBytes: func(string) (uint64, error) { return 1 << 40, nil }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := names.Register(t.Context(), s, kg.Meta{}, map[string]string{"ex": "https://example.org/"}, false); err != nil {
		t.Fatal(err)
	}
	return s
}

func add(s, p string, o kg.Term, graph kg.Term) update.Mutation {
	return update.Mutation{Patch: kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: kg.IRI(s), Predicate: kg.IRI(p), Object: o, Graph: graph}}}
}

func apply(t testing.TB, s *kg.Store, j *names.Judge, agent kg.AgentID, m ...update.Mutation) (update.Result, error) {
	t.Helper()
	return update.Apply(t.Context(), s, j, update.Request{Meta: kg.Meta{Principal: kg.Principal{ID: agent, Method: "key"}}, Mutations: m})
}

// Hints for a new predicate or class that is similar to a used one, for a literal among
// resources, and for an id that exists with a prefix; each with the part of the patch.
func TestHints(t *testing.T) {
	s := open(t, nil)
	j := names.NewJudge(s, names.Strict)
	ex := func(name string) string { return "https://example.org/" + name }
	if _, err := apply(t, s, j, "agent://a", add(ex("Finding"), ex("supports"), kg.IRI(ex("b")), kg.DefaultGraph), add(ex("b"), kg.RDFType, kg.IRI(ex("Person")), kg.DefaultGraph),
		add(ex("b"), ex("label"), kg.String("B"), kg.DefaultGraph)); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name, want, path string
		m                update.Mutation
	}{
		{"a predicate that is used", "", "", add(ex("c"), ex("label"), kg.String("C"), kg.DefaultGraph)},
		{"a slip", "did you mean ex:label?", "0.statement.predicate", add(ex("c"), ex("lable"), kg.String("C"), kg.DefaultGraph)},
		{"a class", "did you mean ex:Person?", "0.statement.type", add(ex("c"), kg.RDFType, kg.IRI(ex("Persn")), kg.DefaultGraph)},
		{"a literal", "all visible objects of ex:supports are resources", "0.statement.object", add(ex("c"), ex("supports"), kg.String("b"), kg.DefaultGraph)},
		{"a bare id", "ex:Finding exists", "0.statement.subject", add(kg.ForeignIDPrefix+"Finding", ex("label"), kg.String("F"), kg.DefaultGraph)},
		{"something new", "", "", add(ex("c"), ex("inventedBy"), kg.IRI(ex("d")), kg.DefaultGraph)},
	} {
		dry := update.Request{Meta: kg.Meta{Principal: kg.Principal{ID: "agent://a", Method: "key"}, DryRun: true}, Mutations: []update.Mutation{row.m}}
		result, err := update.Apply(t.Context(), s, j, dry)
		if err != nil {
			t.Fatal(row.name, err)
		}
		if row.want == "" {
			if len(result.Hints) > 0 {
				t.Errorf("%s: hints %+v, want none", row.name, result.Hints)
			}
			continue
		}
		if len(result.Hints) != 1 || !strings.Contains(result.Hints[0].Message, row.want) || strings.ReplaceAll(strings.ReplaceAll(result.Hints[0].Path.String(), "[", ""), "]", "") != row.path {
			t.Errorf("%s: hints %+v, want one at %s with %q", row.name, result.Hints, row.path, row.want)
		}
	}
}

// Neither a hint nor an error reveals a graph that the caller may not read: they are
// the same without that graph.
func TestNothingIsToldOfHiddenGraphs(t *testing.T) {
	mine, hidden := kg.IRI("https://example.org/mine"), kg.IRI("https://example.org/hidden")
	answers := func(fill bool) (out []string) {
		s := open(t, graphOf{agent: "agent://b", graph: mine})
		lenient := names.NewJudge(s, names.Lenient)
		if _, err := apply(t, s, lenient, "agent://a", add("urn:m", "urn:m", kg.IRI("urn:m"), mine)); err != nil {
			t.Fatal(err)
		}
		if fill {
			if _, err := apply(t, s, lenient, "agent://a",
				add("https://example.org/Secret", "https://example.org/plan", kg.IRI("odd:thing"), hidden), add("urn:x", kg.RDFType, kg.IRI("https://example.org/Weapon"), hidden)); err != nil {
				t.Fatal(err)
			}
		}
		j := names.NewJudge(s, names.Strict)
		for _, m := range []update.Mutation{
			add("urn:a", "https://example.org/plann", kg.IRI("urn:b"), mine),
			add("urn:a", "https://example.org/plan", kg.String("b"), mine),
			add("urn:a", kg.RDFType, kg.IRI("https://example.org/Weapn"), mine),
			add(kg.ForeignIDPrefix+"Secret", "urn:p", kg.IRI("urn:b"), mine),
			add("urn:a", "urn:p", kg.IRI("odd:thing"), mine),
		} {
			result, err := update.Apply(t.Context(), s, j, update.Request{Meta: kg.Meta{Principal: kg.Principal{ID: "agent://b", Method: "key"}, DryRun: true}, Mutations: []update.Mutation{m}})
			out = append(out, fmt.Sprint(result.Hints, err))
		}
		return out
	}
	with, without := answers(true), answers(false)
	for i := range with {
		if with[i] != without[i] {
			t.Errorf("%d: with the hidden graph %q, without %q", i, with[i], without[i])
		}
	}
	if !strings.Contains(with[4], "odd:thing") {
		t.Errorf("a name that stands in a hidden graph alone: %s, want a refusal", with[4])
	}
}

// There are at most ten hints, and a lenient judge reports each prefix once.
func TestHintsAreBounded(t *testing.T) {
	s := open(t, nil)
	var many []update.Mutation
	for i := range 40 {
		many = append(many, add(fmt.Sprintf("odd%d:s", i), "urn:p", kg.IRI("odd:o"), kg.DefaultGraph))
	}
	result, err := apply(t, s, names.NewJudge(s, names.Lenient), "agent://a", many...)
	if err != nil || len(result.Hints) != 10 {
		t.Errorf("%d hints, %v; want 10", len(result.Hints), err)
	}
}

// BenchmarkJudge measures the check of a patch with known names in use.
func BenchmarkJudge(b *testing.B) {
	s := open(b, nil)
	j := names.NewJudge(s, names.Strict)
	m := add("https://example.org/s", "https://example.org/p", kg.Integer(1), kg.DefaultGraph)
	if _, err := apply(b, s, j, "agent://a", m); err != nil {
		b.Fatal(err)
	}
	p := m.Patch
	b.ReportAllocs()
	for b.Loop() {
		g := j.Begin(b.Context(), kg.Principal{ID: "agent://a", Method: "key"})
		if err := g.Check(&p, 0, ""); err != nil {
			b.Fatal(err)
		}
		g.Hint(&p, 0)
		g.Close()
	}
}
