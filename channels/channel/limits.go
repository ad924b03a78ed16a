package channel

import (
	"koine/channels/internal/check"
	"koine/channels/internal/vocab"
	"koine/kg"
)

// Limits are a channel's own limits. 0 means no limit.
type Limits struct {
	MessagesPerMinute int // per author
	Streams           int // open at the same time
	MessageBytes      int
}

// limitTable maps the limits to their properties.
var limitTable = [...]struct {
	name     string
	property kg.Term
	of       func(*Limits) *int
}{
	{"messagesPerMinute", vocab.PerMinute, func(l *Limits) *int { return &l.MessagesPerMinute }},
	{"streams", vocab.Streams, func(l *Limits) *int { return &l.Streams }},
	{"messageBytes", vocab.MessageBytes, func(l *Limits) *int { return &l.MessageBytes }},
}

// forProperty returns the limit of a record property, or nil.
func (l *Limits) forProperty(property kg.Term) *int {
	for _, limit := range limitTable {
		if limit.property == property {
			return limit.of(l)
		}
	}
	return nil
}

func (l Limits) Validate() error {
	for _, limit := range limitTable {
		switch n := *limit.of(&l); {
		case n < 0:
			return kg.Errorf(kg.CodeInvalid, "limit must not be negative").At("limits." + limit.name)
		case n > maxOf[limit.name]:
			return check.TooMuch("limits."+limit.name, "limit must be at most %d", maxOf[limit.name])
		}
	}
	return nil
}

// maxOf is the maximum of each channel limit.
var maxOf = map[string]int{"messagesPerMinute": MaxPerMinute, "streams": 1 << 20, "messageBytes": MaxMessageBytes}

// MaxPerMinute is the maximum of MessagesPerMinute in a tier or channel: that many
// times are kept in memory per key.
const MaxPerMinute = 6000
