package openintent_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"koine/internal/dialect/openintent"
	"koine/internal/slowtest"
)

// A message to a channel with 500 members takes about as much memory as one to a channel
// with one: sending reads no record of the channel. (cmd/koine measures processor time:
// BenchmarkDialects.)
func TestSendingReadsNoChannel(t *testing.T) {
	slowtest.WithoutRace(t)
	s := start(t, openintent.Options{})
	ask := func(path, body string) string {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), "POST", s.URL+openintent.Root+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Agent-ID", "lead")
		r.Header.Set("Content-Type", "application/json")
		resp, err := s.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		raw, err := io.ReadAll(resp.Body)
		var made struct{ ID string }
		if err != nil || resp.StatusCode >= 300 || json.Unmarshal(raw, &made) != nil {
			t.Fatalf("%s: %s %s, %v", path, resp.Status, raw, err)
		}
		return made.ID
	}
	intent := ask("/intents", `{"title":"x"}`)
	cost := func(name string, members int) uint64 {
		t.Helper()
		list := []string{"lead"}
		for i := range members - 1 {
			list = append(list, fmt.Sprint("a", i))
		}
		raw, err := json.Marshal(map[string]any{"name": name, "members": list})
		if err != nil {
			t.Fatal(err)
		}
		id := ask("/intents/"+intent+"/channels", string(raw))
		send := func() { ask("/channels/"+id+"/messages", `{"sender":"lead","payload":{"n":1}}`) }
		send()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range 50 {
			send()
		}
		runtime.ReadMemStats(&after)
		return (after.TotalAlloc - before.TotalAlloc) / 50
	}
	few, many := cost("few", 1), cost("many", 500)
	t.Logf("a message takes %d bytes in a channel with a member, %d in one with 500", few, many)
	if many > few+few/2 {
		t.Errorf("a message takes %d bytes in a channel with 500 members, and %d in one with a member", many, few)
	}
}
