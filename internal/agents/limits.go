package agents

import (
	"encoding/json"

	"koine/kg"
)

// Limits are those of a card that koine keeps for the agent; 0 is none. Others are the
// agent's own business.
type Limits struct {
	Tasks             int // that go on at a time
	MessagesPerMinute int // from all together
	MessageBytes      int // of the content of each
}

// MaxLimit bounds what a limit may be.
const MaxLimit = 1_000_000_000

// limitsOf reads the limits of a card, an object or nothing.
//
// Errors: CodeInvalid for one that is no whole number from 1 to MaxLimit.
func limitsOf(raw json.RawMessage) (l Limits, err error) {
	var members map[string]json.RawMessage
	if len(raw) == 0 || json.Unmarshal(raw, &members) != nil {
		return l, nil
	}
	for _, f := range []struct {
		name string
		into *int
	}{{"tasks", &l.Tasks}, {"messagesPerMinute", &l.MessagesPerMinute}, {"messageBytes", &l.MessageBytes}} {
		value, there := members[f.name]
		if !there || string(value) == "null" {
			continue
		}
		if json.Unmarshal(value, f.into) != nil || *f.into < 1 || *f.into > MaxLimit {
			return Limits{}, kg.Errorf(kg.CodeInvalid, "is a whole number from 1 to %d", MaxLimit).At("limits." + f.name)
		}
	}
	return l, nil
}
