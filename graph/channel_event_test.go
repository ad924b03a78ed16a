package graph_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"koine/graph/limit"
	"koine/internal/operation"
	"koine/kg"
)

const changesOf = `subscription { e: channelChanged(channelId: "%s"%s) { kind: __typename ... on ChannelChange { of: kind agent: agentId role actor: actorId version channelId channel { name } time revision position } ... on MessagePublished { message { text } position } ... on Progress { position } ... on Resync { reason } } }`

// TestChannelChanged proves that the events of a channel are delivered between its
// messages, and that a stream resumes after any of them without a gap or a duplicate.
func TestChannelChanged(t *testing.T) {
	c := newConversing(t, limit.Limits{})
	id := c.lab("PRIVATE")
	query := fmt.Sprintf(changesOf, id, "")
	live := c.hear(t, "bob", query, operation.Resume{})
	c.say("ann", id, "hello", "")
	c.told("ann", `mutation { addChannelMember(input: {channelId: "%s", agentId: "cy"}) { channel { id } } }`, id)
	c.told("ann", `mutation { addChannelMember(input: {channelId: "%s", agentId: "cy", role: OBSERVER}) { channel { id } } }`, id)
	c.told("bob", `mutation { updateChannel(input: {channelId: "%s", expectedVersion: 3, topic: "cats"}) { channel { id } } }`, id)
	c.told("cy", `mutation { removeChannelMember(input: {channelId: "%s", agentId: "cy"}) { channel { id } } }`, id)
	type event struct {
		E struct {
			Kind, Of, Agent, Role, Actor, Position string
			Version                                int
			Channel                                *struct{ Name string }
			Message                                struct{ Text string }
		}
	}
	read := func(f *tail, want ...string) (positions []kg.Position) {
		t.Helper()
		for _, w := range want {
			e, data := f.event()
			var got event
			if err := json.Unmarshal([]byte(data), &got); err != nil {
				t.Fatal(err)
			}
			said := fmt.Sprint(got.E.Of, " ", got.E.Agent, " ", got.E.Role, " by ", got.E.Actor, " ", got.E.Version)
			if got.E.Kind == "MessagePublished" {
				said = got.E.Message.Text
			}
			if said != w || got.E.Position != c.store.FormatPosition(e.Position) || len(e.Changes) != 1 || e.Changes[0].Commit == nil {
				t.Fatalf("got %s, want %s", data, w)
			}
			positions = append(positions, e.Position)
		}
		return positions
	}
	want := []string{
		"CREATED   by agent://ann 1", "JOINED agent://ann OWNER by agent://ann 1", "JOINED agent://bob MODERATOR by agent://ann 1", "hello",
		"JOINED agent://cy MEMBER by agent://ann 2", "ROLE agent://cy OBSERVER by agent://ann 3", "UPDATED   by agent://bob 4", "LEFT agent://cy OBSERVER by agent://cy 5",
	}
	read(live, want[3:]...)
	positions := read(c.hear(t, "bob", query, operation.Resume{Start: operation.Earliest}), want...)
	read(c.hear(t, "bob", fmt.Sprintf(changesOf, id, `, resume: "snapshot"`), operation.Resume{}), want...)
	for i, at := range positions {
		read(c.hear(t, "bob", query, operation.Resume{Start: operation.After, After: at}), want[i+1:]...)
		read(c.hear(t, "bob", fmt.Sprintf(changesOf, id, `, resume: "`+c.store.FormatPosition(at)+`"`), operation.Resume{}), want[i+1:]...)
	}
	if positions[0].Compare(positions[1]) >= 0 || positions[0].Revision != positions[2].Revision {
		t.Errorf("within one commit the positions are %v", positions[:3])
	}

	c.want("for others", c.deaf("eve", query, operation.Resume{}), "CHANNEL_NOT_FOUND channelId")
	c.want("none", c.deaf("eve", fmt.Sprintf(changesOf, nowhere, ""), operation.Resume{}), "CHANNEL_NOT_FOUND channelId")
	c.want("of another log", c.deaf("bob", query, operation.Resume{Start: operation.After, After: kg.Position{Epoch: kg.Epoch{1}}}), string(kg.CodePositionGone))
	if err := c.store.Maintenance().CutLog(t.Context(), positions[3].Revision); err != nil {
		t.Fatal(err)
	}
	c.want("behind which the log is cut", c.deaf("bob", query, operation.Resume{Start: operation.After, After: positions[0]}), string(kg.CodePositionGone))

	c.told("ann", `mutation { removeChannelMember(input: {channelId: "%s", agentId: "bob"}) { channel { id } } }`, id)
	if _, err, ok := live.next(); !ok || kg.CodeOf(err) != kg.CodeChannelNotFound {
		t.Errorf("when bob is no member any more the stream ends with %v", err)
	}
	own := c.hear(t, "ann", query, operation.Resume{})
	c.told("ann", `mutation { deleteChannel(input: {channelId: "%s"}) { channelId } }`, id)
	_, data := own.event()
	var last event
	if err := json.Unmarshal([]byte(data), &last); err != nil || last.E.Of != "DELETED" || last.E.Actor != "agent://ann" || last.E.Channel != nil {
		t.Errorf("the end is told as %s", data)
	}
	if _, err, ok := own.next(); !ok || kg.CodeOf(err) != kg.CodeChannelNotFound {
		t.Errorf("behind it the stream ends with %v", err)
	}
	if log := c.log.String(); log != "" {
		t.Errorf("logged: %s", log)
	}
}

// TestSignals proves that signals reach current listeners, and that agents without the
// right to send or receive them are refused.
func TestSignals(t *testing.T) {
	c := newConversing(t, limit.Limits{})
	id := c.lab("PRIVATE")
	c.told("ann", `mutation { addChannelMember(input: {channelId: "%s", agentId: "ola", role: OBSERVER}) { channel { id } } }`, id)
	query := `subscription { signalSent(channelId: "` + id + `") { __typename channelId sender: senderId kind data dropped } }`
	bob, ola := c.hear(t, "bob", query, operation.Resume{}), c.hear(t, "ola", query, operation.Resume{Start: operation.Earliest})
	message := c.say("ann", id, "hello", "")
	head := c.store.Head()
	send := `mutation { sendSignal(input: {channelId: "%s", %s}) { sent } }`
	c.want("sent", c.told("ann", send, id, `kind: "typing"`), `{"sendSignal":{"sent":true}}`)
	c.told("bob", send, id, `kind: "reaction", data: {messageId: "`+message+`", emoji: "+1"}`)
	for _, f := range []*tail{bob, ola} {
		e := f.want(`{"signalSent":{"__typename":"ChannelSignal","channelId":"` + id + `","sender":"agent://ann","kind":"typing","data":null,"dropped":0}}`)
		if len(e.Changes) != 0 || e.Position != head {
			t.Errorf("the event is %+v", e)
		}
		f.want(`{"signalSent":{"__typename":"ChannelSignal","channelId":"` + id + `","sender":"agent://bob","kind":"reaction","data":{"emoji":"+1","messageId":"` + message + `"},"dropped":0}}`)
	}
	if c.store.Head() != head {
		t.Errorf("something was written")
	}
	for who, args := range map[string][2]string{
		"ola":  {`kind: "typing"`, "PERMISSION_DENIED"},
		"ann":  {`kind: ""`, "INVALID input.kind"},
		"bob":  {`kind: "typing", data: [1]`, "INVALID input.data"},
		"ann ": {`kind: "typing", data: {x: "` + fmt.Sprintf("%01024d", 0) + `"}`, "LIMIT_EXCEEDED input.data"},
		"bob ": {`kind: "` + fmt.Sprintf("%065d", 0) + `"`, "LIMIT_EXCEEDED input.kind"},
	} {
		c.want(args[0], c.refused(who[:3], send, id, args[0]), args[1])
	}
	c.want("to no message", c.refused("bob", send, id, `kind: "reaction", data: {messageId: "`+nowhere+`"}`), "INVALID input.data.messageId")
	c.asIfAbsent("CHANNEL_NOT_FOUND", `mutation { sendSignal(input: {channelId: "ID", kind: "typing"}) { sent } }`, id)
	c.want("to listen", c.deaf("eve", query, operation.Resume{}), "CHANNEL_NOT_FOUND channelId")
	limited := false
	for range 20 {
		if result := c.ask("ann", send, id, `kind: "typing"`); len(result.Errors) == 1 {
			e := result.Errors[0].Extensions
			limited = e["code"] == string(kg.CodeRateLimited) && e["retryAfterMs"] != nil
		}
	}
	if !limited {
		t.Error("one may send as many as one likes")
	}
	c.told("ann", `mutation { removeChannelMember(input: {channelId: "%s", agentId: "ola"}) { channel { id } } }`, id)
	for {
		_, err, ok := ola.next()
		if err == nil && ok {
			continue // an earlier signal
		}
		if kg.CodeOf(err) != kg.CodeChannelNotFound {
			t.Errorf("when ola is no member any more the stream ends with %v", err)
		}
		break
	}
	bob.stop()
	if log := c.log.String(); log != "" {
		t.Errorf("logged: %s", log)
	}
}
