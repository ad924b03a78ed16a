// Package memory divides the memory of a server among its uses: the caches, the newest
// keys, requests that are not answered, answers, and garbage. Divide has the table.
package memory

import (
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"strings"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// Bounds of the memory of a server.
const (
	Min = 160 << 20
	Max = 1 << 40

	// Default is the memory of a server in a group of processes without a limit, if the machine
	// has twice as much. Files that it reads are in the page cache of the system beside it.
	Default = 384 << 20
)

// program is the size of the binary's own pages, which the system reads from its file.
const program = 48 << 20

// small is the memory below which the store writes more often, to have less in memory.
const small = 320 << 20

// Shares is how much of the memory each use has. Amounts are bytes, unless the comment says
// otherwise.
type Shares struct {
	Total int64

	Heap   int64 // all memory of Go: everything below, but for Mapped, and garbage
	Mapped int64 // pages of the program and the index that are given back beyond it

	Memtable  int64 // a table of the newest keys that is not written yet
	Memtables int   // how many of them may wait to be written
	Table     int64 // a small file of the index, of which about ten are made at the same time
	Blocks    int64 // blocks of the index
	Indexes   int64 // filters and indexes of its files; others are read through their mapping
	Runs      int64 // decoded runs of statements
	Terms     int   // terms in each direction, in number
	Commits   int64 // the newest commits, decoded

	Received int64 // bodies and messages that were received and not answered yet
	Result   int64 // an answer of GraphQL
}

// Divide returns the shares of the memory.
func Divide(total int64) Shares {
	s := Shares{
		Total:     total,
		Mapped:    program + total/16,
		Memtable:  16 << 20,
		Memtables: 2,
		Table:     2 << 20,
		Blocks:    total / 12,
		Indexes:   total / 16,
		Runs:      min(total/16, 256<<20),
		Terms:     1 << (bits.Len64(uint64(min(total/(6<<10), 1<<20))) - 1),
		Commits:   min(total/32, 64<<20),
		Received:  min(max(total/2, 32<<20), 256<<20),
		Result:    min(total/16, 16<<20),
	}
	// Outside the shares are garbage made during a collection, pages mapped between two checks,
	// and the stacks of threads and data of the program, which Go does not count.
	reserve := total / 8
	switch {
	case total < small:
		s.Memtable, s.Memtables, s.Table = 8<<20, 1, 1<<20
		s.Blocks, s.Indexes, s.Runs = total/24, total/24, total/80
		reserve += total / 32 // the reserve needed does not shrink in proportion
	case total >= 1<<30:
		s.Memtables, s.Blocks = 5, total/8
	}
	s.Heap = total - s.Mapped - reserve
	return s
}

// GroupLimit returns the limit of the group of processes, if it is one that a server of Min does
// not fit into.
func GroupLimit() (limit Size, tooSmall bool) { return groupLimit(memlimit.FromCgroup) }

func groupLimit(group memlimit.Provider) (limit Size, tooSmall bool) {
	n, err := group()
	if err != nil || n/4*3 >= Min {
		return 0, false
	}
	return Size(n), true
}

// Available returns the memory of a server that was given none: three quarters of the limit
// of its group of processes. Without a limit it is Default, or half of a small machine's
// memory. An unknown amount counts as none.
func Available() int64 {
	return available(memlimit.FromCgroup, memlimit.FromSystem)
}

func available(group, machine memlimit.Provider) int64 {
	has, err := machine()
	if err != nil {
		has = Max
	}
	limit, err := group()
	switch {
	case err == nil && limit < has: // a group without a limit may report one beyond the machine's
		return clamp(limit / 4 * 3)
	case err != nil && !errors.Is(err, memlimit.ErrNoLimit) && !errors.Is(err, memlimit.ErrNoCgroup) && !errors.Is(err, memlimit.ErrCgroupsNotSupported):
		return Min // the limit cannot be read, and may be a small one
	}
	return clamp(min(Default, has/2))
}

func clamp(n uint64) int64 { return int64(min(max(n, Min), Max)) }

// Size is an amount of memory as operators write it: a number with the unit K, M, G or T,
// of which each is 1,024 times the one before.
type Size int64

// UnmarshalText reads a size. B, iB and case of the unit make no difference.
func (s *Size) UnmarshalText(text []byte) error {
	digits := strings.TrimRight(strings.ToUpper(strings.TrimSpace(string(text))), "IB")
	shift := 0
	if n := len(digits) - 1; n >= 0 {
		if unit := strings.IndexByte("KMGT", digits[n]); unit >= 0 {
			digits, shift = digits[:n], 10*(unit+1)
		}
	}
	n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
	if err != nil || n < 0 || n > Max>>shift {
		return fmt.Errorf("%q is no size: give a number with a unit, for example 512M or 2G, at most 1T", text)
	}
	*s = Size(n << shift)
	return nil
}

// String returns the size in the largest unit that divides it.
func (s Size) String() string {
	unit := 0
	for n := s; n != 0 && n%1024 == 0 && unit < 4; n /= 1024 {
		unit++
	}
	if unit == 0 {
		return strconv.FormatInt(int64(s), 10)
	}
	return strconv.FormatInt(int64(s)>>(10*unit), 10) + "KMGT"[unit-1:unit]
}
