// Package plainjson encodes JSON without escaping HTML characters, so that stored, hashed
// and sent texts are those that the client sent.
package plainjson

import (
	"bytes"
	"encoding/json"
)

// Encode returns value as JSON, without a newline.
func Encode(value any) (json.RawMessage, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return bytes.TrimSpace(b.Bytes()), err
}

// MustEncode is Encode for values that always encode: texts, numbers, and decoded JSON.
func MustEncode(value any) json.RawMessage {
	raw, err := Encode(value)
	if err != nil {
		panic(err)
	}
	return raw
}
