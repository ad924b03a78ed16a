package tasks

import (
	"sync"
	"time"

	"koine/internal/records"
	"koine/kg"
)

// Limits are how much an agent takes; 0 is no limit.
type Limits struct {
	Tasks             int // that go on at a time, of all their creators
	MessagesPerMinute int
	MessageBytes      int // of the content of a message
}

// admit refuses a message that is more than its handler takes, in the update that
// would bring it. counted tells whether the message was, as an update may be made of
// several attempts.
func (s *Service) admit(e *edit, m *Message, fresh bool, counted *bool) error {
	l := s.options.Limits(e.task.Handler)
	if size := sizeOf(m.Parts); l.MessageBytes > 0 && size > l.MessageBytes {
		return errTooMuch("message", "%d bytes of content are more than the %d that the agent takes", size, l.MessageBytes)
	}
	if fresh && l.Tasks > 0 {
		open, err := goingOn(e.tx, e.task.Handler, l.Tasks)
		if err != nil {
			return err
		}
		if open == l.Tasks {
			return kg.Errorf(kg.CodeOverloaded, "the agent has %d tasks that go on, as many as it takes", open).At("to")
		}
	}
	if *counted {
		return nil
	}
	if wait := s.paces.take(e.task.Handler, l.MessagesPerMinute, s.options.Clock()); wait > 0 {
		err := kg.Errorf(kg.CodeRateLimited, "the agent takes %d messages in a minute", l.MessagesPerMinute).At("to")
		err.RetryAfter = wait
		return err
	}
	*counted = true
	return nil
}

// goingOn counts the tasks of a handler that have not ended, up to most.
func goingOn(tx *kg.Tx, handler kg.AgentID, most int) (n int, err error) {
	for _, err := range tx.MatchOwn(kg.Pattern{Predicate: records.Property(propOpen), Object: kg.IRI(string(handler))}) {
		if err != nil {
			return 0, err
		}
		if n++; n == most {
			break
		}
	}
	return n, nil
}

// paces says how many messages came to agents that have a limit of them: as many at once
// as in a minute, and then evenly. It is of memory: a server that begins knows of none.
type paces struct {
	mu  sync.Mutex // guards what follows
	all map[kg.AgentID]*pace
}

type pace struct {
	left float64 // messages that may come at once
	at   time.Time
}

// take counts a message, or says how long it is until one may come. With no limit what
// was counted is forgotten.
func (p *paces) take(agent kg.AgentID, perMinute int, now time.Time) (wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if perMinute == 0 {
		delete(p.all, agent)
		return 0
	}
	if p.all == nil {
		p.all = map[kg.AgentID]*pace{}
	}
	one, most := p.all[agent], float64(perMinute)
	if one == nil {
		one = &pace{left: most, at: now}
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
