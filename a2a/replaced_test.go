package a2a_test

import (
	"fmt"
	"strings"
	"testing"

	"koine/a2a"
	"koine/internal/sse"
	"koine/kg"
)

func (s *testServer) replaceGraph(t *testing.T, graph string, from, n int) kg.ReplaceReport {
	t.Helper()
	done, err := s.store.ReplaceGraph(t.Context(), kg.Meta{Principal: kg.SystemPrincipal(), Actor: "agent://loader", Justification: "a new edition"}, kg.IRI(graph), func(yield func(kg.Quad, error) bool) {
		for i := from; i < from+n; i++ {
			if !yield(kg.Quad{Subject: kg.IRI(fmt.Sprint("urn:many:", i)), Predicate: kg.IRI("urn:p"), Object: kg.Integer(int64(i)), Graph: kg.IRI(graph)}, nil) {
				return
			}
		}
	}, kg.ReplaceOptions{})
	if err != nil || !done.Whole {
		t.Fatalf("got %+v, %v", done, err)
	}
	return done
}

// The replacement of a whole graph is an event of its own, then the stream ends with
// RESYNC and the position after it; the plain feed likewise. Repeated events are equal
// byte for byte.
func TestSubscriberOfReplacedGraph(t *testing.T) {
	s := newTestServerWith(t, kg.Options{}, sse.Options{}, a2a.Options{})
	event, result := definitions(t)("KnowledgeSubscriptionEvent"), definitions(t)("KnowledgeGraphChangeEvent")
	replaced := definitions(t)("GraphReplacedEvent")
	const n = kg.MaxPatches + 1
	s.set(t, kg.Add, "urn:before", kg.String("x"), "agent://x")
	const query = `subscription { statementChanged { ... on GraphReplaced { statementsAfter } } }`
	live := s.subscribeTo(t, query, `{}`, "Last-Event-ID: ")
	feed := s.changes(t, "")
	other := s.changes(t, "?graph=urn:other")
	if start := live.event(); start.id == "" {
		t.Fatal("the stream does not tell where it begins")
	}
	before := s.store.FormatPosition(s.store.Head())
	done := s.replaceGraph(t, "urn:g", 0, n)
	behind := s.store.FormatPosition(done.Position)
	q := patch(kg.Add, "urn:o", kg.String("x"), "agent://x")
	q.Quad.Graph = kg.IRI("urn:other")
	if _, err := s.store.Update(t.Context(), kg.Meta{}, func(tx *kg.Tx) error { return tx.Apply(q) }); err != nil {
		t.Fatal(err)
	}

	told := live.block()
	id, data, ok := strings.Cut(strings.TrimSuffix(told, "\n\n"), "\ndata: ")
	if !ok {
		t.Fatalf("got %q", told)
	}
	if err := validate(event, data); err != nil {
		t.Errorf("%s: %v", data, err)
	}
	for _, part := range []string{
		`"op":"graphReplaced","graph":"urn:g","changeId":"`, `"actor":"agent://loader","justification":"a new edition"`,
		`"counts":{"statementsBefore":0,"statementsAfter":10001,"statementsAdded":10001,"statementsRemoved":0}`, `"data":{"statementChanged":{"statementsAfter":10001}}`,
		fmt.Sprintf(`"revision":%d`, done.Revision),
	} {
		if !strings.Contains(data, part) {
			t.Errorf("it has no %s: %s", part, data)
		}
	}
	end := live.block()
	if !strings.Contains(end, `"RESYNC"`) || !strings.Contains(end, `"oldestPosition":"`+behind+`"`) || live.block() != "" {
		t.Errorf("it ends with %q", end)
	}
	for from, want := range map[string]string{before: told + end, strings.TrimPrefix(id, "id: "): end} {
		again := s.subscribeTo(t, query, `{}`, "Last-Event-ID: "+from)
		got := ""
		for block := again.block(); block != ""; block = again.block() {
			got += block
		}
		if got != want {
			t.Errorf("from %s: got %q, want %q", from, got, want)
		}
	}
	plain := feed.block()
	_, data, _ = strings.Cut(strings.TrimSuffix(plain, "\n\n"), "data: ")
	if err := validate(replaced, data); err != nil {
		t.Errorf("%s: %v", data, err)
	}
	if validate(result, data) == nil {
		t.Error("it passes for the change of a statement")
	}
	if end := feed.block(); !strings.Contains(end, "event: end") || !strings.Contains(end, `"RESYNC"`) {
		t.Errorf("the feed ends with %q", end)
	}
	if e := other.event(); e.Statement.Subject.ID != "urn:o" {
		t.Errorf("who follows another graph is told %s", e.say())
	}
}

// While a graph is being replaced, its other updates are refused with its name and a
// retry delay; those of other graphs succeed.
func TestUpdatesOfAGraphThatIsBeingReplaced(t *testing.T) {
	s := newTestServer(t)
	update := func(graph string) (status int, after, body string) {
		text := `{"jsonrpc":"2.0","id":1,"method":"knowledge/update","params":{"mutations":[{"op":"add","statement":{"subject":{"id":"urn:s"},"predicate":{"id":"urn:p"},"object":{"value":1},"graph":"` + graph + `"}}]}}`
		resp := s.send(t, []byte(text), nil)
		after = resp.Header.Get("Retry-After")
		return resp.StatusCode, after, answer(t, resp)
	}
	tried := false
	_, err := s.store.ReplaceGraph(t.Context(), kg.Meta{Principal: kg.SystemPrincipal()}, kg.IRI("urn:g"), func(yield func(kg.Quad, error) bool) {
		for i := range kg.MaxPatches + 10 {
			if i == kg.MaxPatches+5 {
				tried = true
				status, after, body := update("urn:g")
				if status != 429 || after != "2" || !strings.Contains(body, `"code":-31105`) || !strings.Contains(body, `"reason":"OVERLOADED"`) ||
					!strings.Contains(body, "the graph <urn:g> is being replaced as a whole") || !strings.Contains(body, `"retryAfterMs":2000`) {
					t.Errorf("an update of it: %d, Retry-After %q, %s", status, after, body)
				}
				if status, _, body := update("urn:other"); status != 200 || !strings.Contains(body, `"success":true`) {
					t.Errorf("an update of another graph: %d %s", status, body)
				}
			}
			if !yield(kg.Quad{Subject: kg.IRI(fmt.Sprint("urn:", i)), Predicate: kg.IRI("urn:p"), Object: kg.Integer(1), Graph: kg.IRI("urn:g")}, nil) {
				return
			}
		}
	}, kg.ReplaceOptions{})
	if err != nil || !tried {
		t.Fatal(err, tried)
	}
	if status, _, body := update("urn:g"); status != 200 {
		t.Errorf("behind it: %d %s", status, body)
	}
}
