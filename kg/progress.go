package kg

import (
	"log/slog"
	"math"
	"time"
)

// progressEvery is how often a long part of opening logs how far it is.
const progressEvery = time.Second

// progress logs how far a part of opening is, about once in progressEvery, and at its end
// how long it took. What takes less is not logged.
type progress struct {
	log         *slog.Logger
	uptime      func() time.Duration
	what        string // is being done
	of          uint64 // in all; 0 where that is not known
	began, said time.Duration
}

func (s *Store) newProgress(what string, of uint64) *progress {
	now := s.options.Uptime()
	return &progress{log: s.log, uptime: s.options.Uptime, what: what, of: of, began: now, said: now}
}

// step is called with how much is done.
func (p *progress) step(done uint64) {
	now := p.uptime()
	if now-p.said < progressEvery {
		return
	}
	p.said = now
	p.tell(p.what, done, now)
}

// end is called when all that was to be done is done.
func (p *progress) end(done uint64) {
	if now := p.uptime(); now-p.began >= progressEvery {
		p.tell(p.what+": done", done, now)
	}
}

func (p *progress) tell(message string, done uint64, now time.Duration) {
	args := []any{"done", done}
	if p.of > 0 {
		args = append(args, "of", p.of)
	}
	p.log.Info(message, append(args, "seconds", math.Round((now-p.began).Seconds()*10)/10)...)
}
