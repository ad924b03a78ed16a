// Package check validates the values of requests and makes the errors of those that are
// refused, the same way for channels, scopes and messages.
package check

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"unicode/utf8"

	"koine/kg"
)

// Text validates a text of at most most characters.
func Text(field, text string, most int) error {
	if !utf8.ValidString(text) {
		return kg.Errorf(kg.CodeInvalid, "%s must be valid UTF-8", field).At(field)
	}
	if n := utf8.RuneCountInString(text); n > most {
		return TooMuch(field, "%s has %d characters; the limit is %d", field, n, most)
	}
	return nil
}

// JSONObject validates a JSON object of at most most bytes and returns it in compact
// form, or nil for none.
func JSONObject(field string, raw []byte, most int) ([]byte, error) {
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil || raw[0] != '{' {
		return nil, kg.Errorf(kg.CodeInvalid, "%s must be a JSON object", field).At(field)
	}
	if b.Len() > most {
		return nil, TooMuch(field, "%s has %d bytes; the limit is %d", field, b.Len(), most)
	}
	return b.Bytes(), nil
}

// DecodeJSON decodes a JSON value and keeps its numbers as written.
func DecodeJSON(raw []byte) (value any, err error) {
	if len(raw) == 0 {
		return nil, nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	err = d.Decode(&value)
	return value, err
}

// SameJSON reports whether two JSON values are equal.
func SameJSON(a, b []byte) (bool, error) {
	if bytes.Equal(a, b) {
		return true, nil
	}
	x, err := DecodeJSON(a)
	if err != nil {
		return false, err
	}
	y, err := DecodeJSON(b)
	return err == nil && reflect.DeepEqual(x, y), err
}

// SortedAgents returns the sorted canonical agent ids without duplicates.
func SortedAgents(list []kg.AgentID) []kg.AgentID {
	var out []kg.AgentID
	for _, a := range list {
		out = append(out, kg.CanonicalAgent(string(a)))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Denied reports that the caller lacks a right.
func Denied(format string, args ...any) *kg.Error {
	return kg.Errorf(kg.CodePermissionDenied, format, args...)
}

// TooMuch reports a value of the request that exceeds a limit.
func TooMuch(field, format string, args ...any) *kg.Error {
	return kg.Errorf(kg.CodeLimitExceeded, format, args...).At(field)
}

// FirstError returns err, or other if there is none.
func FirstError(err error, other *kg.Error) error {
	if err != nil {
		return err
	}
	return other
}
