// Package garbage tunes the garbage collector of a server.
//
// By default Go collects when the garbage is as large as the live heap. A server with a
// small heap that writes much then collects permanently: a store that was just opened,
// with 30 MiB live, did so after every 1,500 messages. This package allows a fixed amount
// of garbage while the live heap is smaller, and keeps Go's default when it is larger.
package garbage

import (
	"errors"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// Allowed is the amount of garbage in bytes that may accumulate: at most 1/share of the
// memory of the machine or control group, at least the size of the live heap, and never
// more of it than most says, in percent.
const (
	Allowed = 256 << 20
	share   = 8
	most    = 800
)

// goDefault is Go's default GOGC.
const goDefault = 100

// Allow applies the above to the process as long as it runs. It does nothing if GOGC is set in the
// environment, if the memory size is unknown, or when it is called again.
var Allow = sync.OnceFunc(func() {
	if os.Getenv("GOGC") != "" {
		return
	}
	if memory := smallestLimit(memlimit.FromCgroup, memlimit.FromSystem); memory > 0 {
		setPercent(allowedGarbage(memory))
	}
})

// smallestLimit returns the smallest result of the providers: a group without a limit may
// report one beyond the machine's memory. It returns 0 if one of them fails, because its
// result might be smaller.
func smallestLimit(of ...memlimit.Provider) (memory uint64) {
	for _, provider := range of {
		switch m, err := provider(); {
		case errors.Is(err, memlimit.ErrNoLimit), errors.Is(err, memlimit.ErrNoCgroup), errors.Is(err, memlimit.ErrCgroupsNotSupported):
		case err != nil:
			return 0
		case m < memory || memory == 0:
			memory = m
		}
	}
	return memory
}

// allowedGarbage returns the allowed garbage for the given memory in bytes.
func allowedGarbage(memory uint64) uint64 { return min(Allowed, memory/share) }

// gcPercent returns the GOGC percentage for the given live heap and allowed garbage in bytes.
func gcPercent(live, allowed uint64) int {
	return int(min(max(goDefault, goDefault*allowed/max(live, 1)), most))
}

// setPercent sets the percentage for the live heap of the last collection, and reruns
// after the next one: a finalizer runs when a collection has found its object
// unreachable. Until then the previous percentage applies, which is why it is bounded.
func setPercent(allowed uint64) {
	debug.SetGCPercent(gcPercent(liveBytes(), allowed))
	runtime.SetFinalizer(new([16]byte), func(*[16]byte) { setPercent(allowed) })
}

// liveBytes returns the size in bytes to which the percentage applies: the live heap of
// the last collection, and the other scanned memory.
func liveBytes() (bytes uint64) {
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"}}
	metrics.Read(s)
	for i := range s {
		bytes += s[i].Value.Uint64()
	}
	return bytes
}
