package textindex

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"koine/kg"
)

// As many heavy searches evaluate at a time as there are turns, the others in the order in which they
// came; one that is cancelled while it waits takes no turn.
func TestSearchesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := New()
		x.turns, x.light = make(chan struct{}, 2), 0
		x.Add(Text{Subject: Subject{ID: id(2, 1)}, Ref: Ref{Object: id(4, 1)}, Value: "crystal"})
		q, err := ParseQuery("crystal")
		if err != nil {
			t.Fatal(err)
		}
		var at, most atomic.Int32
		began, goOn := make(chan int, 10), make(chan bool)
		start := func(ctx context.Context, n int, scan bool) chan error {
			done := make(chan error, 1)
			r := Request{Query: q, First: 1, Readable: func(_, _ kg.ID) bool { return true }, Shown: func(kg.ID, Ref) (bool, error) {
				most.Store(max(most.Load(), at.Add(1)))
				began <- n
				<-goOn
				at.Add(-1)
				return true, nil
			}}
			go func() {
				var hits []Hit
				var err error
				if scan {
					hits, _, _, err = x.NewFinding(r).Scan(ctx, Subject{}, 10)
				} else {
					hits, err = x.Search(ctx, &r)
				}
				if err == nil && len(hits) != 1 {
					err = errors.New("no hit")
				}
				done <- err
			}()
			synctest.Wait()
			return done
		}
		ctx, cancel := context.WithCancel(t.Context())
		var all []chan error
		for n := range 6 {
			if n == 3 {
				all = append(all, start(ctx, n, n%2 == 1))
				continue
			}
			all = append(all, start(t.Context(), n, n%2 == 1))
		}
		cancel()
		if err := <-all[3]; !errors.Is(err, context.Canceled) {
			t.Errorf("a search that is cancelled while it waits ends with %v", err)
		}
		for _, want := range []int{0, 1, 2, 4, 5} {
			if got := <-began; got != want {
				t.Errorf("search %d begins before %d", got, want)
			}
			goOn <- true
			if err := <-all[want]; err != nil {
				t.Error(err)
			}
			synctest.Wait()
		}
		if most.Load() != 2 {
			t.Errorf("%d searches at a time, want 2", most.Load())
		}
	})
}

// A search for words in few texts takes no turn. One for words in more, for the beginning of a
// word, or for a word that no text has does.
func TestLightSearches(t *testing.T) {
	x := New()
	x.turns, x.light = make(chan struct{}), 2 // nobody gets a turn
	for n, value := range []string{"crystal", "lake", "lake", "lake"} {
		x.Add(Text{Subject: Subject{ID: id(2, n)}, Ref: Ref{Object: id(4, n)}, Value: value})
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for text, want := range map[string]error{
		"crystal": nil, "crystal lake": context.Canceled, "lake": context.Canceled, "crys*": context.Canceled, "cristal": context.Canceled,
	} {
		q, err := ParseQuery(text)
		if err != nil {
			t.Fatal(err)
		}
		r := Request{Query: q, First: 1, Readable: func(_, _ kg.ID) bool { return true }}
		if want == nil {
			_, err = x.Search(t.Context(), &r)
		} else {
			_, err = x.Search(cancelled, &r)
		}
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", text, err, want)
		}
	}
	q, err := ParseQuery("crystal")
	if err != nil {
		t.Fatal(err)
	}
	if x.light = 1; !x.isLight(q) {
		t.Error("a search for one text is heavy")
	}
	if x.light = 0; x.isLight(q) {
		t.Error("a search for more than lightTexts is light")
	}
}
