package graph_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"koine/graph"
	"koine/internal/proposals"
	"koine/kg"
)

// reasons is an answer of why.
type reasons struct {
	Why *struct {
		Statement struct {
			StatementID        string
			Subject, Predicate struct{ ID string }
			Object             struct{ ID, Type, Language *string }
		}
		Origins []struct {
			Assertion struct{ Source string }
			Commit    *whyCommit
		}
		History []struct {
			Op        string
			Assertion struct {
				Source    string
				Certainty *float64
			}
			Previous []struct {
				Statement  struct{ Object struct{ ID *string } }
				Assertions []struct{ Source string }
			}
			ReplacedBy       *struct{ Object struct{ ID *string } }
			StatementRemains bool
			Commit           *whyCommit
		}
		HasMoreHistory bool
	}
}

type whyCommit struct {
	Revision                                                      kg.Revision
	Principal, Actor, Justification, TaskID, SessionID, MessageID string
}

func (c *whyCommit) String() string {
	if c == nil {
		return "none"
	}
	return fmt.Sprint(c.Revision, " ", c.Principal, " ", c.Actor, " ", c.Justification, " ", c.TaskID, " ", c.SessionID, " ", c.MessageID)
}

// steps are the history in short, the newest first.
func (r reasons) steps() (lines []string) {
	for _, s := range r.Why.History {
		line := fmt.Sprint(s.Op, " ", s.Assertion.Source)
		if s.Assertion.Certainty != nil {
			line += fmt.Sprint(" ", *s.Assertion.Certainty)
		}
		for _, p := range s.Previous {
			line += " for " + *p.Statement.Object.ID
			for _, a := range p.Assertions {
				line += " of " + a.Source
			}
		}
		if s.ReplacedBy != nil {
			line += " by " + *s.ReplacedBy.Object.ID
		}
		if s.StatementRemains {
			line += ", remains"
		}
		if s.Commit != nil {
			line += fmt.Sprint(" in ", s.Commit.Revision)
		}
		lines = append(lines, line)
	}
	return lines
}

const commitFields = `{ revision principal: principalId actor: actorId justification taskId sessionId messageId }`

const whyQuery = `query ($s: StatementRef!, $first: Int, $view: ViewInput) { why(statement: $s, first: $first, view: $view) {
	statement { statementId subject { id } predicate { id } object { id value type language } graph }
	origins { assertion { source: sourceId certainty } commit ` + commitFields + ` proposal { id } }
	history { op assertion { source: sourceId certainty } previous { statement { object { id } } assertions { source: sourceId } } replacedBy { object { id } } statementRemains commit ` + commitFields + ` proposal { id } }
	hasMoreHistory } }`

// commit makes an update with a meta of its own.
func (b *bench) commit(m kg.Meta, patches ...kg.Patch) kg.Receipt {
	b.t.Helper()
	receipt, err := b.store.Update(b.t.Context(), m, func(tx *kg.Tx) error {
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

const theMood = `{"subject": {"id": "ex:s"}, "predicate": {"id": "ex:p"}, "object": {"id": "ex:o"}}`

// reasons requests the reasons of ex:s ex:p ex:o.
func (b *bench) reasons(args string) (r reasons) {
	b.t.Helper()
	b.data(whyQuery, `{"s": `+theMood+args+`}`, &r)
	return r
}

func TestWhy(t *testing.T) {
	b := newBench(t, graph.Options{})
	q := add(iri("s"), iri("p"), iri("o"))
	other := add(iri("s"), iri("p"), iri("other"))
	b.commit(kg.Meta{Principal: reader, Actor: "agent://ann", Justification: "I saw it", TaskID: "t1", SessionID: "s1", MessageID: "m1"}, by("agent://ann", 0.5, q))
	b.commit(kg.Meta{Principal: reader, Justification: "so did I"}, by("agent://bob", -1, q))
	b.update(add(iri("s"), iri("unrelated"), iri("o")))
	b.commit(kg.Meta{Principal: reader, Justification: "on reflection"}, by("agent://ann", 0.9, q))
	b.commit(kg.Meta{Principal: reader}, kg.Patch{Op: kg.Remove, Quad: q.Quad, Source: "agent://bob"})
	b.commit(kg.Meta{Principal: reader}, by("agent://cy", -1, kg.Patch{Op: kg.Replace, Quad: other.Quad}))
	b.commit(kg.Meta{Principal: reader, Justification: "rather this"}, kg.Patch{Op: kg.Replace, Quad: q.Quad, Source: "agent://dan"})

	r := b.reasons("")
	if r.Why == nil {
		t.Fatal("got no reasons")
	}
	var backing []string
	for _, x := range r.Why.Origins {
		backing = append(backing, x.Assertion.Source+": "+x.Commit.String())
	}
	wantBacking := []string{
		"agent://dan: 7 agent://reader agent://reader rather this   ",
	}
	if !slices.Equal(backing, wantBacking) {
		t.Errorf("backing:\n got %q\nwant %q", backing, wantBacking)
	}
	wantSteps := []string{
		"replace agent://dan for https://example.org/other of agent://cy in 7",
		"remove agent://ann 0.9 by https://example.org/other in 6",
		"remove agent://bob, remains in 5",
		"replace agent://ann 0.9 for https://example.org/o of agent://ann in 4",
		"add agent://bob in 2",
		"add agent://ann 0.5 in 1",
	}
	if got := r.steps(); !slices.Equal(got, wantSteps) || r.Why.HasMoreHistory {
		t.Errorf("history, more %t:\n got %q\nwant %q", r.Why.HasMoreHistory, got, wantSteps)
	}
	if first, want := r.Why.History[5].Commit.String(), "1 agent://reader agent://ann I saw it t1 s1 m1"; first != want {
		t.Errorf("the first commit: got %q, want %q", first, want)
	}

	t.Run("by its id", func(t *testing.T) {
		b := b.of(t)
		var again reasons
		b.data(whyQuery, `{"s": {"id": "`+r.Why.Statement.StatementID+`"}}`, &again)
		if again.Why == nil || !slices.Equal(again.steps(), wantSteps) {
			t.Errorf("got %+v", again.Why)
		}
	})
	t.Run("the newest steps", func(t *testing.T) {
		b := b.of(t)
		for n := range 7 {
			got := b.reasons(fmt.Sprintf(`, "first": %d`, n))
			if !slices.Equal(got.steps(), wantSteps[:n]) || got.Why.HasMoreHistory != (n < 6) {
				t.Errorf("first %d: got %q, more %t", n, got.steps(), got.Why.HasMoreHistory)
			}
		}
	})
	t.Run("under a view", func(t *testing.T) {
		b := b.of(t)
		for view, want := range map[string][]string{
			`{"at": 4}`:                       wantSteps[3:],
			`{"believedBy": ["agent://dan"]}`: {"add agent://dan in 7"},
			`{"minCertainty": 0.8}`: {
				wantSteps[0], wantSteps[1], wantSteps[2], "add agent://ann 0.9 in 4", wantSteps[4],
			},
		} {
			if got := b.reasons(`, "view": ` + view); !slices.Equal(got.steps(), want) {
				t.Errorf("%s:\n got %q\nwant %q", view, got.steps(), want)
			}
		}
	})
	t.Run("nothing there", func(t *testing.T) {
		b := b.of(t)
		for _, s := range []string{
			`{"subject": {"id": "ex:s"}, "predicate": {"id": "ex:p"}, "object": {"value": "o"}}`,
			`{"subject": {"id": "ex:s"}, "predicate": {"id": "ex:p"}, "object": {"id": "ex:o"}, "graph": "ex:g"}`,
			`{"id": "urn:koine:statement:AAAA"}`, `{"id": "nonsense"}`,
		} {
			var r reasons
			b.data(whyQuery, `{"s": `+s+`}`, &r)
			if r.Why != nil {
				t.Errorf("%s: got %+v", s, r.Why)
			}
		}
		if r := b.reasons(`, "view": {"believedBy": ["agent://nobody"]}`); r.Why != nil {
			t.Errorf("believed by nobody: got %+v", r.Why)
		}
	})
	t.Run("refused", func(t *testing.T) {
		b := b.of(t)
		for variables, field := range map[string]string{
			`{"s": {}}`:                            "statement",
			`{"s": {"id": "x", "graph": "ex:g"}}`:  "statement",
			`{"s": {"subject": {"id": "ex:s"}}}`:   "statement",
			`{"s": ` + theMood + `, "first": -1}`:  "first",
			`{"s": ` + theMood + `, "first": 101}`: "first",
		} {
			r := b.execute(whyQuery, variables)
			if len(r.Errors) != 1 || r.Errors[0].Extensions["field"] != field {
				t.Errorf("%s: got %v, want one error at %s", variables, r.Errors, field)
			}
		}
	})
	t.Run("the log was cut", func(t *testing.T) {
		b := b.of(t)
		b.commit(kg.Meta{Principal: reader}, by("agent://eve", -1, q))
		if err := b.store.Maintenance().CutLog(t.Context(), 8); err != nil {
			t.Fatal(err)
		}
		r := b.reasons("")
		if got, want := r.steps(), []string{"add agent://eve in 8"}; !slices.Equal(got, want) || !r.Why.HasMoreHistory {
			t.Errorf("got %q, more %t; want %q and more", got, r.Why.HasMoreHistory, want)
		}
		for _, x := range r.Why.Origins {
			if gone := x.Assertion.Source == "agent://dan"; gone != (x.Commit == nil) {
				t.Errorf("%s: commit %s", x.Assertion.Source, x.Commit)
			}
		}
	})
}

// hiding is an Access under which one agent sees nothing of one graph.
type hiding struct {
	from  kg.AgentID
	graph kg.Term
}

func (h hiding) Allowed(p kg.Principal, graph kg.Term, _ kg.Right) bool {
	return p.ID != h.from || graph != h.graph
}

// A statement in an unreadable graph has no reasons, and one beside it in the same commit
// reveals nothing of the other.
func TestWhyTellsWhatMayBeSeen(t *testing.T) {
	secret := iri("secret")
	b := newBench(t, graph.Options{}, func(o *kg.Options) { o.Access = hiding{reader.ID, secret} })
	q := add(iri("s"), iri("p"), iri("o"))
	b.commit(kg.Meta{Principal: kg.Principal{ID: "agent://boss"}, Justification: "because of the takeover"},
		q, in(secret, add(iri("s"), iri("p"), iri("takeover"))))
	b.commit(kg.Meta{Principal: kg.Principal{ID: "agent://boss"}}, kg.Patch{Op: kg.Replace, Quad: in(secret, q).Quad})
	var r reasons
	b.data(whyQuery, `{"s": {"subject": {"id": "ex:s"}, "predicate": {"id": "ex:p"}, "object": {"id": "ex:o"}, "graph": "ex:secret"}}`, &r)
	if r.Why != nil {
		t.Errorf("got reasons for what may not be seen: %+v", r.Why)
	}
	if got := b.reasons(""); got.Why == nil || len(got.steps()) != 1 {
		t.Errorf("got %q, want one step", got.steps())
	}
	raw := b.execute(whyQuery, `{"s": `+theMood+`}`)
	if strings.Contains(string(raw.Data), "secret") || strings.Contains(string(raw.Data), "ex:takeover") {
		t.Errorf("the answer tells of the other graph: %s", raw.Data)
	}
}

// keptProposals is a Reviews of one proposal, which only one agent may not read.
type keptProposals struct {
	graph.Reviews
	hiddenFrom kg.AgentID
}

func (k keptProposals) Get(_ context.Context, by proposals.Caller, id string) (*proposals.Proposal, error) {
	if id != "p1" || by.Principal.ID == k.hiddenFrom {
		return nil, kg.Errorf(kg.CodeNotFound, "proposal %s does not exist", id)
	}
	return &proposals.Proposal{ID: id, Status: proposals.Applied, Reviews: []proposals.Review{{Reviewer: "agent://judge", Decision: proposals.Approve, Comment: "I looked"}}}, nil
}

// The proposal that led to a statement is shown with its reviews, to callers that may read
// it.
func TestWhyTellsOfReviews(t *testing.T) {
	b := newBench(t, graph.Options{})
	b.engine = graph.NewEngine(graph.Deps{Store: b.store, Prefixes: testPrefixes(t), Reviews: keptProposals{hiddenFrom: "agent://eve"}}, graph.Options{})
	b.commit(kg.Meta{Principal: reader, ProposalID: "p1"}, add(iri("s"), iri("p"), iri("o")))
	query := `{ why(statement: ` + `{subject: {id: "ex:s"}, predicate: {id: "ex:p"}, object: {id: "ex:o"}}` + `) { origins { proposal { id reviews { reviewer: reviewerId decision comment } } } history { proposal { id } } } }`
	for who, want := range map[kg.AgentID]string{
		reader.ID:     `{"why":{"origins":[{"proposal":{"id":"p1","reviews":[{"reviewer":"agent://judge","decision":"APPROVE","comment":"I looked"}]}}],"history":[{"proposal":{"id":"p1"}}]}}`,
		"agent://eve": `{"why":{"origins":[{"proposal":null}],"history":[{"proposal":null}]}}`,
	} {
		if got := b.as(kg.Principal{ID: who, Method: "key"}, query); got != want {
			t.Errorf("%s: got %s, want %s", who, got, want)
		}
	}
}
