package a2a_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"koine/a2a"
	"koine/internal/caller"
	"koine/internal/sse"
	"koine/internal/tasks"
	"koine/kg"
)

// sendParts sends koine a message of texts as ann and waits for the end of its task.
func (s *testServer) sendParts(t *testing.T, texts ...string) *tasks.Task {
	t.Helper()
	m := tasks.Message{}
	for _, text := range texts {
		m.Parts = append(m.Parts, tasks.TextPart(text))
	}
	ann := senderAnn()
	sent, err := s.tasks.Send(t.Context(), ann, tasks.SendRequest{To: "agent://self", Message: m})
	if err != nil {
		t.Fatal(err)
	}
	task, err := s.tasks.Wait(t.Context(), ann, sent.Task, tasks.ReadAll)
	if err != nil {
		t.Fatal(err)
	}
	return task
}

func senderAnn() caller.Caller {
	return caller.Caller{Principal: kg.Principal{ID: "agent://ann", Method: "key", Roles: []string{"editor"}}}
}

// adding is the text of an update.
func adding(subject string) string {
	return `{"mutations":[{"op":"add","statement":{"subject":{"id":"urn:` + subject + `"},"predicate":{"id":"urn:p"},"object":{"value":1}}}]}`
}

// Each part of a message is executed with the rights that the sender has then; without any the
// task fails, and the rest is not executed.
func TestPartsHaveTheRightsOfTheirTime(t *testing.T) {
	roles := make(chan []string, 10)
	s := newTestServerWith(t, kg.Options{Governor: kg.Governor{Admit: func(_ context.Context, m kg.Meta) error {
		if m.Principal.ID == "agent://ann" && m.Method == "knowledge/update" {
			roles <- m.Principal.Roles
		}
		return nil
	}}}, sse.Options{}, a2a.Options{})
	var asked atomic.Int32
	for want, now := range map[string]func(kg.Principal) (kg.Principal, error){
		"COMPLETED": func(p kg.Principal) (kg.Principal, error) {
			p.Roles = nil
			return p, nil
		},
		"FAILED": func(kg.Principal) (kg.Principal, error) {
			return kg.Principal{}, kg.Errorf(kg.CodeUnauthenticated, "the key was revoked")
		},
	} {
		asked.Store(0)
		rights := func(p kg.Principal) (kg.Principal, error) {
			if asked.Add(1) < 3 { // before the work and before the second part
				return p, nil
			}
			return now(p)
		}
		s.rights.Store(&rights)
		task := s.sendParts(t, adding(want+"1"), adding(want+"2"), adding(want+"3"))
		if string(task.Status.State) != want || asked.Load() != 3 {
			t.Errorf("the task is %s after %d questions, want %s", task.Status.State, asked.Load(), want)
		}
		var seen [][]string
		for len(roles) > 0 {
			seen = append(seen, <-roles)
		}
		if want == "FAILED" {
			if len(seen) != 2 || task.Failure == nil || task.Failure.Code != "UNAUTHENTICATED" || !strings.Contains(task.Failure.Message, "parts[2]: the sender no longer has the rights for it: the key was revoked") {
				t.Errorf("%d updates, %+v", len(seen), task.Failure)
			}
		} else if len(seen) != 3 || !slices.Equal(seen[1], []string{"editor"}) || len(seen[2]) != 0 {
			t.Errorf("the updates have the roles %q", seen)
		}
	}
}

// Each part of a message counts as a request, the first with the HTTP request. Past the rate the
// task fails, and the parts before it have their results.
func TestPartsAreAdmitted(t *testing.T) {
	asked, most := 0, 2
	s := newTestServerWith(t, kg.Options{}, sse.Options{}, a2a.Options{Admit: func(ctx context.Context) error {
		if agent := caller.From(ctx).Principal.ID; agent != "agent://ann" {
			t.Errorf("asked about %s", agent)
		}
		if asked++; asked > most {
			return limited("requests")
		}
		return nil
	}})
	for parts, want := range map[int]tasks.State{3: tasks.Completed, 4: tasks.Failed} {
		asked = 0
		task := s.sendParts(t, slices.Repeat([]string{"{ __typename }"}, parts)...)
		if task.Status.State != want || asked != parts-1 || len(task.Artifacts) != 3 {
			t.Errorf("%d parts: %s with %d artifacts, asked %d times", parts, task.Status.State, len(task.Artifacts), asked)
		}
		if parts == 4 && (task.Failure == nil || task.Failure.Code != "RATE_LIMITED" || task.Failure.Message != "parts[3]: too many requests of this principal. Wait.") {
			t.Errorf("the failure is %+v", task.Failure)
		}
	}
}
