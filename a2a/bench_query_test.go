//go:build unix

package a2a_test

import (
	"bytes"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"koine/kg"
)

// BenchmarkOneEntity measures a query for one entity over HTTP with 16 clients, and a
// bare JSON echo of the same request, in turns within one run. The ratio of their rates
// counts; on a shared machine, that of the processor times, clients included, is more
// reliable. Run it with -benchtime=10x, so that there are ten rounds.
func BenchmarkOneEntity(b *testing.B) {
	const clients, requests, people = 16, 250, 1000
	s := startBench(b)
	if err := s.people(people); err != nil {
		b.Fatal(err)
	}
	echo := startEcho(b)
	operation := `"query":"query Person($iri: IRI!) { entity(iri: $iri) { iri types label age: value(predicate: \"urn:age\") } }","variables":{"iri":"urn:person:%d"}`
	for _, way := range []struct{ name, path, body string }{
		{"knowledge/query", "/a2a", `{"jsonrpc":"2.0","id":1,"method":"knowledge/query","params":{` + operation + `}}`},
		{"graphql", "/graphql", `{` + operation + `}`},
	} {
		b.Run(way.name, func(b *testing.B) {
			person := func(i int) []byte { return post(way.path, fmt.Sprintf(way.body, i%people)) }
			koine := newLoad(b, s.addr, clients, clients*requests, person, `"label":"Person`)
			twin := newLoad(b, echo, clients, clients*requests, person, `"urn:person:`)
			var took, busy [2]time.Duration
			for range b.N {
				for i, side := range []*load{koine, twin} {
					began, cpu := time.Now(), processorTime(b)
					side.round(b)
					took[i] += time.Since(began)
					busy[i] += processorTime(b) - cpu
				}
			}
			rate := func(i int) float64 { return float64(clients*requests*b.N) / took[i].Seconds() }
			b.ReportMetric(0, "ns/op") // a round is no unit
			b.ReportMetric(rate(0), "queries/s")
			b.ReportMetric(rate(1), "echo/s")
			b.ReportMetric(rate(0)/rate(1), "ratio")
			b.ReportMetric(busy[1].Seconds()/busy[0].Seconds(), "cpu-ratio")
		})
	}
}

// people are entities with a few properties each.
func (s *benchServer) people(n int) error {
	return s.apply(n, func(i int) []kg.Patch {
		say := func(predicate string, object kg.Term) kg.Patch {
			return kg.Patch{Op: kg.Add, Source: "agent://bench", Certainty: 0.9, HasCertainty: true,
				Quad: kg.Quad{Subject: kg.IRI(fmt.Sprint("urn:person:", i)), Predicate: kg.IRI(predicate), Object: object}}
		}
		return []kg.Patch{
			say("http://www.w3.org/1999/02/22-rdf-syntax-ns#type", kg.IRI("urn:Person")),
			say("http://www.w3.org/2000/01/rdf-schema#label", kg.String(fmt.Sprint("Person ", i))),
			say("urn:age", kg.Integer(int64(i%100))),
			say("urn:knows", kg.IRI(fmt.Sprint("urn:person:", (i+1)%n))),
		}
	})
}

// load is a set of clients, each with its connection, and the requests that they send.
type load struct {
	clients  []*rawClient
	requests [][]byte
	want     []byte // part of each answer
}

func newLoad(b *testing.B, addr string, clients, requests int, request func(int) []byte, want string) *load {
	b.Helper()
	l := &load{want: []byte(want)}
	for range clients {
		l.clients = append(l.clients, dialRaw(b, addr))
	}
	for i := range requests {
		l.requests = append(l.requests, request(i))
	}
	return l
}

// round sends every request, each by the client that is free for it.
func (l *load) round(b *testing.B) {
	b.Helper()
	var all sync.WaitGroup
	var sent atomic.Int64
	for _, c := range l.clients {
		all.Go(func() {
			for i := sent.Add(1) - 1; i < int64(len(l.requests)); i = sent.Add(1) - 1 {
				if answer, err := c.exchange(l.requests[i]); err != nil || !bytes.Contains(answer, l.want) {
					b.Errorf("%v %s", err, answer)
					return
				}
			}
		})
	}
	all.Wait()
	if b.Failed() {
		b.FailNow()
	}
}

// processorTime returns the processor time used by the process.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
