// Package footprint reads the use that a process makes of the machine: memory, processor time, and
// bytes written to the volume. Benchmarks and tests of memory read it of a process beside
// theirs, so that their own garbage is not in it.
package footprint

import "time"

// Footprint is the use that a process makes of the machine. Amounts are bytes.
type Footprint struct {
	Resident int64 // in memory, Private and Mapped together
	Private  int64 // heap, stacks and memory that no file backs
	Mapped   int64 // pages of files, which the system may reclaim
	Peak     int64 // the largest Resident so far
	Written  int64 // sent to the volume since the start of the process

	Processor time.Duration // user and system time since the start of the process
}
