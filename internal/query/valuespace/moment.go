package valuespace

import (
	"cmp"
	"strings"
	"time"

	"koine/kg"
)

// Moment is the value of a date, a time or a dateTime. Without a time zone it is read
// as UTC, and its kind records that.
type Moment struct {
	kind kg.MomentKind // only moments of the same kind are comparable
	at   time.Time
	rest string // fraction digits below nanoseconds
}

// Instant is a comparable key: equal moments have equal instants.
type Instant struct {
	kind        kg.MomentKind
	seconds     int64
	nanoseconds int
	rest        string
}

// At returns the moment of t in UTC.
func At(t time.Time) Moment { return Moment{at: t} }

// Time returns the time of the moment, read as UTC if it has no time zone.
func (m Moment) Time() time.Time { return m.at }

// Instant returns the key of the moment.
func (m Moment) Instant() Instant { return Instant{m.kind, m.at.Unix(), m.at.Nanosecond(), m.rest} }

// Compare compares two moments as Value.Compare does.
func (m Moment) Compare(n Moment) (c int, ordered, known bool) {
	if m.kind != n.kind {
		// A moment with a zone and one without may be equal; different datatypes differ.
		return 1, false, m.kind/2 != n.kind/2
	}
	return m.Order(n), true, true
}

// Order is a total order: by time, then by kind.
func (m Moment) Order(n Moment) int {
	return cmp.Or(m.at.Compare(n.at), strings.Compare(m.rest, n.rest), cmp.Compare(m.kind, n.kind))
}

// ParseMoment parses a literal of a temporal datatype.
func ParseMoment(text, datatype string) (m Moment, ok bool) {
	v, ok := kg.ParseTemporal(text, datatype)
	return Moment{v.Kind, v.At, v.Rest}, ok
}
