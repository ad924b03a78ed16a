package agentapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"koine/internal/slowtest"
	"koine/internal/tasks"
)

// heardFrame is the part of a frame about a task.
type heardFrame struct {
	Type, TaskID, MessageID, EventID string
	RequestID                        int
}

func (s *server) dialBehind(agent, query string) *websocket.Conn {
	s.t.Helper()
	conn, _, err := websocket.Dial(s.t.Context(), s.URL+"/ws"+query, &websocket.DialOptions{HTTPHeader: http.Header{"X-Agent-ID": {agent}}})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = conn.CloseNow() })
	return conn
}

func (s *server) hearFrame(conn *websocket.Conn) (f heardFrame) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	_, raw, err := conn.Read(ctx)
	if err == nil {
		err = json.Unmarshal(raw, &f)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return f
}

// A socket that reconnects receives MaxMissed tasks that changed meanwhile, and for
// further ones a frame that there are more.
func TestMissedChangesAreBounded(t *testing.T) {
	slowtest.WithoutRace(t)
	slowtest.Long(t)
	s := start(t)
	var ids [tasks.MaxMissed + 1]string
	each := func(do func(i int)) { // the commits share their syncs
		var all sync.WaitGroup
		for worker := range 32 {
			all.Go(func() {
				for i := worker; i < len(ids); i += 32 {
					do(i)
				}
			})
		}
		all.Wait()
	}
	each(func(i int) { ids[i] = s.sendTo("ann", `{"message":[{"type":"text","content":"x"}]}`) })
	after := "?after=" + s.store.FormatPosition(s.store.Head())
	each(func(i int) {
		if i < tasks.MaxMissed {
			s.report(ids[i], tasks.Report{State: tasks.Working})
		}
	})
	told := func(conn *websocket.Conn) map[string]bool {
		t.Helper()
		seen := map[string]bool{}
		for range tasks.MaxMissed {
			if f := s.hearFrame(conn); f.Type != "task.updated" || seen[f.TaskID] {
				t.Fatalf("after %d tasks: heard %+v", len(seen), f)
			} else {
				seen[f.TaskID] = true
			}
		}
		return seen
	}
	conn := s.dialBehind("ann", after)
	if seen := told(conn); seen[ids[tasks.MaxMissed]] {
		t.Error("told of a task that did not change")
	}
	last := ids[tasks.MaxMissed]
	s.report(last, tasks.Report{State: tasks.Working})
	if f := s.hearFrame(conn); f.Type != "task.updated" || f.TaskID != last || f.EventID == "" {
		t.Errorf("behind %d tasks: heard %+v", tasks.MaxMissed, f)
	}
	conn = s.dialBehind("ann", after)
	if seen := told(conn); !seen[last] {
		t.Error("the task that changed last is not among those that are told of")
	}
	if f := s.hearFrame(conn); f.Type != "tasks.more" {
		t.Errorf("behind %d of %d tasks: heard %+v", tasks.MaxMissed, len(ids), f)
	}
}

// A letter acknowledged by a frame is not delivered again; an unknown one is an error
// with its index.
func TestLettersAreAcknowledgedBySocket(t *testing.T) {
	s := start(t)
	first, second := s.sendTo("ann", `{"message":[{"type":"text","content":"1"}]}`), s.sendTo("ann", `{"message":[{"type":"text","content":"2"}]}`)
	conn := s.dialBehind("bot", "")
	if a, b := s.hearFrame(conn), s.hearFrame(conn); a.MessageID != first+".1" || b.MessageID != second+".1" {
		t.Fatalf("the letters are %+v and %+v", a, b)
	}
	say := func(requestID int, letters string) {
		t.Helper()
		if err := conn.Write(t.Context(), websocket.MessageText, fmt.Appendf(nil, `{"requestId":%d,"type":"ack","letters":[%s]}`, requestID, letters)); err != nil {
			t.Fatal(err)
		}
	}
	for id := 1; id <= 2; id++ { // again is no error
		say(id, fmt.Sprintf(`"%s.1"`, first))
		if f := s.hearFrame(conn); f.Type != "ack" || f.RequestID != id {
			t.Errorf("acknowledged: heard %+v", f)
		}
	}
	say(3, `"none"`)
	if f := s.hearFrame(conn); f.Type != "error" || f.RequestID != 3 {
		t.Errorf("no such letter: heard %+v", f)
	}
	_ = conn.CloseNow()
	if f := s.hearFrame(s.dialBehind("bot", "")); f.MessageID != second+".1" {
		t.Errorf("who comes back hears %+v, want %s.1", f, second)
	}
}
