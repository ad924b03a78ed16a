package base

import "time"

// TimeSpan is the time from From until before Until; a zero time leaves that end open.
type TimeSpan struct{ From, Until time.Time }

// Contains reports whether the time is in the span.
func (s TimeSpan) Contains(t time.Time) bool {
	return !t.Before(s.From) && (s.Until.IsZero() || t.Before(s.Until))
}

// IsZero reports whether the span is open at both ends.
func (s TimeSpan) IsZero() bool { return s.From.IsZero() && s.Until.IsZero() }

// Intersect returns the intersection of both spans. If it is empty, the result ends where
// it begins.
func (s TimeSpan) Intersect(o TimeSpan) TimeSpan {
	if o.From.After(s.From) {
		s.From = o.From
	}
	if s.Until.IsZero() || !o.Until.IsZero() && o.Until.Before(s.Until) {
		s.Until = o.Until
	}
	if !s.Until.IsZero() && s.Until.Before(s.From) {
		s.Until = s.From
	}
	return s
}

// Normalise converts a span to UTC and milliseconds for storage. It returns an error if
// the span is empty or RFC 3339 cannot represent a year.
func (s *TimeSpan) Normalise() error {
	var err *Error
	if s.From, err = NormalEnd(s.From); err != nil {
		return err.At("validFrom")
	}
	if s.Until, err = NormalEnd(s.Until); err != nil {
		return err.At("validTo")
	}
	if !s.Until.IsZero() && !s.Until.After(s.From) {
		return Errorf(CodeInvalid, "the validity is empty: validTo must be later than validFrom").At("validTo")
	}
	return nil
}

// NormalEnd converts one end of a span to UTC and milliseconds.
func NormalEnd(t time.Time) (time.Time, *Error) {
	if t.IsZero() {
		return time.Time{}, nil
	}
	t = t.UTC().Truncate(time.Millisecond)
	if y := t.Year(); y < 1 || y > 9999 {
		return t, Errorf(CodeInvalid, "a time is in the years 1 to 9999")
	}
	return t, nil
}

// Equal reports whether both spans have the same ends.
func (s TimeSpan) Equal(o TimeSpan) bool { return s.From.Equal(o.From) && s.Until.Equal(o.Until) }
