package garbage

import (
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"testing"
	"time"

	"koine/internal/slowtest"
)

func TestSoftLimit(t *testing.T) {
	for _, c := range []struct{ limit, needed, want int64 }{
		{320 << 20, 100 << 20, 320 << 20},
		{320 << 20, 256 << 20, 320 << 20},
		{320 << 20, 257 << 20, 257<<20 + 257<<20/4},
		{320 << 20, 1 << 30, 1<<30 + 256<<20},
		{0, 8 << 20, 8<<20 + leastAmount},
	} {
		if got := softLimit(c.limit, c.needed); got != c.want {
			t.Errorf("limit %d with %d needed: %d, want %d", c.limit, c.needed, got, c.want)
		}
	}
}

func TestPercent(t *testing.T) {
	for live, want := range map[int64]int{
		0:         most,
		31 << 20:  most,
		32 << 20:  800,
		64 << 20:  400,
		255 << 20: 100,
		256 << 20: 100,
		4 << 30:   100,
	} {
		if got := gcPercent(live); got != want {
			t.Errorf("%d live: %d %%, want %d", live, got, want)
		}
	}
}

// TestPace has little live, more, in stacks too, much, and little again, in a process of
// its own: the percentage is the process's.
func TestPace(t *testing.T) {
	slowtest.Long(t)
	if os.Getenv("KOINE_GARBAGE") == "" {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestPace$")
		cmd.Env = append(os.Environ(), "KOINE_GARBAGE=1", "GOGC=", "GOMEMLIMIT=")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	Limit(4 << 30)
	awaitGarbage(t, 0, 100<<20)
	some := make([]byte, 40<<20)
	awaitGarbage(t, 220<<20, 290<<20)
	end := make(chan struct{})
	var ready sync.WaitGroup
	for range 20_000 {
		ready.Add(1)
		go deep(8, &ready, end)
	}
	ready.Wait()
	awaitGarbage(t, 220<<20, 290<<20)
	close(end)
	much := make([]byte, 600<<20)
	awaitGarbage(t, 600<<20, 700<<20) // as much as lives
	runtime.KeepAlive(much)
	much = nil
	awaitGarbage(t, 220<<20, 290<<20)

	Limit(160 << 20)
	awaitGarbage(t, 60<<20, 120<<20) // up to the limit
	much = make([]byte, 200<<20)
	awaitGarbage(t, 40<<20, 80<<20) // a quarter, beyond it
	runtime.KeepAlive(much)
	runtime.KeepAlive(some)
}

// deep waits with a deep stack.
//
//go:noinline
func deep(n int, ready *sync.WaitGroup, end <-chan struct{}) (sum byte) {
	var b [512]byte
	if n > 0 {
		b[n] = deep(n-1, ready, end)
		return b[n]
	}
	ready.Done()
	<-end
	return b[n]
}

// awaitGarbage collects until so much garbage may gather.
func awaitGarbage(t *testing.T, least, most uint64) {
	t.Helper()
	s := []metrics.Sample{{Name: "/gc/heap/goal:bytes"}, {Name: "/gc/heap/live:bytes"}}
	var garbage uint64
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		runtime.GC()
		metrics.Read(s)
		if garbage = s[0].Value.Uint64() - s[1].Value.Uint64(); garbage >= least && garbage <= most {
			return
		}
	}
	t.Fatalf("%d MiB of garbage may gather, want %d to %d", garbage>>20, least>>20, most>>20)
}

// TestGOGC leaves a percentage alone that the environment sets.
func TestGOGC(t *testing.T) {
	if os.Getenv("GOGC") == "" {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestGOGC$")
		cmd.Env = append(os.Environ(), "GOGC=70")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	Limit(1 << 30)
	runtime.GC()
	if got := debug.SetGCPercent(-1); got != 70 {
		t.Errorf("it is %d %%, want the 70 that GOGC says", got)
	}
}
