package message_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"koine/channels/message"
)

// A message is encoded once for all who receive it at about the same time. The same one as
// another viewer sees it, and one that takes its place, have encodings of their own.
func TestEncoder(t *testing.T) {
	encoded := 0
	e := message.NewEncoder(func(m *message.Message) (json.RawMessage, error) {
		encoded++
		return fmt.Appendf(nil, "%d%s", m.Sequence, m.Withheld), nil
	})
	first, withheld, later := &message.Message{Sequence: 1}, &message.Message{Sequence: 1, Withheld: message.Retracted}, &message.Message{Sequence: 1 + 16}
	for i, row := range []struct {
		message *message.Message
		want    string
		encoded int
	}{{first, "1", 1}, {first, "1", 1}, {withheld, "1retracted", 2}, {withheld, "1retracted", 2}, {later, "17", 3}, {first, "1", 4}} {
		raw, err := e.Encode(row.message)
		if err != nil || string(raw) != row.want || encoded != row.encoded {
			t.Errorf("row %d: %s, %v after %d encodings, want %s after %d", i, raw, err, encoded, row.want, row.encoded)
		}
	}
}
