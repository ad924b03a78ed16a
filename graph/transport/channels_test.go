package transport_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"koine/channels"
	"koine/channels/channel"
	"koine/graph"
	"koine/graph/transport"
	"koine/internal/sse"
	"koine/kg"
)

// newConversing is a bench with channels, and one of them, of ann's and reader's.
func newConversing(t *testing.T) (*bench, *channels.Service, channel.ID) {
	t.Helper()
	service := channels.New(channels.Options{})
	b := newBench(t, graph.Options{}, func(o *kg.Options) {
		o.Access, o.OnSystemChange = service.Guard(kg.AllowAll{}), service.Follow
	})
	if err := service.Load(t.Context(), b.store); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(service.Close)
	b.engine = graph.NewEngine(graph.Deps{Store: b.store, Prefixes: new(kg.Prefixes), Channels: service, Logger: slog.New(slog.NewTextHandler(b.log, nil))}, graph.Options{})
	c, err := service.Create(t.Context(), ann, channel.Draft{Name: "lab", Members: []channel.Member{{Agent: "reader"}}})
	if err != nil {
		t.Fatal(err)
	}
	return b, service, c.ID
}

var ann = channels.Caller{Principal: kg.Principal{ID: "agent://ann", Method: "open"}}

// TestChannelStreams proves that channels are followed over event streams and sockets, and
// that a stream resumes after the last event, over either, without a gap or a duplicate.
func TestChannelStreams(t *testing.T) {
	b, service, id := newConversing(t)
	server := b.serve(t, transport.Options{}, sse.Options{})
	said := 0
	say := func() {
		t.Helper()
		said++
		p := channels.Publication{Channel: id, Parts: []json.RawMessage{json.RawMessage(fmt.Sprintf(`{"text":"%d"}`, said))}}
		if _, err := service.Publish(t.Context(), ann, p); err != nil {
			t.Fatal(err)
		}
	}
	as := map[string]string{"X-Agent-Id": "reader", "Last-Event-Id": ""}
	for range 3 {
		say()
	}
	for _, field := range []string{`messagePublished(where: {inbox: true})`, `messagePublished(where: {joined: true})`, `channelChanged(channelId: "` + string(id) + `")`, `messagePublished(where: {channelId: "` + string(id) + `"})`} {
		query := `subscription { m: ` + field + ` { __typename ... on MessagePublished { message { text } position } } }`
		fromStart := strings.Replace(query, ") {", `, resume: "earliest") {`, 1)
		var seen []string
		at := ""
		take := func(block string) {
			t.Helper()
			_, data, ok := strings.Cut(block, `"data":{"m":`)
			if !ok {
				t.Fatalf("%s: got %s", field, block)
			}
			var got struct {
				Message  *struct{ Text string }
				Position string
			}
			if err := json.NewDecoder(strings.NewReader(data)).Decode(&got); err != nil {
				t.Fatal(err)
			}
			if head, _, sse := strings.Cut(block, "\n"); sse {
				at = strings.TrimPrefix(head, "id: ")
			}
			if got.Message != nil {
				if at = got.Position; len(seen) > 0 && seen[len(seen)-1] == got.Message.Text {
					t.Errorf("%s: %s is told twice", field, got.Message.Text)
				}
				seen = append(seen, got.Message.Text)
			}
		}
		w := b.stream(t, server.URL, fromStart, as)
		for len(seen) < 2 {
			take(w.block())
		}
		w.cancel()
		say() // without listeners
		w = b.stream(t, server.URL, query, map[string]string{"X-Agent-Id": "reader", "Last-Event-Id": at})
		for len(seen) < said {
			take(w.block())
		}
		w.cancel()
		say()
		resumed := strings.Replace(strings.Replace(fromStart, `"earliest"`, `"`+at+`"`, 1), " earliest", "", 1)
		p := b.connected(t, server)
		p.subscribe("1", resumed)
		take(p.receive())
		say()
		take(p.receive())
		for i, text := range seen {
			if text != fmt.Sprint(i+1) {
				t.Fatalf("%s: told were %v", field, seen)
			}
		}
	}
	w := b.stream(t, server.URL, `subscription { signalSent(channelId: "`+string(id)+`") { sender: senderId kind } }`, map[string]string{"X-Agent-Id": "reader"})
	b.exchange(t, server, exchange{
		body: query(`mutation { sendSignal(input: {channelId: "` + string(id) + `", kind: "typing"}) { sent } }`), header: map[string]string{"X-Agent-Id": "ann"}, status: 200,
		reply: `{"data":{"sendSignal":{"sent":true}},"extensions":{"revision":` + fmt.Sprint(b.store.Head().Revision) + `,"position":"<head>"}}`,
	})
	if block := w.block(); !strings.Contains(block, `"signalSent":{"sender":"agent://ann","kind":"typing"}`) {
		t.Errorf("the signal is told as %s", block)
	}
	w.cancel()
	if log := b.log.String(); log != "" {
		t.Errorf("logged: %s", log)
	}
}

// TestAskEnds proves that a question of a client that goes away is waited for no
// longer.
func TestAskEnds(t *testing.T) {
	b, _, id := newConversing(t)
	server := b.serve(t, transport.Options{}, sse.Options{})
	p := b.connected(t, server)
	p.subscribe("1", `mutation { ask(input: {message: {channelId: "`+string(id)+`", recipient: "ann", parts: [{text: "x"}]}, timeoutSeconds: 60}) { timedOut } }`)
	// The service watches for expired messages by itself.
	eventually(t, "the question is waited for", func() bool { return b.store.Stats().Watchers == 2 })
	p.send(`{"id":"1","type":"complete"}`)
	eventually(t, "nobody waits for it", func() bool { return b.store.Stats().Watchers == 1 })
}
