package a2a_test

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"koine/a2a"
	"koine/internal/sse"
	"koine/kg"
)

// patience is the time limit of a test.
const patience = time.Minute

// tokens match the parts of a block that differ between runs.
var tokens = regexp.MustCompile(`id: [A-Za-z0-9_-]{20,}`)

// The exact bytes of a subscription. Without ids a block begins with "data: ".
func TestSubscribeBlocks(t *testing.T) {
	s := newTestServer(t)
	plain := s.subscribeTo(t, `subscription { statementChanged { __typename } }`, `{}`)
	ids := s.subscribeTo(t, `subscription { statementChanged { __typename } }`, `{}`, "Last-Event-ID: ")
	var back *subscriber
	post := func(params string) {
		t.Helper()
		resp := s.send(t, []byte(`{"jsonrpc":"2.0","id":1,"method":"knowledge/update","params":`+params+`}`), nil)
		if got := answer(t, resp); !strings.Contains(got, `"success":true`) {
			t.Fatal(got)
		}
	}
	const statement = `"subject":{"id":"order 66","type":"foaf:Document"},"predicate":{"id":"foaf:topic"},"object":{"value":"a <b> \"c\" \r é"}`
	const echoed = `"statement":{"subject":{"id":"order 66","type":"http://xmlns.com/foaf/0.1/Document"},"predicate":{"id":"http://xmlns.com/foaf/0.1/topic"},"object":{"value":"a <b> \"c\" \r é"}`
	const bare = `"statement":{"subject":{"id":"order 66"},"predicate":{"id":"http://xmlns.com/foaf/0.1/topic"},"object":{"value":"a <b> \"c\" \r é"}`
	const typed = `"statement":{"subject":{"id":"order 66","type":"http://xmlns.com/foaf/0.1/Document"},"predicate":{"id":"http://www.w3.org/1999/02/22-rdf-syntax-ns#type"},"object":{"id":"http://xmlns.com/foaf/0.1/Document"}`
	meta := func(revision int, rest string) string {
		actor := "agent://anonymous"
		if revision == 1 || revision == 3 { // params.sourceAgentId
			actor = "agent://a"
		}
		return fmt.Sprintf(`"changeMetadata":{"position":"<position>","revision":%d,"commitId":"<uuid>","actor":%q,%s}}}`, revision, actor, rest)
	}
	const selected = `"data":{"statementChanged":{"__typename":"StatementChange"}}`
	for _, step := range []struct {
		name, params string
		want         []string
	}{
		{"add with a type", `{"mutations":[{"op":"add","statement":{` + statement + `,"certainty":0.5}}],"sourceAgentId":"a","justification":"seen","taskId":"t1"}`, []string{
			`{"op":"add",` + echoed + `,"certainty":0.5},"changeId":"<uuid>","timestamp":"2026-01-02T03:04:05.000Z",` + meta(1, `"source":"agent://a","justification":"seen","taskId":"t1",`+selected),
			`{"op":"add",` + typed + `},"changeId":"<uuid>","timestamp":"2026-01-02T03:04:05.000Z",` + meta(1, `"source":"agent://a","justification":"seen","taskId":"t1",`+selected),
		}},
		{"a second source", `{"mutations":[{"op":"add","statement":{` + statement + `,"provenance":{ "sourceAgentId" : "b" }}}]}`, []string{
			`{"op":"add",` + echoed + `,"provenance":{"sourceAgentId":"b"}},"changeId":"<uuid>","timestamp":"2026-01-02T03:04:05.000Z",` + meta(2, `"source":"agent://b",`+selected),
			`{"op":"add",` + typed + `},"changeId":"<uuid>","timestamp":"2026-01-02T03:04:05.000Z",` + meta(2, `"source":"agent://b",`+selected),
		}},
		{"another certainty", `{"mutations":[{"op":"add","statement":{` + statement + `,"certainty":1}}],"sourceAgentId":"a"}`, []string{
			`{"op":"replace",` + bare + `,"certainty":1},"changeId":"<uuid>","timestamp":"2026-01-02T03:04:05.000Z",` +
				meta(3, `"source":"agent://a","previous":[{`+strings.TrimPrefix(bare, `"statement":{`)+`,"certainty":0.5,"source":"agent://a"}],`+selected),
		}},
		{"one withdraws", `{"mutations":[{"op":"remove","statement":{` + statement + `,"provenance":{"sourceAgentId":"a"}}}]}`, []string{
			`{"op":"remove",` + bare + `,"certainty":1},"changeId":"<uuid>","timestamp":"2026-01-02T03:04:05.000Z",` +
				meta(4, `"source":"agent://a","statementRemains":true,`+selected),
		}},
		{"all gone", `{"mutations":[{"op":"remove","statement":{` + statement + `}}]}`, []string{
			`{"op":"remove",` + bare + `,"provenance":{"sourceAgentId":"b"}},"changeId":"<uuid>","timestamp":"2026-01-02T03:04:05.000Z",` + meta(5, `"source":"agent://b",`+selected),
		}},
		{"a replacement", `{"mutations":[{"op":"add","statement":{"subject":{"id":"urn:s"},"predicate":{"id":"urn:p"},"object":{"value":1},"graph":"urn:g"}},{"op":"replace","statement":{"subject":{"id":"urn:s"},"predicate":{"id":"urn:p"},"object":{"value":2},"graph":"urn:g"}}]}`, []string{
			`{"op":"add","statement":{"subject":{"id":"urn:s"},"predicate":{"id":"urn:p"},"object":{"value":1,"type":"xsd:integer"},"graph":"urn:g"},"changeId":"<uuid>","timestamp":"2026-01-02T03:04:05.000Z",` + meta(6, `"source":"agent://anonymous",`+selected),
			`{"op":"replace","statement":{"subject":{"id":"urn:s"},"predicate":{"id":"urn:p"},"object":{"value":2,"type":"xsd:integer"},"graph":"urn:g"},"changeId":"<uuid>","timestamp":"2026-01-02T03:04:05.000Z",` +
				meta(6, `"source":"agent://anonymous","previous":[{"subject":{"id":"urn:s"},"predicate":{"id":"urn:p"},"object":{"value":1,"type":"xsd:integer"},"graph":"urn:g","source":"agent://anonymous"}],`+selected),
		}},
		{"a replacement of what another one said", `{"mutations":[{"op":"add","statement":{"subject":{"id":"urn:s"},"predicate":{"id":"urn:q"},"object":{"value":"x"},"certainty":0.3,"provenance":{"sourceAgentId":"b","page":7}}},{"op":"replace","statement":{"subject":{"id":"urn:s"},"predicate":{"id":"urn:q"},"object":{"value":"y"}}}]}`, []string{
			`{"op":"add","statement":{"subject":{"id":"urn:s"},"predicate":{"id":"urn:q"},"object":{"value":"x"},"certainty":0.3,"provenance":{"sourceAgentId":"b","page":7}},"changeId":"<uuid>","timestamp":"2026-01-02T03:04:05.000Z",` + meta(7, `"source":"agent://b",`+selected),
			`{"op":"replace","statement":{"subject":{"id":"urn:s"},"predicate":{"id":"urn:q"},"object":{"value":"y"}},"changeId":"<uuid>","timestamp":"2026-01-02T03:04:05.000Z",` +
				meta(7, `"source":"agent://anonymous","previous":[{"subject":{"id":"urn:s"},"predicate":{"id":"urn:q"},"object":{"value":"x"},"certainty":0.3,"provenance":{"sourceAgentId":"b","page":7},"source":"agent://b"}],`+selected),
		}},
	} {
		post(step.params)
		if back == nil {
			// The first block has the start position: a client that is cut off there
			// resumes from it.
			start := ids.block()
			if got := tokens.ReplaceAllString(start, "id: <position>"); got != "id: <position>\n\n" {
				t.Fatalf("begins with %s", got)
			}
			back = s.subscribeTo(t, `subscription { statementChanged { __typename } }`, `{}`, "Last-Event-ID: "+strings.TrimSpace(strings.TrimPrefix(start, "id: ")))
		}
		for _, want := range step.want {
			want = `data: {"jsonrpc":"2.0","id":"sub 1","result":` + want + "\n\n"
			if got := mask(plain.block()); got != want {
				t.Errorf("%s:\ngot  %swant %s", step.name, got, want)
			}
			if got := mask(tokens.ReplaceAllString(ids.block(), "id: <position>")); got != "id: <position>\n"+want {
				t.Errorf("%s, with ids:\ngot  %swant %s", step.name, got, want)
			}
			if got := mask(tokens.ReplaceAllString(back.block(), "id: <position>")); got != "id: <position>\n"+want {
				t.Errorf("%s, to one who came back:\ngot  %swant %s", step.name, got, want)
			}
		}
	}
}

// A stream resumed from the position of any event, also inside a commit, yields exactly
// the later events, with the same change ids.
func TestResumeFromEveryPosition(t *testing.T) {
	s := newTestServer(t)
	s.set(t, kg.Add, "urn:a", kg.Integer(1), "agent://x")
	if _, err := s.store.Update(t.Context(), kg.Meta{}, func(tx *kg.Tx) error {
		for i := range 3 {
			if err := tx.Apply(patch(kg.Add, "urn:b", kg.Integer(int64(i)), "agent://x")); err != nil {
				return err
			}
		}
		return tx.Apply(patch(kg.Replace, "urn:a", kg.Integer(2), "agent://x"))
	}); err != nil {
		t.Fatal(err)
	}
	s.set(t, kg.Remove, "urn:b", kg.Integer(1), "")
	want := []string{"add urn:a 1", "add urn:b 0", "add urn:b 1", "add urn:b 2", "replace urn:a 2", "remove urn:b 1"}
	all := s.subscribe(t, `{"koine":{"resume":"earliest"}}`).expect(want...)
	seen := map[string]bool{}
	for i, e := range all {
		if e.id == "" || e.id != e.ChangeMetadata.Position || seen[e.ChangeID] {
			t.Errorf("event %d: id %q, position %q, change id %s", i, e.id, e.ChangeMetadata.Position, e.ChangeID)
		}
		seen[e.ChangeID] = true
		rest := want[i+1:]
		if len(rest) == 0 {
			continue
		}
		for _, sub := range []*subscriber{
			s.subscribe(t, `{"koine":{"resume":"`+e.id+`"}}`),
			s.subscribe(t, `{"resume":"latest"}`, "Last-Event-ID: "+e.id), // it comes back with the request of its start
			s.changes(t, "?resume="+e.id),
			s.changes(t, "?snapshot=true", "Last-Event-ID: "+e.id),
		} {
			for j, again := range sub.expect(rest...) {
				if again.ChangeID != all[i+1+j].ChangeID || again.id != all[i+1+j].id {
					t.Errorf("behind %d, event %d: other ids than before", i, j)
				}
			}
			sub.cancel()
		}
	}
}

func TestSnapshot(t *testing.T) {
	s := newTestServer(t)
	s.set(t, kg.Add, "urn:a", kg.Integer(1), "agent://x")
	s.set(t, kg.Add, "urn:b", kg.Integer(1), "agent://x")
	s.set(t, kg.Add, "urn:b", kg.Integer(1), "agent://y") // one statement, two sources
	subs := []*subscriber{
		s.subscribe(t, `{"koine":{"resume":"snapshot"}}`),
		s.subscribe(t, `{"snapshot":true}`),
		s.subscribeTo(t, `subscription { statementChanged(resume: "snapshot") { __typename } }`, `{}`, "Last-Event-ID: "),
		s.changes(t, "?snapshot=true"),
	}
	s.set(t, kg.Remove, "urn:a", kg.Integer(1), "")
	var changeIDs []string
	for i, sub := range subs {
		events := sub.expect("add urn:a 1", "add urn:b 1", "remove urn:a 1")
		first, last, then := events[0], events[1], events[2]
		if m := first.ChangeMetadata; !m.Snapshot || m.SnapshotEnd || m.Position != "" || first.id != "" {
			t.Errorf("%d: first: %+v, id %q", i, m, first.id)
		}
		if m := last.ChangeMetadata; !m.Snapshot || !m.SnapshotEnd || m.Position == "" || last.id != m.Position {
			t.Errorf("%d: last: %+v, id %q", i, m, last.id)
		}
		if m := then.ChangeMetadata; m.Snapshot || m.Revision != 4 {
			t.Errorf("%d: then: %+v", i, m)
		}
		changeIDs = append(changeIDs, first.ChangeID+last.ChangeID)
		// The changes start at the position at the end of the snapshot.
		s.subscribe(t, `{"koine":{"resume":"`+last.id+`"}}`).expect("remove urn:a 1")
	}
	for _, ids := range changeIDs {
		if ids != changeIDs[0] {
			t.Errorf("the same snapshot has other change ids: %v", changeIDs)
		}
	}
}

// An empty snapshot has its position in a block with an id line only.
func TestEmptySnapshot(t *testing.T) {
	s := newTestServer(t)
	for _, sub := range []*subscriber{s.subscribe(t, `{"koine":{"snapshot":true}}`), s.changes(t, "?resume=snapshot&subject=urn:none")} {
		block := sub.block()
		if got := tokens.ReplaceAllString(block, "id: <position>"); got != "id: <position>\n\n" {
			t.Errorf("got %q", got)
		}
		s.set(t, kg.Add, "urn:none", kg.Integer(1), "agent://x")
		sub.expect("add urn:none 1")
		s.set(t, kg.Remove, "urn:none", kg.Integer(1), "")
		s.subscribe(t, `{"koine":{"resume":"`+strings.TrimSpace(strings.TrimPrefix(block, "id: "))+`"}}`).expect("add urn:none 1", "remove urn:none 1")
	}
}

// At shutdown the last event has the position to resume from.
func TestShutdownEndsStreams(t *testing.T) {
	s := newTestServer(t)
	sub, silent, feed := s.subscribe(t, `{}`), s.subscribe(t, `{}`), s.changes(t, "?subject=urn:none")
	s.set(t, kg.Add, "urn:a", kg.Integer(1), "agent://x")
	at := sub.expect("add urn:a 1")[0].ChangeMetadata.Position
	silent.expect("add urn:a 1")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := s.streams.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	want := `data: {"jsonrpc":"2.0","id":"sub 1","error":{"code":-32012,"message":"the server is shutting down",` +
		`"data":{"reason":"SERVER_SHUTDOWN","domain":"koine","hint":"Resume from the position; without one, start again.","position":"` + at + `"}}}` + "\n\n"
	if got := sub.block(); got != want {
		t.Errorf("got %swant %s", got, want)
	}
	if rest := sub.block(); rest != "" {
		t.Errorf("after the last event: %q", rest)
	}
	last := feed.block()
	if got := mask(tokens.ReplaceAllString(last, "id: <position>")); got != `event: end`+"\n"+`data: {"code":-32012,"message":"the server is shutting down",`+
		`"data":{"reason":"SERVER_SHUTDOWN","domain":"koine","hint":"Resume from the position; without one, start again.","position":"<position>"}}`+"\n\n" {
		t.Errorf("the feed got %s", got)
	}
	resp := s.send(t, []byte(`{"jsonrpc":"2.0","id":1,"method":"knowledge/subscribe","params":{"subscriptionQuery":"subscription { statementChanged { __typename } }"}}`), nil)
	if got, want := answer(t, resp), "503 application/json 5\n"+`{"jsonrpc":"2.0","id":1,"error":{"code":-32012,"message":"the server is shutting down",`+
		`"data":{"reason":"SERVER_SHUTDOWN","domain":"koine","retryAfterMs":5000}}}`+"\n"; got != want {
		t.Errorf("a new stream: got %swant %s", got, want)
	}
}

func TestTooManyStreams(t *testing.T) {
	s := newTestServerWith(t, kg.Options{}, sse.Options{MaxStreams: 1, RetryAfter: 1500 * time.Millisecond}, a2a.Options{})
	s.subscribe(t, `{}`)
	const request = `{"jsonrpc":"2.0","id":7,"method":"knowledge/subscribe","params":{"subscriptionQuery":"subscription { statementChanged { __typename } }"}}`
	resp := s.send(t, []byte(request), nil)
	if got, want := answer(t, resp), "503 application/json 2\n"+`{"jsonrpc":"2.0","id":7,"error":{"code":-32012,"message":"the server has reached its limit of open streams",`+
		`"data":{"reason":"TOO_MANY_STREAMS","domain":"koine","hint":"Close streams, or try again later.","retryAfterMs":1500}}}`+"\n"; got != want {
		t.Errorf("got %swant %s", got, want)
	}
	if n := s.store.Stats().Watchers - s.own; n != 1 {
		t.Errorf("%d watchers for one stream", n)
	}
}

// A client that does not read gets the reason after the sent events, with the position
// after them. Resuming from there misses nothing.
func TestSlowConsumer(t *testing.T) {
	s := newTestServerWith(t, kg.Options{}, sse.Options{WriteTimeout: 200 * time.Millisecond, LastTimeout: patience, SendBuffer: 8 << 10}, a2a.Options{})
	sub := s.subscribe(t, `{}`)
	const n = 150
	for i := range n {
		s.set(t, kg.Add, fmt.Sprintf("urn:%d", i), kg.String(strings.Repeat("x", 100<<10)), "agent://x")
	}
	// It reads again only after the server has given up.
	select {
	case <-s.established(t).Done():
	case <-time.After(patience):
		t.Fatal("a client that does not read is served on")
	}
	// It resumes from the reported position; on a busy machine the server may give up
	// again.
	givenUp := false
	for next := 0; next < n; {
		e := sub.event()
		if e.Error != nil {
			if e.say() != "-32012 SLOW_CONSUMER" {
				t.Fatalf("got %s", e.say())
			}
			givenUp = true
			position, _ := e.Error.Data["position"].(string)
			sub = s.subscribe(t, `{"koine":{"resume":"`+position+`"}}`)
			continue
		}
		if want := fmt.Sprintf("urn:%d", next); e.Statement.Subject.ID != want {
			t.Fatalf("got %s, want %s", e.Statement.Subject.ID, want)
		}
		next++
	}
	if !givenUp {
		t.Fatal("it took everything without reading: the test shows nothing")
	}
}

// Heartbeats are comments, or the position scanned to if ids were requested, so that a
// filter that never matches has a recent position.
func TestHeartbeats(t *testing.T) {
	s := newTestServerWith(t, kg.Options{}, sse.Options{Heartbeat: 20 * time.Millisecond}, a2a.Options{})
	comments := s.open(t, http.MethodPost, "/", `{"jsonrpc":"2.0","id":1,"method":"knowledge/subscribe","params":{"subscriptionQuery":"subscription { statementChanged(where: {subject: {eq: \"urn:none\"}}) { __typename } }"}}`)
	positions := s.changes(t, "?subject=urn:none")
	receipt := s.set(t, kg.Add, "urn:other", kg.Integer(1), "agent://x")
	want := "id: " + s.store.FormatPosition(receipt.Position) + "\n\n"
	for block := ""; block != want; {
		block = positions.block()
		if !strings.HasPrefix(block, "id: ") || strings.Count(block, "\n") != 2 {
			t.Fatalf("got %q, want a position", block)
		}
	}
	s.set(t, kg.Add, "urn:none", kg.Integer(1), "agent://x")
	s.changes(t, "?subject=urn:none", "Last-Event-ID: "+strings.TrimSpace(strings.TrimPrefix(want, "id: "))).expect("add urn:none 1")
	if line, err := comments.body.ReadString('\n'); err != nil || line != ": \n" {
		t.Errorf("got %q, %v, want a comment", line, err)
	}
}

// The feed shows exactly the changes that its parameters select.
func TestChangesFilters(t *testing.T) {
	s := newTestServer(t)
	if _, err := s.store.Update(t.Context(), kg.Meta{}, func(tx *kg.Tx) error {
		for _, q := range []kg.Quad{
			{Subject: kg.IRI("urn:s1"), Predicate: kg.IRI("http://xmlns.com/foaf/0.1/name"), Object: kg.String("Ada")},
			{Subject: kg.IRI("urn:s2"), Predicate: kg.IRI("urn:p"), Object: kg.Integer(5)},
			{Subject: kg.IRI("urn:s3"), Predicate: kg.IRI("urn:p"), Object: kg.IRI("urn:koine:id:a%20b"), Graph: kg.IRI("urn:g")},
			{Subject: kg.IRI("urn:s4"), Predicate: kg.IRI("urn:p"), Object: kg.LangString("hi", "en")},
		} {
			if err := tx.Apply(kg.Patch{Op: kg.Add, Quad: q, Source: "agent://x", Certainty: 0.5, HasCertainty: q.Subject == kg.IRI("urn:s4")}); err != nil {
				return err
			}
		}
		return tx.Apply(kg.Patch{Op: kg.Remove, Quad: kg.Quad{Subject: kg.IRI("urn:s1"), Predicate: kg.IRI("http://xmlns.com/foaf/0.1/name"), Object: kg.String("Ada")}})
	}); err != nil {
		t.Fatal(err)
	}
	s1, s2, s3, s4, gone := "add urn:s1 Ada", "add urn:s2 5", "add urn:s3 <nil>a b", "add urn:s4 hi", "remove urn:s1 Ada"
	for _, row := range []struct {
		query string
		want  []string
	}{
		{"", []string{s1, s2, s3, s4, gone}},
		{"subject=urn:s1", []string{s1, gone}},
		{"predicate=foaf:name", []string{s1, gone}},
		{"object=a%20b", []string{s3}},
		{"value=Ada", []string{s1, gone}},
		{"value=5&type=xsd:integer", []string{s2}},
		{"value=hi&language=en", []string{s4}},
		{"op=remove", []string{gone}},
		{"op=add,replace&predicate=foaf:name", []string{s1}},
		{"op=add&op=remove&predicate=foaf:name", []string{s1, gone}},
		{"graph=urn:g", []string{s3}},
		{"graph=", []string{s1, s2, s4, gone}},
		{"graph=&graph=urn:g", []string{s1, s2, s3, s4, gone}},
		{"requiredCertainty=0.6", []string{s1, s2, s3, gone}},
		{"allGraphs=true", []string{s1, s2, s3, s4, gone}},
	} {
		sub := s.changes(t, "?resume=earliest&"+row.query)
		for i, e := range sub.expect(row.want...) {
			if e.id == "" {
				t.Errorf("%s: event %d has no id", row.query, i)
			}
		}
		sub.cancel()
	}
}

// A client that follows concurrent writes and reconnects repeatedly sees each change
// once and in order.
func TestFollowerThatComesAndGoes(t *testing.T) {
	s := newTestServer(t)
	const n = 300
	wrote := make(chan struct{})
	go func() {
		defer close(wrote)
		for i := range n {
			s.set(t, kg.Add, fmt.Sprintf("urn:%d", i), kg.Integer(1), "agent://x")
		}
	}()
	defer func() { <-wrote }()
	sub := s.changes(t, "?resume=earliest")
	for i := range n {
		e := sub.event()
		if want := fmt.Sprintf("add urn:%d 1", i); e.say() != want {
			t.Fatalf("got %s, want %s", e.say(), want)
		}
		if i%7 == 0 {
			sub.cancel()
			sub = s.changes(t, "", "Last-Event-ID: "+e.id)
		}
	}
}

// When a client leaves, its watcher and its place are released.
func TestLeavingFreesEverything(t *testing.T) {
	s := newTestServer(t)
	for range 20 {
		s.subscribe(t, `{"snapshot":true}`).cancel()
		s.changes(t, "?snapshot=true").cancel()
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := s.streams.Shutdown(ctx); err != nil { // returns when all streams have ended
		t.Fatal(err)
	}
	s.Close() // returns when their requests have ended, too
	if st := s.store.Stats(); st.Watchers != s.own || st.Snapshots != 0 {
		t.Errorf("%d watchers and %d snapshots are left", st.Watchers, st.Snapshots)
	}
}
