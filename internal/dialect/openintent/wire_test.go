package openintent_test

import (
	"bufio"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"koine/channels"
	"koine/channels/scope"
	"koine/internal/dialect/openintent"
	"koine/internal/wiretest"
	"koine/kg"
)

// TestWire runs the conversations of testdata/wire (package wiretest). If the comment
// begins with "rfc:", the server writes the names of the RFC.
//
// "(4.2)" in the name of a step is the row of testdata/rows.txt that it shows. A step with
// the header "Read: N" reads N events of a stream. ${soon} is a time shortly after the step, and
// a step with the header "After: soon" waits for it.
func TestWire(t *testing.T) {
	wiretest.Run(t, masks, func(c *wiretest.Conversation) func(string) string {
		s := start(c.T, openintent.Options{RFCNames: strings.HasPrefix(c.Comment, "rfc:")})
		c.Known["start"] = s.store.FormatPosition(s.store.Head())
		return func(step string) string {
			got := s.step(step)
			if strings.HasPrefix(got, "409") && !strings.Contains(step, "/leases") && strings.Contains(strings.ToLower(got), "lease") {
				t.Errorf("%s: the SDK takes the answer for a conflict of leases: %s", step, got)
			}
			return got
		}
	})
}

// masks replace values that differ between runs.
var masks = wiretest.NewMasks(
	`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`, `<uuid>`,
	`"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00"`, `"<time>"`,
	`"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}"`, `"<naive time>"`,
	`"[0-9a-f]{64}"`, `"<hash>"`,
	`(?m)^id: [A-Za-z0-9_-]{20,}$`, `id: <position>`,
)

// soonAfter is long enough for a message that expires then to be sent before.
const soonAfter = 2 * time.Second

// step executes a step and returns its answer.
func (s *server) step(step string) string {
	t := s.t
	if title, ok := strings.CutPrefix(strings.TrimSuffix(step, "\n"), "SCOPE "); ok { // an intent, without the paths of §4
		sc, err := s.channels.Scopes().Create(t.Context(), channels.Caller{Principal: kg.Principal{ID: "agent://ann", Method: "key"}},
			scope.Draft{Title: title, Access: scope.Access{Everybody: title != "closed"}})
		if err != nil {
			t.Fatal(err)
		}
		return `{"id":"` + string(sc.ID) + "\"}\n"
	}
	if strings.Contains(step, "${soon}") {
		s.soon = time.Now().Add(soonAfter)
		step = strings.ReplaceAll(step, "${soon}", s.soon.UTC().Format(time.RFC3339Nano))
	}
	r := wiretest.NewRequest(t, s.URL, step, http.Header{"Content-Type": {"application/json"}, "X-Agent-Id": {"ann"}})
	if r.Header.Get("After") == "soon" {
		time.Sleep(time.Until(s.soon))
	}
	r.Header.Del("After")
	events := 0
	_, _ = fmt.Sscan(r.Header.Get("Read"), &events)
	r.Header.Del("Read")
	response := wiretest.Do(t, s.Client(), r)
	shown := []string{"Content-Type", "Retry-After", "Allow", "WWW-Authenticate"}
	if response.StatusCode != http.StatusOK || events == 0 {
		return wiretest.Answer(t, response, shown...)
	}
	out, lines := wiretest.Head(response, shown...), bufio.NewReader(response.Body)
	for range events {
		out += readEvent(t, lines)
	}
	return out
}

// readEvent reads one event of a stream, without comments.
func readEvent(t testing.TB, lines *bufio.Reader) string {
	t.Helper()
	var b strings.Builder
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("the stream ended after %q: %v", b.String(), err)
		}
		switch {
		case strings.HasPrefix(line, ":"):
		case line != "\n":
			b.WriteString(line)
		case b.Len() > 0:
			return b.String() + "\n"
		}
	}
}
