package conformance_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"koine/internal/caller"
	"koine/internal/conformance"
	"koine/internal/tasks"
	"koine/kg"
)

// Each prefix of the kit has the behaviour that the kit expects.
func TestBehaviours(t *testing.T) {
	store, err := kg.Open(t.TempDir(), kg.Options{ReserveBytes: 1, Governor: kg.Governor{Access: tasks.NewGuard(kg.AllowAll{})}})
	if err != nil {
		t.Fatal(err)
	}
	service := tasks.New(tasks.Options{})
	service.Handle(kg.System, conformance.Agent{Delay: time.Millisecond})
	if err := service.Load(t.Context(), store); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		service.Close()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	kit := caller.Caller{Principal: kg.Principal{ID: "agent://kit", Method: "key"}}
	for id, want := range map[string]string{
		"tck-complete-task":           "SUBMITTED, COMPLETED Hello from TCK",
		"tck-delayed-complete":        "SUBMITTED, WORKING, COMPLETED Done after delay",
		"test-resubscribe-message-id": "SUBMITTED, WORKING, COMPLETED",
		"tck-artifact-text":           "SUBMITTED, chunk Generated text content last, COMPLETED",
		"tck-artifact-file":           "SUBMITTED, chunk SGVsbG8gZnJvbSBUQ0s= output.txt text/plain last, COMPLETED",
		"tck-artifact-file-url":       "SUBMITTED, chunk https://example.com/output.txt output.txt text/plain last, COMPLETED",
		"tck-artifact-data":           `SUBMITTED, chunk {"key":"value","count":42} last, COMPLETED`,
		"tck-message-response":        "answer Direct message response",
		"tck-input-required":          "SUBMITTED, INPUT_REQUIRED",
		"tck-auth-required":           "SUBMITTED, AUTH_REQUIRED",
		"tck-reject-task":             "SUBMITTED, REJECTED rejected",
		"tck-stream-001":              "SUBMITTED, WORKING, chunk Stream hello from TCK last, COMPLETED",
		"tck-stream-002":              "answer Direct message response",
		"tck-stream-003":              "SUBMITTED, WORKING, chunk Stream task lifecycle last, COMPLETED",
		"tck-stream-ordering-001":     "SUBMITTED, WORKING, chunk Ordered output last, COMPLETED",
		"tck-stream-artifact-text":    "SUBMITTED, WORKING, chunk Streamed text content last, COMPLETED",
		"tck-stream-artifact-file":    "SUBMITTED, WORKING, chunk SGVsbG8gZnJvbSBUQ0s= output.txt text/plain last, COMPLETED",
		"tck-stream-artifact-chunked": "SUBMITTED, WORKING, chunk chunk-1 , chunk chunk-2 more last, COMPLETED",
		"anything":                    "SUBMITTED, COMPLETED Hello from TCK",
	} {
		m := tasks.Message{ID: id + "-5f0c", Parts: []tasks.Part{tasks.TextPart("x")}}
		sent, err := service.Send(t.Context(), kit, tasks.SendRequest{To: kg.System, Message: m})
		if err != nil {
			t.Fatal(err)
		}
		if sent.Answer != nil {
			if got := "answer " + textOf(sent.Answer.Parts); got != want {
				t.Errorf("%s: %s, want %s", id, got, want)
			}
			continue
		}
		st, err := service.FollowFrom(t.Context(), kit, sent.Task.ID, service.PositionAfter(sent.Task))
		if err != nil {
			t.Fatal(err)
		}
		got := []string{string(sent.Task.Status.State)}
		for e, err := range st.Events() {
			switch {
			case err != nil:
				t.Fatal(err)
			case e.Chunk != nil:
				text := "chunk " + textOf(e.Chunk.Parts)
				if e.Chunk.Append {
					text += " more"
				}
				if e.Chunk.Complete {
					text += " last"
				}
				got = append(got, text)
			case e.Status != nil && e.Status.Message != nil:
				got = append(got, string(e.Status.State)+" "+textOf(e.Status.Message.Parts))
			case e.Status != nil:
				got = append(got, string(e.Status.State))
			}
			if e.Status != nil && e.Status.State.Settled() {
				break
			}
		}
		st.Close()
		if text := strings.Join(got, ", "); text != want {
			t.Errorf("%s: %s, want %s", id, text, want)
		}
	}
}

func textOf(parts []tasks.Part) string {
	p := parts[0]
	switch {
	case p.Text != nil:
		return *p.Text
	case p.Data != nil:
		return string(p.Data)
	case p.Raw != nil:
		return fmt.Sprint(*p.Raw, " ", p.Filename, " ", p.MediaType)
	}
	return fmt.Sprint(*p.URL, " ", p.Filename, " ", p.MediaType)
}
