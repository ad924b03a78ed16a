package main

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
)

// A report repeated under its key gets the first answer and has one effect, an answer may
// be as short as requested, and a letter that was acknowledged with DELETE does not come
// again.
func TestHubReportsOnce(t *testing.T) {
	_, url := startServer(t)
	if status, text := ask(t, http.MethodPut, url+"/agents/bot", "bot", `{"name":"Bot"}`); status != http.StatusCreated {
		t.Fatalf("got %d %s", status, text)
	}
	var ids []string
	for _, text := range []string{"first", "second"} {
		var sent struct {
			Result struct{ Task struct{ ID string } }
		}
		if err := json.Unmarshal([]byte(sendTo(t, url, "bot", "ann", text, atOnce)), &sent); err != nil || sent.Result.Task.ID == "" {
			t.Fatal(err)
		}
		ids = append(ids, sent.Result.Task.ID)
	}
	for range 2 { // again is no error
		if status, text := ask(t, http.MethodDelete, url+"/agents/bot/mailbox/"+ids[0]+".1", "bot", ""); status != http.StatusNoContent || text != "" {
			t.Errorf("a letter: got %d %s", status, text)
		}
	}
	for _, letter := range []string{"none", ids[0] + ".9", ids[0]} {
		if status, text := ask(t, http.MethodDelete, url+"/agents/bot/mailbox/"+letter, "bot", ""); status != http.StatusNotFound || !strings.Contains(text, "the mailbox has no such letter") {
			t.Errorf("no letter %s: got %d %s", letter, status, text)
		}
	}
	next, leave := openMailbox(t, url, "bot", "bot")
	if letter := next(); letter.Task.ID != ids[1] {
		t.Errorf("the first letter that is left is %+v, want one of %s", letter, ids[1])
	}
	leave()

	report := func(body, key, prefer string) (*http.Response, string) {
		t.Helper()
		r := asking(t.Context(), t, http.MethodPost, url+"/agents/bot/mailbox/"+ids[1], "bot", body)
		r.Header.Set("Idempotency-Key", key)
		if prefer != "" {
			r.Header.Set("Prefer", prefer)
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response, strings.TrimSpace(string(text))
	}
	const chunk = `{"state":"TASK_STATE_WORKING","artifacts":[{"artifactId":"a","parts":[{"text":"x"}],"append":true}]}`
	minimal := `{"taskId":"` + ids[1] + `","version":2,"artifacts":[{"artifactId":"a","chunks":1}]}`
	for i := range 2 {
		response, text := report(chunk, "k", "return=minimal")
		if replayed := response.Header.Get("Idempotent-Replayed") == "true"; text != minimal || response.Header.Get("Preference-Applied") != "return=minimal" || replayed != (i == 1) {
			t.Errorf("report %d: got %s %v, want %s", i+1, text, response.Header, minimal)
		}
	}
	if response, text := report(`{"state":"TASK_STATE_COMPLETED"}`, "k", ""); response.StatusCode != http.StatusConflict {
		t.Errorf("another report with the key: got %s %s", response.Status, text)
	}
	if response, text := report(chunk, "k2", ""); response.Header.Get("Preference-Applied") != "" || !strings.Contains(text, `"status":{"state":"TASK_STATE_WORKING"`) {
		t.Errorf("a report with another key, in full: got %s", text)
	}
	_, text := ask(t, http.MethodPost, url+"/agents/bot/a2a", "ann", `{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"`+ids[1]+`"}}`)
	if strings.Count(text, `{"text":"x"}`) != 2 {
		t.Errorf("two chunks of three reports: got %s", text)
	}
}
