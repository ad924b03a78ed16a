package transport

import (
	"encoding/json"
	"errors"
	"testing"

	"koine/internal/ws"
)

// Any input of a client is a message in its form, or is refused with a close frame that can
// be sent.
func FuzzReadMessage(f *testing.F) {
	for _, seed := range []string{
		`{"type":"connection_init"}`, `{"type":"connection_init","payload":{"a":1}}`, `{"type":"ping","payload": null}`,
		`{"id":"1","type":"subscribe","payload":{"query":"{ a }","variables":{"x":1e400},"operationName":null}}`,
		`{"id":"1","type":"subscribe","payload":{"extensions":{"persistedQuery":{}}}}`, `{"id":"1","type":"complete"}`,
		`{"id":1,"type":[]}`, `[]`, ``, `{"type":"subscribe","id":"1","payload":"x"}`, "{\"type\":\"\xff\"}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := readMessage(text)
		if err != nil {
			var c *closing
			if !errors.As(err, &c) || c.code != closeInvalid || len(c.reason) > ws.MaxReasonBytes {
				t.Fatalf("got %#v", err)
			}
			return
		}
		if m.payload != nil && !json.Valid(m.payload) {
			t.Errorf("the payload is %q", m.payload)
		}
		if m.kind == "subscribe" && (m.id == "" || len(m.id) > MaxOperationID || !namesDocument(&m.request)) {
			t.Errorf("an operation without an id or a document: %+v", m)
		}
		if !json.Valid(completeMessage(m.id)) || !json.Valid(pongMessage(m.payload)) {
			t.Errorf("the answers to %q are no JSON", text)
		}
	})
}
