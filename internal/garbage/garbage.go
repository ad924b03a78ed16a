// Package garbage sets how much garbage a server lets gather before it collects it.
//
// Go collects when there is as much garbage as there is that lives. A server with a small
// heap that writes much is then always collecting: a store that was just opened, where
// 30 MiB live, did so after every 1,500 messages. So garbage may come to a fixed amount in
// any case. Where more than that lives, it is collected as Go does by itself.
package garbage

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// Allowed is about how many bytes of garbage may gather however little lives, where the
// machine has enough: never more than one part in share of its memory, or of what the
// process's control group may take of that.
const (
	Allowed = 256 << 20
	share   = 8
)

// goDefault is the percentage that Go begins with: as much garbage as there is that lives.
const goDefault = 100

// Allow lets garbage gather as above from here on, in the whole process and as long as it
// runs. Who set GOGC in the environment has decided otherwise, and nothing is done; nor is
// it where the memory cannot be told, or when it is called again.
var Allow = sync.OnceFunc(func() {
	if os.Getenv("GOGC") != "" {
		return
	}
	memory := least(memlimit.FromCgroup, memlimit.FromSystem)
	if memory == 0 {
		return
	}
	p := &pacer{allowed: allowed(memory), percent: goDefault}
	p.pace()
})

// least is the least of what the providers give, 0 if none gives anything. A group
// without a limit may be said to have one beyond all that the machine has.
func least(of ...memlimit.Provider) (memory uint64) {
	for _, provider := range of {
		if m, err := provider(); err == nil && (m < memory || memory == 0) {
			memory = m
		}
	}
	return memory
}

// allowed is how much garbage may gather on a machine with so many bytes of memory.
func allowed(memory uint64) uint64 { return min(Allowed, memory/share) }

// leastHeap is what Go takes a heap for that is smaller: runtime/debug does not say so,
// the runtime's heapMinimum does.
const leastHeap = 4 << 20

// percent is what part of so many bytes that live comes to what is allowed, but never
// less than Go's.
func percent(live, allowed uint64) int {
	return int(max(goDefault, goDefault*allowed/max(live, leastHeap)))
}

// pacer sets the percentage anew after each collection, which finds how much lives.
type pacer struct {
	allowed uint64
	percent int
}

// pace sets the percentage if it is off by more than a tenth, since to set it stops the
// world for a moment, and has itself called again after the next collection: a finalizer
// runs when one has found its object unreachable.
func (p *pacer) pace() {
	to := percent(live(), p.allowed)
	if 10*to > 9*p.percent && 9*to < 10*p.percent {
		to = p.percent
	}
	if to != p.percent {
		p.percent = to
		debug.SetGCPercent(to)
	}
	runtime.SetFinalizer(new([16]byte), func(*[16]byte) { p.pace() })
}

// live is how many bytes the last collection found to live.
func live() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}
