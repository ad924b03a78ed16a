package graph_test

import (
	"testing"

	"koine/graph/limit"
)

// createChannel and createScope return the first result of their key; another request under
// it is a conflict.
func TestMutationsMakeOnce(t *testing.T) {
	c := newConversing(t, limit.Limits{})
	for name, create := range map[string]string{
		"channel": `mutation { createChannel(input: {kind: ROOM, name: "lab%s", metadata: {a: 1}, idempotencyKey: "k"}) { channel { id } } }`,
		"scope":   `mutation { createScope(input: {title: "lab%s", access: {agentIds: ["bob"]}, idempotencyKey: "k"}) { scope { id } } }`,
	} {
		first := c.id("ann", create, "")
		if again := c.id("ann", create, ""); again != first {
			t.Errorf("%s: the key made %s, and then %s", name, first, again)
		}
		if others := c.id("bob", create, ""); others == first {
			t.Errorf("%s: the key of another agent answered", name)
		}
		c.want("another "+name, c.refused("ann", create, "2"), "IDEMPOTENCY_CONFLICT input.idempotencyKey")
	}
}
