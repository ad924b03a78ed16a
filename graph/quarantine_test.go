package graph_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"koine/graph"
	"koine/internal/operation"
	"koine/internal/provenance"
	"koine/kg"
)

// distrusting is a bench whose store reads under quarantines.
func distrusting(t *testing.T) (*bench, *provenance.Quarantines) {
	table := new(provenance.Quarantines)
	b := newBench(t, graph.Options{}, func(o *kg.Options) { o.Distrust, o.OnSystemChange = table, table.Follow })
	b.engine = graph.NewEngine(graph.Deps{Store: b.store, Prefixes: testPrefixes(t), Quarantines: table}, graph.Options{})
	return b, table
}

func testPrefixes(t *testing.T) *kg.Prefixes {
	t.Helper()
	p, err := kg.NewPrefixes(map[string]string{"ex": ex})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// run runs an operation as a principal.
func (b *bench) run(who kg.Principal, query, variables string) operation.Result {
	b.t.Helper()
	r := b.request(query, variables)
	r.Principal = who
	return b.engine.Execute(b.t.Context(), r)
}

const (
	quarantineIt = `mutation ($i: QuarantineAgentInput!) { q: quarantineAgent(input: $i) { agent: agentId assertionsAffected statementsAffected complete dryRun revision commitId examples { object { value } } } }`
	liftIt       = `mutation ($i: LiftQuarantineInput!) { q: liftQuarantine(input: $i) { agent: agentId assertionsAffected statementsAffected complete dryRun revision commitId examples { object { value } } } }`
	allValues    = `{ statements(orderBy: {by: OBJECT}) { totalCount nodes { object { ... on Literal { lexical } } assertedBy } } }`
)

type quarantined struct {
	Q struct {
		Agent                                  string
		AssertionsAffected, StatementsAffected int
		Complete, DryRun                       bool
		Revision                               kg.Revision
		CommitID                               *string
		Examples                               []struct{ Object struct{ Value int } }
	}
}

func (b *bench) quarantine(who kg.Principal, query, input string) (q quarantined) {
	b.t.Helper()
	r := b.run(who, query, `{"i": `+input+`}`)
	if len(r.Errors) > 0 {
		b.t.Fatalf("%s: %v", input, r.Errors)
	}
	if err := json.Unmarshal(r.Data, &q); err != nil {
		b.t.Fatal(err)
	}
	return q
}

// shownValues is the answer to allValues, in short.
func (b *bench) shownValues(who kg.Principal, view string) string {
	b.t.Helper()
	query := allValues
	if view != "" {
		query = strings.Replace(query, "statements(", "statements(view: "+view+", ", 1)
	}
	r := b.run(who, query, "")
	if len(r.Errors) > 0 {
		b.t.Fatal(r.Errors)
	}
	var data struct {
		Statements struct {
			TotalCount int
			Nodes      []struct {
				Object     struct{ Lexical string }
				AssertedBy []string
			}
		}
	}
	if err := json.Unmarshal(r.Data, &data); err != nil {
		b.t.Fatal(err)
	}
	if data.Statements.TotalCount != len(data.Statements.Nodes) {
		b.t.Errorf("%d statements of %d", len(data.Statements.Nodes), data.Statements.TotalCount)
	}
	var out []string
	for _, n := range data.Statements.Nodes {
		by := strings.ReplaceAll(strings.Join(n.AssertedBy, "+"), "agent://", "")
		out = append(out, n.Object.Lexical+":"+by)
	}
	return strings.Join(out, " ")
}

func TestQuarantine(t *testing.T) {
	b, table := distrusting(t)
	value := func(n int64, source kg.AgentID) kg.Patch {
		return by(source, -1, add(iri("s"), iri("p"), kg.Integer(n)))
	}
	b.update(value(1, "agent://good"), value(2, "agent://bad"))
	later := b.update(value(3, "agent://bad"), value(3, "agent://good"), value(4, "agent://bad")).Time
	const all = "1:good 2:bad 3:bad+good 4:bad"
	const without = "1:good 3:good"
	stranger := kg.Principal{ID: "agent://bad", Method: "key"}

	head := b.store.Head().Revision
	preview := b.quarantine(adminKey, quarantineIt, `{"agentId": "bad", "dryRun": true}`).Q
	if preview.Agent != "agent://bad" || preview.AssertionsAffected != 3 || preview.StatementsAffected != 2 || !preview.Complete || !preview.DryRun || preview.CommitID != nil || len(preview.Examples) != 2 {
		t.Errorf("the preview is %+v", preview)
	}
	if got := b.shownValues(reader, ""); got != all || b.store.Head().Revision != head {
		t.Errorf("a dry run: got %s at revision %d", got, b.store.Head().Revision)
	}
	done := b.quarantine(adminKey, quarantineIt, `{"agentId": "agent://bad", "justification": "it was broken into"}`).Q
	if done.AssertionsAffected != 3 || done.StatementsAffected != 2 || done.CommitID == nil || done.DryRun || done.Revision != head+1 {
		t.Errorf("got %+v", done)
	}
	for view, want := range map[string]string{
		"": without, `{at: 1}`: "1:good", `{at: 2, allGraphs: true}`: without, `{believedBy: ["bad"]}`: "", `{minCertainty: 0.5}`: without,
	} {
		for _, who := range []kg.Principal{reader, stranger, adminKey} {
			if got := b.shownValues(who, view); got != want {
				t.Errorf("%s under %s: got %q, want %q", who.ID, view, got, want)
			}
		}
	}
	if got := b.shownValues(adminKey, `{includeQuarantined: true}`); got != all {
		t.Errorf("an administrator looks: got %q, want %q", got, all)
	}
	var counts struct {
		Vocabulary struct {
			Predicates struct{ Nodes []struct{ Count int } }
		}
		Stats   struct{ Statements int }
		Entity  struct{ Degree int }
		Changes struct{ Nodes []struct{ Op string } }
		Match   struct{ TotalCount int }
	}
	b.data(`{ vocabulary { predicates { nodes { count } } } stats { statements } entity(iri: "ex:s") { degree } changes(since: "0") { nodes { op } } match(pattern: {triples: {s: "ex:s", p: "ex:p", o: "?o"}}) { totalCount } }`, "", &counts)
	if counts.Vocabulary.Predicates.Nodes[0].Count != 2 || counts.Stats.Statements != 2 || counts.Entity.Degree != 2 || len(counts.Changes.Nodes) != 2 || counts.Match.TotalCount != 2 {
		t.Errorf("counts, changes and matches: %+v; want two everywhere", counts)
	}

	t.Run("it goes on saying what does not count", func(t *testing.T) {
		b := b.of(t)
		b.update(value(5, "agent://bad"), value(6, "agent://good"))
		if got, want := b.shownValues(reader, ""), without+" 6:good"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
	t.Run("another since is another quarantine", func(t *testing.T) {
		b := b.of(t)
		q := b.quarantine(adminKey, quarantineIt, `{"agentId": "bad", "since": "`+later.Format(time.RFC3339Nano)+`"}`).Q
		if got, want := b.shownValues(reader, ""), "1:good 2:bad 3:good 6:good"; got != want || q.StatementsAffected != 1 {
			t.Errorf("got %q, %+v; want %q and one statement", got, q, want)
		}
	})
	t.Run("the list", func(t *testing.T) {
		b := b.of(t)
		r := b.run(adminKey, `{ quarantines { nodes { agent: agentId since commit { principal: principalId } } } }`, "")
		want := `{"quarantines":{"nodes":[{"agent":"agent://bad","since":"` + later.Format("2006-01-02T15:04:05.000Z") + `","commit":{"principal":"agent://root"}}]}}`
		if string(r.Data) != want {
			t.Errorf("got %s %v, want %s", r.Data, r.Errors, want)
		}
	})
	t.Run("read again", func(t *testing.T) {
		b := b.of(t)
		again := new(provenance.Quarantines)
		if err := again.Load(t.Context(), b.store); err != nil {
			t.Fatal(err)
		}
		since, there := again.Doubted()["agent://bad"]
		if !there || !since.Equal(later) || len(again.Doubted()) != 1 {
			t.Errorf("got %v, want what follows the log: %v", again.Doubted(), table.Doubted())
		}
		if changed, upTo := again.DoubtsChanged(0); !changed || upTo == 0 {
			t.Errorf("it does not tell that it changed: %t, %d", changed, upTo)
		}
	})
	t.Run("only for administrators", func(t *testing.T) {
		b := b.of(t)
		for _, who := range []kg.Principal{stranger, {ID: "agent://x", Roles: []string{kg.RoleReviewer}, Method: "jwt"}} {
			for query, variables := range map[string]string{
				quarantineIt: `{"i": {"agentId": "good"}}`, liftIt: `{"i": {"agentId": "bad"}}`, `{ quarantines { nodes { agent: agentId } } }`: "",
				`{ statements(view: {includeQuarantined: true}) { totalCount } }`: "",
			} {
				r := b.run(who, query, variables)
				if len(r.Errors) != 1 || r.Errors[0].Extensions["code"] != "PERMISSION_DENIED" {
					t.Errorf("%s asks %s: got %s %v", who.ID, query, r.Data, r.Errors)
				}
			}
		}
	})
	t.Run("refused", func(t *testing.T) {
		b := b.of(t)
		for _, row := range []struct{ query, agent, code string }{
			{quarantineIt, "koine", "INVALID"}, {quarantineIt, "", "INVALID"}, {quarantineIt, "no agent", "INVALID"},
			{liftIt, "good", "NOT_FOUND"},
		} {
			r := b.run(adminKey, row.query, `{"i": {"agentId": "`+row.agent+`"}}`)
			if len(r.Errors) != 1 || r.Errors[0].Extensions["code"] != row.code || r.Errors[0].Extensions["field"] != "input.agentId" {
				t.Errorf("%q: got %s %v, want %s", row.agent, r.Data, r.Errors, row.code)
			}
		}
	})
	t.Run("lifted", func(t *testing.T) {
		b := b.of(t)
		if q := b.quarantine(adminKey, liftIt, `{"agentId": "bad", "dryRun": true}`).Q; q.StatementsAffected != 2 || !q.DryRun {
			t.Errorf("the preview is %+v, want two statements that come back", q)
		}
		b.quarantine(adminKey, liftIt, `{"agentId": "bad"}`)
		if got, want := b.shownValues(reader, ""), all+" 5:bad 6:good"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if table.Doubted() != nil {
			t.Errorf("%v is left: reads would pay for nobody", table.Doubted())
		}
		again := new(provenance.Quarantines)
		if err := again.Load(t.Context(), b.store); err != nil || again.Doubted() != nil {
			t.Errorf("read again: %v, %v", again.Doubted(), err)
		}
		if changed, _ := again.DoubtsChanged(head); !changed {
			t.Error("read again, it does not tell that a quarantine ended")
		}
	})
}

// Quarantining an agent that wrote koine's own records loses none of them: they are exempt.
func TestQuarantineLeavesOwnGraphs(t *testing.T) {
	b, _ := distrusting(t)
	own := kg.IRI(kg.OwnGraphPrefix + "x")
	b.update(by("agent://bad", -1, in(own, add(iri("s"), iri("p"), kg.Integer(1)))))
	b.quarantine(adminKey, quarantineIt, `{"agentId": "bad"}`)
	if got, want := b.shownValues(adminKey, `{graphs: ["`+own.Value()+`"]}`), "1:bad"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// An open subscription gets a resync.
func TestQuarantineEndsSubscriptions(t *testing.T) {
	b, _ := distrusting(t)
	b.update(by("agent://bad", -1, add(iri("s"), iri("p"), kg.Integer(1))))
	tail := b.follow(t, `subscription { statementChanged { __typename } }`, "", operation.Resume{})
	b.quarantine(adminKey, quarantineIt, `{"agentId": "bad"}`)
	for {
		_, err, ok := tail.next()
		if kg.CodeOf(err) == kg.CodeAccessChanged {
			return
		}
		if err != nil || !ok {
			t.Fatalf("the stream ended with %v, want ACCESS_CHANGED", err)
		}
	}
}
