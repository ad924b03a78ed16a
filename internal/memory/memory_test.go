package memory

import (
	"errors"
	"testing"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// The shares that are used at the same time fit into a memory of any size. A table of new keys
// takes up to twice its size while it is written.
func TestSharesFit(t *testing.T) {
	for _, total := range []int64{Min, 256 << 20, 320<<20 - 1, 320 << 20, Default, 1 << 30, 8 << 30, Max} {
		s := Divide(total)
		if s.Mapped+s.Heap > total {
			t.Errorf("%s: mapped and heap are %d", Size(total), s.Mapped+s.Heap)
		}
		const termBytes = 400 // a term of a message with its entry
		tables := s.Memtable*5/2 + s.Memtable*int64(s.Memtables) + 20*s.Table
		if live := tables + s.Blocks + s.Indexes + s.Runs + s.Commits + int64(s.Terms)*termBytes; live > s.Heap-s.Heap/40 {
			t.Errorf("%s: the shares are %d MiB, the heap has %d", Size(total), live>>20, s.Heap>>20)
		}
		if s.Memtable < 8<<20 || s.Received < 32<<20 || s.Result < 1<<20 || s.Terms&(s.Terms-1) != 0 {
			t.Errorf("%s: %+v", Size(total), s)
		}
	}
	if d := Divide(Default); d.Memtable != 16<<20 || d.Terms != 1<<16 || d.Result != 16<<20 {
		t.Errorf("the default is %+v", d)
	}
	// Ten minutes of publishing with 256M use 34 MiB beyond both, and have to stay below 250.
	if d := Divide(256 << 20); d.Mapped+d.Heap > (250-34)<<20 {
		t.Errorf("256M: mapped and heap are %d MiB, want at most 216", (d.Mapped+d.Heap)>>20)
	}
}

func TestAvailable(t *testing.T) {
	none := func() (uint64, error) { return 0, memlimit.ErrNoLimit }
	fails := func() (uint64, error) { return 0, errors.New("cannot be read") }
	for i, c := range []struct {
		group, machine memlimit.Provider
		want           int64
	}{
		{none, memlimit.Limit(24 << 30), Default},
		{none, memlimit.Limit(512 << 20), 256 << 20},
		{none, memlimit.Limit(64 << 20), Min},
		{none, fails, Default},
		{memlimit.Limit(1 << 30), memlimit.Limit(24 << 30), 768 << 20},
		{memlimit.Limit(100 << 20), memlimit.Limit(24 << 30), Min},
		{memlimit.Limit(1 << 62), memlimit.Limit(24 << 30), Default},
		{fails, memlimit.Limit(24 << 30), Min},
	} {
		if got := available(c.group, c.machine); got != c.want {
			t.Errorf("%d: %s, want %s", i, Size(got), Size(c.want))
		}
	}
	const least = Min / 3 * 4
	for i, c := range []struct {
		group memlimit.Provider
		want  Size
	}{{none, 0}, {fails, 0}, {memlimit.Limit(least + 4), 0}, {memlimit.Limit(least - 4), least - 4}} {
		if got, is := groupLimit(c.group); got != c.want || is != (c.want != 0) {
			t.Errorf("%d: %d, %v, want %d", i, got, is, c.want)
		}
	}
}

func TestSize(t *testing.T) {
	for text, want := range map[string]Size{
		"256M": 256 << 20, "256m": 256 << 20, "256MiB": 256 << 20, "256 MB": 256 << 20, "2G": 2 << 30, "1T": 1 << 40,
		"1024": 1024, "0": 0, "5K": 5 << 10,
	} {
		var got Size
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("%s: %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "M", "-1M", "1.5G", "2T", "1P", "9999999999999999999", "ten"} {
		if err := new(Size).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
	for size, want := range map[Size]string{256 << 20: "256M", 1 << 30: "1G", 1<<30 + 1<<20: "1025M", 1: "1", 0: "0"} {
		if got := size.String(); got != want {
			t.Errorf("%d is shown as %s, want %s", size, got, want)
		}
	}
}

// A time of rest begins after restTimes quiet intervals, once until there was work again.
func TestRest(t *testing.T) {
	var r rest
	allocated := int64(0)
	look := func(work int64) bool {
		allocated += work
		return r.begins(allocated)
	}
	for n := range 2 {
		for range 5 {
			if look(restAmount) {
				t.Fatal("work is no rest")
			}
		}
		for i := 1; i < restTimes; i++ {
			if look(restAmount - 1) {
				t.Fatalf("time %d: rest after %d intervals", n, i)
			}
		}
		if !look(0) {
			t.Fatalf("time %d: no rest after %d intervals", n, restTimes)
		}
		for range 3 {
			if look(restAmount - 1) {
				t.Fatalf("time %d: rest began twice", n)
			}
		}
	}
}
