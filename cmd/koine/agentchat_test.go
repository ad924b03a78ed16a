package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"koine/cmd/koine/internal/cli"
)

// chatting is a client of AgentChat at a server.
type chatting struct {
	t   *testing.T
	url string
}

// ask sends a request with a key, or with the name of an agent, and decodes its answer.
func (c *chatting) ask(key, method, path, body string, into any) int {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), cli.RequestTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, c.url+"/agentchat"+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if strings.HasPrefix(key, "ak_") {
		r.Header.Set("Authorization", "Bearer "+key)
	} else if key != "" {
		r.Header.Set("X-Agent-ID", key)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	if into != nil {
		if err := json.Unmarshal(text, into); err != nil {
			c.t.Fatalf("%s %s: %s %s", method, path, response.Status, text)
		}
	}
	return response.StatusCode
}

// register makes an agent. by is a name in open mode, "" for nobody.
func (c *chatting) register(by, name string) (id, key string) {
	c.t.Helper()
	var made struct {
		ID  string `json:"agent_id"`
		Key string `json:"api_key"`
	}
	if status := c.ask(by, "POST", "/agents/register", `{"name":"`+name+`"}`, &made); status != http.StatusCreated {
		c.t.Fatal(status)
	}
	return made.ID, made.Key
}

// chatFrame is what the tests read of frames.
type chatFrame struct {
	Type, Code, Event string
	RequestID         int `json:"request_id"`
	Message           struct {
		ID       string
		Room     string `json:"room_id"`
		Sender   string `json:"sender_id"`
		Content  string
		Sequence int64
		Metadata struct{ Tags []string }
	}
}

// connect opens a socket and authenticates it with a frame.
func (c *chatting) connect(ctx context.Context, key string, resume map[string]int64) (*websocket.Conn, error) {
	conn, _, err := websocket.Dial(ctx, c.url+"/agentchat/ws", nil)
	if err != nil {
		return nil, err
	}
	conn.SetReadLimit(4 << 20)
	raw, err := json.Marshal(map[string]any{"type": "auth", "token": key, "resume": resume})
	if err == nil {
		err = conn.Write(ctx, websocket.MessageText, raw)
	}
	if err == nil {
		_, raw, err = conn.Read(ctx)
	}
	if err == nil && !strings.HasPrefix(string(raw), `{"type":"auth_ok"`) {
		err = fmt.Errorf("not authenticated: %s", raw)
	}
	if err != nil {
		_ = conn.CloseNow()
		return nil, err
	}
	return conn, nil
}

// awaitFrame reads until a frame has the type.
func awaitFrame(t *testing.T, conn *websocket.Conn, kind string) (f chatFrame) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), cli.RequestTimeout)
	defer cancel()
	for {
		_, raw, err := conn.Read(ctx)
		if err != nil {
			t.Fatalf("waiting for %s: %v", kind, err)
		}
		var head struct{ Type string }
		if err := json.Unmarshal(raw, &head); err != nil {
			t.Fatal(err)
		}
		switch {
		case head.Type != kind:
		case kind == "error": // its message is a text
			return chatFrame{Type: kind}
		default:
			if err := json.Unmarshal(raw, &f); err != nil {
				t.Fatal(err)
			}
			return f
		}
	}
}

// The example session of the specification, step by step.
func TestAgentChatSession(t *testing.T) {
	_, url := startServer(t)
	c := &chatting{t, url}
	_, research := c.register("", "Research-Agent")
	codeID, code := c.register("", "Code-Agent")
	write := func(conn *websocket.Conn, frame string) {
		t.Helper()
		if err := conn.Write(t.Context(), websocket.MessageText, []byte(frame)); err != nil {
			t.Fatal(err)
		}
	}
	// 1. Research-Agent connects via WebSocket
	researcher, err := c.connect(t.Context(), research, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer researcher.CloseNow()
	// 2. Research-Agent → POST /rooms { name: "project-alpha", type: "public" }
	var room struct{ ID string }
	if status := c.ask(research, "POST", "/rooms", `{"name":"project-alpha","type":"public"}`, &room); status != http.StatusCreated {
		t.Fatal(status)
	}
	// 3. Code-Agent connects, discovers "project-alpha", joins
	coder, err := c.connect(t.Context(), code, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer coder.CloseNow()
	var found struct{ Rooms []struct{ ID, Name string } }
	c.ask(code, "GET", "/rooms?q=project-alpha", "", &found)
	if len(found.Rooms) != 1 || found.Rooms[0].ID != room.ID {
		t.Fatalf("found %+v", found)
	}
	write(coder, `{"type":"join","room_id":"`+room.ID+`","request_id":1}`)
	awaitFrame(t, coder, "joined")
	// 4. Research-Agent sends: { content: "I found 3 relevant papers on RAG optimization..." }
	write(researcher, `{"type":"message","room_id":"`+room.ID+`","content":"I found 3 relevant papers on RAG optimization..."}`)
	for _, conn := range []*websocket.Conn{researcher, coder} {
		if f := awaitFrame(t, conn, "message"); f.Message.Content != "I found 3 relevant papers on RAG optimization..." || f.Message.Sequence != 1 {
			t.Errorf("step 4: %+v", f)
		}
	}
	// 5. Code-Agent sends: { content: "I can implement approach #2. Starting now.", tags: ["task-claim"] }
	write(coder, `{"type":"message","room_id":"`+room.ID+`","content":"I can implement approach #2. Starting now.","tags":["task-claim"]}`)
	if f := awaitFrame(t, researcher, "message"); f.Message.Sender != codeID || len(f.Message.Metadata.Tags) != 1 || f.Message.Metadata.Tags[0] != "task-claim" {
		t.Errorf("step 5: %+v", f)
	}
	// 6. Human opens web UI, watches the conversation unfold
	if status := c.ask("human", "POST", "/rooms/"+room.ID+"/join", "", nil); status != http.StatusOK {
		t.Errorf("the human joins: %d", status)
	}
	human, _, err := websocket.Dial(t.Context(), url+"/agentchat/ws", &websocket.DialOptions{HTTPHeader: http.Header{"X-Agent-ID": {"human"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer human.CloseNow()
	awaitFrame(t, human, "auth_ok")
	var page struct{ Messages []struct{ Content string } }
	if c.ask("human", "GET", "/rooms/"+room.ID+"/messages", "", &page); len(page.Messages) != 2 {
		t.Errorf("step 6: %+v", page)
	}
	// 7. Code-Agent sends: { content: "Done. PR: https://...", tags: ["task-complete"] }
	write(coder, `{"type":"message","room_id":"`+room.ID+`","content":"Done. PR: https://...","tags":["task-complete"]}`)
	for _, conn := range []*websocket.Conn{researcher, human} {
		if f := awaitFrame(t, conn, "message"); f.Message.Content != "Done. PR: https://..." || f.Message.Sequence != 3 {
			t.Errorf("step 7: %+v", f)
		}
	}
}

// The key in the query of a socket is in no line of the most talkative log and in no span.
func TestAgentChatTokenIsNotLogged(t *testing.T) {
	var mu sync.Mutex
	var spans strings.Builder
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		spans.Write(body)
	}))
	defer collector.Close()
	t.Setenv("KOINE_LOG_LEVEL", "debug")
	s, url := startServer(t, "--otlp-endpoint", collector.URL)
	c := &chatting{t, url}
	_, key := c.register("", "ann")
	for _, token := range []string{key, "ak_live_wrongwrongwrong"} {
		conn, _, err := websocket.Dial(t.Context(), url+"/agentchat/ws?token="+token, &websocket.DialOptions{HTTPHeader: http.Header{"Traceparent": {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}}})
		if err != nil {
			t.Fatal(err)
		}
		kind := "auth_ok"
		if token != key {
			kind = "error"
		}
		awaitFrame(t, conn, kind)
		_ = conn.Close(websocket.StatusNormalClosure, "")
	}
	// A request without an upgrade is answered and logged as well.
	if status := c.ask("", "GET", "/ws?token="+key, "", nil); status != http.StatusUpgradeRequired {
		t.Errorf("without an upgrade: %d", status)
	}
	if err := s.process.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := <-s.ended; err != nil {
		t.Fatal(err, s.log)
	}
	mu.Lock()
	defer mu.Unlock()
	log := s.log.String()
	for name, text := range map[string]string{"the log": log, "the spans": spans.String()} {
		if strings.Contains(text, key) || strings.Contains(text, "wrongwrongwrong") {
			t.Errorf("%s has the key", name)
		}
		if !strings.Contains(text, "/agentchat/") {
			t.Errorf("%s has no request: %s", name, text)
		}
	}
}

// roomListener is a client that reads all rooms and resumes when its connection ends.
type roomListener struct {
	*chatting
	key  string
	mu   sync.Mutex
	last map[string]int64
	seen map[string][]string // by room: the ids in the order of arrival
	sum  int
}

// listen reads until ctx is done. Any gap or duplicate is an error.
func (l *roomListener) listen(ctx context.Context) error {
	for ctx.Err() == nil {
		l.mu.Lock()
		resume := map[string]int64{}
		for room, n := range l.last {
			resume[room] = n
		}
		l.mu.Unlock()
		conn, err := l.connect(ctx, l.key, resume)
		if err != nil {
			select {
			case <-ctx.Done():
			case <-time.After(20 * time.Millisecond): // the server is down
			}
			continue
		}
		err = l.read(ctx, conn)
		_ = conn.CloseNow()
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *roomListener) read(ctx context.Context, conn *websocket.Conn) error {
	for {
		_, raw, err := conn.Read(ctx)
		if err != nil {
			return nil
		}
		if strings.HasPrefix(string(raw), `{"type":"error"`) {
			return fmt.Errorf("told %s", raw)
		}
		var f chatFrame
		if err := json.Unmarshal(raw, &f); err != nil {
			return err
		}
		if f.Type == "message" {
			l.mu.Lock()
			want := l.last[f.Message.Room] + 1
			l.last[f.Message.Room] = f.Message.Sequence
			l.seen[f.Message.Room] = append(l.seen[f.Message.Room], f.Message.ID)
			l.sum++
			l.mu.Unlock()
			if f.Message.Sequence != want {
				return fmt.Errorf("in %s got sequence %d, want %d", f.Message.Room, f.Message.Sequence, want)
			}
		}
	}
}

func (l *roomListener) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sum
}

// 50 sockets in 20 rooms read each message once and in the same order while the server is
// killed with SIGKILL in between.
func TestAgentChatAcrossKills(t *testing.T) {
	const sockets, rooms, writers = 50, 20, 4
	at := newRelay(t)
	dir := t.TempDir()
	args := []string{"--tier", "agentchat=unlimited"}
	s, url := startServerOn(t, dir, args...)
	at.leadTo(url)
	c := &chatting{t, at.url()}
	var ids, keys, roomIDs []string
	for i := range sockets {
		id, key := c.register("root", fmt.Sprint("a", i))
		ids, keys = append(ids, `"`+id+`"`), append(keys, key)
	}
	for i := range rooms {
		var room struct{ ID string }
		c.ask(keys[0], "POST", "/rooms", fmt.Sprintf(`{"name":"r%d","members":[%s]}`, i, strings.Join(ids, ",")), &room)
		roomIDs = append(roomIDs, room.ID)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var all sync.WaitGroup
	listeners := make([]*roomListener, sockets)
	for i := range listeners {
		l := &roomListener{chatting: c, key: keys[i], last: map[string]int64{}, seen: map[string][]string{}}
		for _, id := range roomIDs {
			l.last[id] = 0
		}
		listeners[i] = l
		all.Go(func() {
			if err := l.listen(ctx); err != nil {
				t.Errorf("socket %d: %v", i, err)
				cancel()
			}
		})
	}
	// The writers repeat a message with its key until it is acknowledged.
	var said counted
	stop := make(chan struct{})
	var writing sync.WaitGroup
	for w := range writers {
		writing.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				select {
				case <-stop:
					return
				default:
				}
				if err := sayInRoom(ctx, c, keys[w], roomIDs[(n*writers+w)%rooms], fmt.Sprintf("w%d-%d", w, n)); err != nil {
					t.Error(err)
					cancel()
					return
				}
				said.Store(said.Load() + 1) // about; the exact number is that of the rooms
			}
		})
	}
	for range 2 {
		said.reach(ctx, said.Load()+40)
		s, url = killedAndStarted(t, s, dir, args...)
		at.leadTo(url)
	}
	said.reach(ctx, said.Load()+40)
	close(stop)
	writing.Wait()
	total := 0
	for _, id := range roomIDs {
		var page struct{ Messages []struct{ Sequence int64 } }
		if c.ask(keys[0], "GET", "/rooms/"+id+"/messages?limit=1", "", &page); len(page.Messages) == 1 {
			total += int(page.Messages[0].Sequence)
		}
	}
	for _, l := range listeners {
		for l.count() < total && ctx.Err() == nil {
			time.Sleep(5 * time.Millisecond)
		}
	}
	cancel()
	all.Wait()
	for i, l := range listeners {
		if l.sum != total {
			t.Errorf("socket %d read %d of %d messages", i, l.sum, total)
		}
		for _, id := range roomIDs {
			if got, want := strings.Join(l.seen[id], " "), strings.Join(listeners[0].seen[id], " "); got != want {
				t.Errorf("socket %d has another order in %s", i, id)
			}
		}
	}
	t.Logf("%d messages", total)
}

// sayInRoom publishes a message, again until the server says that it has.
func sayInRoom(ctx context.Context, c *chatting, key, room, text string) error {
	for ctx.Err() == nil {
		r, err := http.NewRequestWithContext(ctx, "POST", c.url+"/agentchat/rooms/"+room+"/messages", strings.NewReader(`{"content":"`+text+`"}`))
		if err != nil {
			return err
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-API-Key", key)
		r.Header.Set("Idempotency-Key", text)
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			time.Sleep(10 * time.Millisecond) // the server is down
			continue
		}
		raw, _ := io.ReadAll(response.Body)
		response.Body.Close()
		switch {
		case response.StatusCode == http.StatusCreated:
			return nil
		case response.StatusCode < 500 && response.StatusCode != http.StatusTooManyRequests:
			return fmt.Errorf("%s: %s", response.Status, raw)
		}
		time.Sleep(10 * time.Millisecond)
	}
	return nil
}

// killedAndStarted kills the server and starts it again with the arguments.
func killedAndStarted(t *testing.T, s *server, dir string, args ...string) (*server, string) {
	t.Helper()
	if err := s.process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-s.ended
	return startServerOn(t, dir, args...)
}
