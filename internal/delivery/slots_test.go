package delivery

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"koine/internal/throttle"
	"koine/kg"
)

// slotCall is a call in a test.
type slotCall struct {
	slots  *slots
	holder *slotHolder
	place  *list.Element
}

func (s *slots) call(agent kg.AgentID) *slotCall {
	h, place := s.enqueueCall(agent)
	return &slotCall{s, h, place}
}

func (c *slotCall) underWay() bool {
	select {
	case <-c.place.Value.(*slotRequest).granted:
		return true
	default:
		return false
	}
}

func (c *slotCall) end() { c.slots.releaseSlot(c.holder) }

// An agent gets as many slots as of a throttle.Pool, at the bound and past it; unshared it
// gets all.
func TestSharesOfSlots(t *testing.T) {
	for size := 1; size <= 9; size++ {
		s, unshared, pool := newSlots(size, false), newSlots(size, true), throttle.NewPool(int64(size))
		for _, agent := range []kg.AgentID{"a", "b", "c", "d"} {
			for i := range size + 1 {
				got, want := s.call(agent).underWay(), pool.Acquire(throttle.OwnerFor(agent), 1)
				if got != want {
					t.Errorf("of %d, call %d of %s: %t, want %t", size, i+1, agent, got, want)
				}
				if agent != "a" {
					continue
				}
				if got, want := unshared.call(agent).underWay(), i < size; got != want {
					t.Errorf("of %d unshared, call %d: %t, want %t", size, i+1, got, want)
				}
			}
		}
	}
}

// The next slot goes to the agent with the fewest calls under way, and of several to the one
// that waits longest. An agent without any finds a slot at once while one holds its share.
func TestOrderOfSlots(t *testing.T) {
	s := newSlots(4, false)
	var a []*slotCall
	for range 5 {
		a = append(a, s.call("a"))
	}
	b, c := s.call("b"), s.call("c")
	for i, want := range []bool{true, true, false, false, false} {
		if a[i].underWay() != want {
			t.Errorf("call %d of a: %t", i+1, !want)
		}
	}
	if !b.underWay() || !c.underWay() {
		t.Fatal("an agent without calls waits for one that holds its share")
	}
	moreB, d, moreD, e := s.call("b"), s.call("d"), s.call("d"), s.call("e")
	for i, step := range []struct{ ended, next *slotCall }{{a[0], d}, {a[1], a[2]}, {b, moreB}, {d, moreD}, {c, e}} {
		if step.next.underWay() {
			t.Errorf("step %d: the call is under way already", i)
		}
		step.ended.end()
		if !step.next.underWay() {
			t.Fatalf("step %d: another call came first", i)
		}
	}
	if moreB.end(); a[3].underWay() {
		t.Error("an agent took the slot that its share leaves to the others")
	}
	if e.end(); !a[3].underWay() || a[4].underWay() {
		t.Errorf("with two free slots: %t and %t", a[3].underWay(), a[4].underWay())
	}
}

// An agent that waits is served, however many come after it.
func TestNoAgentStarves(t *testing.T) {
	s := newSlots(2, false)
	under := []*slotCall{s.call("b"), s.call("a")}
	waits := s.call("a")
	for i := range 100 {
		fresh := s.call(kg.AgentID(fmt.Sprint(i)))
		if under[0].end(); waits.underWay() {
			return
		}
		if !fresh.underWay() {
			t.Fatalf("step %d: the slot went to nobody", i)
		}
		under = append(under[1:], fresh)
	}
	t.Error("a waits for all others")
}

// A call that is given up leaves the queue to the others, and agents without calls leave
// nothing behind.
func TestSlotsOfCallsGivenUp(t *testing.T) {
	s := newSlots(1, false)
	first := s.call("a")
	ctx, cancel := context.WithCancelCause(t.Context())
	var all sync.WaitGroup
	for _, agent := range []kg.AgentID{"a", "b", "b", "c"} {
		all.Go(func() {
			if _, err := s.acquire(ctx, agent); !errors.Is(err, context.Canceled) {
				t.Errorf("%s: got %v", agent, err)
			}
		})
	}
	for waiting := 0; waiting < 4; {
		s.mu.Lock()
		waiting = 0
		for _, h := range s.waiting {
			waiting += h.calls.Len()
		}
		s.mu.Unlock()
	}
	last := s.call("b")
	cancel(nil)
	all.Wait()
	if _, err := s.acquire(ctx, "d"); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: got %v", err)
	}
	first.end()
	if !last.underWay() {
		t.Error("the call that is left gets no slot")
	}
	last.end()
	if len(s.agents) != 0 || len(s.waiting) != 0 || s.free != 1 {
		t.Errorf("%d agents, %d in the queue and %d free slots are left", len(s.agents), len(s.waiting), s.free)
	}
}

// Calls of many agents at once, some given up, are never more than there are slots, and all
// slots come back.
func TestSlotsAtOnce(t *testing.T) {
	const size = 5
	s := newSlots(size, false)
	var under, done atomic.Int32
	var all sync.WaitGroup
	for i := range 40 {
		agent := kg.AgentID(fmt.Sprint(i % 7))
		all.Go(func() {
			for range 200 {
				ctx, cancel := context.WithCancel(t.Context())
				if rand.N(4) == 0 {
					go cancel()
				}
				if release, err := s.acquire(ctx, agent); err == nil {
					if n := under.Add(1); n > size {
						t.Errorf("%d calls under way", n)
					}
					done.Add(1)
					under.Add(-1)
					release()
				}
				cancel()
			}
		})
	}
	all.Wait()
	if done.Load() == 0 || len(s.agents) != 0 || len(s.waiting) != 0 || s.free != size {
		t.Errorf("%d calls; %d agents, %d in the queue and %d free slots are left", done.Load(), len(s.agents), len(s.waiting), s.free)
	}
}
