package jetstreambench

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"koine/kg"
)

// messageBytes is about the size of an update of ten statements in koine's log.
const messageBytes = 900

// BenchmarkDurable makes updates of ten statements, and publishes messages of the
// same size to a JetStream that syncs each, in turns. Both answer when it is on
// disk.
func BenchmarkDurable(b *testing.B) {
	for _, writers := range []int{1, 16, 128} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			n := 4000
			if writers == 1 {
				n = 1000
			}
			var took [2]time.Duration
			for range b.N {
				took[0] += koine(b, writers, n)
				took[1] += jetStream(b, writers, n)
			}
			rate := func(d time.Duration) float64 { return float64(n*b.N) / d.Seconds() }
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(rate(took[0]), "updates/s")
			b.ReportMetric(rate(took[1]), "jetstream-messages/s")
			b.ReportMetric(rate(took[0])/rate(took[1]), "ratio")
		})
	}
}

func koine(b *testing.B, writers, n int) time.Duration {
	s, err := kg.Open(b.TempDir(), kg.Options{ReserveBytes: 1})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	return timed(writers, n, func(i int) error {
		_, err := s.Update(context.Background(), kg.Meta{}, func(tx *kg.Tx) error {
			for j := range 10 {
				q := kg.Quad{
					Subject:   kg.IRI(fmt.Sprintf("https://bench.example/thing/%d", i)),
					Predicate: kg.IRI(fmt.Sprintf("https://bench.example/p%d", j)),
					Object:    kg.String(fmt.Sprintf("the text of value %d of thing %d", j, i%100)),
				}
				if err := tx.Apply(kg.Patch{Op: kg.Add, Quad: q}); err != nil {
					return err
				}
			}
			return nil
		})
		return err
	})
}

// openJetStream starts a server in process, which syncs each message or none, and
// says how to close it.
func openJetStream(b *testing.B, always bool) (js nats.JetStreamContext, shut func()) {
	b.Helper()
	s, err := server.NewServer(&server.Options{JetStream: true, StoreDir: b.TempDir(), SyncAlways: always, DontListen: true, NoSigs: true})
	if err != nil {
		b.Fatal(err)
	}
	s.Start()
	if !s.ReadyForConnections(10 * time.Second) {
		b.Fatal("the server is not ready")
	}
	c, err := nats.Connect("", nats.InProcessServer(s))
	if err != nil {
		b.Fatal(err)
	}
	if js, err = c.JetStream(nats.MaxWait(time.Minute)); err != nil {
		b.Fatal(err)
	}
	return js, func() {
		c.Close()
		s.Shutdown()
		s.WaitForShutdown()
	}
}

func jetStream(b *testing.B, writers, n int) time.Duration {
	js, shut := openJetStream(b, true)
	defer shut()
	if _, err := js.AddStream(&nats.StreamConfig{Name: "updates", Subjects: []string{"updates"}, Storage: nats.FileStorage}); err != nil {
		b.Fatal(err)
	}
	message := bytes.Repeat([]byte("x"), messageBytes)
	return timed(writers, n, func(int) error {
		_, err := js.Publish("updates", message)
		return err
	})
}

// timed does n pieces of work from so many goroutines.
func timed(writers, n int, work func(i int) error) time.Duration {
	next := make(chan int)
	var wg sync.WaitGroup
	start := time.Now()
	for range writers {
		wg.Go(func() {
			for i := range next {
				if err := work(i); err != nil {
					panic(err)
				}
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
	return time.Since(start)
}
