//go:build unix

package a2a_test

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkMessage measures a message to koine that asks for one entity and waits for
// the answer: it creates a task, which is executed and answered. A round is 16 clients
// with 400 messages; the processor time, clients included, is more telling than the
// duration, which depends on the disk.
func BenchmarkMessage(b *testing.B) {
	const clients, requests, people = 16, 25, 1000
	s := startBench(b)
	if err := s.people(people); err != nil {
		b.Fatal(err)
	}
	sent := 0
	message := func(i int) []byte {
		sent++
		return post("/a2a", fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m%d","role":"ROLE_USER","parts":[{"data":{"query":"query Person($iri: IRI!) { entity(iri: $iri) { iri types label } }","variables":{"iri":"urn:person:%d"}}}]}}}`, sent, i%people))
	}
	var took, busy time.Duration
	for range b.N {
		b.StopTimer()
		load := newLoad(b, s.addr, clients, clients*requests, message, `"TASK_STATE_COMPLETED"`)
		b.StartTimer()
		began, cpu := time.Now(), processorTime(b)
		load.round(b)
		took += time.Since(began)
		busy += processorTime(b) - cpu
	}
	n := float64(clients * requests * b.N)
	b.ReportMetric(0, "ns/op") // a round is no unit
	b.ReportMetric(n/took.Seconds(), "messages/s")
	b.ReportMetric(busy.Seconds()/n*1e6, "cpu-µs/message")
}
