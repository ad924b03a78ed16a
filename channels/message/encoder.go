package message

import (
	"encoding/json"

	"koine/internal/recent"
)

// encodedMessages is the number of messages whose encodings an Encoder keeps: followers of a
// channel receive the same messages at about the same time.
const encodedMessages = 16

// Encoder encodes messages for a protocol. It keeps the last encodings, so that a message is
// encoded once for all who receive it. It is safe for concurrent use.
type Encoder struct {
	encode func(*Message) (json.RawMessage, error)
	known  *recent.Values[*Message, json.RawMessage] // immutable
}

// NewEncoder returns an Encoder that encodes with the function.
func NewEncoder(encode func(*Message) (json.RawMessage, error)) *Encoder {
	return &Encoder{encode: encode, known: recent.New[*Message, json.RawMessage](encodedMessages)}
}

// Encode returns the encoding of a message, which must not be modified any more. Messages are
// distinguished by their address: the same message as another viewer sees it is another one.
func (e *Encoder) Encode(m *Message) (json.RawMessage, error) {
	if raw, ok := e.known.Find(uint64(m.Sequence), m); ok {
		return raw, nil
	}
	raw, err := e.encode(m)
	if err != nil {
		return nil, err
	}
	e.known.Keep(uint64(m.Sequence), m, raw)
	return raw, nil
}
