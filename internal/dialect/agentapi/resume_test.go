package agentapi_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"koine/internal/caller"
	"koine/internal/tasks"
	"koine/kg"
)

// event is an event of a stream.
type event struct{ id, name, data string }

// follow reads events up to the end of the stream, or most.
func (s *server) follow(agent, method, path, body, last string, most int) (status int, list []event) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.URL+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header = http.Header{"X-Agent-Id": {agent}, "Accept": {"text/event-stream"}, "Content-Type": {"application/json"}}
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	var text strings.Builder
	for one := make([]byte, 1); len(list) < most; {
		if _, err := io.ReadFull(response.Body, one); err != nil {
			break
		}
		text.Write(one)
		if block, ok := strings.CutSuffix(text.String(), "\n\n"); ok {
			var e event
			for line := range strings.SplitSeq(block, "\n") {
				name, value, _ := strings.Cut(line, ": ")
				switch name {
				case "id":
					e.id = value
				case "event":
					e.name = value
				case "data":
					e.data = value
				}
			}
			text.Reset()
			if e.name != "" {
				list = append(list, e)
			}
		}
	}
	return response.StatusCode, list
}

// joined returns the text of all partials.
func joined(t *testing.T, list []event) (text string) {
	t.Helper()
	for _, e := range list {
		var u struct{ Type, Content string }
		if err := json.Unmarshal([]byte(e.data), &u); err == nil && u.Type == "partial" {
			text += u.Content
		}
	}
	return text
}

// A stream that broke after any event resumes there and repeats none, also within the
// parts of one report.
func TestStreamsGoOn(t *testing.T) {
	s := start(t)
	const body = `{"message":[{"type":"text","content":"x"}],"stream":true,"messageId":"m1"}`
	id := s.sendTo("ann", strings.Replace(body, `"stream":true,`, "", 1))
	three := tasks.Artifact{ID: "a", Parts: []tasks.Part{tasks.TextPart("1"), tasks.TextPart("2"), tasks.TextPart("3")}}
	for _, r := range []tasks.Report{
		{State: tasks.Working, Artifacts: []tasks.Chunk{{Artifact: three}}, Message: &tasks.Message{Parts: []tasks.Part{tasks.TextPart("4"), tasks.TextPart("5")}}},
		{Artifacts: []tasks.Chunk{{Append: true, Artifact: tasks.Artifact{ID: "a", Parts: []tasks.Part{tasks.TextPart("6")}}}}},
		{State: tasks.Completed},
	} {
		s.report(id, r)
	}
	first := s.behindCreation()
	_, all := s.follow("ann", "GET", "/tasks/"+id, "", first, 100)
	if got := joined(t, all); got != "123456" || len(all) != 8 || all[7].name != "complete" {
		t.Fatalf("got %q in %v", got, all)
	}
	for i, e := range all[:7] {
		if e.id == "" {
			t.Fatalf("event %d has no id", i)
		}
		for path, method := range map[string]string{"/tasks/" + id: "GET", "/agents/bot/messages": "POST"} {
			if _, rest := s.follow("ann", method, path, body, e.id, 100); !slices.Equal(rest, all[i+1:]) {
				t.Errorf("%s %s behind %d:\ngot  %v\nwant %v", method, path, i, rest, all[i+1:])
			}
		}
	}
	if status, _ := s.follow("ann", "GET", "/tasks/"+id, "", all[7].id, 100); status != http.StatusNoContent {
		t.Errorf("behind the end: %d", status)
	}
	for _, row := range []struct{ method, path, body, last string }{
		{"GET", "/tasks/" + id, "", "x"}, {"POST", "/agents/bot/messages", body, "x"},
		{"POST", "/agents/bot/messages", strings.Replace(body, `,"messageId":"m1"`, "", 1), all[0].id},
	} {
		if status, _ := s.follow("ann", row.method, row.path, row.body, row.last, 100); status != http.StatusBadRequest {
			t.Errorf("%v: %d", row, status)
		}
	}
	if status, _ := s.follow("eve", "GET", "/tasks/"+id, "", all[0].id, 100); status != http.StatusNotFound {
		t.Errorf("somebody else's: %d", status)
	}
}

var bot = caller.Caller{Principal: kg.Principal{ID: "agent://bot", Method: "key"}}

// report reports as the bot.
func (s *server) report(id string, r tasks.Report) {
	s.t.Helper()
	if _, err := s.tasks.Report(s.t.Context(), bot, tasks.TaskID(id), r); err != nil {
		s.t.Fatal(err)
	}
}

// behindCreation returns the position after the commit that created the first task.
func (s *server) behindCreation() string {
	s.t.Helper()
	at := s.store.Head()
	at.Revision = 1 // of the first task of a server
	return s.store.FormatPosition(at)
}

// A replacement that extends an artifact is delivered as the addition; any other as a
// new artifact. An appended chunk is an addition.
func TestGrowingArtifacts(t *testing.T) {
	s := start(t)
	id := s.sendTo("ann", `{"message":[{"type":"text","content":"x"}]}`)
	put := func(artifact string) {
		t.Helper()
		if status, answer := s.ask("bot", "PUT", "/tasks/"+id, `{"artifacts":[`+artifact+`]}`); status != http.StatusOK {
			t.Fatal(status, answer)
		}
	}
	put(`{"id":"a","type":"text","content":"The weather in San Francisco is "}`)
	put(`{"id":"a","type":"text","content":"The weather in San Francisco is currently sunny"}`)
	put(`{"id":"a","type":"text","content":"The weather in San Francisco is currently sunny"}`)
	put(`{"id":"a","type":"text","content":" and warm","append":true,"offset":1}`)
	put(`{"id":"a","type":"text","content":" and warm","append":true,"offset":1}`)
	put(`{"id":"b","type":"text","content":"more","append":true}`)
	s.wants("joined", "ann", "GET", "/tasks/"+id, "", http.StatusOK, `{"id":"<id>","agentId":"bot","state":"pending","createdAt":"<time>","updatedAt":"<time>","artifacts":[{"id":"a","type":"message","content":[{"type":"text","content":"The weather in San Francisco is currently sunny"},{"type":"text","content":" and warm"}]},{"id":"b","type":"message","content":[{"type":"text","content":"more"}]}]}`)
	put(`{"id":"a","type":"text","content":"It rains"}`)
	if status, answer := s.ask("bot", "PUT", "/tasks/"+id, `{"artifacts":[{"id":"a","type":"text","content":"x","append":true,"offset":7}]}`); status != http.StatusConflict || !strings.Contains(answer, `"code":"CONFLICT"`) {
		t.Errorf("%d %s", status, answer)
	}
	put(`{"id":"z","type":"text","content":"."}`)
	_, list := s.follow("ann", "GET", "/tasks/"+id, "", s.behindCreation(), 6)
	if got, want := joined(t, list), "The weather in San Francisco is currently sunny and warmmoreIt rains."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if n := slices.IndexFunc(list, func(e event) bool { return strings.Contains(e.data, `"replaces":true`) }); n != 4 {
		t.Errorf("what is another one is said of %d in %v", n, list)
	}
}

// The message of a status is an artifact of type message, over REST and sockets, and
// not stored as an artifact when it is sent back.
func TestWordsAreArtifacts(t *testing.T) {
	s := start(t)
	ann := s.dial("ann")
	id := s.sendTo("ann", `{"message":[{"type":"text","content":"rain?"}]}`)
	s.report(id, tasks.Report{State: tasks.InputRequired, Message: &tasks.Message{ID: "q", Parts: []tasks.Part{tasks.TextPart("Which city?")}}})
	const words = `"artifacts":[{"id":"<id>.message:q","type":"message","content":[{"type":"text","content":"Which city?"}]}]`
	task := `{"id":"<id>","agentId":"bot","state":"in_progress","createdAt":"<time>","updatedAt":"<time>",` + words + `}`
	s.wants("the question", "ann", "GET", "/tasks/"+id, "", http.StatusOK, task)
	ann.hears(`{"type":"task.updated","taskId":"<id>","task":` + task + `}`)
	s.wants("put back", "bot", "PUT", "/tasks/"+id, `{"state":"in_progress",`+strings.ReplaceAll(words, "<id>", id)+`}`, http.StatusOK,
		`{"id":"<id>","agentId":"bot","state":"in_progress","createdAt":"<time>","updatedAt":"<time>","artifacts":[]}`)
	_, list := s.follow("ann", "GET", "/tasks/"+id, "", s.behindCreation(), 3)
	if got := joined(t, list); got != "Which city?" {
		t.Errorf("streamed %v", list)
	}
}

// A socket that reconnects receives the state of each task that changed meanwhile,
// once, and then live events; each change has its own position.
func TestSocketsGoOn(t *testing.T) {
	s := start(t)
	ids := map[string]string{}
	for _, name := range []string{"done", "works", "stays"} {
		ids[name] = s.sendTo("ann", `{"message":[{"type":"text","content":"x"}]}`)
	}
	after := s.store.FormatPosition(s.store.Head())
	for range 3 {
		s.report(ids["done"], tasks.Report{State: tasks.Working})
	}
	s.report(ids["works"], tasks.Report{State: tasks.Working})
	s.report(ids["done"], tasks.Report{State: tasks.Completed})
	hear := func(p *peer) (out struct{ Type, TaskID, EventID string }) {
		t.Helper()
		_, raw, err := p.conn.Read(t.Context())
		if err == nil {
			err = json.Unmarshal(raw, &out)
		}
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	dial := func(after string) *peer {
		t.Helper()
		conn, _, err := websocket.Dial(t.Context(), s.URL+"/ws?after="+after, &websocket.DialOptions{HTTPHeader: http.Header{"X-Agent-ID": {"ann"}}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.CloseNow() })
		return &peer{t, conn}
	}
	p := dial(after)
	first, second := hear(p), hear(p)
	if first.Type != "task.updated" || first.TaskID != ids["works"] || second.Type != "task.completed" || second.TaskID != ids["done"] {
		t.Errorf("heard %v and %v", first, second)
	}
	if again := hear(dial(first.EventID)); again != second {
		t.Errorf("behind the first: %v", again)
	}
	p = dial(second.EventID)
	s.report(ids["stays"], tasks.Report{State: tasks.Working})
	if third := hear(p); third.TaskID != ids["stays"] || third.EventID == "" {
		t.Errorf("live: %v", third)
	}
	for _, after := range []string{"x", first.EventID[:len(first.EventID)-1]} {
		_, response, err := websocket.Dial(t.Context(), s.URL+"/ws?after="+after, &websocket.DialOptions{HTTPHeader: http.Header{"X-Agent-ID": {"ann"}}})
		if err == nil || response == nil || response.StatusCode != http.StatusBadRequest {
			t.Errorf("behind %q: %v %v", after, response, err)
		}
	}
}

// Concurrent reports are delivered as their commits left the task: each once, and the
// end once.
func TestSocketsTellEachChangeOnce(t *testing.T) {
	s := start(t)
	ann := s.dial("ann")
	const many = 20
	for range many {
		id := s.sendTo("ann", `{"message":[{"type":"text","content":"x"}]}`)
		for i := range 3 {
			s.report(id, tasks.Report{State: tasks.Working, Artifacts: []tasks.Chunk{{Append: true, Artifact: tasks.Artifact{ID: "a", Parts: []tasks.Part{tasks.TextPart(fmt.Sprint(i))}}}}})
		}
		s.report(id, tasks.Report{State: tasks.Completed})
	}
	heard := map[string][]string{}
	for range many * 4 {
		_, raw, err := ann.conn.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var f struct {
			Type, TaskID string
			Task         struct {
				Artifacts []struct{ Content []struct{ Content string } }
			}
		}
		if err := json.Unmarshal(raw, &f); err != nil {
			t.Fatal(err)
		}
		heard[f.TaskID] = append(heard[f.TaskID], fmt.Sprintf("%s %d", f.Type, len(f.Task.Artifacts[0].Content)))
	}
	for id, got := range heard {
		if want := []string{"task.updated 1", "task.updated 2", "task.updated 3", "task.completed 3"}; !slices.Equal(got, want) {
			t.Errorf("of %s: %q, want %q", id, got, want)
		}
	}
}

// A change repeated with its key is applied once; a minimal preference gets a minimal
// answer.
func TestRepeatedChanges(t *testing.T) {
	s := start(t)
	id := s.sendTo("ann", `{"message":[{"type":"text","content":"x"}]}`)
	change := func(body string) (*http.Response, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), "PUT", s.URL+"/tasks/"+id, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = http.Header{"X-Agent-Id": {"bot"}, "Content-Type": {"application/json"}, "Idempotency-Key": {"k"}, "Prefer": {"return=minimal"}}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		raw, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response, strings.TrimSpace(string(raw))
	}
	const body = `{"state":"in_progress","artifacts":[{"id":"a","type":"text","content":"x","append":true}]}`
	for i := range 2 {
		response, answer := change(body)
		if want := `{"id":"` + id + `","state":"in_progress","version":2,"artifacts":[{"id":"a","chunks":1}]}`; answer != want || response.Header.Get("Preference-Applied") != "return=minimal" || response.Header.Get("ETag") != `"2"` || (response.Header.Get("Idempotent-Replayed") == "true") != (i == 1) {
			t.Errorf("%d: %s %v", i, answer, response.Header)
		}
	}
	if response, answer := change(`{"state":"completed"}`); response.StatusCode != http.StatusConflict {
		t.Errorf("another change with the key: %s", answer)
	}
}
