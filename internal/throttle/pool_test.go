package throttle_test

import (
	"bytes"
	"errors"
	"io"
	"net/netip"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"koine/internal/caller"
	"koine/internal/throttle"
	"koine/kg"
)

func ownerOf(id string) throttle.Owner {
	return throttle.OwnerOf(caller.Caller{Principal: kg.Principal{ID: kg.AgentID(id)}})
}

// take takes places one by one until there are none for the owner.
func take(p *throttle.Pool, o throttle.Owner) (n int) {
	for p.Acquire(o, 1) {
		n++
	}
	return n
}

// An owner gets half of what the others leave, rounded up, and the next one half of
// the rest.
func TestSharesOfAPool(t *testing.T) {
	for _, row := range []struct {
		size int64
		want []int // of one owner after the other
	}{
		{1, []int{1, 0}}, {2, []int{1, 1, 0}}, {4, []int{2, 1, 1, 0}}, {100, []int{50, 25, 13, 6, 3, 2, 1, 0}},
	} {
		p := throttle.NewPool(row.size)
		for i, want := range row.want {
			if got := take(p, ownerOf(string(rune('a'+i)))); got != want {
				t.Errorf("of %d, owner %d: got %d, want %d", row.size, i+1, got, want)
			}
		}
	}
}

// Greedy owners that come at the same time end with equal shares, and leave one.
func TestGreedyOwnersOfAPool(t *testing.T) {
	p := throttle.NewPool(400)
	owners := []throttle.Owner{ownerOf("a"), ownerOf("b"), ownerOf("c")}
	held := make([]int, len(owners))
	for range 400 {
		for i, o := range owners {
			if p.Acquire(o, 1) {
				held[i]++
			}
		}
	}
	for i, n := range held {
		if n != 100 {
			t.Errorf("owner %d holds %d, want 100", i+1, n)
		}
	}
	if got := take(p, ownerOf("late")); got != 50 {
		t.Errorf("who comes late: got %d, want 50", got)
	}
	p.Release(owners[0], 100)
	if got := p.InUse(); got != 250 {
		t.Errorf("taken: got %d, want 250", got)
	}
}

// What an owner has already is charged past its share and past the size. It counts for the
// others, and the owner gets nothing more until it is below its share.
func TestChargePastTheShare(t *testing.T) {
	p := throttle.NewPool(4)
	a, b := throttle.OwnerFor("a"), throttle.OwnerFor("b")
	if a != ownerOf("a") {
		t.Error("an agent and its requests are two owners")
	}
	if !p.HasRoom(a, 2) || p.HasRoom(a, 3) || p.InUse() != 0 {
		t.Errorf("room for 2 of 4: %t, for 3: %t", p.HasRoom(a, 2), p.HasRoom(a, 3))
	}
	p.Charge(a, 5)
	if p.InUse() != 5 || p.HasRoom(a, 1) || p.HasRoom(b, 1) || p.Acquire(b, 1) {
		t.Errorf("past the size: %d are taken", p.InUse())
	}
	p.Release(a, 2)
	if p.HasRoom(a, 1) || !p.HasRoom(b, 1) || p.HasRoom(b, 2) {
		t.Error("3 of 4 leave one, for another owner")
	}
	p.Release(a, 2)
	if !p.HasRoom(a, 1) {
		t.Error("no room below the share")
	}
	var none *throttle.Pool
	none.Charge(a, 1)
	if !none.HasRoom(a, 1) {
		t.Error("no pool has no room")
	}
}

func TestMoveBetweenOwners(t *testing.T) {
	p := throttle.NewPool(4)
	a, b := ownerOf("a"), ownerOf("b")
	if !p.Acquire(a, 1) || !p.Move(a, b, 1) || p.InUse() != 1 {
		t.Fatalf("one place: %d are taken", p.InUse())
	}
	if got := take(p, b); got != 1 {
		t.Errorf("the rest of b's share: got %d, want 1", got)
	}
	if !p.Acquire(a, 1) || p.Move(a, b, 1) {
		t.Error("moved past the share of b")
	}
	p.Release(a, 1)
	p.Release(b, 2)
	if p.InUse() != 0 || !p.Move(a, a, 1) {
		t.Errorf("%d are taken at the end", p.InUse())
	}
}

// A caller counts for itself; an unknown one for its address, also on loopback and in open
// mode.
func TestOwnerOf(t *testing.T) {
	at := func(method, id, address string) throttle.Owner {
		c := caller.Caller{Principal: kg.Principal{ID: kg.AgentID(id), Method: method}}
		if address != "" {
			c.Address = netip.MustParseAddr(address)
		}
		return throttle.OwnerOf(c)
	}
	for _, row := range []struct {
		name string
		a, b throttle.Owner
		same bool
	}{
		{"a key, from two addresses", at("key", "a", "10.0.0.1"), at("key", "a", "10.0.0.2"), true},
		{"two keys, one address", at("key", "a", "10.0.0.1"), at("key", "b", "10.0.0.1"), false},
		{"names in open mode", at(kg.MethodOpen, "a", "127.0.0.1"), at(kg.MethodOpen, "b", "127.0.0.1"), false},
		{"no name in open mode", at(kg.MethodOpen, string(kg.Anonymous), "127.0.0.1"), at(kg.MethodOpen, string(kg.Anonymous), "127.0.0.2"), false},
		{"nobody", at(caller.MethodNone, string(kg.Anonymous), "10.0.0.1"), at(caller.MethodNone, string(kg.Anonymous), "10.0.0.1"), true},
		{"nobody at two addresses", at(caller.MethodNone, string(kg.Anonymous), "10.0.0.1"), at(caller.MethodNone, string(kg.Anonymous), "10.0.0.2"), false},
		{"an IPv6 /64", at(caller.MethodNone, "", "2001:db8::1"), at(caller.MethodNone, "", "2001:db8::2"), true},
		{"two IPv6 /64", at(caller.MethodNone, "", "2001:db8::1"), at(caller.MethodNone, "", "2001:db8:0:1::1"), false},
		{"mapped", at(caller.MethodNone, "", "::ffff:10.0.0.1"), throttle.OwnerAt(netip.MustParseAddr("10.0.0.1")), true},
	} {
		if (row.a == row.b) != row.same {
			t.Errorf("%s: the same is %t", row.name, !row.same)
		}
	}
}

// A message is accounted for as its buffer grows, up to the owner's share, and
// gives all of it back.
func TestReceive(t *testing.T) {
	const limit = 64 << 10
	for _, hint := range []int64{0, 1, 10_000, 1 << 40} {
		for _, size := range []int{0, 1, 2047, 2048, 2049, 10_000, limit - 1, limit, limit + 1} {
			in := throttle.Intake{Pool: throttle.NewPool(1 << 20)}
			sent := bytes.Repeat([]byte("x"), size)
			received := in.Receive(ownerOf("a"))
			got, err := received.ReadAll(iotest.HalfReader(bytes.NewReader(sent)), limit, hint, nil)
			if err != nil || !bytes.Equal(got, sent[:min(size, limit)]) {
				t.Errorf("%d bytes, hint %d: got %d, %v", size, hint, len(got), err)
			}
			if taken := in.Pool.InUse(); taken != int64(cap(got)) {
				t.Errorf("%d bytes, hint %d: %d are accounted for, of a buffer of %d", size, hint, taken, cap(got))
			}
			received.Release()
			received.Release()
			if taken := in.Pool.InUse(); taken != 0 {
				t.Errorf("%d bytes: %d are left", size, taken)
			}
		}
	}
}

func TestReceivePastTheShare(t *testing.T) {
	in := throttle.Intake{Pool: throttle.NewPool(16 << 10)}
	received := in.Receive(ownerOf("a"))
	if _, err := received.ReadAll(strings.NewReader(strings.Repeat("x", 8<<10)), 8<<10, 0, nil); err != nil {
		t.Errorf("half of the pool: %v", err)
	}
	received.Release()
	received = in.Receive(ownerOf("a"))
	_, err := received.ReadAll(strings.NewReader(strings.Repeat("x", 9<<10)), 9<<10, 0, nil)
	if kg.CodeOf(err) != kg.CodeOverloaded || kg.AsError(err).RetryAfter <= 0 {
		t.Errorf("past half of the pool: got %v", err)
	}
	received.Release()
	if err := received.Grow(1); kg.CodeOf(err) != kg.CodeOverloaded || in.Pool.InUse() != 0 {
		t.Errorf("after Release: got %v, %d taken", err, in.Pool.InUse())
	}
	broken := errors.New("broken")
	if got, err := in.Receive(ownerOf("a")).ReadAll(io.MultiReader(strings.NewReader("abc"), iotest.ErrReader(broken)), 10, 0, nil); err != broken || string(got) != "abc" {
		t.Errorf("a body that breaks off: got %q, %v", got, err)
	}
}

func TestDeadline(t *testing.T) {
	began := time.Unix(1_700_000_000, 0)
	in := throttle.Intake{Grace: 10 * time.Second, BytesPerSecond: 1000}
	for received, want := range map[int64]time.Duration{0: 10 * time.Second, 999: 10*time.Second + 999*time.Millisecond, 50_000: 60 * time.Second} {
		if got := in.Deadline(began, received).Sub(began); got != want {
			t.Errorf("%d bytes: got %s, want %s", received, got, want)
		}
	}
	if !(throttle.Intake{}).Deadline(began, 5).IsZero() {
		t.Error("no grace has a deadline")
	}
}
