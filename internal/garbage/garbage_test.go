package garbage

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"testing"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"koine/internal/slowtest"
)

func TestAllowed(t *testing.T) {
	for memory, want := range map[uint64]uint64{
		24 << 30:  Allowed,
		2 << 30:   Allowed,
		2<<30 - 8: Allowed - 1,
		512 << 20: 64 << 20,
		0:         0,
	} {
		if got := allowedGarbage(memory); got != want {
			t.Errorf("with %d bytes of memory %d of garbage, want %d", memory, got, want)
		}
	}
}

func TestLeast(t *testing.T) {
	fails := func(err error) memlimit.Provider { return func() (uint64, error) { return 0, err } }
	none, of := fails(memlimit.ErrNoLimit), func(p ...memlimit.Provider) []memlimit.Provider { return p }
	for i, c := range []struct {
		of   []memlimit.Provider
		want uint64
	}{
		{of(none, memlimit.Limit(2)), 2},
		{of(fails(memlimit.ErrNoCgroup), memlimit.Limit(2)), 2},
		{of(fails(memlimit.ErrCgroupsNotSupported), memlimit.Limit(2)), 2},
		{of(memlimit.Limit(1), none), 1},
		{of(memlimit.Limit(1<<63), memlimit.Limit(2)), 2},
		{of(memlimit.Limit(1), memlimit.Limit(2)), 1},
		{of(none, none), 0},
		{of(fails(errors.New("cannot be read")), memlimit.Limit(2)), 0},
	} {
		if got := smallestLimit(c.of...); got != c.want {
			t.Errorf("%d: %d, want %d", i, got, c.want)
		}
	}
}

func TestPercent(t *testing.T) {
	for _, c := range []struct {
		live, allowed uint64
		want          int
	}{
		{0, 256 << 20, most},
		{31 << 20, 256 << 20, most},
		{32 << 20, 256 << 20, 800},
		{64 << 20, 256 << 20, 400},
		{255 << 20, 256 << 20, 100},
		{256 << 20, 256 << 20, 100},
		{4 << 30, 256 << 20, 100},
		{32 << 20, 0, 100},
	} {
		if got := gcPercent(c.live, c.allowed); got != c.want {
			t.Errorf("%d live and %d allowed: %d %%, want %d", c.live, c.allowed, got, c.want)
		}
	}
}

// TestPace has little live, more, in stacks too, much, and little again, in a process of
// its own: the percentage is the process's.
func TestPace(t *testing.T) {
	slowtest.Long(t)
	if os.Getenv("KOINE_GARBAGE") == "" {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestPace$")
		cmd.Env = append(os.Environ(), "KOINE_GARBAGE=1", "GOGC=")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	setPercent(Allowed)
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
	Allow()
	runtime.GC()
	if got := debug.SetGCPercent(-1); got != 70 {
		t.Errorf("it is %d %%, want the 70 that GOGC says", got)
	}
}
