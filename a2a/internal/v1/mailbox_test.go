package v1_test

import (
	"testing"

	"koine/a2a/internal/v1"
	"koine/internal/tasks"
	"koine/kg"
)

func TestReadReport(t *testing.T) {
	r, err := v1.ReadReport([]byte(`{"state":"TASK_STATE_FAILED","message":{"role":"ROLE_AGENT","parts":[{"text":"sorry"}]},
		"artifacts":[{"artifactId":"a","name":"A","parts":[{"data":{"n":12345678901234567890}},{"raw":"AA=="}],"append":true,"last_chunk":true}],
		"error":{"code":"X","message":"y","details":{"snake_case":1}},"metadata":{"k_k":null}}`))
	if err != nil {
		t.Fatal(err)
	}
	a := r.Artifacts[0]
	if r.State != tasks.Failed || *r.Message.Parts[0].Text != "sorry" || !a.Append || !a.Complete || a.ID != "a" || a.Name != "A" ||
		string(a.Parts[0].Data) != `{"n":12345678901234567890}` || *a.Parts[1].Raw != "AA==" || r.Failure.Code != "X" ||
		string(r.Failure.Details) != `{"snake_case":1}` || string(r.Metadata) != `{"k_k":null}` {
		t.Errorf("got %+v", r)
	}
	for _, body := range []string{
		`[]`, `1`, `{}`, `{"state":"DONE"}`, `{"state":"TASK_STATE_DONE"}`, `{"state":1}`, `{"message":{"role":"ROLE_USER","parts":[{"text":"x"}]},"state":"TASK_STATE_WORKING"}`,
		`{"artifacts":[{"parts":[{"text":"x"}]}]}`, `{"artifacts":{}}`, `{"state":"TASK_STATE_UNSPECIFIED"}`,
	} {
		if _, err := v1.ReadReport([]byte(body)); kg.CodeOf(err) != kg.CodeInvalid {
			t.Errorf("%s: %v", body, err)
		}
	}
	if _, err := v1.ReadReport([]byte(`{"state":"DONE"}`)); kg.AsError(err).Field != "state" {
		t.Errorf("a state that is none: %v", err)
	}
}
