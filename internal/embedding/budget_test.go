package embedding

import (
	"path/filepath"
	"testing"
	"time"
)

// A budget that is spent names the time until the next day as of the moment at which it refused,
// also if that day begins meanwhile.
func TestBudgetAtMidnight(t *testing.T) {
	const tick = 50 * time.Millisecond
	now := time.Date(2026, 1, 1, 23, 59, 59, 0, time.UTC)
	clock := func() time.Time {
		now = now.Add(tick)
		return now
	}
	b, err := openBudget(filepath.Join(t.TempDir(), spentFile), 1, clock)
	if err != nil {
		t.Fatal(err)
	}
	if n, _, err := b.reserveTexts(2); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	for {
		n, wait, err := b.reserveTexts(1)
		if err != nil {
			t.Fatal(err)
		}
		if n == 1 {
			break
		}
		if wait <= 0 || wait > time.Second {
			t.Fatalf("at %v the wait is %v", now, wait)
		}
	}
	if now.Day() != 2 {
		t.Errorf("a text is granted at %v", now)
	}
}
