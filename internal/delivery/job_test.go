package delivery_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"koine/internal/delivery"
	"koine/kg"
)

// TestJobSaves proves that a job stores its progress at intervals and at the end.
func TestJobSaves(t *testing.T) {
	store, err := kg.Open(t.TempDir(), kg.Options{ReserveBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	saved, watched := make(chan bool, 100), 0
	var j delivery.Job
	j = delivery.Job{
		Name: "tests", Logger: slog.New(slog.DiscardHandler), SaveEvery: time.Millisecond,
		Watch: func(context.Context) (*kg.Watcher, error) {
			watched++
			return store.Watch(j.Context(), kg.Filter{}, store.Head())
		},
		Handle: func(*kg.Event) error { return nil },
		Save:   func(ctx context.Context) { saved <- ctx.Err() == nil },
	}
	j.Init()
	if err := j.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		<-saved
	}
	j.Close()
	last := false
	for len(saved) > 0 {
		last = <-saved
	}
	if !last || watched != 1 {
		t.Errorf("the last Save had a context %t, %d watchers", last, watched)
	}
}

// TestLine proves that the deliveries of a line come one after the other, and none after Stop.
func TestLine(t *testing.T) {
	j := delivery.Job{Save: func(context.Context) {}}
	j.Init()
	defer j.Close()
	var mu sync.Mutex
	var queue, delivered []int
	busy, line := false, j.NewLine()
	next := func() func() {
		if len(queue) == 0 {
			return nil
		}
		n := queue[0]
		queue = queue[1:]
		return func() {
			mu.Lock()
			if busy {
				t.Error("two deliveries at a time")
			}
			busy = true
			mu.Unlock()
			time.Sleep(time.Millisecond)
			mu.Lock()
			busy, delivered = false, append(delivered, n)
			mu.Unlock()
		}
	}
	wake := func(n int) {
		mu.Lock()
		defer mu.Unlock()
		queue = append(queue, n)
		line.Wake(&mu, next)
	}
	for n := range 5 {
		wake(n)
	}
	for done := 0; done < 5; time.Sleep(time.Millisecond) {
		mu.Lock()
		done = len(delivered)
		mu.Unlock()
	}
	line.Stop()
	wake(5)
	time.Sleep(5 * time.Millisecond)
	mu.Lock()
	defer mu.Unlock()
	if len(delivered) != 5 {
		t.Errorf("delivered %v", delivered)
	}
}
