package graph_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"koine/graph"
	"koine/internal/operation"
	"koine/kg"
)

// tail follows a subscription; next gives its events one by one.
type tail struct {
	t    *testing.T
	sub  operation.Subscription
	next func() (operation.Event, error, bool)
	stop func()
}

func (b *bench) follow(t *testing.T, query, variables string, resume operation.Resume) *tail {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	req := b.request(query, variables)
	req.Resume = resume
	sub, err := b.engine.Subscribe(ctx, req)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	return tailOf(t, sub, cancel)
}

func tailOf(t *testing.T, sub operation.Subscription, cancel func()) *tail {
	next, stop := iter.Pull2(sub.Events())
	f := &tail{t: t, sub: sub, next: next}
	f.stop = func() {
		cancel()
		stop()
		sub.Close()
	}
	t.Cleanup(f.stop)
	return f
}

// event is the next event's data.
func (f *tail) event() (operation.Event, string) {
	f.t.Helper()
	e, err, ok := f.next()
	if !ok || err != nil {
		f.t.Fatalf("the stream ended: %v", err)
	}
	if len(e.Result.Errors) > 0 {
		f.t.Fatalf("the event has errors: %v", e.Result.Errors)
	}
	return e, string(e.Result.Data)
}

func (f *tail) want(data string) operation.Event {
	f.t.Helper()
	e, got := f.event()
	if got != data {
		f.t.Fatalf("got the event %s\nwant %s", got, data)
	}
	return e
}

const changeFields = `__typename ... on StatementChange { op statement { predicate object { ... on Literal { value } } } snapshot snapshotEnd }
	... on Progress { revision }`

func change(op, predicate, value string) string {
	return fmt.Sprintf(`{"e":{"__typename":"StatementChange","op":%q,"statement":{"predicate":"https://example.org/%s","object":{"value":%s}},"snapshot":false,"snapshotEnd":false}}`, op, predicate, value)
}

func standing(predicate, value string, last bool) string {
	return fmt.Sprintf(`{"e":{"__typename":"StatementChange","op":"add","statement":{"predicate":"https://example.org/%s","object":{"value":%s}},"snapshot":true,"snapshotEnd":%v}}`, predicate, value, last)
}

func set(predicate string, n int64) kg.Patch {
	p := add(iri("s"), iri(predicate), kg.Integer(n))
	p.Op = kg.Replace
	return p
}

func TestLatestShowsTheFuture(t *testing.T) {
	b := newBench(t, graph.Options{})
	b.update(set("p", 1))
	f := b.follow(t, `subscription { e: statementChanged(where: {predicate: {eq: "ex:p"}}) { `+changeFields+` } }`, "", operation.Resume{})
	b.update(set("q", 1))
	b.update(set("p", 2))
	f.want(change("replace", "p", "2"))
	b.update(kg.Patch{Op: kg.Remove, Quad: set("p", 2).Quad})
	f.want(change("remove", "p", "2"))
}

func TestResumeArgument(t *testing.T) {
	b := newBench(t, graph.Options{})
	b.update(set("p", 1))
	b.update(set("p", 2), set("q", 2))
	query := `subscription ($from: Position) { e: statementChanged(resume: $from) { ` + changeFields + ` } }`
	f := b.follow(t, query, `{"from": "earliest"}`, operation.Resume{})
	first := f.want(change("add", "p", "1"))
	second := f.want(change("replace", "p", "2"))
	f.want(change("add", "q", "2"))
	for _, tt := range []struct {
		after operation.Event
		want  []string
	}{
		{first, []string{change("replace", "p", "2"), change("add", "q", "2")}},
		{second, []string{change("add", "q", "2")}},
	} {
		token := b.store.FormatPosition(tt.after.Position)
		f := b.follow(t, query, fmt.Sprintf(`{"from": %q}`, token), operation.Resume{})
		for _, want := range tt.want {
			f.want(want)
		}
		// The position in the request wins over the argument.
		f = b.follow(t, query, `{"from": "earliest"}`, operation.Resume{Start: operation.After, After: tt.after.Position})
		for _, want := range tt.want {
			f.want(want)
		}
	}
}

func TestSnapshotThenFollow(t *testing.T) {
	b := newBench(t, graph.Options{})
	b.update(set("p", 1), set("q", 2), set("r", 3))
	f := b.follow(t, `subscription { e: statementChanged(resume: "snapshot", where: {predicate: {in: ["ex:p", "ex:q", "ex:later"]}}) { `+changeFields+` } }`, "", operation.Resume{})
	if p := f.sub.Position(); p != (kg.Position{}) {
		t.Errorf("inside the snapshot the position is %v, want none", p)
	}
	// Written after the snapshot was taken and before it is read.
	b.update(set("later", 4))
	if e := f.want(standing("p", "1", false)); e.Position != (kg.Position{}) || !e.Snapshot || e.SnapshotEnd {
		t.Errorf("got %+v, want an element of the snapshot without a position", e)
	}
	end := f.want(standing("q", "2", true))
	if end.Position.Revision != 1 || !end.SnapshotEnd || end.Result.Position != end.Position {
		t.Errorf("got %+v, want the end of the snapshot at revision 1", end)
	}
	f.want(change("add", "later", "4"))
	// An element of the snapshot, and a stream resumed after it.
	f = b.follow(t, `subscription { e: statementChanged { `+changeFields+` } }`, "", operation.Resume{Start: operation.After, After: end.Position})
	f.want(change("add", "later", "4"))
}

func TestEmptySnapshotIsUpToDate(t *testing.T) {
	b := newBench(t, graph.Options{})
	b.update(set("p", 1))
	for _, query := range []string{
		`subscription { e: statementChanged(resume: "snapshot", where: {predicate: {eq: "ex:none"}}) { ` + changeFields + ` } }`,
		`subscription { e: statementChanged(resume: "snapshot", ops: [remove]) { ` + changeFields + ` } }`,
	} {
		f := b.follow(t, query, "", operation.Resume{})
		if e := f.want(`{"e":{"__typename":"Progress","revision":1}}`); !e.UpToDate || e.Position.Revision != 1 {
			t.Errorf("got %+v, want an event that is up to date at revision 1", e)
		}
	}
}

func TestOpsAndResidualFilter(t *testing.T) {
	b := newBench(t, graph.Options{})
	f := b.follow(t, `subscription { e: statementChanged(ops: [add, remove], where: {object: {gte: 5}, not: {predicate: {eq: "ex:q"}}}) { `+changeFields+` } }`, "", operation.Resume{})
	b.update(set("p", 4))
	b.update(set("q", 9))
	b.update(set("p", 5)) // under this filter 4 was never there
	f.want(change("add", "p", "5"))
	b.update(set("p", 6)) // a replacement: not asked for
	b.update(set("p", 1)) // leaves the filter
	f.want(change("remove", "p", "6"))
}

// All fields of a change, with the state of its entities at that revision.
func TestChangeInFull(t *testing.T) {
	b := newBench(t, graph.Options{})
	f := b.follow(t, `subscription { statementChanged(resume: "earliest", where: {predicate: {eq: "ex:knows"}}) {
		... on StatementChange {
			__typename op statement { id subject { iri label out { totalCount } } object { ... on Entity { label } } graph certainty assertedBy recordedAt revision assertions { source: sourceId } }
			previous { object { ... on Entity { iri } } } statementRemains changeId snapshot snapshotEnd position
			commit { __typename id revision time principal: principalId actor: actorId justification taskId sessionId messageId }
		} } }`, "", operation.Resume{})
	label := kg.IRI(kg.RDFSLabel)
	b.update(by("agent://scout", 0.5, add(iri("ada"), iri("knows"), iri("bob"))), add(iri("ada"), label, kg.String("Ada")))
	b.update(add(iri("bob"), label, kg.String("Bob")))
	knows := by("agent://scout", 0.75, add(iri("ada"), iri("knows"), iri("cy")))
	knows.Op = kg.Replace
	b.update(knows)
	e, got := f.event()
	want := fmt.Sprintf(`{"statementChanged":{"__typename":"StatementChange","op":"add","statement":{"id":%q,"subject":{"iri":"https://example.org/ada","label":"Ada","out":{"totalCount":2}},"object":{"label":null},"graph":null,"certainty":0.5,"assertedBy":["agent://scout"],"recordedAt":"2026-01-01T00:00:02.000Z","revision":1,"assertions":[{"source":"agent://scout"}]},"previous":[],"statementRemains":false,"changeId":%q,"snapshot":false,"snapshotEnd":false,"position":%q,"commit":{"__typename":"Commit","id":%q,"revision":1,"time":"2026-01-01T00:00:02.000Z","principal":"agent://writer","actor":"agent://writer","justification":"test","taskId":null,"sessionId":null,"messageId":null}}}`,
		statementID(got), b.store.ChangeID(e.Position), b.store.FormatPosition(e.Position), "urn:koine:commit:1")
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	e, got = f.event()
	var data struct{ StatementChanged map[string]any }
	if err := json.Unmarshal([]byte(got), &data); err != nil {
		t.Fatal(err)
	}
	c := data.StatementChanged
	if c["op"] != "replace" || fmt.Sprint(c["previous"]) != "[map[object:map[iri:https://example.org/bob]]]" || e.Changes[0].Commit.Revision != 3 {
		t.Errorf("got %s, want the replacement of bob in revision 3", got)
	}
}

// statementID is the id in an event, which other tests look at.
func statementID(data string) string {
	_, rest, _ := strings.Cut(data, `"id":"`)
	id, _, _ := strings.Cut(rest, `"`)
	return id
}

// Errors of a subscription are reported before it begins.
func TestSubscribeRefuses(t *testing.T) {
	b := newBench(t, graph.Options{})
	b.update(set("p", 1))
	other := newBench(t, graph.Options{})
	other.update(set("p", 1))
	foreign := other.store.FormatPosition(other.store.Head())
	for name, tt := range map[string]struct {
		query   string
		code    kg.Code // of a *kg.Error; "" for an InvalidError
		message string
	}{
		"a query":          {`{ revision }`, "", "the operation is a query, not a subscription"},
		"syntax":           {`subscription { `, "", "Expected Name, found <EOF>"},
		"unknown field":    {`subscription { statementChanged { x } }`, "", `Cannot query field "x" on type "StatementEvent".`},
		"two fields":       {`subscription { a: statementChanged { __typename } b: statementChanged { __typename } }`, "", "a subscription must have exactly one root field"},
		"filter":           {`subscription { statementChanged(where: {object: {eq: []}}) { __typename } }`, "", "the value must be a string, a number or a boolean"},
		"iri":              {`subscription { statementChanged(where: {subject: {eq: "x"}}) { __typename } }`, "", `"x" is neither an absolute IRI nor a registered prefix:name`},
		"page":             {`subscription { statementChanged { ... on StatementChange { statement { subject { out(first: 1001) { totalCount } } } } } }`, "", "first is 1001; at most 1000 is allowed"},
		"depth":            {`subscription { statementChanged { ... on StatementChange { statement { subject ` + strings.Repeat("{ out { nodes { subject ", 13) + "{ iri }" + strings.Repeat(" } } }", 13) + ` } } } }`, "", "the query is 43 fields deep; at most 40 are allowed"},
		"revision":         {`subscription { statementChanged(view: {at: 1}) { __typename } }`, "", "changes cannot be followed in a view with at or maxAgeSeconds"},
		"age":              {`subscription { statementChanged(resume: "snapshot", view: {maxAgeSeconds: 5}) { __typename } }`, "", "changes cannot be followed in a view with at or maxAgeSeconds"},
		"foreign position": {`subscription { statementChanged(resume: "` + foreign + `") { __typename } }`, kg.CodePositionGone, ""},
		"no position":      {`subscription { statementChanged(resume: "tomorrow") { __typename } }`, kg.CodePositionGone, ""},
	} {
		t.Run(name, func(t *testing.T) {
			sub, err := b.engine.Subscribe(t.Context(), b.request(tt.query, ""))
			if err == nil {
				sub.Close()
				t.Fatal("it was accepted")
			}
			var invalid *operation.InvalidError
			var known *kg.Error
			switch {
			case tt.code == "" && (!errors.As(err, &invalid) || invalid.Errors[0].Message != tt.message):
				t.Errorf("got %T %v, want an InvalidError %q", err, err, tt.message)
			case tt.code != "" && (!errors.As(err, &known) || known.Code != tt.code || known.Oldest == nil):
				t.Errorf("got %T %v, want %s with the oldest position", err, err, tt.code)
			}
		})
	}
}

// A snapshot and the changes after it show each statement once, with concurrent writes:
// applying the events gives the graph.
func TestSnapshotAndChangesGiveTheGraph(t *testing.T) {
	b := newBench(t, graph.Options{})
	const n = 200
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range n {
			_, err := b.store.Update(context.Background(), kg.Meta{Principal: reader}, func(tx *kg.Tx) error {
				return tx.Apply(set(fmt.Sprintf("p%d", i%7), int64(i)))
			})
			if err != nil {
				t.Error(err)
			}
		}
	}()
	f := b.follow(t, `subscription { e: statementChanged(resume: "snapshot") { __typename ... on StatementChange { op statement { predicate object { ... on Literal { value } } } previous { object { ... on Literal { value } } } } } }`, "", operation.Resume{})
	state := map[string]int64{}
	for state["https://example.org/p3"] != n-1 { // 199 % 7 == 3: the last of all
		_, data := f.event()
		var e struct {
			E struct {
				Op        string
				Statement struct {
					Predicate string
					Object    struct{ Value int64 }
				}
				Previous []struct{ Object struct{ Value int64 } }
			}
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			t.Fatal(err)
		}
		if e.E.Op == "" { // the snapshot was empty
			continue
		}
		p := e.E.Statement.Predicate
		old, had := state[p]
		if had != (e.E.Op == "replace") || had && e.E.Previous[0].Object.Value != old {
			t.Fatalf("%s after the value %d (%v)", data, old, had)
		}
		state[p] = e.E.Statement.Object.Value
	}
	<-done
	for i := range 7 {
		p := fmt.Sprintf("https://example.org/p%d", i)
		if want := int64(n - 1 - (n-1-i)%7); state[p] != want {
			t.Errorf("%s is %d, want %d", p, state[p], want)
		}
	}
}

// The store's end is the stream's end, and the context's too.
func TestSubscriptionEnds(t *testing.T) {
	b := newBench(t, graph.Options{})
	f := b.follow(t, `subscription { statementChanged { __typename } }`, "", operation.Resume{})
	f.sub.(*graph.Stream).Close()
	if _, err, ok := f.next(); !ok || kg.CodeOf(err) != kg.CodeClosed {
		t.Errorf("got %v, want %s", err, kg.CodeClosed)
	}
	ctx, cancel := context.WithCancel(t.Context())
	sub, err := b.engine.Subscribe(ctx, b.request(`subscription { statementChanged { __typename } }`, ""))
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	cancel()
	for _, err := range sub.Events() {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want %v", err, context.Canceled)
		}
	}
}
