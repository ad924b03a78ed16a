package a2a_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"koine/a2a"
	"koine/internal/caller"
	"koine/internal/sse"
	"koine/internal/tasks"
	"koine/kg"
)

// A result that is too large for one part comes in pieces, which together are the JSON.
func TestLargeResultsComeInChunks(t *testing.T) {
	s := newTestServer(t)
	ann := s.large(t)
	sent, err := s.tasks.Send(t.Context(), ann, tasks.SendRequest{
		To: "agent://self", Message: tasks.Message{Parts: []tasks.Part{tasks.TextPart(`{ entity(iri: "urn:x:s") { values(predicate: "urn:x:p", first: 20) } }`)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	task, err := s.tasks.Wait(t.Context(), ann, sent.Task, tasks.ReadAll)
	if err != nil {
		t.Fatal(err)
	}
	if task.Status.State != tasks.Completed || len(task.Artifacts) != 1 || len(task.Artifacts[0].Parts) < 3 {
		t.Fatalf("%s with %+v", task.Status.State, task.Status.Message)
	}
	var whole []byte
	for _, p := range task.Artifacts[0].Parts {
		piece, err := base64.StdEncoding.DecodeString(*p.Raw)
		if err != nil || p.MediaType != "application/json" {
			t.Fatalf("a piece of %s: %v", p.MediaType, err)
		}
		whole = append(whole, piece...)
	}
	var result struct {
		Data struct {
			Entity struct{ Values []string }
		}
	}
	if err := json.Unmarshal(whole, &result); err != nil || len(result.Data.Entity.Values) != 12 {
		t.Errorf("%d values, %v", len(result.Data.Entity.Values), err)
	}
}

// A message that koine answers takes two commits: one with its task, one with the
// answer and the end.
func TestAMessageIsTwoCommits(t *testing.T) {
	s := newTestServer(t)
	ann := s.large(t)
	before := s.store.Head().Revision
	sent, err := s.tasks.Send(t.Context(), ann, tasks.SendRequest{
		To: "agent://self", Message: tasks.Message{Parts: []tasks.Part{tasks.TextPart(`{ entity(iri: "urn:x:s") { iri } }`)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	task, err := s.tasks.Wait(t.Context(), ann, sent.Task, tasks.ReadAll)
	if err != nil || task.Status.State != tasks.Completed || len(task.Artifacts) != 1 {
		t.Fatal(task, err)
	}
	if n := s.store.Head().Revision - before; n != 2 {
		t.Errorf("%d commits, want 2", n)
	}
}

// large adds an entity with more values than fit in one part.
func (s *testServer) large(t *testing.T) (ann caller.Caller) {
	t.Helper()
	ann = caller.Caller{Principal: kg.Principal{ID: "agent://ann", Method: "open", ActFor: []kg.AgentID{kg.Anybody}}}
	long := strings.Repeat("x", 60_000)
	_, err := s.store.Update(t.Context(), kg.Meta{Principal: ann.Principal}, func(tx *kg.Tx) error {
		for i := range 12 {
			q := kg.Quad{Subject: kg.IRI("urn:x:s"), Predicate: kg.IRI("urn:x:p"), Object: kg.String(fmt.Sprint(i, long))}
			if err := tx.Apply(kg.Patch{Op: kg.Add, Quad: q}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return ann
}

// A message that a rule refuses rejects or fails the task with the reason; later parts
// are not executed, and nothing changes.
func TestRulesRefuseMessages(t *testing.T) {
	s := newTestServerWith(t, kg.Options{Governor: kg.Governor{Verifier: rules{}}}, sse.Options{}, a2a.Options{})
	for value, want := range map[string][]string{
		"unlikely": {`"state":"TASK_STATE_REJECTED"`, `"text":"Rejected - Constraint Violation: 0 statements changed. nothing is unlikely"`,
			`"artifactId":"result-1"`, `"success":false`},
		"forbidden": {`"state":"TASK_STATE_FAILED"`, `"text":"parts[0]: Forbidden: one does not say that"`},
	} {
		part := func(value string) string {
			return `{"data":{"mutations":[{"op":"add","statement":{"subject":{"id":"urn:s"},"predicate":{"id":"urn:p"},"object":{"value":"` + value + `"}}}]}}`
		}
		got := answer(t, s.send(t, []byte("POST /self\nContent-Type: application/json\nX-Agent-ID: ann\n\n"+
			`{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m-`+value+`","role":"ROLE_USER","parts":[`+part(value)+`,`+part("fine")+`]},"configuration":{"historyLength":0}}}`), nil))
		for _, text := range want {
			if !strings.Contains(got, text) {
				t.Errorf("%s: no %s in %s", value, text, got)
			}
		}
		if strings.Contains(got, "result-2") {
			t.Errorf("%s: what is behind it was carried out: %s", value, got)
		}
	}
	if got := s.call(t, "ann", "knowledge/query", `{"query":"{ entity(iri: \"urn:s\") { values(predicate: \"urn:p\") } }"}`); strings.Contains(got, "fine") {
		t.Errorf("the graph: %s", got)
	}
}
