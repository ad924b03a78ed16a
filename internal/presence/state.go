package presence

import "time"

// Status is the state of an agent.
type Status string

// States. An agent that was never present is Offline.
const (
	Online  Status = "ONLINE"
	Idle    Status = "IDLE"
	Busy    Status = "BUSY"
	Offline Status = "OFFLINE"
)

// Presence is the state of an agent and its start, in UTC with millisecond precision.
// Since is the zero time for an agent that was never present.
type Presence struct {
	Status Status
	Since  time.Time
}

// never is the presence of an agent that was never present.
var never = Presence{Status: Offline}

func newPresence(s Status, since time.Time) Presence {
	return Presence{s, since.UTC().Truncate(time.Millisecond)}
}

// activity is the data from which the state of an agent is computed.
type activity struct {
	connections int
	// heartbeatUntil is the end of the last heartbeat's validity. lingerUntil is the
	// end of the wait after the last connection.
	heartbeatUntil, lingerUntil time.Time
	// stated is the declared state, Busy or Idle, while the heartbeat that declared it
	// is valid; otherwise "".
	stated Status
	active time.Time // arrival or last activity
}

func (s *activity) isPresent(now time.Time) bool {
	return s.connections > 0 || now.Before(s.heartbeatUntil) || now.Before(s.lingerUntil)
}

// presenceAt returns the state at the time now. A change that occurred by the passing
// of time is dated to when it occurred, any other change to now.
func (s *activity) presenceAt(now time.Time, idleAfter time.Duration) Presence {
	if !s.isPresent(now) {
		return newPresence(Offline, laterOf(s.heartbeatUntil, s.lingerUntil))
	}
	since := now
	if s.stated != "" {
		if now.Before(s.heartbeatUntil) {
			return newPresence(s.stated, now)
		}
		since = s.heartbeatUntil // end of the declared state
	}
	if idle := s.active.Add(idleAfter); !now.Before(idle) {
		if s.stated != "" {
			idle = laterOf(idle, s.heartbeatUntil)
		}
		return newPresence(Idle, idle)
	}
	return newPresence(Online, since)
}

// nextChange returns when the state may next change by the passing of time, or the zero
// time.
func (s *activity) nextChange(now time.Time, idleAfter time.Duration) (at time.Time) {
	if !s.isPresent(now) {
		return at
	}
	if s.connections == 0 {
		at = laterOf(s.heartbeatUntil, s.lingerUntil)
	}
	change := s.active.Add(idleAfter)
	if s.stated != "" {
		change = s.heartbeatUntil
	}
	if now.Before(change) && (at.IsZero() || change.Before(at)) {
		at = change
	}
	return at
}

func laterOf(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
