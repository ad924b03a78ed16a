// Package plainjson writes JSON in which texts stand as they were given: what HTML would
// mind is not escaped, so that what is stored, hashed and sent is what was said.
package plainjson

import (
	"bytes"
	"encoding/json"
)

// Encode is a value as JSON, without a line's end.
func Encode(value any) (json.RawMessage, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return bytes.TrimSpace(b.Bytes()), err
}

// MustEncode is Encode of what has a form in it: texts, numbers, and JSON that was read.
func MustEncode(value any) json.RawMessage {
	raw, err := Encode(value)
	if err != nil {
		panic(err)
	}
	return raw
}
