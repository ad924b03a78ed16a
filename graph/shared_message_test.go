package graph_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"koine/graph"
	"koine/graph/limit"
	"koine/internal/operation"
)

// A message is written once for all streams of a document that show the same of it, in whatever
// subscription, and for each stream if a field needs the store or an agent's record.
func TestMessagesAreWrittenOnce(t *testing.T) {
	c := newConversing(t, limit.Limits{})
	id := c.lab("PRIVATE")
	const of = `subscription { messagePublished(where: {channelId: "%s"}) { ... on MessagePublished { %s } ... on Progress { revision } } }`
	for n, selection := range []struct {
		fields string
		once   bool
	}{
		{`sequence position message { id text parts authorId author { id } recipientIds private time }`, true},
		{`message { ... on Message { tags channelId } text }`, true},
		{`message { text channel { name } }`, false},
		{`message { text replyTo { text } }`, false},
		{`message { text author { name } }`, false},
		{`message { text entity { types } }`, false},
		{`message { text receiptStatus }`, false},
	} {
		document := fmt.Sprintf(of, id, selection.fields)
		ann, bob := c.hear(t, "ann", document, operation.Resume{}), c.hear(t, "bob", document, operation.Resume{})
		c.say("ann", id, "stored before the streams wait for more", "")
		ann.event()
		bob.event()
		c.say("ann", id, fmt.Sprint(n), "")
		first, text := ann.event()
		second, same := bob.event()
		if text != same && selection.once {
			t.Errorf("%s: one stream is sent %s, the other %s", document, text, same)
		}
		if once := &first.Result.Data[0] == &second.Result.Data[0]; once != selection.once || first.Result.Shared != once || second.Result.Shared != once {
			t.Errorf("%s: written once: %t (%t, %t), want %t", document, once, first.Result.Shared, second.Result.Shared, selection.once)
		}
		ann.stop()
		bob.stop()
	}
}

// Large documents and large messages are not kept for others, and are sent all the same.
func TestSharedMessagesAreBounded(t *testing.T) {
	c := newConversing(t, limit.Limits{})
	id := c.lab("PUBLIC")
	document := `subscription { messagePublished(where: {channelId: "` + id + `"}) { ... on MessagePublished { message { authorId } } } } #`
	padded := func(size int) string { return document + strings.Repeat("x", size-len(document)) }
	const variables = 16 // more than those of an operation without any
	for _, row := range []struct {
		name     string
		document string
		text     int
		once     bool
	}{
		{"a document at the bound", padded(graph.MaxSharedDocument - variables), 1, true},
		{"a document past it", padded(graph.MaxSharedDocument + 1), 1, false},
		{"a message at the bound", document, graph.MaxSharedMessage - 100, true},
		{"a message past it", document, graph.MaxSharedMessage, false}, // its JSON is more
	} {
		ann, bob := c.hear(t, "ann", row.document, operation.Resume{}), c.hear(t, "bob", row.document, operation.Resume{})
		for n := range 2 { // the first is stored before the streams wait for more
			c.say("ann", id, strings.Repeat("x", row.text), "")
			first, text := ann.event()
			second, same := bob.event()
			if text != same {
				t.Errorf("%s: one stream is sent %s, the other %s", row.name, text, same)
			}
			if once := &first.Changes[0] == &second.Changes[0]; once && row.text >= graph.MaxSharedMessage {
				t.Errorf("%s: its change is kept", row.name)
			} else if !once && row.text == 1 && n == 1 {
				t.Errorf("%s: its change is made twice", row.name)
			}
			if once := &first.Result.Data[0] == &second.Result.Data[0]; once && !row.once {
				t.Errorf("%s is kept", row.name)
			} else if second.Result.Shared != row.once {
				t.Errorf("%s: shared %t, want %t", row.name, second.Result.Shared, row.once)
			}
		}
		ann.stop()
		bob.stop()
	}
}

// A reader who may not see the content of a message is not given what was written for one who may,
// whichever is first.
func TestSharedMessagesKeepTheirContent(t *testing.T) {
	c := newConversing(t, limit.Limits{})
	id := c.lab("PUBLIC")
	document := `subscription { messagePublished(where: {channelId: "` + id + `"}) { ... on MessagePublished { message { text withheldReason } } } }`
	ann, bob, cem := c.hear(t, "ann", document, operation.Resume{}), c.hear(t, "bob", document, operation.Resume{}), c.hear(t, "cem", document, operation.Resume{})
	for n := range 20 {
		secret := fmt.Sprintf("secret %d", n)
		c.say("ann", id, secret, `, recipient: "bob"`)
		whole := `{"messagePublished":{"message":{"text":"` + secret + `","withheldReason":null}}}`
		const withheld = `{"messagePublished":{"message":{"text":"","withheldReason":"ADDRESSED"}}}`
		streams := []*tail{ann, bob, cem}
		for i := range streams {
			at := (i + n) % len(streams)
			want := whole
			if streams[at] == cem {
				want = withheld
			}
			streams[at].want(want)
		}
	}
}

// The fields with which a message is shared are those of the object: a method that gets a context
// can ask for the reader.
func TestSharedFieldsKnowNoReader(t *testing.T) {
	for name, of := range map[string]reflect.Type{
		"Message": reflect.TypeFor[*graph.Message](), "MessagePublished": reflect.TypeFor[*graph.MessagePublished](), "Agent": reflect.TypeFor[*graph.Agent](),
	} {
		fields := graph.OwnFields[name]
		if len(fields) == 0 {
			t.Errorf("no field of %s is shared", name)
		}
		for _, field := range fields {
			found := false
			for i := range of.NumMethod() {
				if m := of.Method(i); strings.EqualFold(m.Name, field) {
					if found = true; m.Type.NumIn() != 1 {
						t.Errorf("%s.%s is shared and takes an argument", name, field)
					}
				}
			}
			if _, ok := of.Elem().FieldByNameFunc(func(f string) bool { return strings.EqualFold(f, field) }); !found && !ok {
				t.Errorf("%s has no %s", name, field)
			}
		}
	}
}
