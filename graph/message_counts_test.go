package graph_test

import (
	"strings"
	"testing"

	"koine/graph/limit"
)

// TestMessageCounts proves that messages are counted by day and author, also retracted
// ones, for readers of the channel.
func TestMessageCounts(t *testing.T) {
	c := newConversing(t, limit.Limits{})
	id := c.lab("PRIVATE")
	gone := c.say("ann", id, "1", "")
	c.say("ann", id, "2", "")
	c.say("bob", id, "3", "")
	c.told("ann", `mutation { retractMessage(input: {channelId: "%s", messageId: "%s"}) { success } }`, id, gone)
	counts := `{ channel(id: "` + id + `") { messageCounts%s { day author: authorId count } } }`
	ann, bob := `{"day":"2026-01-01","author":"agent://ann","count":3}`, `{"day":"2026-01-01","author":"agent://bob","count":1}`
	for args, want := range map[string]string{
		`(from: "2026-01-01T00:00:00Z")`:                                                 ann + "," + bob,
		`(from: "2025-01-01T12:00:00Z", to: "2026-01-01T23:00:00Z")`:                     ann + "," + bob,
		`(to: "2026-01-01T00:00:00Z", authorIds: ["bob"])`:                               bob,
		`(from: "2026-01-02T00:00:00Z", to: "2026-01-03T00:00:00Z")`:                     "",
		`(from: "2026-01-01T00:00:00Z", to: "2026-06-01T00:00:00Z", authorIds: ["eve"])`: "",
	} {
		c.want(args, c.told("bob", counts, args), `{"channel":{"messageCounts":[`+want+`]}}`)
	}
	for args, want := range map[string]string{
		`(from: "2026-01-02T00:00:00Z", to: "2026-01-01T00:00:00Z")`: "INVALID to",
		`(from: "2025-01-01T00:00:00Z", to: "2026-01-02T00:00:00Z")`: "LIMIT_EXCEEDED from",
		`(authorIds: ["` + strings.Repeat(`x", "`, 32) + `x"])`:      "LIMIT_EXCEEDED authorIds",
	} {
		c.want(args, c.refused("bob", counts, args), want)
	}
	room := c.id("ann", `mutation { createChannel(input: {kind: ROOM, visibility: PUBLIC}) { channel { id } } }`)
	c.want("of what one may only find", c.told("eve", `{ channel(id: "%s") { messageCounts { count } } }`, room), `{"channel":{"messageCounts":null}}`)
	c.asIfAbsent("CHANNEL_NOT_FOUND", `{ channel(id: "ID") { messageCounts { count } } }`, id)
	if result := c.ask("bob", `{ channels(first: 200) { nodes { messageCounts { day } } } }`); len(result.Errors) != 1 || result.Errors[0].Extensions["limit"] != "complexity" {
		t.Errorf("the counts of very many: %v", result.Errors)
	}
}
