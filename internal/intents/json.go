package intents

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"

	"koine/internal/plainjson"
	"koine/kg"
)

// decodeJSON decodes one JSON value and keeps its numbers as written.
func decodeJSON(raw []byte) (value any, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err = d.Decode(&value); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, kg.Errorf(kg.CodeInvalid, "there is something behind the value")
	}
	return value, nil
}

// checkJSON validates a JSON value that begins with one of kinds ("{" for an object,
// "[" for a list), and returns it in canonical form, or nil for none.
func checkJSON(field string, raw json.RawMessage, most int, kinds string) (json.RawMessage, error) {
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	if len(raw) > most {
		return nil, errTooMany(field, "bytes", len(raw), most)
	}
	value, err := decodeJSON(raw)
	if err != nil || !strings.Contains(kinds, string(raw[:1])) {
		what := "object"
		if kinds != "{" {
			what = "object or list"
		}
		return nil, kg.Errorf(kg.CodeInvalid, "%s must be a JSON %s", field, what).At(field)
	}
	return encodeBounded(field, value, most)
}

// encodeBounded encodes a value, or returns an error if it is larger or deeper than allowed.
func encodeBounded(field string, value any, most int) (json.RawMessage, error) {
	if n := depthOf(value); n > MaxDepth {
		return nil, errTooMany(field, "levels", n, MaxDepth)
	}
	raw, err := plainjson.Encode(value)
	if err == nil && len(raw) > most {
		err = errTooMany(field, "bytes", len(raw), most)
	}
	return raw, err
}

func errTooMany(field, unit string, n, most int) error {
	return kg.Errorf(kg.CodeLimitExceeded, "%s has %d %s; the limit is %d", field, n, unit, most).At(field)
}

// depthOf returns how deep objects and lists are nested in a decoded value: 0 for a text or
// a number.
func depthOf(value any) (n int) {
	switch value := value.(type) {
	case map[string]any:
		for _, v := range value {
			n = max(n, depthOf(v))
		}
	case []any:
		for _, v := range value {
			n = max(n, depthOf(v))
		}
	default:
		return 0
	}
	return n + 1
}
