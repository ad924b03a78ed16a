package base

import (
	"strconv"
	"strings"
	"time"
)

// MomentKind is the datatype of a date, a time or a dateTime, and whether it has a time zone.
type MomentKind uint8

// The kinds. Those without a time zone follow those with one.
const (
	DateTimeKind MomentKind = iota
	LocalDateTimeKind
	DateKind
	LocalDateKind
	TimeOfDayKind
	LocalTimeOfDayKind
)

// TemporalValue is the value of a date, a time or a dateTime. Without a time zone, At is read as UTC.
type TemporalValue struct {
	Kind MomentKind
	At   time.Time
	Rest string // fraction digits below nanoseconds
}

// ParseTemporal parses a literal of a temporal datatype: XML Schema Datatypes 1.1,
// sections 3.3.7 to 3.3.9 and 3.4.28. Hour 24 is midnight of the next day.
func ParseTemporal(text, datatype string) (m TemporalValue, ok bool) {
	p := momentParser{text: text, ok: true}
	var year, month, day, hour, minute, second, nanosecond int
	switch datatype {
	case XSDDateTime, xsdDateTimeStamp:
		m.Kind = DateTimeKind
		year, month, day = p.parseDate()
		p.consumeByte('T')
		hour, minute, second, nanosecond = p.parseTime(&m.Rest)
	case XSDDate:
		m.Kind = DateKind
		year, month, day = p.parseDate()
	case xsdTime:
		m.Kind = TimeOfDayKind
		year, month, day = 1972, 12, 31 // as XML Schema defines
		hour, minute, second, nanosecond = p.parseTime(&m.Rest)
		hour %= 24
	default:
		return m, false
	}
	zone, local := p.parseZone()
	if !p.ok || p.text != "" || local && datatype == xsdDateTimeStamp {
		return m, false
	}
	if local {
		m.Kind++
	}
	m.At = time.Date(year, time.Month(month), day, hour, minute, second, nanosecond, time.UTC).Add(-zone)
	return m, true
}

// momentParser consumes a text from the front. ok is false after a mismatch.
type momentParser struct {
	text string
	ok   bool
}

// maxYearDigits is the largest number of digits of a supported year.
const maxYearDigits = 9

// HasLongYear reports whether a date's year has more digits than are supported.
func HasLongYear(text string) bool {
	year, _, _ := strings.Cut(strings.TrimPrefix(text, "-"), "-")
	return len(year) > maxYearDigits
}

// IsTemporal reports whether a datatype is one of dates and times.
func IsTemporal(datatype string) bool {
	switch datatype {
	case XSDDateTime, XSDDate, xsdTime, xsdDateTimeStamp:
		return true
	}
	return false
}

func (p *momentParser) parseDate() (year, month, day int) {
	negative := strings.HasPrefix(p.text, "-")
	p.text = strings.TrimPrefix(p.text, "-")
	n := 0
	for n < len(p.text) && isDigit(p.text[n]) {
		n++
	}
	p.ok = p.ok && n >= 4 && n <= maxYearDigits && (n == 4 || p.text[0] != '0')
	year = p.parseNumber(n)
	if negative {
		year = -year
	}
	p.consumeByte('-')
	month = p.parseTwoDigits(1, 12)
	p.consumeByte('-')
	day = p.parseTwoDigits(1, 31)
	p.ok = p.ok && day <= time.Date(year, time.Month(month)+1, 0, 0, 0, 0, 0, time.UTC).Day()
	return year, month, day
}

func (p *momentParser) parseTime(rest *string) (hour, minute, second, nanosecond int) {
	hour = p.parseTwoDigits(0, 24)
	p.consumeByte(':')
	minute = p.parseTwoDigits(0, 59)
	p.consumeByte(':')
	second = p.parseTwoDigits(0, 59)
	if strings.HasPrefix(p.text, ".") {
		n := 1
		for n < len(p.text) && isDigit(p.text[n]) {
			n++
		}
		p.ok = p.ok && n > 1
		digits := strings.TrimRight(p.text[1:n], "0")
		p.text = p.text[n:]
		*rest = digits[min(len(digits), 9):]
		nanosecond, _ = strconv.Atoi((digits + "000000000")[:9])
	}
	p.ok = p.ok && (hour < 24 || minute == 0 && second == 0 && nanosecond == 0 && *rest == "")
	return hour, minute, second, nanosecond
}

func (p *momentParser) parseZone() (offset time.Duration, local bool) {
	switch {
	case p.text == "":
		return 0, true
	case p.text == "Z":
		p.text = ""
		return 0, false
	}
	negative := p.text[0] == '-'
	p.ok = p.ok && (negative || p.text[0] == '+')
	p.text = p.text[1:]
	hours := p.parseTwoDigits(0, 14)
	p.consumeByte(':')
	minutes := p.parseTwoDigits(0, 59)
	p.ok = p.ok && (hours < 14 || minutes == 0)
	offset = time.Duration(hours)*time.Hour + time.Duration(minutes)*time.Minute
	if negative {
		offset = -offset
	}
	return offset, false
}

// parseTwoDigits parses a number of two digits between least and most.
func (p *momentParser) parseTwoDigits(least, most int) int {
	n := p.parseNumber(2)
	p.ok = p.ok && n >= least && n <= most
	return n
}

func (p *momentParser) parseNumber(digits int) (n int) {
	if len(p.text) < digits || digits > maxYearDigits {
		p.ok = false
	}
	for range min(digits, maxYearDigits) {
		if !p.ok || !isDigit(p.text[0]) {
			p.ok = false
			return 0
		}
		n, p.text = n*10+int(p.text[0]-'0'), p.text[1:]
	}
	return n
}

// consumeByte consumes one character.
func (p *momentParser) consumeByte(c byte) {
	if p.ok = p.ok && p.text != "" && p.text[0] == c; p.ok {
		p.text = p.text[1:]
	}
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
