package agents

import (
	"encoding/json"

	"koine/kg"
)

// Limits are the limits of a card that koine enforces; 0 means none. Other limits are
// not enforced.
type Limits struct {
	Tasks             int // concurrent tasks
	MessagesPerMinute int // from all senders
	MessageBytes      int // content of each message
}

// MaxLimit is the maximum value of a limit.
const MaxLimit = 1_000_000_000

// limitsOf parses the limits of a card, which are an object or absent.
//
// Errors: CodeInvalid for a limit that is not an integer from 1 to MaxLimit.
func limitsOf(raw json.RawMessage) (l Limits, err error) {
	var members map[string]json.RawMessage
	if len(raw) == 0 || json.Unmarshal(raw, &members) != nil {
		return l, nil
	}
	for _, f := range []struct {
		name string
		into *int
	}{{"tasks", &l.Tasks}, {"messagesPerMinute", &l.MessagesPerMinute}, {"messageBytes", &l.MessageBytes}} {
		value, found := members[f.name]
		if !found || string(value) == "null" {
			continue
		}
		if json.Unmarshal(value, f.into) != nil || *f.into < 1 || *f.into > MaxLimit {
			return Limits{}, kg.Errorf(kg.CodeInvalid, "must be an integer from 1 to %d", MaxLimit).At("limits." + f.name)
		}
	}
	return l, nil
}
