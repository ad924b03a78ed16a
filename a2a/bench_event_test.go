//go:build unix

package a2a_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"koine/kg"
)

// BenchmarkChangeToSocket measures the latency of a change from its request to its
// event's bytes at a subscriber on the same machine, including the log's fsync: one
// change at a time, written directly and through knowledge/update. An op is 200
// changes; "made" is the latency of the receipt.
func BenchmarkChangeToSocket(b *testing.B) {
	const changes = 200
	s := startBench(b)
	writer := dialRaw(b, s.addr)
	for _, way := range []struct {
		name string
		make func(i int) error
	}{
		{"store", func(i int) error { return s.apply(1, func(int) []kg.Patch { return []kg.Patch{valued(0, i)} }) }},
		{"knowledge/update", func(i int) error {
			_, err := writer.exchange(post("/a2a", fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"knowledge/update","params":{"mutations":[`+
				`{"op":"replace","statement":{"subject":{"id":"urn:s:0"},"predicate":{"id":"urn:p"},"object":{"value":%d}}}]}}`, -i)))
			return err
		}},
	} {
		b.Run(way.name, func(b *testing.B) {
			arrived := s.arrivals(b, 0)
			var made, seen []time.Duration
			for i := range changes * b.N {
				began := time.Now()
				if err := way.make(i + 1); err != nil {
					b.Fatal(err)
				}
				made = append(made, time.Since(began))
				at, ok := <-arrived
				if !ok {
					b.Fatal("the stream ended")
				}
				seen = append(seen, at.Sub(began))
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(percentile(seen, 0.50), "p50-ms")
			b.ReportMetric(percentile(seen, 0.99), "p99-ms")
			b.ReportMetric(percentile(made, 0.50), "made-p50-ms")
		})
	}
}

func percentile(all []time.Duration, share float64) float64 {
	slices.Sort(all)
	return float64(all[int(share*float64(len(all)-1))]) / float64(time.Millisecond)
}

// apply commits the patches of n subjects.
func (s *benchServer) apply(n int, patches func(i int) []kg.Patch) error {
	_, err := s.store.Update(context.Background(), kg.Meta{}, func(tx *kg.Tx) error {
		for i := range n {
			for _, p := range patches(i) {
				if err := tx.Apply(p); err != nil {
					return err
				}
			}
		}
		return nil
	})
	return err
}

// valued returns a patch that changes the value of a subject.
func valued(subject, value int) kg.Patch {
	return kg.Patch{Op: kg.Replace, Source: "agent://bench", Quad: kg.Quad{
		Subject: kg.IRI(fmt.Sprint("urn:s:", subject)), Predicate: kg.IRI("urn:p"), Object: kg.Integer(int64(value))}}
}

// subscription returns a request for the changes of a subject.
func subscription(subject int) []byte {
	return post("/a2a", fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"knowledge/subscribe","params":{"subscriptionQuery":`+
		`"subscription { statementChanged(where: {subject: {eq: \"urn:s:%d\"}}) { ... on StatementChange { op statement { subject { iri } } } } }"}}`, subject, subject))
}

// arrivals subscribes to a subject's changes and delivers the time of each arrival.
func (s *benchServer) arrivals(b *testing.B, subject int) <-chan time.Time {
	b.Helper()
	c := dialRaw(b, s.addr)
	if _, err := c.Write(subscription(subject)); err != nil {
		b.Fatal(err)
	}
	if line, err := c.in.ReadString('\n'); err != nil || line != "HTTP/1.1 200 OK\r\n" {
		b.Fatal(line, err)
	}
	arrived := make(chan time.Time)
	go func() { // it ends when the connection is closed
		defer close(arrived)
		for c.data() == nil {
			select {
			case arrived <- time.Now():
			case <-b.Context().Done():
				return
			}
		}
	}()
	return arrived
}
