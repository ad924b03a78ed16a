package delivery

import (
	"container/heap"
	"container/list"
	"context"
	"sync"

	"koine/kg"
)

// slots are the calls that may be under way, shared by agents. An agent gets a slot if it
// holds fewer than are free: at most half of those that the others leave, as in
// throttle.Pool, so that the next agent finds one. The next slot goes to the waiting agent
// that holds the fewest, and of several to the longest waiting call. None starves:
// once its calls have ended an agent holds nothing, and comes before all that came later.
//
// The queue has no bound of its own. A Line waits for one slot at a time, so it is bounded by
// the number of lines.
type slots struct {
	unshared bool // an agent may hold all slots

	mu       sync.Mutex // guards the following
	free     int
	agents   map[kg.AgentID]*slotHolder // that hold a slot or wait for one
	waiting  slotQueue
	arrivals uint64 // calls that have come so far
}

// slotHolder is an agent with calls under way or waiting.
type slotHolder struct {
	agent kg.AgentID
	held  int
	calls list.List // of *slotRequest that wait, oldest first
	index int       // in slots.waiting, if calls is not empty
}

// slotRequest is a call that waits for a slot.
type slotRequest struct {
	arrival uint64
	granted chan struct{} // closed when it has its slot
}

func newSlots(size int, unshared bool) *slots {
	return &slots{unshared: unshared, free: size, agents: map[kg.AgentID]*slotHolder{}}
}

// acquire waits for a slot of the agent.
func (s *slots) acquire(ctx context.Context, agent kg.AgentID) (release func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	h, place := s.enqueueCall(agent)
	call := place.Value.(*slotRequest)
	release = func() { s.releaseSlot(h) }
	select {
	case <-call.granted:
		return release, nil
	case <-ctx.Done():
		if !s.withdrawCall(h, place) {
			release() // it was granted at the same time
		}
		return nil, ctx.Err()
	}
}

// enqueueCall queues a call of the agent, and grants it a slot if it is its turn.
func (s *slots) enqueueCall(agent kg.AgentID) (h *slotHolder, place *list.Element) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h = s.agents[agent]; h == nil {
		h = &slotHolder{agent: agent}
		s.agents[agent] = h
	}
	s.arrivals++
	place = h.calls.PushBack(&slotRequest{arrival: s.arrivals, granted: make(chan struct{})})
	if h.calls.Len() == 1 {
		heap.Push(&s.waiting, h)
	}
	s.grantSlots()
	return h, place
}

// withdrawCall removes a call from the queue. It reports false if the call has a slot.
func (s *slots) withdrawCall(h *slotHolder, place *list.Element) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-place.Value.(*slotRequest).granted:
		return false
	default:
	}
	s.dequeue(h, place)
	s.forgetIdle(h)
	return true
}

// releaseSlot returns a slot.
func (s *slots) releaseSlot(h *slotHolder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h.held--
	s.free++
	if h.calls.Len() > 0 {
		heap.Fix(&s.waiting, h.index)
	}
	s.forgetIdle(h)
	s.grantSlots()
}

// grantSlots gives free slots to the calls that are next. If the agent that holds the fewest
// gets none, no other one does. The caller holds s.mu.
func (s *slots) grantSlots() {
	for s.free > 0 && len(s.waiting) > 0 {
		h := s.waiting[0]
		if h.held >= s.free && !s.unshared {
			return
		}
		h.held++
		s.free--
		first := h.calls.Front()
		s.dequeue(h, first)
		close(first.Value.(*slotRequest).granted)
	}
}

// dequeue removes a call from the queue, and restores its order. The caller holds s.mu.
func (s *slots) dequeue(h *slotHolder, place *list.Element) {
	h.calls.Remove(place)
	if h.calls.Len() == 0 {
		heap.Remove(&s.waiting, h.index)
	} else {
		heap.Fix(&s.waiting, h.index)
	}
}

// forgetIdle removes an agent without calls. The caller holds s.mu.
func (s *slots) forgetIdle(h *slotHolder) {
	if h.held == 0 && h.calls.Len() == 0 {
		delete(s.agents, h.agent)
	}
}

// slotQueue has the agents with waiting calls, as a heap: the next one to be served first.
type slotQueue []*slotHolder

func (q slotQueue) Len() int { return len(q) }

func (q slotQueue) Less(i, j int) bool {
	if q[i].held != q[j].held {
		return q[i].held < q[j].held
	}
	return q[i].arrival() < q[j].arrival()
}

func (q slotQueue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

// Push implements heap.Interface.
func (q *slotQueue) Push(h any) {
	last := h.(*slotHolder)
	last.index = len(*q)
	*q = append(*q, last)
}

// Pop implements heap.Interface.
func (q *slotQueue) Pop() any {
	n := len(*q) - 1
	last := (*q)[n]
	(*q)[n] = nil
	*q = (*q)[:n]
	return last
}

// arrival returns the arrival of the oldest call that waits.
func (h *slotHolder) arrival() uint64 { return h.calls.Front().Value.(*slotRequest).arrival }
