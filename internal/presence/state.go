package presence

import "time"

// Status says whether an agent is there.
type Status string

// The states. Who was never there is Offline.
const (
	Online  Status = "ONLINE"
	Idle    Status = "IDLE"
	Busy    Status = "BUSY"
	Offline Status = "OFFLINE"
)

// Presence is the state of an agent, and since when it is that, in UTC and
// milliseconds; the zero Since for one that was never there.
type Presence struct {
	Status Status
	Since  time.Time
}

// never is the presence of who was never there.
var never = Presence{Status: Offline}

func newPresence(s Status, since time.Time) Presence {
	return Presence{s, since.UTC().Truncate(time.Millisecond)}
}

// activity are what is known of an agent, from which its state follows.
type activity struct {
	connections int
	// beat is until when the last heartbeat holds, linger until when an agent whose
	// last connection ended is waited for.
	heartbeatUntil, lingerUntil time.Time
	// stated is Busy or Idle while a heartbeat holds that said so, else "".
	stated Status
	active time.Time // when it came, or last did something
}

// isPresent tells whether the agent is there.
func (s *activity) isPresent(now time.Time) bool {
	return s.connections > 0 || now.Before(s.heartbeatUntil) || now.Before(s.lingerUntil)
}

// presenceAt is the state that follows. What changed by itself since the last look is dated
// when it did, all else now.
func (s *activity) presenceAt(now time.Time, idleAfter time.Duration) Presence {
	if !s.isPresent(now) {
		return newPresence(Offline, laterOf(s.heartbeatUntil, s.lingerUntil))
	}
	since := now
	if s.stated != "" {
		if now.Before(s.heartbeatUntil) {
			return newPresence(s.stated, now)
		}
		since = s.heartbeatUntil // it said so until then
	}
	if idle := s.active.Add(idleAfter); !now.Before(idle) {
		if s.stated != "" {
			idle = laterOf(idle, s.heartbeatUntil)
		}
		return newPresence(Idle, idle)
	}
	return newPresence(Online, since)
}

// nextChange is when the state may change by itself, the zero time for never.
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
