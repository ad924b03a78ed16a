package scalar

import (
	"encoding/json"
	"strconv"
	"time"
	"unicode/utf8"

	"koine/graph/executor"
	"koine/kg"
)

const hexDigits = "0123456789abcdef"

// AppendString writes a JSON string. Invalid UTF-8 becomes U+FFFD.
func AppendString(b []byte, s string) []byte {
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

// WriteFields writes an object. write writes a field with its key.
func WriteFields[F any](w *executor.Writer, fields []F, write func(i int, f *F)) {
	w.B = append(w.B, '{')
	for i := range fields {
		if i > 0 {
			w.B = append(w.B, ',')
		}
		write(i, &fields[i])
	}
	w.B = append(w.B, '}')
}

// WriteList writes a list of n elements.
func WriteList(w *executor.Writer, n int, element func(i int)) {
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

// AppendFields writes an object. write writes a field with its key.
func AppendFields[F any](b []byte, fields []F, write func(b []byte, i int, f *F) []byte) []byte {
	b = append(b, '{')
	for i := range fields {
		if i > 0 {
			b = append(b, ',')
		}
		b = write(b, i, &fields[i])
	}
	return append(b, '}')
}

// AppendList writes a list.
func AppendList[T any](b []byte, list []T, write func(b []byte, v *T) []byte) []byte {
	b = append(b, '[')
	for i := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = write(b, &list[i])
	}
	return append(b, ']')
}

// AppendName writes the IRI or the label of a resource.
func AppendName(b []byte, t kg.Term) []byte {
	if t.Kind() == kg.KindBlank {
		b = append(b, `"_:`...)
		return append(append(b, t.Value()...), '"') // a label needs no escapes
	}
	return AppendString(b, t.Value())
}

// AppendGraph writes a graph's name, null for the default graph.
func AppendGraph(b []byte, t kg.Term) []byte {
	if t == kg.DefaultGraph || t.IsZero() {
		return append(b, "null"...)
	}
	return AppendName(b, t)
}

// AppendValue writes a term as a value of the scalar JSON.
func AppendValue(b []byte, t kg.Term) []byte {
	if t.IsResource() {
		return AppendName(b, t)
	}
	if t.Lang() != "" || t.Datatype() == kg.XSDString {
		return AppendString(b, t.Value())
	}
	return append(b, t.ValueJSON()...)
}

// AppendTime writes RFC 3339 in UTC, to the millisecond.
func AppendTime(b []byte, t time.Time) []byte {
	b = append(b, '"')
	b = t.UTC().AppendFormat(b, "2006-01-02T15:04:05.000Z")
	return append(b, '"')
}

// AppendTimeOrNull writes a time, null for the zero time.
func AppendTimeOrNull(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return append(b, "null"...)
	}
	return AppendTime(b, t)
}

// The scalars and enums of the schema that are not strings in Go: the tables
// find these functions by their names.

// AppendText writes a string.
func AppendText[T ~string](b []byte, s T) []byte { return AppendString(b, string(s)) }

// AppendInt writes an Int.
func AppendInt[T ~int](b []byte, n T) []byte { return strconv.AppendInt(b, int64(n), 10) }

// AppendBoolean writes a Boolean.
func AppendBoolean(b []byte, v bool) []byte { return strconv.AppendBool(b, v) }

// AppendIRI writes the full IRI, or "_:label".
func AppendIRI(b []byte, t kg.Term) []byte { return AppendName(b, t) }

// AppendLong writes a JSON number.
func AppendLong(b []byte, n int64) []byte { return strconv.AppendInt(b, n, 10) }

// AppendRevision writes a JSON number.
func AppendRevision(b []byte, r kg.Revision) []byte { return AppendUint(b, uint64(r)) }

// AppendDateTime writes a time as AppendTime.
func AppendDateTime(b []byte, t time.Time) []byte { return AppendTime(b, t) }

// AppendChangeOp writes the operation's name.
func AppendChangeOp(b []byte, op kg.Op) []byte { return AppendString(b, op.String()) }

// AppendJSON writes the value as it is.
func AppendJSON(b []byte, raw json.RawMessage) []byte {
	if raw == nil {
		return append(b, "null"...)
	}
	return append(b, raw...)
}

// AppendUint writes a JSON number.
func AppendUint(b []byte, n uint64) []byte { return strconv.AppendUint(b, n, 10) }

// AppendFloat writes a JSON number.
func AppendFloat(b []byte, f float64) []byte { return strconv.AppendFloat(b, f, 'g', -1, 64) }

// AppendVector writes a list of numbers with as many digits as 32 bits need.
func AppendVector(b []byte, v []float32) []byte {
	return AppendList(b, v, func(b []byte, f *float32) []byte { return strconv.AppendFloat(b, float64(*f), 'g', -1, 32) })
}

// AppendCertainty writes a certainty, null if none is known.
func AppendCertainty(b []byte, certainty float64, known bool) []byte {
	if !known {
		return append(b, "null"...)
	}
	return AppendFloat(b, certainty)
}
