package tasks

import (
	"sync"
	"time"

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
	if size := sizeOf(m.Parts); l.MessageBytes > 0 && size > l.MessageBytes {
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

// countOpen counts the open tasks of a handler, up to most.
func countOpen(tx *kg.Tx, handler kg.AgentID, most int) (n int, err error) {
	for _, err := range tx.MatchOwn(kg.Pattern{Predicate: systemgraph.Property(propOpen), Object: kg.IRI(string(handler))}) {
		if err != nil {
			return 0, err
		}
		if n++; n == most {
			break
		}
	}
	return n, nil
}

// rateLimits limits the rate of messages for each agent: a burst of a minute's worth, then
// evenly. It is in memory and starts full.
type rateLimits struct {
	mu  sync.Mutex // guards all
	all map[kg.AgentID]*tokenBucket
}

type tokenBucket struct {
	left float64 // messages allowed at once
	at   time.Time
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
	if p.all == nil {
		p.all = map[kg.AgentID]*tokenBucket{}
	}
	one, most := p.all[agent], float64(perMinute)
	if one == nil {
		one = &tokenBucket{left: most, at: now}
		p.all[agent] = one
	}
	if passed := now.Sub(one.at); passed > 0 {
		one.left, one.at = min(most, one.left+most*passed.Minutes()), now
	}
	if one.left < 1 {
		return max(time.Duration((1-one.left)/most*float64(time.Minute)), 1)
	}
	one.left--
	return 0
}
