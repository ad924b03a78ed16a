// Package garbage sets how much garbage a server lets gather before it collects it.
//
// Go collects when there is as much garbage as there is that lives. A server with a small
// heap that writes much is then always collecting: a store that was just opened, where
// 30 MiB live, did so after every 1,500 messages. So garbage may come to a fixed amount
// where less than that lives, and is collected as Go does by itself where more does.
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

// Allowed is about how many bytes of garbage may gather, where the machine has enough:
// never more than one part in share of its memory, or of what the process's control group
// may take of that. It is never less than what lives, nor more than most percent of it.
const (
	Allowed = 256 << 20
	share   = 8
	most    = 800
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
	if memory := least(memlimit.FromCgroup, memlimit.FromSystem); memory > 0 {
		pace(allowed(memory))
	}
})

// least is the least of what the providers give: a group without a limit may be said to
// have one beyond all that the machine has. It is 0 where one of them fails, which may
// know of less.
func least(of ...memlimit.Provider) (memory uint64) {
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

// allowed is how much garbage may gather on a machine with so many bytes of memory.
func allowed(memory uint64) uint64 { return min(Allowed, memory/share) }

// percent is what part of so many bytes that live comes to what is allowed.
func percent(live, allowed uint64) int {
	return int(min(max(goDefault, goDefault*allowed/max(live, 1)), most))
}

// pace sets the percentage by what the last collection found to live, and has itself
// called again after the next one: a finalizer runs when a collection has found its object
// unreachable. Until it runs the percentage is the old one, which is why that is bounded.
func pace(allowed uint64) {
	debug.SetGCPercent(percent(live(), allowed))
	runtime.SetFinalizer(new([16]byte), func(*[16]byte) { pace(allowed) })
}

// live is how many bytes the percentage is of: what the last collection found to live on
// the heap, and what it looks through besides.
func live() (bytes uint64) {
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"}}
	metrics.Read(s)
	for i := range s {
		bytes += s[i].Value.Uint64()
	}
	return bytes
}
