package kg_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"koine/channels"
	"koine/channels/channel"
	"koine/kg"
)

// spent is the cost of one side of a comparison.
type spent struct{ elapsed, processor time.Duration }

func (s *spent) add(other spent) {
	s.elapsed += other.elapsed
	s.processor += other.processor
}

// spending measures from now on, until the function that it gives is called.
func spending() func() spent {
	runtime.GC()
	processor := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			panic(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	before, start := processor(), time.Now()
	return func() spent { return spent{time.Since(start), processor() - before} }
}

// messenger is a store with channels of one owner.
type messenger struct {
	*channels.Service
	store *kg.Store
	ids   []channel.ID
}

var ann = channels.Caller{Principal: kg.Principal{ID: "agent://ann"}}

func openMessenger(b *testing.B, o kg.Options, count int) *messenger {
	b.Helper()
	m := &messenger{Service: channels.New(channels.Options{})}
	o.Access, o.OnSystemChange = m.Guard(kg.AllowAll{}), m.Follow
	var err error
	if m.store, err = kg.Open(b.TempDir(), o); err != nil {
		b.Fatal(err)
	}
	if err := m.Load(context.Background(), m.store); err != nil {
		b.Fatal(err)
	}
	for i := range count {
		c, err := m.Create(context.Background(), ann, channel.Draft{Name: fmt.Sprint(i)})
		if err != nil {
			b.Fatal(err)
		}
		m.ids = append(m.ids, c.ID)
	}
	return m
}

func (m *messenger) publish(b *testing.B, publishers, n int) {
	next := make(chan int)
	var wg sync.WaitGroup
	for range publishers {
		wg.Go(func() {
			for i := range next {
				part := fmt.Appendf(nil, `{"type":"text","text":"message %d: %s"}`, i, bytes.Repeat([]byte("words of it "), 20))
				if _, err := m.Publish(context.Background(), ann, channels.Publication{Channel: m.ids[i%len(m.ids)], Parts: []json.RawMessage{part}}); err != nil {
					b.Error(err)
				}
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
}

func (m *messenger) close(b *testing.B) {
	m.Close()
	if err := m.store.Close(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkPublish publishes messages durably, beside one synced Badger transaction
// for each with the same keys, in turns. Aim: ratio at least 0.5.
func BenchmarkPublish(b *testing.B) {
	for _, count := range []int{1, 128} {
		for _, publishers := range []int{1, 16, 128} {
			b.Run(fmt.Sprintf("channels=%d/publishers=%d", count, publishers), func(b *testing.B) {
				const n = 1000
				var raw kg.RawTwin
				m := openMessenger(b, raw.Recording(b, kg.Options{}), count)
				m.publish(b, 1, n)
				m.close(b)
				var koine, twin spent
				for range b.N {
					m := openMessenger(b, kg.Options{}, count)
					done := spending()
					m.publish(b, publishers, n)
					koine.add(done())
					m.close(b)
					if err := raw.Write(b.TempDir(), publishers, n, func() { done = spending() }); err != nil {
						b.Fatal(err)
					}
					twin.add(done())
				}
				report(b, "messages", n*b.N, koine, twin)
			})
		}
	}
}

// BenchmarkTempo publishes messages with syncs of a given length, beside a committer
// without pacing: it takes the queued updates, and executes nothing during an append. In
// turns; TMPDIR=/dev/shm excludes the disk's own syncs.
func BenchmarkTempo(b *testing.B) {
	plain := kg.Faults{OverlapFrom: math.MaxInt, GatherFrom: math.MaxInt64}
	for _, sync := range []time.Duration{0, 100 * time.Microsecond, 300 * time.Microsecond, time.Millisecond, 3 * time.Millisecond} {
		for _, publishers := range []int{1, 2, 16, 128, 512} {
			b.Run(fmt.Sprintf("sync=%v/publishers=%d", sync, publishers), func(b *testing.B) {
				n := min(max(500*publishers, 1000), 8000)
				measured := func(f kg.Faults) spent {
					if sync > 0 {
						f.AfterAppend = func() error { syncFor(sync); return nil }
					}
					m := openMessenger(b, kg.Options{}.WithFaults(f), 1)
					defer m.close(b)
					m.publish(b, publishers, n/8) // until its tempo is known
					done := spending()
					m.publish(b, publishers, n)
					return done()
				}
				var minding, not spent
				for i := range 2 * b.N {
					if i%4 == 0 || i%4 == 3 {
						minding.add(measured(kg.Faults{}))
					} else {
						not.add(measured(plain))
					}
				}
				report(b, "messages", n*b.N, minding, not)
			})
		}
	}
}

// syncFor blocks a thread for a duration, as a disk does.
func syncFor(d time.Duration) {
	end := time.Now().Add(d)
	for left := d; left > 0; left = time.Until(end) {
		t := unix.NsecToTimeval(int64(left))
		_, _ = unix.Select(0, nil, nil, nil, &t) // Go's scheduler interrupts it
	}
}

// BenchmarkHistory reads a page of 50 messages, beside raw iterators over the same
// keys and values, in turns. Aim: ratio at least 0.5.
func BenchmarkHistory(b *testing.B) {
	const messages, page, pages = 20_000, 50, 400
	m := openMessenger(b, kg.Options{}, 1)
	defer m.close(b)
	m.publish(b, 64, messages)
	m.store.Settle() // as an idle store does: both sides read Badger
	raw, err := kg.NewRawHistory(m.store, m.ids[0].MessagesGraph())
	if err != nil {
		b.Fatal(err)
	}
	defer raw.Close()
	var koine, twin spent
	for range b.N {
		done := spending()
		for i := range pages {
			since := int64(i * page)
			list, _, err := m.History(context.Background(), ann, m.ids[0], channels.HistoryQuery{PageSize: page, SinceSequence: &since})
			if err != nil || len(list) != page {
				b.Fatal(len(list), err)
			}
		}
		koine.add(done())
		done = spending()
		rows := 0
		for i := range pages {
			rows += raw.Page(int64(i*page+1), page)
		}
		twin.add(done())
		if rows < pages*page*6 {
			b.Fatalf("the twin read %d rows", rows)
		}
	}
	report(b, "pages", pages*b.N, koine, twin)
}

// report gives the rates of both sides, the ratio of koine's to the twin's, and that
// of the processor time, which others on the machine change less.
func report(b *testing.B, unit string, n int, koine, twin spent) {
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(n)/koine.elapsed.Seconds(), unit+"/s")
	b.ReportMetric(float64(n)/twin.elapsed.Seconds(), "twin-"+unit+"/s")
	b.ReportMetric(twin.elapsed.Seconds()/koine.elapsed.Seconds(), "ratio")
	b.ReportMetric(twin.processor.Seconds()/koine.processor.Seconds(), "processor-ratio")
	b.ReportMetric(float64(koine.processor.Microseconds())/float64(n), "processor-µs")
}
