package graph

import (
	"encoding/json"
	"strconv"
	"time"
	"unicode/utf8"

	"koine/graph/executor"
	"koine/kg"
)

const hexDigits = "0123456789abcdef"

// appendString writes a JSON string. Invalid UTF-8 becomes U+FFFD.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				b = append(append(b, s[start:i]...), "\ufffd"...)
				start = i + 1
			}
			i += n
			continue
		}
		b = append(b, s[start:i]...)
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		default:
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		i++
		start = i
	}
	return append(append(b, s[start:]...), '"')
}

// writer writes an answer.
type writer = executor.Writer

// writeFields writes an object. write writes a field with its key.
func writeFields[F any](w *writer, fields []F, write func(i int, f *F)) {
	w.B = append(w.B, '{')
	for i := range fields {
		if i > 0 {
			w.B = append(w.B, ',')
		}
		write(i, &fields[i])
	}
	w.B = append(w.B, '}')
}

// writeList writes a list of n elements.
func writeList(w *writer, n int, element func(i int)) {
	w.B = append(w.B, '[')
	for i := range n {
		if i > 0 {
			w.B = append(w.B, ',')
		}
		w.EnterElement(i)
		element(i)
		w.LeaveField()
	}
	w.B = append(w.B, ']')
}

// appendFields writes an object. write writes a field with its key.
func appendFields[F any](b []byte, fields []F, write func(b []byte, i int, f *F) []byte) []byte {
	b = append(b, '{')
	for i := range fields {
		if i > 0 {
			b = append(b, ',')
		}
		b = write(b, i, &fields[i])
	}
	return append(b, '}')
}

// appendList writes a list.
func appendList[T any](b []byte, list []T, write func(b []byte, v *T) []byte) []byte {
	b = append(b, '[')
	for i := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = write(b, &list[i])
	}
	return append(b, ']')
}

// appendName writes the IRI or the label of a resource.
func appendName(b []byte, t kg.Term) []byte {
	if t.Kind() == kg.KindBlank {
		b = append(b, `"_:`...)
		return append(append(b, t.Value()...), '"') // a label needs no escapes
	}
	return appendString(b, t.Value())
}

// appendGraph writes a graph's name, null for the default graph.
func appendGraph(b []byte, t kg.Term) []byte {
	if t == kg.DefaultGraph || t.IsZero() {
		return append(b, "null"...)
	}
	return appendName(b, t)
}

// appendValue writes a term as a value of the scalar JSON.
func appendValue(b []byte, t kg.Term) []byte {
	if t.IsResource() {
		return appendName(b, t)
	}
	if t.Lang() != "" || t.Datatype() == kg.XSDString {
		return appendString(b, t.Value())
	}
	return append(b, t.ValueJSON()...)
}

func appendTime(b []byte, t time.Time) []byte {
	b = append(b, '"')
	b = t.UTC().AppendFormat(b, "2006-01-02T15:04:05.000Z")
	return append(b, '"')
}

// appendTimeOrNull writes a time, null for the zero time.
func appendTimeOrNull(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return append(b, "null"...)
	}
	return appendTime(b, t)
}

// The scalars and enums of the schema that are not strings in Go: the tables
// find these functions by their names.

func appendText[T ~string](b []byte, s T) []byte { return appendString(b, string(s)) }

func appendInt[T ~int](b []byte, n T) []byte { return strconv.AppendInt(b, int64(n), 10) }

func appendBoolean(b []byte, v bool) []byte { return strconv.AppendBool(b, v) }

func appendIRI(b []byte, t kg.Term) []byte { return appendName(b, t) }

func appendLong(b []byte, n int64) []byte { return strconv.AppendInt(b, n, 10) }

func appendRevision(b []byte, r kg.Revision) []byte { return appendUint(b, uint64(r)) }

func appendDateTime(b []byte, t time.Time) []byte { return appendTime(b, t) }

func appendChangeOp(b []byte, op kg.Op) []byte { return appendString(b, op.String()) }

func appendJSON(b []byte, raw json.RawMessage) []byte {
	if raw == nil {
		return append(b, "null"...)
	}
	return append(b, raw...)
}

func appendUint(b []byte, n uint64) []byte { return strconv.AppendUint(b, n, 10) }

func appendFloat(b []byte, f float64) []byte { return strconv.AppendFloat(b, f, 'g', -1, 64) }

// appendCertainty writes a certainty, null if none is known.
func appendCertainty(b []byte, certainty float64, known bool) []byte {
	if !known {
		return append(b, "null"...)
	}
	return appendFloat(b, certainty)
}
