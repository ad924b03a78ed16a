package garbage

import (
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

func TestAllowed(t *testing.T) {
	for memory, want := range map[uint64]uint64{
		24 << 30:  Allowed,
		2 << 30:   Allowed,
		2<<30 - 8: Allowed - 1,
		512 << 20: 64 << 20,
		0:         0,
	} {
		if got := allowed(memory); got != want {
			t.Errorf("with %d bytes of memory %d of garbage, want %d", memory, got, want)
		}
	}
}

func TestLeast(t *testing.T) {
	none := func() (uint64, error) { return 0, memlimit.ErrNoLimit }
	for i, c := range []struct {
		of   []memlimit.Provider
		want uint64
	}{
		{[]memlimit.Provider{none, memlimit.Limit(2)}, 2},
		{[]memlimit.Provider{memlimit.Limit(1), none}, 1},
		{[]memlimit.Provider{memlimit.Limit(1 << 63), memlimit.Limit(2)}, 2},
		{[]memlimit.Provider{memlimit.Limit(1), memlimit.Limit(2)}, 1},
		{[]memlimit.Provider{none, none}, 0},
	} {
		if got := least(c.of...); got != c.want {
			t.Errorf("%d: %d, want %d", i, got, c.want)
		}
	}
}

func TestPercent(t *testing.T) {
	for _, c := range []struct {
		live, allowed uint64
		want          int
	}{
		{0, 256 << 20, 6400},
		{32 << 20, 256 << 20, 800},
		{255 << 20, 256 << 20, 100},
		{128 << 20, 256 << 20, 200},
		{256 << 20, 256 << 20, 100},
		{4 << 30, 256 << 20, 100},
		{32 << 20, 0, 100},
	} {
		if got := percent(c.live, c.allowed); got != c.want {
			t.Errorf("%d live and %d allowed: %d %%, want %d", c.live, c.allowed, got, c.want)
		}
	}
}

// TestAllow has little live, much, and little again, each in a process of its own: the
// percentage is the process's.
func TestAllow(t *testing.T) {
	if os.Getenv("KOINE_GARBAGE") == "" {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAllow$")
		cmd.Env = append(os.Environ(), "KOINE_GARBAGE=1", "GOGC=")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	Allow()
	Allow() // a second time it is as it was
	awaitGarbage(t, 200<<20, 400<<20)
	much := make([]byte, 600<<20)
	awaitGarbage(t, 550<<20, 800<<20) // as much as lives
	runtime.KeepAlive(much)
	much = nil
	awaitGarbage(t, 200<<20, 400<<20)
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
