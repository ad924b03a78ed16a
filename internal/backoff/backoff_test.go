package backoff_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"koine/internal/backoff"
)

// Waits double up to their bound, half of each is random, and a hint is followed up to
// the bound.
func TestWaits(t *testing.T) {
	w := backoff.Waits{Min: time.Second, Max: 10 * time.Second}
	for n, want := range []time.Duration{1, 2, 4, 8, 10, 10} {
		for range 100 {
			if got := w.After(n, 0); got < want*time.Second/2 || got > want*time.Second {
				t.Errorf("wait %d is %v", n, got)
			}
		}
	}
	if got := w.After(1<<40, 0); got < 5*time.Second || got > 10*time.Second {
		t.Errorf("the wait of very many is %v", got)
	}
	for hint, want := range map[time.Duration]time.Duration{3 * time.Second: 3 * time.Second, time.Hour: 10 * time.Second} {
		if got := w.After(0, hint); got != want {
			t.Errorf("told %v: %v", hint, got)
		}
	}
}

func TestHint(t *testing.T) {
	for text, want := range map[string]time.Duration{"7": 7 * time.Second, "3600": time.Hour, "3601": 0, "-1": 0, "x": 0, "": 0} {
		if got := backoff.Hint(http.Header{"Retry-After": {text}}); got != want {
			t.Errorf("%q is %v, want %v", text, got, want)
		}
	}
}

func TestSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if err := backoff.Sleep(t.Context(), time.Hour); err != nil || time.Since(began) != time.Hour {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began = time.Now()
		if err := backoff.Sleep(ctx, time.Hour); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}
