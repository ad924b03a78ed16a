package graph_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"koine/graph"
	"koine/internal/provenance"
	"koine/internal/shapes"
	"koine/kg"
)

const revertIt = `mutation ($i: RevertCommitInput!) { r: revertCommit(input: $i) { success statementsAffected conflictCount verificationStatus revision commitId position
	conflicts { statement { object { value } } assertions { source: sourceId } } } }`

type reverted struct {
	R *struct {
		Success                           bool
		StatementsAffected, ConflictCount int
		VerificationStatus                string
		Revision                          kg.Revision
		CommitID, Position                *string
		Conflicts                         []struct {
			Statement  struct{ Object struct{ Value int } }
			Assertions []struct{ Source string }
		}
	}
}

func (b *bench) revert(who kg.Principal, input string) (out reverted, code string) {
	b.t.Helper()
	r := b.run(who, revertIt, `{"i": `+input+`}`)
	if len(r.Errors) > 0 {
		return out, fmt.Sprint(r.Errors[0].Extensions["code"])
	}
	if err := json.Unmarshal(r.Data, &out); err != nil {
		b.t.Fatal(err)
	}
	return out, ""
}

// standing is all statements, with everything but the times.
func (b *bench) standing() string {
	b.t.Helper()
	s, err := b.store.View(b.t.Context(), kg.View{Principal: kg.SystemPrincipal(), Doubted: true})
	if err != nil {
		b.t.Fatal(err)
	}
	defer s.Close()
	var lines []string
	for st, err := range s.Match(kg.Pattern{}) {
		if err != nil {
			b.t.Fatal(err)
		}
		for _, a := range st.Assertions {
			lines = append(lines, fmt.Sprint(st.Quad.Graph, st.Subject, st.Predicate, st.Object, a.Source, a.Certainty, a.HasCertainty, a.Validity, string(a.Provenance)))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// A commit of every kind of change is undone to the letter, and that is a commit
// of its own.
func TestRevertCommit(t *testing.T) {
	b := newBench(t, graph.Options{})
	full := by("agent://ann", 0.4, add(iri("s"), iri("p"), kg.Integer(1)))
	full.Validity, full.Provenance = kg.TimeSpan{From: year(1990)}, []byte(`{"page":3}`)
	b.update(full, by("agent://bob", -1, add(iri("s"), iri("p"), kg.Integer(1))), by("agent://bob", 0.7, add(iri("s"), iri("q"), kg.Integer(2))), add(iri("s"), iri("r"), kg.Integer(3)))
	before := b.standing()
	wrong := b.commit(kg.Meta{Principal: reader, Actor: "agent://eve"},
		kg.Patch{Op: kg.Replace, Quad: add(iri("s"), iri("p"), kg.Integer(9)).Quad},
		kg.Patch{Op: kg.Remove, Quad: add(iri("s"), iri("r"), kg.Integer(3)).Quad},
		by("agent://bob", 0.1, add(iri("s"), iri("q"), kg.Integer(2))),
		in(iri("g"), add(iri("s"), iri("new"), kg.Integer(5))),
	).Revision
	after := b.standing()
	b.update(add(iri("elsewhere"), iri("p"), kg.Integer(1)))
	input := func(more string) string {
		return fmt.Sprintf(`{"revision": %d, "justification": "a mistake"%s}`, wrong, more)
	}

	head := b.store.Head().Revision
	got, code := b.revert(adminKey, input(`, "dryRun": true`))
	if code != "" || !got.R.Success || got.R.StatementsAffected == 0 || got.R.CommitID != nil || b.store.Head().Revision != head {
		t.Errorf("a dry run: %s %+v, now at %d", code, got.R, b.store.Head().Revision)
	}
	got, code = b.revert(adminKey, input(""))
	if code != "" || !got.R.Success || got.R.CommitID == nil || got.R.Revision != head+1 {
		t.Fatalf("got %s %+v", code, got.R)
	}
	gone := "DEFAULT <https://example.org/elsewhere>"
	withoutNew := slices.DeleteFunc(strings.Split(b.standing(), "\n"), func(l string) bool { return strings.HasPrefix(l, gone) })
	if got := strings.Join(withoutNew, "\n"); got != before {
		t.Errorf("got\n%s\nwant\n%s", got, before)
	}
	c, err := b.store.Commit(t.Context(), kg.SystemPrincipal(), head+1)
	if err != nil || c.Principal != "agent://root" || c.Justification != "a mistake" {
		t.Errorf("the new commit is %+v, %v", c, err)
	}
	t.Run("and again", func(t *testing.T) {
		b := b.of(t)
		got, code := b.revert(adminKey, fmt.Sprintf(`{"revision": %d}`, head+1))
		withoutNew := slices.DeleteFunc(strings.Split(b.standing(), "\n"), func(l string) bool { return strings.HasPrefix(l, gone) })
		if lines := strings.Join(withoutNew, "\n"); code != "" || !got.R.Success || lines != after {
			t.Errorf("a revert is not reverted: %s %+v\n%s\nwant\n%s", code, got.R, lines, after)
		}
	})
}

// If others changed the result of a commit since, nothing is written without force.
func TestRevertConflicts(t *testing.T) {
	b := newBench(t, graph.Options{})
	b.update(by("agent://ann", 0.5, add(iri("s"), iri("p"), kg.Integer(1))))
	wrong := b.update(by("agent://ann", 0.9, add(iri("s"), iri("p"), kg.Integer(1))), add(iri("s"), iri("p"), kg.Integer(2))).Revision
	b.update(by("agent://bob", -1, add(iri("s"), iri("p"), kg.Integer(1))))
	before, head := b.standing(), b.store.Head().Revision
	got, code := b.revert(adminKey, fmt.Sprintf(`{"revision": %d}`, wrong))
	if code != "" || got.R.Success || got.R.ConflictCount != 1 || len(got.R.Conflicts) != 1 || got.R.Position != nil || got.R.Revision != head ||
		got.R.VerificationStatus != "Rejected - Changed Since" || b.standing() != before || b.store.Head().Revision != head {
		t.Fatalf("got %s %+v at revision %d, want one conflict and nothing written", code, got.R, b.store.Head().Revision)
	}
	if c := got.R.Conflicts[0]; c.Statement.Object.Value != 1 || len(c.Assertions) != 2 {
		t.Errorf("the conflict is %+v", c)
	}
	got, code = b.revert(adminKey, fmt.Sprintf(`{"revision": %d, "force": true}`, wrong))
	if want := "DEFAULT <https://example.org/s> <https://example.org/p> \"1\"^^<http://www.w3.org/2001/XMLSchema#integer>agent://ann0.5 true"; code != "" || !got.R.Success || got.R.ConflictCount != 1 || !strings.HasPrefix(b.standing(), want) || strings.Contains(b.standing(), "\n") {
		t.Errorf("with force: %s %+v\n%s\nwant %s", code, got.R, b.standing(), want)
	}
}

func TestRevertRights(t *testing.T) {
	secret := iri("secret")
	b := newBench(t, graph.Options{}, func(o *kg.Options) { o.Access = hiding{"agent://eve", secret} })
	plainly := b.update(by("agent://ann", -1, add(iri("s"), iri("p"), kg.Integer(1)))).Revision
	hidden := b.update(in(secret, add(iri("s"), iri("p"), kg.Integer(2)))).Revision
	partly := b.update(by("agent://eve", -1, add(iri("s"), iri("p"), kg.Integer(3))), in(secret, by("agent://eve", -1, add(iri("s"), iri("p"), kg.Integer(4))))).Revision
	own := b.commit(kg.Meta{Principal: kg.SystemPrincipal()}, in(kg.SystemGraph, add(iri("s"), iri("p"), kg.Integer(5)))).Revision
	eve := kg.Principal{ID: "agent://eve", Method: "key"}
	speaking := eve
	speaking.ActFor = []kg.AgentID{"agent://ann"}
	before := b.standing()
	for _, row := range []struct {
		name     string
		who      kg.Principal
		revision kg.Revision
		code     string
	}{
		{"not for that source", eve, plainly, "PERMISSION_DENIED"},
		{"what is not seen is not there", eve, hidden, "NOT_FOUND"},
		{"what is seen in part", eve, partly, "PERMISSION_DENIED"},
		{"koine's own", adminKey, own, "RESERVED"},
		{"no such revision", adminKey, 99, "NOT_FOUND"},
	} {
		if _, code := b.revert(row.who, fmt.Sprintf(`{"revision": %d}`, row.revision)); code != row.code || b.standing() != before {
			t.Errorf("%s: got %q, want %s and nothing written", row.name, code, row.code)
		}
	}
	if got, code := b.revert(speaking, fmt.Sprintf(`{"revision": %d}`, plainly)); code != "" || !got.R.Success {
		t.Errorf("who speaks for the source: %s %+v", code, got.R)
	}
}

// Assertions of an agent under quarantine prevent the revert of a commit, and are shown to
// administrators only, which these callers are not.
func TestConflictsAreToldAsTheCallerSeesThem(t *testing.T) {
	table := new(provenance.Quarantines)
	b := newBench(t, graph.Options{}, func(o *kg.Options) { o.Distrust, o.OnSystemChange = table, table.Follow })
	said := add(iri("s"), iri("p"), kg.Integer(1))
	wrong := b.update(by("agent://ann", -1, said)).Revision
	b.update(by("agent://ann", 0.5, said), by("agent://bob", -1, said))
	if _, err := table.Set(b.t.Context(), b.store, kg.Meta{Principal: adminKey}, "agent://bob", time.Time{}); err != nil {
		t.Fatal(err)
	}
	ann := kg.Principal{ID: "agent://ann", Method: "key"}
	got, code := b.revert(ann, fmt.Sprintf(`{"revision": %d}`, wrong))
	if code != "" || got.R.Success || len(got.R.Conflicts) != 1 || fmt.Sprint(got.R.Conflicts[0].Assertions) != "[{agent://ann}]" {
		t.Errorf("got %s %+v", code, got.R)
	}
}

const contradictionsQuery = `query ($first: Int, $after: Cursor, $view: ViewInput) { c: contradictions(first: $first, after: $after, view: $view) { pageInfo { hasNextPage endCursor } complete
	nodes { kind reason subject { id value } property statementCount statements { statement { statementId subject { id } object { id value } } assertions { source: sourceId } } } } }`

type found struct {
	C struct {
		Complete bool
		PageInfo struct {
			HasNextPage bool
			EndCursor   *string
		}
		Nodes []struct {
			Kind, Reason string
			Subject      struct {
				ID    string
				Value any
			}
			StatementCount int
			Statements     []struct {
				Statement struct {
					StatementID string
					Subject     struct{ ID string }
					Object      struct {
						ID    string
						Value any
					}
				}
				Assertions []struct{ Source string }
			}
		}
	}
}

// lines are the contradictions in short.
func (f found) lines() (out []string) {
	short := func(id string, value any) string {
		if id == "" {
			return fmt.Sprint(value)
		}
		return strings.TrimPrefix(id, ex)
	}
	for _, n := range f.C.Nodes {
		line := n.Kind + " " + short(n.Subject.ID, n.Subject.Value) + ":"
		for _, st := range n.Statements {
			line += " " + short(st.Statement.Subject.ID, nil) + "-" + short(st.Statement.Object.ID, st.Statement.Object.Value)
			for _, a := range st.Assertions {
				line += "/" + strings.TrimPrefix(a.Source, "agent://")
			}
		}
		out = append(out, line)
	}
	return out
}

func (b *bench) contradictions(variables string) (f found) {
	b.t.Helper()
	b.data(contradictionsQuery, variables, &f)
	return f
}

// contradicting fills a bench with contradictions of every kind, and with data that only
// resemble one.
func contradicting(t *testing.T) (*bench, []string) {
	table := new(provenance.Quarantines)
	set := new(shapes.Set)
	b := newBench(t, graph.Options{}, func(o *kg.Options) {
		o.Distrust, o.OnSystemChange = table, func(c *kg.Commit) { table.Follow(c); set.Follow(c) }
	})
	b.engine = graph.NewEngine(graph.Deps{Store: b.store, Prefixes: testPrefixes(t), Quarantines: table, Shapes: set}, graph.Options{})
	owl := func(name string) kg.Term { return kg.IRI("http://www.w3.org/2002/07/owl#" + name) }
	sh := func(name string) kg.Term { return kg.IRI("http://www.w3.org/ns/shacl#" + name) }
	a := kg.IRI(kg.RDFType)
	valid := func(from, until int, p kg.Patch) kg.Patch {
		p.Validity = kg.TimeSpan{From: year(from), Until: year(until)}
		return p
	}
	b.update(
		add(iri("born"), a, owl("FunctionalProperty")), add(iri("ssn"), a, owl("InverseFunctionalProperty")),
		by("agent://ann", -1, add(iri("ada"), iri("born"), kg.Integer(1815))), by("agent://bob", -1, in(iri("g"), add(iri("ada"), iri("born"), kg.Integer(1816)))),
		in(iri("g"), add(iri("bo"), iri("born"), kg.Integer(1))), add(iri("bo"), iri("born"), kg.Integer(1)), // the same in two graphs
		valid(1900, 1950, add(iri("cy"), iri("born"), kg.Integer(1))), valid(1950, 2000, add(iri("cy"), iri("born"), kg.Integer(2))), // one after the other
		valid(1900, 1951, add(iri("di"), iri("born"), kg.Integer(1))), valid(1950, 2000, add(iri("di"), iri("born"), kg.Integer(2))),
		add(iri("ada"), iri("ssn"), kg.String("7")), add(iri("bo"), iri("ssn"), kg.String("7")), add(iri("cy"), iri("ssn"), kg.String("8")),
		add(iri("ada"), owl("sameAs"), iri("bo")), add(iri("bo"), owl("differentFrom"), iri("ada")), add(iri("cy"), owl("differentFrom"), iri("ada")),
		add(iri("Cat"), owl("disjointWith"), iri("Dog")), add(iri("Dog"), owl("disjointWith"), iri("Cat")),
		add(iri("rex"), a, iri("Cat")), add(iri("rex"), a, iri("Dog")), add(iri("tom"), a, iri("Cat")),
		add(iri("rex"), iri("name"), kg.String("Rex")), add(iri("rex"), iri("name"), kg.String("Roy")), add(iri("tom"), iri("name"), kg.String("Tom")),
		add(iri("ada"), iri("likes"), iri("rex")), add(iri("ada"), iri("likes"), iri("tom")), // declared by nothing
	)
	shape := func(p kg.Patch) kg.Patch { return in(kg.ShapesGraph, p) }
	b.commit(kg.Meta{Principal: kg.SystemPrincipal()},
		shape(add(iri("CatShape"), sh("targetClass"), iri("Cat"))), shape(add(iri("CatShape"), sh("property"), iri("names"))),
		shape(add(iri("names"), sh("path"), iri("name"))), shape(add(iri("names"), sh("maxCount"), kg.Integer(1))),
	)
	return b, []string{
		"FUNCTIONAL di: di-1/writer di-2/writer",
		"FUNCTIONAL ada: ada-1815/ann ada-1816/bob",
		"INVERSE_FUNCTIONAL 7: ada-7/writer bo-7/writer",
		"MAX_COUNT rex: rex-Rex/writer rex-Roy/writer",
		"SAME_AND_DIFFERENT bo: ada-bo/writer bo-ada/writer",
		"DISJOINT rex: rex-Cat/writer rex-Dog/writer",
	}
}

func TestContradictions(t *testing.T) {
	b, want := contradicting(t)
	without := slices.Delete(slices.Clone(want), 1, 2) // facts that bob backs too
	all := b.contradictions("{}")
	if got := all.lines(); !slices.Equal(got, want) || !all.C.Complete || all.C.PageInfo.HasNextPage {
		t.Errorf("got %q\nwant %q", got, want)
	}
	if !strings.Contains(all.C.Nodes[0].Reason, "owl:FunctionalProperty") {
		t.Errorf("the reason is %q", all.C.Nodes[0].Reason)
	}
	t.Run("page by page", func(t *testing.T) {
		b := b.of(t)
		for size := 1; size <= len(want); size++ {
			var got []string
			after := "null"
			for {
				page := b.contradictions(fmt.Sprintf(`{"first": %d, "after": %s}`, size, after))
				got = append(got, page.lines()...)
				if len(page.C.Nodes) > size || page.C.PageInfo.HasNextPage && page.C.PageInfo.EndCursor == nil {
					t.Fatalf("a page of %d: %+v", size, page.C)
				}
				if !page.C.PageInfo.HasNextPage {
					break
				}
				after = fmt.Sprintf("%q", *page.C.PageInfo.EndCursor)
			}
			if !slices.Equal(got, want) {
				t.Errorf("in pages of %d: got %q", size, got)
			}
		}
	})
	t.Run("under a view", func(t *testing.T) {
		b := b.of(t)
		for view, want := range map[string][]string{
			`{"believedBy": ["agent://ann"]}`:         nil,
			`{"at": 1}`:                               slices.Delete(slices.Clone(want), 3, 4),
			`{"graphs": ["ex:g"]}`:                    nil,
			`{"validAt": "1920-01-01T00:00:00Z"}`:     want[1:],
			`{"graphs": [null], "minCertainty": 0.5}`: without,
		} {
			if got := b.contradictions(`{"view": ` + view + `}`).lines(); !slices.Equal(got, want) {
				t.Errorf("%s: got %q\nwant %q", view, got, want)
			}
		}
	})
	t.Run("a cursor of another view", func(t *testing.T) {
		b := b.of(t)
		page := b.contradictions(`{"first": 1}`)
		r := b.execute(contradictionsQuery, fmt.Sprintf(`{"first": 1, "after": %q, "view": {"minCertainty": 0.5}}`, *page.C.PageInfo.EndCursor))
		if len(r.Errors) != 1 || r.Errors[0].Extensions["code"] != "CURSOR_FOREIGN" {
			t.Errorf("got %s %v", r.Data, r.Errors)
		}
	})
	t.Run("what an agent under quarantine says contradicts nothing", func(t *testing.T) {
		b := b.of(t)
		b.quarantine(adminKey, quarantineIt, `{"agentId": "bob"}`)
		if got := b.contradictions("{}").lines(); !slices.Equal(got, without) {
			t.Errorf("got %q\nwant %q", got, without)
		}
		b.quarantine(adminKey, liftIt, `{"agentId": "bob"}`)
	})
	t.Run("resolved", func(t *testing.T) {
		b := b.of(t)
		resolve := func(who kg.Principal, keep, drop, more string) string {
			r := b.run(who, `mutation ($i: ResolveContradictionInput!) { resolveContradiction(input: $i) { success statementsAffected verificationStatus } }`,
				fmt.Sprintf(`{"i": {"keep": [%s], "drop": [%s]%s}}`, keep, drop, more))
			if len(r.Errors) > 0 {
				return fmt.Sprint(r.Errors[0].Extensions["code"], " ", r.Errors[0].Extensions["field"])
			}
			return string(r.Data)
		}
		ref := func(i int) string {
			return fmt.Sprintf(`{"id": %q}`, all.C.Nodes[1].Statements[i].Statement.StatementID)
		}
		const done = `{"resolveContradiction":{"success":true,"statementsAffected":1,"verificationStatus":"Verified"}}`
		for _, row := range []struct{ name, keep, drop, more, want string }{
			{"nothing to drop", ref(0), "", "", "INVALID input.drop"},
			{"kept and dropped", ref(0), ref(0), "", "INVALID input.keep"},
			{"what is not there", "", `{"id": "urn:nothing"}`, "", "NOT_FOUND input.drop[0]"},
			{"a dry run", ref(0), ref(1), `, "dryRun": true`, done},
			{"in earnest", ref(0), ref(1), `, "justification": "the register says so"`, done},
			{"once more", ref(0), ref(1), "", "NOT_FOUND input.drop[0]"},
		} {
			if got := resolve(adminKey, row.keep, row.drop, row.more); got != row.want {
				t.Errorf("%s: got %s, want %s", row.name, got, row.want)
			}
		}
		if got := b.contradictions("{}").lines(); !slices.Equal(got, without) {
			t.Errorf("got %q\nwant %q", got, without)
		}
	})
}
