package graph_test

import (
	"fmt"
	"strings"
	"testing"

	"koine/graph/limit"
)

// The author of facts in a channel that has closed since can still undo them, and the
// refusal to retract the message has the way.
func TestFactsOfClosedChannel(t *testing.T) {
	c := newConversing(t, limit.Limits{})
	id := c.lab("PRIVATE")
	message := c.say("bob", id, "it is 7", `, patches: [{op: add, statement: {subject: {id: "ex:s"}, predicate: {id: "ex:p"}, object: {value: 7}}}]`)
	revision := c.store.Head().Revision
	c.told("ann", `mutation { closeChannel(input: {channelId: "%s"}) { channel { status } } }`, id)
	retract := `mutation { retractMessage(input: {channelId: "%s", messageId: "%s", withdrawFacts: true}) { success } }`
	result := c.ask("bob", retract, id, message)
	if len(result.Errors) != 1 || !strings.Contains(fmt.Sprint(result.Errors[0].Extensions), fmt.Sprintf("revision %d (revertCommit)", revision)) {
		t.Fatalf("got %v, which does not say what helps", result.Errors)
	}
	facts := `{ statements(where: {predicate: {eq: "ex:p"}}) { totalCount } }`
	revert := `mutation { revertCommit(input: {revision: %d}) { success statementsAffected } }`
	c.want("ann may not act for bob", c.refused("ann", revert, revision), "PERMISSION_DENIED")
	c.want("an outsider", c.refused("eve", revert, revision), "NOT_FOUND")
	c.want("they stand", c.told("bob", "%s", facts), `{"statements":{"totalCount":1}}`)
	c.want("reverted", c.told("bob", revert, revision), `{"revertCommit":{"success":true,"statementsAffected":1}}`)
	c.want("they are gone", c.told("bob", "%s", facts), `{"statements":{"totalCount":0}}`)
	c.want("the message is there", c.told("bob", `{ message(id: "%s") { text } }`, message), `{"message":{"text":"it is 7"}}`)
}
