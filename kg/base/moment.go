package base

import (
	"strconv"
	"time"
)

// Moment is a point in history: a revision, or, if Time is set, the newest revision committed
// by then.
type Moment struct {
	Revision Revision
	Time     time.Time
}

// ParseMoment parses a revision number or an RFC 3339 time.
func ParseMoment(text string) (Moment, error) {
	if n, err := strconv.ParseUint(text, 10, 64); err == nil {
		return Moment{Revision: Revision(n)}, nil
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return Moment{}, Errorf(CodeInvalid, "%q is neither a revision nor a time like 2026-01-31T12:00:00Z", Clip(text))
	}
	return Moment{Time: t}, nil
}

// String returns the revision or the time in the form of ParseMoment.
func (m Moment) String() string {
	if m.Time.IsZero() {
		return "revision " + strconv.FormatUint(uint64(m.Revision), 10)
	}
	return m.Time.UTC().Format(time.RFC3339Nano)
}
