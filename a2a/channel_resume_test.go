package a2a_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// A subscription to messages with a start sequence and another start in its metadata is
// refused; one of them, or two that agree, is accepted. The Last-Event-ID of a
// reconnecting client takes precedence over both.
func TestTwoStartsOfMessages(t *testing.T) {
	s := newTestServer(t)
	id := s.channel(t, `{}`)
	for i := range 3 {
		s.say(t, "ann", id, fmt.Sprint(i+1))
	}
	query := func(args string) string {
		return `subscription { messagePublished(where: {channelId: "` + id + `"}` + args + `) { ... on MessagePublished { sequence } } }`
	}
	// told returns the sequence and the id of the first message of the subscription.
	told := func(args, metadata string, headers ...string) (first, at string) {
		t.Helper()
		block := s.subscribeTo(t, query(args), metadata, append(headers, "X-Agent-ID: ann")...).block()
		for !strings.Contains(block, `"sequence":`) {
			t.Fatalf("%s %s: got %s", args, metadata, block)
		}
		_, first, _ = strings.Cut(block, `"sequence":`)
		at, _, _ = strings.Cut(strings.TrimPrefix(block, "id: "), "\n")
		return first[:1], at
	}
	first, one := told("", `{"koine":{"resume":"earliest"}}`)
	if first != "1" {
		t.Fatalf("begins with %s", first)
	}
	for _, row := range []struct{ args, metadata, header, want string }{
		{", sinceSequence: 1", `{}`, "", "2"},
		{"", `{"koine":{"resume":"` + one + `"}}`, "", "2"},
		{", sinceSequence: 1", `{"koine":{"resume":"` + one + `"}}`, "", "2"},
		{", sinceSequence: 0", `{"resume":"snapshot"}`, "", "1"},
		{", sinceSequence: 0", `{"koine":{"snapshot":true}}`, "", "1"},
		{", sinceSequence: 0", `{"koine":{"resume":"earliest"}}`, "Last-Event-ID: " + one, "2"},
		{", sinceSequence: 2", `{}`, "Last-Event-ID: " + one, "2"},
		{", sinceSequence: 2", `{}`, "Last-Event-ID: ", "3"},
	} {
		var headers []string
		if row.header != "" {
			headers = append(headers, row.header)
		}
		if got, _ := told(row.args, row.metadata, headers...); got != row.want {
			t.Errorf("%s %s %s: begins with %s, want %s", row.args, row.metadata, row.header, got, row.want)
		}
	}
	refused := func(who, query, metadata string) string {
		t.Helper()
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"knowledge/subscribe","params":{"subscriptionQuery":%q,"metadata":%s}}`, query, metadata)
		sub := s.open(t, http.MethodPost, "/", body, "X-Agent-ID: "+who)
		if sub.resp.StatusCode == http.StatusOK {
			return "a stream" // which has no end
		}
		return answer(t, sub.resp)
	}
	for _, row := range []struct {
		args, metadata string
		resume, since  int
	}{
		{", sinceSequence: 0", `{"koine":{"resume":"` + one + `"}}`, 1, 0},
		{", sinceSequence: 2", `{"koine":{"resume":"earliest"}}`, 0, 2},
		{", sinceSequence: 2", `{"koine":{"snapshot":true}}`, 0, 2},
		{", sinceSequence: 0", `{"koine":{"resume":"latest"}}`, 3, 0},
	} {
		want := fmt.Sprintf("%d application/json\n"+`{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Invalid parameters","data":{"reason":"INVALID","domain":"koine","field":"metadata.koine.resume",`+
			`"detail":"the stream would start after message %d, and sinceSequence starts after message %d: pass one of them","hint":"To start after a sequence number, omit the other start, or use channels/stream."}}}`+"\n",
			http.StatusBadRequest, row.resume, row.since)
		if got := refused("ann", query(row.args), row.metadata); got != want {
			t.Errorf("%s %s: got %swant %s", row.args, row.metadata, got, want)
		}
	}
	// A channel that the caller may not read and one that does not exist give the same
	// answer.
	for _, channel := range []string{id, "0192f1c0-0000-7000-8000-000000000000"} {
		got := refused("eve", strings.Replace(query(", sinceSequence: 0"), id, channel, 1), `{"koine":{"resume":"latest"}}`)
		if !strings.Contains(got, `"reason":"CHANNEL_NOT_FOUND"`) || strings.Contains(got, "begins") {
			t.Errorf("an outsider: %s", got)
		}
	}
}
