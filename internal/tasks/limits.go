package tasks

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"koine/internal/systemgraph"
	"koine/kg"
)

// Limits bound the load of an agent; 0 is no limit.
type Limits struct {
	Tasks             int // open at a time, of all creators
	MessagesPerMinute int
	MessageBytes      int // content of one message
}

// checkLimits checks a message against the limits of its handler, in the update that delivers
// it. counted keeps a retried update from counting the message twice.
func (s *Service) checkLimits(e *edit, m *Message, fresh bool, counted *bool) error {
	l := s.options.Limits(e.task.Handler)
	if size := SizeOf(m.Parts); l.MessageBytes > 0 && size > l.MessageBytes {
		return errTooMuch("message", "the message has %d bytes of content, more than the agent's limit of %d", size, l.MessageBytes)
	}
	if fresh && l.Tasks > 0 {
		open, err := countOpen(e.tx, e.task.Handler, l.Tasks)
		if err != nil {
			return err
		}
		if open == l.Tasks {
			return kg.Errorf(kg.CodeOverloaded, "the agent has %d open tasks, its limit", open).At("to")
		}
	}
	if *counted {
		return nil
	}
	if wait := s.rates.consume(e.task.Handler, l.MessagesPerMinute, s.options.Clock()); wait > 0 {
		err := kg.Errorf(kg.CodeRateLimited, "the agent accepts %d messages per minute", l.MessagesPerMinute).At("to")
		err.RetryAfter = wait
		return err
	}
	*counted = true
	return nil
}

func countOpen(tx *kg.Tx, handler kg.AgentID, limit int) (n int, err error) {
	for _, err := range tx.MatchOwn(kg.Pattern{Predicate: systemgraph.Property(propOpen), Object: kg.IRI(string(handler))}) {
		if err != nil {
			return 0, err
		}
		if n++; n == limit {
			break
		}
	}
	return n, nil
}

// rateLimits limits the rate of messages for each agent: a burst of a minute's worth, then
// evenly. It is in memory and starts full.
type rateLimits struct {
	mu  sync.Mutex // guards all
	all map[kg.AgentID]*rate.Limiter
}

// consume counts a message, or returns how long to wait before the next is allowed.
// Without a limit it forgets the agent.
func (p *rateLimits) consume(agent kg.AgentID, perMinute int, now time.Time) (wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if perMinute == 0 {
		delete(p.all, agent)
		return 0
	}
	limit, one := rate.Limit(float64(perMinute)/60), p.all[agent]
	if one == nil {
		if p.all == nil {
			p.all = map[kg.AgentID]*rate.Limiter{}
		}
		one = rate.NewLimiter(limit, perMinute)
		p.all[agent] = one
	}
	one.SetLimitAt(now, limit)
	one.SetBurstAt(now, perMinute)
	message := one.ReserveN(now, 1)
	if wait = message.DelayFrom(now); wait > 0 {
		message.CancelAt(now)
	}
	return wait
}
