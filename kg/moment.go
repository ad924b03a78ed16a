package kg

import (
	"context"
	"strconv"
	"time"
)

// Moment names a place in history: a revision or, where Time is set, a time,
// which stands for the newest revision that was committed by then.
type Moment struct {
	Revision Revision
	Time     time.Time
}

// ParseMoment reads the number of a revision or an RFC 3339 time.
func ParseMoment(text string) (Moment, error) {
	if n, err := strconv.ParseUint(text, 10, 64); err == nil {
		return Moment{Revision: Revision(n)}, nil
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return Moment{}, Errorf(CodeInvalid, "%q is neither a revision nor a time like 2026-01-31T12:00:00Z", clip(text))
	}
	return Moment{Time: t}, nil
}

func (m Moment) String() string {
	if m.Time.IsZero() {
		return "revision " + strconv.FormatUint(uint64(m.Revision), 10)
	}
	return m.Time.UTC().Format(time.RFC3339Nano)
}

// Resolve is the revision of the moment: 0 before the first commit. A time
// before the oldest entry of a log whose head was cut is CodeRevisionGone.
func (s *Store) Resolve(ctx context.Context, m Moment) (Revision, error) {
	if m.Time.IsZero() {
		return m.Revision, nil
	}
	return s.RevisionAt(ctx, m.Time)
}

// ReadableAt is Resolve for a read, which needs a revision: before the first
// there is nothing to read, and that is CodeRevisionGone.
func (s *Store) ReadableAt(ctx context.Context, m Moment) (Revision, error) {
	r, err := s.Resolve(ctx, m)
	if r == 0 && err == nil {
		err = Errorf(CodeRevisionGone, "%s is before the first commit: there is nothing to read", m)
	}
	return r, err
}
