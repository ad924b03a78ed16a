package a2a_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"koine/a2a"
	"koine/channels"
	"koine/channels/channel"
	"koine/channels/message"
	"koine/internal/slowtest"
	"koine/internal/sse"
	"koine/kg"
)

// call makes a call as an agent and returns the answer's status line and body.
func (s *testServer) call(t *testing.T, agent, method, params string) string {
	t.Helper()
	request := "POST /\nContent-Type: application/json\nX-Agent-ID: " + agent + "\n\n" +
		`{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":` + params + `}`
	return answer(t, s.send(t, []byte(request), nil))
}

// channel creates a channel of ann and returns its id.
func (s *testServer) channel(t *testing.T, params string) string {
	t.Helper()
	got := s.call(t, "ann", "channels/create", params)
	found := remembered["channel"].FindStringSubmatch(got)
	if found == nil {
		t.Fatal(got)
	}
	return found[1]
}

// say publishes a text.
func (s *testServer) say(t *testing.T, agent, id, text string) {
	t.Helper()
	if got := s.call(t, agent, "channels/publish", fmt.Sprintf(`{"channelId":%q,"parts":[{"type":"text","text":%q}]}`, id, text)); !strings.Contains(got, `"result":`) {
		t.Fatal(got)
	}
}

// follow opens a channels/stream, with more params after the channel's id.
func (s *testServer) follow(t *testing.T, agent, id, more string, headers ...string) *subscriber {
	t.Helper()
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":"sub 1","method":"channels/stream","params":{"channelId":%q%s}}`, id, more)
	sub := s.open(t, http.MethodPost, "/", body, append(headers, "X-Agent-ID: "+agent)...)
	sub.established()
	return sub
}

func messageBlock(sequence int, text string) string {
	return fmt.Sprintf(`data: {"jsonrpc":"2.0","id":"sub 1","result":{"kind":"messageEvent","event":{"id":"<uuid>","channelId":"<uuid>","sequence":%d,`+
		`"timestamp":1767323045000,"author":"agent://ann","parts":[{"type":"text","text":%q}],"kind":"messageEvent"}}}`+"\n\n", sequence, text)
}

func (s *subscriber) expectBlocks(want ...string) {
	s.t.Helper()
	for _, w := range want {
		if got := mask(s.block()); got != w {
			s.t.Fatalf("got  %swant %s", got, w)
		}
	}
}

// The exact bytes of a stream: new messages, or those after a sequence and then new
// ones, and no events about the channel itself. Ids are sequences, if requested.
func TestChannelStreamBlocks(t *testing.T) {
	s := newTestServer(t)
	id := s.channel(t, `{"members":[{"principalId":"bob"}]}`)
	s.say(t, "ann", id, "one")
	s.say(t, "ann", id, "two")
	now := s.follow(t, "bob", id, "")
	asked := s.follow(t, "bob", id, "", "Last-Event-ID: ")
	since := s.follow(t, "bob", id, `,"sinceSequence":1,"heartbeatIntervalMs":null`)
	again := s.follow(t, "bob", id, `,"sinceSequence":2`, "Last-Event-ID: 0") // it comes back with the request of its start
	for _, change := range []string{`addMember|"principalId":"cleo"`, `update|"expectedVersion":2,"name":"cats"`, `removeMember|"principalId":"cleo"`} {
		method, params, _ := strings.Cut(change, "|")
		if got := s.call(t, "ann", "channels/"+method, `{"channelId":"`+id+`",`+params+`}`); !strings.Contains(got, `"result":`) {
			t.Fatal(got)
		}
	}
	s.say(t, "ann", id, "three")
	one, two, three := messageBlock(1, "one"), messageBlock(2, "two"), messageBlock(3, "three")
	now.expectBlocks(three)
	asked.expectBlocks("id: 3\n" + three)
	since.expectBlocks("id: 2\n"+two, "id: 3\n"+three)
	again.expectBlocks("id: 1\n"+one, "id: 2\n"+two, "id: 3\n"+three)
}

// lastBlock is the last event of a stream with an error.
func lastBlock(code int, message, data string) string {
	return fmt.Sprintf(`data: {"jsonrpc":"2.0","id":"sub 1","error":{"code":%d,"message":%q,"data":{%s}}}`+"\n\n", code, message, data)
}

func (s *subscriber) expectEnd(want string) {
	s.t.Helper()
	if got := s.block(); got != want {
		s.t.Errorf("got  %swant %s", got, want)
	}
	if rest := s.block(); rest != "" {
		s.t.Errorf("behind the last event: %q", rest)
	}
}

// A client that loses access to the channel, because it left or the channel was
// deleted, gets the error of a channel that does not exist.
func TestChannelStreamEndsWithAccess(t *testing.T) {
	s := newTestServer(t)
	id := s.channel(t, `{"members":[{"principalId":"bob"},{"principalId":"cleo"}]}`)
	s.say(t, "ann", id, "one")
	bob, cleo := s.follow(t, "bob", id, `,"sinceSequence":0`), s.follow(t, "cleo", id, "")
	bob.expectBlocks("id: 1\n" + messageBlock(1, "one"))
	gone := lastBlock(-31101, "there is no such channel", `"reason":"CHANNEL_NOT_FOUND","domain":"koine","field":"channelId","position":"1"`)
	if got := s.call(t, "ann", "channels/removeMember", `{"channelId":"`+id+`","principalId":"bob"}`); !strings.Contains(got, `"result"`) {
		t.Fatal(got)
	}
	bob.expectEnd(gone)
	if got := s.call(t, "ann", "channels/delete", `{"channelId":"`+id+`"}`); !strings.Contains(got, `"deleted":true`) {
		t.Fatal(got)
	}
	cleo.expectEnd(gone)
}

// A server that shuts down sends each stream its position, and refuses new ones.
func TestChannelStreamsAtShutdown(t *testing.T) {
	s := newTestServer(t)
	id := s.channel(t, `{}`)
	s.say(t, "ann", id, "one")
	plain := s.follow(t, "ann", id, "")
	behind := s.follow(t, "ann", id, `,"sinceSequence":0`)
	behind.expectBlocks("id: 1\n" + messageBlock(1, "one"))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := s.streams.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	for _, sub := range []*subscriber{plain, behind} {
		sub.expectEnd(lastBlock(-31106, "the server is shutting down",
			`"reason":"SERVER_SHUTDOWN","domain":"koine","hint":"Resume from the position; without one, start again.","position":"1"`))
	}
	if got, want := s.call(t, "ann", "channels/stream", `{"channelId":"`+id+`"}`), "503 application/json 5\n"+
		`{"jsonrpc":"2.0","id":1,"error":{"code":-31106,"message":"the server is shutting down","data":{"reason":"SERVER_SHUTDOWN","domain":"koine","retryAfterMs":5000}}}`+"\n"; got != want {
		t.Errorf("a new stream: got %swant %s", got, want)
	}
}

func TestTooManyChannelStreams(t *testing.T) {
	s := newTestServerWith(t, kg.Options{}, sse.Options{MaxStreams: 1, RetryAfter: 1500 * time.Millisecond}, a2a.Options{})
	id := s.channel(t, `{}`)
	s.follow(t, "ann", id, "")
	if got, want := s.call(t, "ann", "channels/stream", `{"channelId":"`+id+`"}`), "503 application/json 2\n"+
		`{"jsonrpc":"2.0","id":1,"error":{"code":-31106,"message":"the server has reached its limit of open streams",`+
		`"data":{"reason":"TOO_MANY_STREAMS","domain":"koine","hint":"Close streams, or try again later.","retryAfterMs":1500}}}`+"\n"; got != want {
		t.Errorf("got %swant %s", got, want)
	}
}

// A client that does not read gets the reason after the delivered messages, and misses
// nothing when it reconnects.
func TestSlowReaderOfAChannel(t *testing.T) {
	slowtest.Long(t)
	followed := make(chan context.Context, 100)
	admit := func(ctx context.Context, _ kg.Principal, follow bool) error {
		if follow {
			followed <- ctx
		}
		return nil
	}
	s := newTestServerWith(t, kg.Options{Governor: kg.Governor{AdmitRead: admit}}, sse.Options{WriteTimeout: 200 * time.Millisecond, LastTimeout: patience, SendBuffer: 8 << 10}, a2a.Options{})
	id := s.channel(t, `{}`)
	sub := s.follow(t, "ann", id, "")
	const n = 50
	for range n {
		s.say(t, "ann", id, strings.Repeat("x", 200<<10))
	}
	// It reads again only after the server has given up.
	select {
	case <-(<-followed).Done():
	case <-time.After(patience):
		t.Fatal("a client that does not read is served on")
	}
	at, block := 0, sub.block()
	for ; !strings.Contains(block, `"error"`); block = sub.block() {
		if at++; at == n || !strings.Contains(block, fmt.Sprintf(`"sequence":%d,`, at)) {
			t.Fatalf("after %d: got %.300s", at, block)
		}
	}
	if want := lastBlock(-31106, "the client read too slowly",
		fmt.Sprintf(`"reason":"SLOW_CONSUMER","domain":"koine","hint":"Resume from the position; without one, start again.","position":"%d"`, at)); block != want {
		t.Errorf("got  %swant %s", block, want)
	}
	// On a busy machine the server may give up again, and the client reconnects again.
	for at < n {
		sub = s.follow(t, "ann", id, fmt.Sprintf(`,"sinceSequence":%d`, at))
		for at < n {
			block := sub.block()
			if strings.Contains(block, "SLOW_CONSUMER") {
				break
			}
			if at++; !strings.HasPrefix(block, fmt.Sprintf("id: %d\n", at)) {
				t.Fatalf("back behind %d: got %.300s", at-1, block)
			}
		}
		sub.cancel()
	}
}

// The stream of a closed channel ends after the last message with an event that nothing
// more follows, whether it was open or is opened later.
func TestStreamOfAClosedChannel(t *testing.T) {
	s := newTestServer(t)
	id := s.channel(t, `{}`)
	live := s.follow(t, "ann", id, `,"sinceSequence":0`)
	s.say(t, "ann", id, "one")
	live.expectBlocks("id: 1\n" + messageBlock(1, "one"))
	ann := channels.Caller{Principal: kg.Principal{ID: "agent://ann", Method: "key"}}
	if _, err := s.rooms.CloseChannel(t.Context(), ann, channel.ID(id), ""); err != nil {
		t.Fatal(err)
	}
	end := lastBlock(-31103, "the channel is closed", `"reason":"CHANNEL_CLOSED","domain":"koine","field":"channelId","position":"1"`)
	live.expectEnd(end)
	later := s.follow(t, "ann", id, `,"sinceSequence":0`)
	later.expectBlocks("id: 1\n" + messageBlock(1, "one"))
	later.expectEnd(end)
}

// If the log is truncated before a stream of a channel has delivered a message, the
// stream ends with RESYNC and its position. Messages survive the log: a client that
// resumes from the last id, or asks for later ones, misses none.
func TestChannelStreamOfACutLog(t *testing.T) {
	slowtest.Long(t)
	s := newTestServerWith(t, kg.Options{RingCommits: 1}, sse.Options{WriteTimeout: patience, SendBuffer: 8 << 10}, a2a.Options{})
	id := s.channel(t, `{}`)
	sub := s.follow(t, "ann", id, `,"sinceSequence":0`)
	const n = 150 // more than the sockets' buffers hold
	for range n {
		s.say(t, "ann", id, strings.Repeat("x", 100<<10))
	}
	if err := s.store.Maintenance().CutLog(t.Context(), s.store.Head().Revision); err != nil {
		t.Fatal(err)
	}
	is := func(block string, sequence int) bool {
		return strings.HasPrefix(block, fmt.Sprintf("id: %d\n", sequence)) && strings.Contains(block, fmt.Sprintf(`"sequence":%d,`, sequence))
	}
	told, block := 0, sub.block() // it reads only now
	for ; !strings.Contains(block, `"error"`); block = sub.block() {
		if told++; told == n || !is(block, told) {
			t.Fatalf("behind %d: got %.200s", told-1, block)
		}
	}
	if !strings.Contains(block, `"error":{"code":-31106,`) || !strings.Contains(block, `"reason":"RESYNC"`) || !strings.Contains(block, fmt.Sprintf(`"position":"%d"`, told)) {
		t.Errorf("behind %d it ends with %s", told, block)
	}
	if rest := sub.block(); rest != "" {
		t.Errorf("behind the last event: %.200s", rest)
	}
	for _, back := range []*subscriber{
		s.follow(t, "ann", id, `,"sinceSequence":0`, fmt.Sprint("Last-Event-ID: ", told)),
		s.follow(t, "ann", id, fmt.Sprintf(`,"sinceSequence":%d`, told)),
	} {
		for i := told + 1; i <= n; i++ {
			if block := back.block(); !is(block, i) {
				t.Fatalf("back behind %d: got %.200s, want message %d", told, block, i)
			}
		}
		back.cancel()
	}
}

// Heartbeats are comments, with and without ids, at the client's interval but at most
// once a second.
func TestChannelHeartbeats(t *testing.T) {
	slowtest.Long(t)
	s := newTestServerWith(t, kg.Options{}, sse.Options{Heartbeat: time.Hour}, a2a.Options{})
	id := s.channel(t, `{}`)
	began := time.Now()
	for _, more := range []string{`,"heartbeatIntervalMs":1`, `,"heartbeatIntervalMs":-5,"sinceSequence":0`} {
		sub := s.follow(t, "ann", id, more)
		if line, err := sub.body.ReadString('\n'); err != nil || line != ": \n" {
			t.Errorf("got %q, %v, want a comment", line, err)
		}
	}
	if took := time.Since(began); took < a2a.MinHeartbeat {
		t.Errorf("the first came after %v", took)
	}
}

// A retracted message keeps its place without its parts, also for later readers.
func TestRetractedMessages(t *testing.T) {
	s := newTestServer(t)
	id := s.channel(t, `{}`)
	s.say(t, "ann", id, "one")
	first := remembered["message"].FindStringSubmatch(strings.ReplaceAll(s.call(t, "ann", "channels/history", `{"channelId":"`+id+`"}`), `"events":[{`, `"event":{`))[1]
	ann := channels.Caller{Principal: kg.Principal{ID: "agent://ann", Method: "key"}}
	if _, err := s.rooms.Retract(t.Context(), ann, channels.Retraction{Channel: channel.ID(id), Message: message.ID(first)}); err != nil {
		t.Fatal(err)
	}
	want := `"result":{"kind":"messageEvent","event":{"id":"<uuid>","channelId":"<uuid>","sequence":1,"timestamp":1767323045000,"author":"agent://ann","kind":"messageEvent","withheld":"retracted"}}`
	sub := s.follow(t, "ann", id, `,"sinceSequence":0`)
	if got := mask(sub.block()); !strings.Contains(got, want) {
		t.Errorf("got  %swant %s", got, want)
	}
	if got := sub.block(); !strings.Contains(got, `"retracts":"`+first+`"`) || !strings.Contains(got, `"parts":[{`) {
		t.Errorf("the retraction: got %s", got)
	}
}
