// Package scalar has the scalars of the schema: their types, how their values are
// coerced, and how they are appended to an answer as JSON. The generated tables find
// the functions by their names.
package scalar

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"koine/kg"
)

// The scalars of the schema, each bound to a Go type of the domain. The
// generator of the tables finds the functions by their names.

// MarshalLong writes a JSON number.
func MarshalLong(n int64) graphql.Marshaler {
	return graphql.WriterFunc(func(w io.Writer) { write(w, strconv.AppendInt(nil, n, 10)) })
}

// UnmarshalLong parses a whole number or a string of digits.
func UnmarshalLong(v any) (int64, error) {
	text, ok := DigitText(v)
	if !ok {
		return 0, kg.Errorf(kg.CodeInvalid, "a Long must be a whole number, not %s", JSONKind(v))
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, kg.Errorf(kg.CodeInvalid, "%.40q is not a whole number of 64 bits", text)
	}
	return n, nil
}

// MarshalRevision writes a JSON number.
func MarshalRevision(r kg.Revision) graphql.Marshaler {
	return graphql.WriterFunc(func(w io.Writer) { write(w, strconv.AppendUint(nil, uint64(r), 10)) })
}

// UnmarshalRevision parses a whole number or a string of digits.
func UnmarshalRevision(v any) (kg.Revision, error) {
	text, ok := DigitText(v)
	if !ok {
		return 0, kg.Errorf(kg.CodeInvalid, "a revision must be a whole number, not %s", JSONKind(v))
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, kg.Errorf(kg.CodeInvalid, "%.40q is not a revision: revisions are the numbers 0, 1, 2 …", text)
	}
	return kg.Revision(n), nil
}

// MarshalMoment writes a revision as a number, a time as RFC 3339.
func MarshalMoment(m kg.Moment) graphql.Marshaler {
	if m.Time.IsZero() {
		return MarshalRevision(m.Revision)
	}
	return MarshalDateTime(m.Time)
}

// UnmarshalMoment parses a whole number, a string of digits, or RFC 3339.
func UnmarshalMoment(v any) (kg.Moment, error) {
	text, ok := DigitText(v)
	if !ok {
		return kg.Moment{}, kg.Errorf(kg.CodeInvalid, "a moment must be a revision or an RFC 3339 time, not %s", JSONKind(v))
	}
	return kg.ParseMoment(text)
}

// MarshalDateTime writes RFC 3339 in UTC, to the millisecond.
func MarshalDateTime(t time.Time) graphql.Marshaler { return quotedScalar(FormatTime(t)) }

// UnmarshalDateTime parses RFC 3339.
func UnmarshalDateTime(v any) (time.Time, error) {
	text, _ := v.(string)
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return t, kg.Errorf(kg.CodeInvalid, "a DateTime is a string like \"2026-01-31T12:00:00Z\"")
	}
	return t, nil
}

// FormatTime returns RFC 3339 in UTC, to the millisecond.
func FormatTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// MarshalJSON writes the value as it is.
func MarshalJSON(raw json.RawMessage) graphql.Marshaler {
	if raw == nil {
		return graphql.Null
	}
	return graphql.WriterFunc(func(w io.Writer) { write(w, raw) })
}

// UnmarshalJSON keeps the value as text, so that numbers keep their digits.
func UnmarshalJSON(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(emptyLists(v)); err != nil {
		return nil, kg.Errorf(kg.CodeInvalid, "the value is not valid JSON")
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

// emptyLists replaces the nil slices that the parser gives for [] by empty
// ones, which do not become null.
func emptyLists(v any) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = emptyLists(e)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = emptyLists(e)
		}
		return out
	}
	return v
}

// Cursor marks a place in a connection.
type Cursor string

// MarshalGQL writes the token.
func (c Cursor) MarshalGQL(w io.Writer) { write(w, AppendString(nil, string(c))) }

// UnmarshalGQL accepts any string. Its use validates the token.
func (c *Cursor) UnmarshalGQL(v any) error { return unmarshalToken((*string)(c), v, "a cursor") }

// Position is a token of a place in the log (Store.FormatPosition), or one of
// the words for the start of a subscription.
type Position string

// MarshalGQL writes the token.
func (p Position) MarshalGQL(w io.Writer) { write(w, AppendString(nil, string(p))) }

// UnmarshalGQL accepts any string. Its use validates the token.
func (p *Position) UnmarshalGQL(v any) error { return unmarshalToken((*string)(p), v, "a position") }

func unmarshalToken(to *string, v any, what string) error {
	text, ok := v.(string)
	if !ok {
		return kg.Errorf(kg.CodeInvalid, "%s is a string, not %s", what, JSONKind(v))
	}
	*to = text
	return nil
}

// MarshalChangeOp writes the operation's name.
func MarshalChangeOp(op kg.Op) graphql.Marshaler { return quotedScalar(op.String()) }

// UnmarshalChangeOp parses the name of an operation.
func UnmarshalChangeOp(v any) (kg.Op, error) {
	for _, op := range []kg.Op{kg.Add, kg.Remove, kg.Replace} {
		if v == op.String() {
			return op, nil
		}
	}
	return 0, kg.Errorf(kg.CodeInvalid, "a kind of change must be add, remove or replace")
}

// MarshalVector writes a list of numbers.
func MarshalVector(v []float32) graphql.Marshaler {
	return graphql.WriterFunc(func(w io.Writer) { write(w, AppendVector(nil, v)) })
}

// UnmarshalVector parses a list of numbers. Longer ones than an embedding may have are refused
// before they are parsed.
func UnmarshalVector(v any) ([]float32, error) {
	list, ok := v.([]any)
	if !ok {
		return nil, kg.Errorf(kg.CodeInvalid, "a vector must be a list of numbers, not %s", JSONKind(v))
	}
	if n := len(list); n > kg.MaxEmbeddingNumbers {
		return nil, kg.Errorf(kg.CodeLimitExceeded, "an embedding has at most %d numbers, this one %d", kg.MaxEmbeddingNumbers, n)
	}
	vector := make([]float32, len(list))
	for i, number := range list {
		switch f := number.(type) {
		case json.Number:
			parsed, err := strconv.ParseFloat(f.String(), 32)
			if err != nil {
				return nil, kg.Errorf(kg.CodeInvalid, "the number at index %d of a vector is not one of 32 bits: %.40s", i, f)
			}
			vector[i] = float32(parsed)
		case float64:
			vector[i] = float32(f) // one that is too large is infinite, which the store refuses
		case int64:
			vector[i] = float32(f)
		case int:
			vector[i] = float32(f)
		default:
			return nil, kg.Errorf(kg.CodeInvalid, "a vector must be a list of numbers: at index %d is %s", i, JSONKind(number))
		}
	}
	return vector, nil
}

// DigitText returns the text of a whole number from JSON or from the query.
func DigitText(v any) (string, bool) {
	switch v := v.(type) {
	case int:
		return strconv.Itoa(v), true
	case int64:
		return strconv.FormatInt(v, 10), true
	case uint64:
		return strconv.FormatUint(v, 10), true
	case json.Number:
		return v.String(), true
	case string:
		return v, v != ""
	}
	return "", false
}

// JSONKind names the JSON type of a value.
func JSONKind(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case string:
		return "a string"
	case int, int64, uint64, float64, json.Number:
		return "a number"
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	}
	return fmt.Sprintf("%T", v)
}

func quotedScalar(s string) graphql.Marshaler {
	return graphql.WriterFunc(func(w io.Writer) { write(w, AppendString(nil, s)) })
}

// write ignores the error: answers are written to memory, which cannot fail.
func write(w io.Writer, b []byte) { _, _ = w.Write(b) }
