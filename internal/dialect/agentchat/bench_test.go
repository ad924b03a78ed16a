package agentchat_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"koine/a2a"
	"koine/channels"
	"koine/internal/caller"
	"koine/internal/dialect/agentchat"
	"koine/kg"
)

// A message over AgentChat costs at most 15 % more processor time than one over
// channels/publish. Both handlers are called in this process, on one store.
func BenchmarkMessage(b *testing.B) {
	s := startWith(b, agentchat.Options{Registration: agentchat.RegisterOpen}, channels.Options{})
	room := s.room("ann", `{"name":"r"}`)
	prefixes, err := kg.NewPrefixes(nil)
	if err != nil {
		b.Fatal(err)
	}
	rpc := a2a.NewHandler(a2a.Deps{Store: s.store, Channels: s.channels, Tasks: s.tasks, Streams: s.streams, Prefixes: prefixes}, a2a.Options{})
	text := strings.Repeat("I found 3 relevant papers. ", 8)
	for _, door := range []struct {
		name, path, body string
		handler          http.Handler
	}{
		{"agentchat", "/rooms/" + room + "/messages", `{"content":"` + text + `"}`, s.handler},
		{"publish", "/", `{"jsonrpc":"2.0","id":1,"method":"channels/publish","params":{"to":"` + room + `","parts":[{"text":"` + text + `"}]}}`, rpc},
	} {
		b.Run(door.name, func(b *testing.B) {
			used := processorTime()
			for range b.N {
				r := httptest.NewRequest(http.MethodPost, door.path, strings.NewReader(door.body))
				r.Header.Set("Content-Type", "application/json")
				by := caller.Caller{Principal: kg.Principal{ID: "agent://ann", Roles: []string{kg.RoleAdmin}, Method: kg.MethodOpen}}
				w := httptest.NewRecorder()
				door.handler.ServeHTTP(w, r.WithContext(caller.With(r.Context(), by)))
				if w.Code >= 300 || strings.Contains(w.Body.String(), `"error"`) {
					b.Fatal(fmt.Sprint(w.Code, " ", w.Body))
				}
			}
			b.ReportMetric(float64(processorTime()-used)/float64(b.N)/1000, "cpu-µs/op")
		})
	}
}

// processorTime returns the processor time of this process.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
