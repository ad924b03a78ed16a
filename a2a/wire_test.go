package a2a_test

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"koine/a2a"
	"koine/internal/sse"
	"koine/internal/wiretest"
	"koine/kg"
)

// TestWire runs the conversations of testdata/wire (package wiretest).
//
// A step may be a JSON body for POST / alone; a body that begins with a double quote after
// "go " is a Go string, for bytes that a text file cannot hold. ${position} stands for the
// last position in an answer, and likewise ${channel}, ${message}, ${task}, ${token} of a
// page, and ${event}, the id of an event of a stream. The clock advances by a second with
// each request: append new cases at the end of a file, so that the times of the others stay.
func TestWire(t *testing.T) {
	wiretest.Run(t, masks, func(c *wiretest.Conversation) func(string) string {
		about := &a2a.CardOptions{Version: "test", PublicURL: "https://koine.example", Channels: true, Push: true, Keys: true}
		s := newTestServerWith(c, kg.Options{}, sse.Options{}, a2a.Options{Card: about})
		last := map[string]string{}
		return func(step string) string {
			s.clock.Add(1)
			got := answer(c.T, s.send(c.T, []byte(step), last))
			for name, member := range remembered {
				if found := member.FindAllStringSubmatch(got, -1); found != nil {
					last[name] = found[len(found)-1][1]
				}
			}
			if strings.HasSuffix(c.Name(), "/channels_refused") {
				got = texts.ReplaceAllString(got, `"$1":"…"`)
			}
			return got
		}
	})
}

// texts match the messages for people, which the domain may change.
var texts = regexp.MustCompile(`"(message|detail|hint)":"(?:[^"\\]|\\.)*"`)

// remembered are the members of answers that later requests may refer to.
var remembered = map[string]*regexp.Regexp{
	"position": regexp.MustCompile(`"(?:position|oldestPosition)":"([A-Za-z0-9_-]{20,})"`),
	"channel":  regexp.MustCompile(`"channel":{"id":"([^"]+)"`),
	"token":    regexp.MustCompile(`"nextPageToken":"([^"]+)"`),
	"task":     regexp.MustCompile(`"id":"([0-9a-f-]{36})","contextId"`),
	"message":  regexp.MustCompile(`"event":{"id":"([^"]+)"`),
	"event":    regexp.MustCompile(`(?m)^id: ([A-Za-z0-9_-]{20,})$`),
}

// masks replace values that differ between runs.
var masks = wiretest.NewMasks(
	`"(position|oldestPosition)":"[A-Za-z0-9_-]{20,}"`, `"$1":"<position>"`,
	`"cursor":"[A-Za-z0-9_-]{20,}"`, `"cursor":"<cursor>"`,
	`"nextPageToken":"[A-Za-z0-9_-]{20,}"`, `"nextPageToken":"<token>"`,
	`"(commitId|changeId|id|channelId|correlationId|replyToId|proposalId|taskId|contextId)":"[0-9a-f-]{36}"`, `"$1":"<uuid>"`,
	`"name":"tasks/[0-9a-f-]{36}/`, `"name":"tasks/<uuid>/`,
	`"messageId":"[0-9a-f]{8}-[0-9a-f-]{27}(-failure)?"`, `"messageId":"<uuid>$1"`,
	`(?m)^id: [A-Za-z0-9_-]{20,}$`, `id: <position>`,
	`"durationMs":[0-9.]+`, `"durationMs":<ms>`,
	`"statementsRead":[0-9]+`, `"statementsRead":<n>`,
)

func mask(text string) string { return masks.Apply(text) }

// send sends a step.
func (s *testServer) send(t *testing.T, text []byte, last map[string]string) *http.Response {
	t.Helper()
	step := strings.TrimSuffix(string(text), "\n")
	for name, value := range last {
		step = strings.ReplaceAll(step, "${"+name+"}", value)
	}
	if !wiretest.IsRequest(step) {
		step = "POST /\nContent-Type: application/json\n\n" + step
	}
	if head, quoted, ok := strings.Cut(step, "\n\ngo "); ok {
		raw, err := strconv.Unquote(quoted)
		if err != nil {
			t.Fatal(err)
		}
		step = head + "\n\n" + raw
	}
	return wiretest.Do(t, s.Client(), wiretest.NewRequest(t, s.URL, step, nil))
}

// answer formats the response as in the file.
func answer(t *testing.T, resp *http.Response) string {
	t.Helper()
	return wiretest.Answer(t, resp, "Content-Type", "Retry-After", "Allow")
}
