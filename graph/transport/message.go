package transport

import (
	"encoding/json"

	"github.com/coder/websocket"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"koine/internal/operation"
)

// subprotocol is the name of the protocol GraphQL over WebSocket, as specified
// by graphql-ws.
const subprotocol = "graphql-transport-ws"

// Close codes of the protocol, beside those of package ws.
const (
	closeInvalid     websocket.StatusCode = 4400
	closeInitTimeout websocket.StatusCode = 4408
	closeDuplicate   websocket.StatusCode = 4409
	closeManyInits   websocket.StatusCode = 4429
)

// closing is the reason why the server closes a socket. A reason has at most
// 123 bytes (RFC 6455, section 5.5).
type closing struct {
	code   websocket.StatusCode
	reason string
}

func (c *closing) Error() string { return c.reason }

func invalidMessage(reason string) error { return &closing{closeInvalid, "Invalid message: " + reason} }

// message is a message from a client.
type message struct {
	kind    string
	id      string
	payload json.RawMessage // an object, nil for none
	request operation.Request
}

// readMessage parses a message. The error is a *closing.
func readMessage(text []byte) (m message, err error) {
	fields, e := decodeObject(text, "it")
	if e != nil {
		return m, invalidMessage(e.message)
	}
	if json.Unmarshal(fields["type"], &m.kind) != nil {
		return m, invalidMessage("type must be a string")
	}
	m.payload = fields["payload"]
	if string(m.payload) == "null" {
		m.payload = nil
	}
	if m.payload != nil && m.payload[0] != '{' {
		return m, invalidMessage("payload must be an object")
	}
	switch m.kind {
	case "connection_init", "ping", "pong":
		return m, nil
	case "complete":
		return m, m.readID(fields["id"])
	case "subscribe":
		if err := m.readID(fields["id"]); err != nil {
			return m, err
		}
		return m, m.readRequest()
	}
	return m, invalidMessage("type is not a client message")
}

func (m *message) readID(raw json.RawMessage) error {
	switch err := json.Unmarshal(raw, &m.id); {
	case err != nil || m.id == "":
		return invalidMessage("id must be a non-empty string")
	case len(m.id) > MaxOperationID:
		return invalidMessage("id is too long")
	}
	return nil
}

func (m *message) readRequest() error {
	if m.payload == nil {
		return invalidMessage("payload must be an object")
	}
	fields, e := decodeObject(m.payload, "payload")
	if e == nil {
		m.request, e = decodeFields(fields)
	}
	if e != nil {
		return invalidMessage(e.message)
	}
	return nil
}

var ackMessage = []byte(`{"type":"connection_ack"}`)

func pongMessage(payload json.RawMessage) []byte {
	if payload == nil {
		return []byte(`{"type":"pong"}`)
	}
	return append(append([]byte(`{"type":"pong","payload":`), payload...), '}')
}

// openMessage begins a message about an operation.
func openMessage(kind, id string) []byte {
	quoted, err := json.Marshal(id)
	if err != nil {
		panic(err) // strings always encode
	}
	return append(append(append([]byte(`{"type":"`), kind...), `","id":`...), quoted...)
}

func completeMessage(id string) []byte { return append(openMessage("complete", id), '}') }

func errorMessage(id string, errs gqlerror.List) []byte {
	return append(appendErrors(append(openMessage("error", id), `,"payload":`...), errs), '}')
}

func (h *Handler) nextMessage(id string, result *operation.Result) []byte {
	b := append(openMessage("next", id), `,"payload":`...)
	return append(h.appendResponse(b, result), '}')
}
