package celrules_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"koine/internal/celrules"
	"koine/internal/names"
	"koine/internal/update"
	"koine/kg"
)

// caller is an agent from outside.
func caller(name string, roles ...string) kg.Principal {
	return kg.Principal{ID: kg.CanonicalAgent(name), Roles: roles, Method: "key"}
}

// hiding is an access that hides the statements that rules hide.
type hiding struct {
	kg.AllowAll
	*celrules.Set
}

// store opens a store that is judged by the rules.
func store(t *testing.T, set *celrules.Set) *kg.Store {
	t.Helper()
	s, err := kg.Open(t.TempDir(), kg.Options{Governor: kg.Governor{Verifier: set, Access: hiding{Set: set}}, FreeBytes: func(string) (uint64, error) { return 1 << 40, nil }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func parse(t *testing.T, text string) *celrules.Set {
	t.Helper()
	set, err := celrules.Parse([]byte(text), celrules.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func example(t *testing.T, name string) *celrules.Set {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../examples/policies", name))
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, string(text))
}

func patch(op kg.Op, subject, predicate string, object kg.Term) kg.Patch {
	return kg.Patch{Op: op, Quad: kg.Quad{Subject: kg.IRI(subject), Predicate: kg.IRI(predicate), Object: object}}
}

func sure(p kg.Patch, certainty float64) kg.Patch {
	p.Certainty, p.HasCertainty = certainty, true
	return p
}

func apply(s *kg.Store, m kg.Meta, patches ...kg.Patch) (kg.Receipt, error) {
	r := update.Request{Meta: m}
	for _, p := range patches {
		r.Mutations = append(r.Mutations, update.Mutation{Patch: p})
	}
	result, err := update.Apply(context.Background(), s, names.NewJudge(s, names.Strict), r)
	return result.Receipt, err
}

// outcome names how an update ended.
func outcome(r kg.Receipt, err error) string {
	switch {
	case kg.CodeOf(err) == kg.CodeConstraintViolation:
		return "violation"
	case err != nil:
		return err.Error()
	}
	return map[kg.Outcome]string{kg.Accepted: "accepted", kg.Rejected: "rejected", kg.Held: "held"}[r.Verdict.Outcome]
}

const (
	ex     = "https://example.org/"
	schema = "https://schema.org/"
)

// TestExamples proves that each shipped example refuses exactly the updates it
// describes.
func TestExamples(t *testing.T) {
	files, err := filepath.Glob("../../examples/policies/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	type step struct {
		name    string
		meta    kg.Meta
		patches []kg.Patch
		want    string
	}
	ann, bob := kg.Meta{Principal: caller("ann")}, kg.Meta{Principal: caller("bob")}
	because := ann
	because.Justification = "it was signed"
	contract := patch(kg.Add, "urn:c", kg.RDFType, kg.IRI(ex+"Contract"))
	examples := map[string][]step{
		"certainty-floor.yaml": {
			{"a diagnosis as a fact", ann, []kg.Patch{patch(kg.Add, "urn:p", ex+"diagnosis", kg.String("flu"))}, "accepted"},
			{"a sure diagnosis", ann, []kg.Patch{sure(patch(kg.Add, "urn:p", ex+"diagnosis", kg.String("cold")), 0.8)}, "accepted"},
			{"a guess", ann, []kg.Patch{sure(patch(kg.Add, "urn:p", ex+"diagnosis", kg.String("gout")), 0.79)}, "rejected"},
			{"a guess that replaces", ann, []kg.Patch{sure(patch(kg.Replace, "urn:p", ex+"diagnosis", kg.String("gout")), 0.79)}, "rejected"},
			{"a guess behind what is sure", ann, []kg.Patch{patch(kg.Add, "urn:p", ex+"name", kg.String("p")), sure(patch(kg.Add, "urn:p", ex+"diagnosis", kg.String("gout")), 0)}, "rejected"},
			{"another floor", ann, []kg.Patch{sure(patch(kg.Add, "urn:p", schema+"birthDate", kg.String("1970")), 0.5)}, "accepted"},
			{"below it", ann, []kg.Patch{sure(patch(kg.Add, "urn:p", schema+"birthDate", kg.String("1971")), 0.4)}, "rejected"},
			{"no floor", ann, []kg.Patch{sure(patch(kg.Add, "urn:p", ex+"name", kg.String("x")), 0)}, "accepted"},
			{"to remove is not to claim", ann, []kg.Patch{patch(kg.Remove, "urn:p", ex+"diagnosis", kg.String("flu"))}, "accepted"},
		},
		"own-assertions.yaml": {
			{"ann says it", ann, []kg.Patch{patch(kg.Add, "urn:p", ex+"name", kg.String("p"))}, "accepted"},
			{"bob removes it", bob, []kg.Patch{patch(kg.Remove, "urn:p", ex+"name", kg.String("p"))}, "rejected"},
			{"bob replaces it", bob, []kg.Patch{patch(kg.Replace, "urn:p", ex+"name", kg.String("q"))}, "rejected"},
			{"bob says it too", bob, []kg.Patch{patch(kg.Add, "urn:p", ex+"name", kg.String("p"))}, "accepted"},
			{"bob takes back ann's", bob, []kg.Patch{{Op: kg.Remove, Source: "agent://ann", Quad: patch(kg.Remove, "urn:p", ex+"name", kg.String("p")).Quad}}, "rejected"},
			{"bob takes back his own", bob, []kg.Patch{{Op: kg.Remove, Source: "agent://bob", Quad: patch(kg.Remove, "urn:p", ex+"name", kg.String("p")).Quad}}, "accepted"},
			{"ann replaces hers", ann, []kg.Patch{patch(kg.Replace, "urn:p", ex+"name", kg.String("q"))}, "accepted"},
			{"ann removes it", ann, []kg.Patch{patch(kg.Remove, "urn:p", ex+"name", kg.String("q"))}, "accepted"},
		},
		"justification.yaml": {
			{"a contract", ann, []kg.Patch{contract}, "accepted"},
			{"its status for no reason", ann, []kg.Patch{patch(kg.Replace, "urn:c", ex+"status", kg.String("open"))}, "violation"},
			{"its status for a reason", because, []kg.Patch{patch(kg.Replace, "urn:c", ex+"status", kg.String("open"))}, "accepted"},
			{"the status of something else", ann, []kg.Patch{patch(kg.Replace, "urn:d", ex+"status", kg.String("open"))}, "accepted"},
			{"what becomes a contract with it", ann, []kg.Patch{patch(kg.Add, "urn:e", kg.RDFType, kg.IRI(ex+"Contract")), patch(kg.Replace, "urn:e", ex+"status", kg.String("open"))}, "violation"},
			{"what stops being one with it", ann, []kg.Patch{{Op: kg.Remove, Quad: contract.Quad}, patch(kg.Replace, "urn:c", ex+"status", kg.String("closed"))}, "violation"},
		},
		"four-eyes.yaml": {
			{"pay", ann, []kg.Patch{patch(kg.Add, "urn:p", ex+"salary", kg.Integer(1))}, "held"},
			{"pay among others", ann, []kg.Patch{patch(kg.Add, "urn:p", ex+"name", kg.String("p")), patch(kg.Replace, "urn:p", ex+"salary", kg.Integer(1))}, "held"},
			{"no pay", ann, []kg.Patch{patch(kg.Add, "urn:p", ex+"name", kg.String("p"))}, "accepted"},
			{"what was approved", kg.Meta{Principal: caller("ann"), ProposalID: "p", Reviewed: []string{"pay-needs-review"}}, []kg.Patch{patch(kg.Add, "urn:p", ex+"salary", kg.Integer(1))}, "accepted"},
		},
		"confidential.yaml": nil, // TestConfidential
		"messages.yaml":     nil, // TestMessagesExample
		"content.yaml":      nil, // internal/scan: TestContentExample
	}
	for _, file := range files {
		name := filepath.Base(file)
		steps, ok := examples[name]
		if !ok {
			t.Errorf("the example %s has no test", name)
			continue
		}
		t.Run(name, func(t *testing.T) {
			s := store(t, example(t, name))
			for _, step := range steps {
				dry := step.meta
				dry.DryRun = true
				dryly := outcome(apply(s, dry, step.patches...))
				if got := outcome(apply(s, step.meta, step.patches...)); got != step.want || dryly != step.want {
					t.Errorf("%s: %s, and dryly %s; want %s", step.name, got, dryly, step.want)
				}
			}
		})
	}
}

// TestConfidential proves that the example for reads hides its statements, and refuses
// the agents it names.
func TestConfidential(t *testing.T) {
	set := example(t, "confidential.yaml")
	s := store(t, set)
	if _, err := apply(s, kg.Meta{Principal: caller("ann")}, patch(kg.Add, "urn:p", ex+"salary", kg.Integer(1)), patch(kg.Add, "urn:p", ex+"name", kg.String("p"))); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		who                         kg.Principal
		sees                        []string
		history, present, streaming bool // refused
	}{
		{caller("ann"), []string{ex + "name"}, false, false, false},
		{caller("hannah", "hr"), []string{ex + "name", ex + "salary"}, false, false, false},
		{caller("root", "admin"), []string{ex + "name", ex + "salary"}, false, false, false},
		{caller("gus", "guest"), []string{ex + "name"}, true, false, true},
		{kg.SystemPrincipal(), []string{ex + "name", ex + "salary"}, false, false, false},
	} {
		v, err := s.View(t.Context(), kg.View{Principal: row.who})
		if err != nil {
			t.Fatal(err)
		}
		var sees []string
		for st, err := range v.Match(kg.Pattern{}) {
			if err != nil {
				t.Fatal(err)
			}
			sees = append(sees, st.Predicate.Value())
		}
		slices.Sort(sees)
		n, err := v.Count(kg.Pattern{})
		if err != nil || !slices.Equal(sees, row.sees) || int(n) != len(row.sees) {
			t.Errorf("%s sees %v and counts %d, %v; want %v", row.who.ID, sees, n, err, row.sees)
		}
		v.Close()
		for _, q := range []struct {
			query celrules.Query
			want  bool
		}{
			{celrules.Query{Fields: []string{"entities", "changes"}}, row.history},
			{celrules.Query{Fields: []string{"entities"}}, row.present},
			{celrules.Query{Fields: []string{"statementChanged"}, Subscription: true}, row.streaming},
		} {
			q.query.Principal = row.who
			err := set.CheckQuery(t.Context(), q.query)
			if (err != nil) != q.want || err != nil && (kg.CodeOf(err) != kg.CodeAlignmentViolation || !strings.Contains(err.Error(), "Guests do not")) {
				t.Errorf("%s asks for %v: %v, want refused %v", row.who.ID, q.query.Fields, err, q.want)
			}
		}
	}
}
