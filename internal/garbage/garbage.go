// Package garbage keeps the memory of a server within a limit.
//
// By default Go collects when the garbage is as large as the live heap. A server with a
// small heap that writes much then collects permanently: a store that was just opened,
// with 30 MiB live, did so after every 1,500 messages. This package allows a fixed amount
// of garbage while the live heap is smaller, keeps Go's default when it is larger, and allows
// less of it near the limit. A quarter of the live heap may always be garbage: a server with
// more live than its limit would do nothing else than collect.
package garbage

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
)

// Bounds of the garbage beside the live heap.
const (
	// Allowed is the garbage in bytes that may accumulate however small the live heap is, but
	// never more of it than most says, in percent.
	Allowed = 256 << 20
	most    = 800

	goDefault = 100 // Go's GOGC in percent: as much garbage as live heap

	// Near the limit, this part of the live heap may be garbage, and at least this amount.
	leastShare  = 4
	leastAmount = 32 << 20
)

// limited is the limit of the process, 0 without one.
var limited atomic.Int64

// Limit bounds the memory that Go takes of the system, in bytes, as long as the process runs.
// GOGC and GOMEMLIMIT in the environment take precedence.
func Limit(bytes int64) {
	if limited.Swap(bytes) == 0 {
		adjust(os.Getenv("GOGC") == "", os.Getenv("GOMEMLIMIT") == "")
	}
}

// adjust sets Go's percentage and limit for the live heap of the last collection, and does so
// again after the next one: a finalizer runs when a collection has found its object
// unreachable. Until then the previous ones apply, which is why the percentage is bounded.
func adjust(percent, limit bool) {
	u := readUse()
	if percent {
		debug.SetGCPercent(gcPercent(u.scanned))
	}
	if limit {
		debug.SetMemoryLimit(softLimit(limited.Load(), u.needed))
	}
	runtime.SetFinalizer(new([16]byte), func(*[16]byte) { adjust(percent, limit) })
}

// gcPercent returns the GOGC percentage for the given live heap in bytes.
func gcPercent(live int64) int {
	return int(min(max(goDefault, goDefault*Allowed/max(live, 1)), most))
}

// softLimit returns Go's limit for the given limit and the memory that cannot be collected.
func softLimit(limit, needed int64) int64 {
	return max(limit, needed+max(needed/leastShare, leastAmount))
}

// use is the memory after a collection, in bytes.
type use struct {
	needed  int64 // all that Go has of the system's memory and could not give back
	scanned int64 // the base of the percentage: the live heap, and the other memory that a collection reads
}

func readUse() use {
	s := []metrics.Sample{
		{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/free:bytes"}, {Name: "/memory/classes/heap/unused:bytes"},
		{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"},
	}
	metrics.Read(s)
	at := func(i int) int64 { return int64(s[i].Value.Uint64()) }
	live := at(5)
	return use{
		needed:  at(0) - at(1) - at(2) - at(3) - at(4) + live,
		scanned: live + at(6) + at(7),
	}
}
