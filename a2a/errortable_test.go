package a2a_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"koine/a2a"
	"koine/channels"
	"koine/channels/channel"
	"koine/kg"
)

// In a channel that keeps some messages only, a request for removed ones returns the
// oldest that remains: in histories, in new streams, and as the last event of a stream
// that fell behind, which then has no position.
func TestWhatIsLeftOfAChannel(t *testing.T) {
	s := newTestServer(t)
	id := s.channel(t, `{}`)
	keep := int64(2)
	ann := channels.Caller{Principal: kg.Principal{ID: "agent://ann", Method: "key"}}
	if _, err := s.rooms.Update(t.Context(), ann, channel.ID(id), channel.Update{ExpectedVersion: 1, KeepMessages: &keep}); err != nil {
		t.Fatal(err)
	}
	for i := range 6 {
		s.say(t, "ann", id, fmt.Sprint(i))
	}
	const data = `{"reason":"POSITION_GONE","domain":"koine","field":"%s","detail":"oldest retained message of the channel is 5","oldestSequence":5}`
	gone := func(status int, field string) string {
		return fmt.Sprintf(`%d application/json`+"\n"+`{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Invalid parameters","data":`+data+`}}`+"\n", status, field)
	}
	for _, row := range []struct{ method, more, want string }{
		{"channels/history", `,"sinceSequence":3`, gone(http.StatusOK, "sinceSequence")},
		{"channels/history", `,"sinceSequence":0`, gone(http.StatusOK, "sinceSequence")},
		{"channels/history", `,"sinceTimestamp":1`, gone(http.StatusOK, "sinceTimestamp")},
		{"channels/stream", `,"sinceSequence":3`, gone(http.StatusBadRequest, "sinceSequence")},
		{"channels/stream", `,"sinceSequence":0`, gone(http.StatusBadRequest, "sinceSequence")},
	} {
		if got := s.call(t, "ann", row.method, `{"channelId":"`+id+`"`+row.more+`}`); got != row.want {
			t.Errorf("%s%s: got %swant %s", row.method, row.more, got, row.want)
		}
	}
	resumed := "POST /\nContent-Type: application/json\nX-Agent-ID: ann\nLast-Event-ID: 2\n\n" + `{"jsonrpc":"2.0","id":1,"method":"channels/stream","params":{"channelId":"` + id + `"}}`
	if got, want := answer(t, s.send(t, []byte(resumed), nil)), gone(http.StatusBadRequest, "Last-Event-ID"); got != want {
		t.Errorf("a stream that comes back: got %swant %s", got, want)
	}
	for _, more := range []string{``, `,"sinceSequence":4`} {
		if got := s.call(t, "ann", "channels/history", `{"channelId":"`+id+`"`+more+`}`); !strings.Contains(got, `{"events":[{`) || !strings.Contains(got, `"sequence":5`) || strings.Contains(got, `"sequence":4`) {
			t.Errorf("what is left%s: %s", more, got)
		}
	}
	subscribe := `{"jsonrpc":"2.0","id":1,"method":"knowledge/subscribe","params":{"subscriptionQuery":"subscription { messagePublished(where: {channelId: \"` + id + `\"}, sinceSequence: 3) { __typename } }"}}`
	got := answer(t, s.send(t, []byte("POST /\nContent-Type: application/json\nX-Agent-ID: ann\n\n"+subscribe), nil))
	if !strings.HasPrefix(got, "400 ") || !strings.Contains(got, `"code":-32012`) || !strings.Contains(got, `"oldestSequence":5`) || strings.Contains(got, "osition\"") {
		t.Errorf("knowledge/subscribe: %s", got)
	}
	since := int64(3)
	_, _, err := s.rooms.History(t.Context(), ann, channel.ID(id), channels.HistoryQuery{SinceSequence: &since})
	last, err := json.Marshal(a2a.LastOfStream(a2a.NewHandler(a2a.Deps{Store: s.store}, a2a.Options{}), err, "3"))
	if want := `{"code":-32602,"message":"Invalid parameters","data":` + fmt.Sprintf(data, "sinceSequence") + `}`; err != nil || string(last) != want {
		t.Errorf("the last of a stream: got %s, %v, want %s", last, err, want)
	}
	s.follow(t, "ann", id, `,"sinceSequence":4`).expectBlocks("id: 5\n"+messageBlock(5, "4"), "id: 6\n"+messageBlock(6, "5"))
	schema := definitions(t)("channels:ErrorData")
	if err := validate(schema, fmt.Sprintf(data, "sinceSequence")); err != nil {
		t.Errorf("the schema: %v", err)
	}
}
