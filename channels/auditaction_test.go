package channels_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"koine/channels"
	"koine/channels/actions"
	"koine/channels/channel"
	"koine/kg"
)

// The audit actions of a commit are derived from the commit, without implied ones.
func TestDeeds(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	var id channel.ID
	var got []string
	step := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		c, err := s.store.Commit(within(t), kg.SystemPrincipal(), s.store.Head().Revision)
		if err != nil {
			t.Fatal(err)
		}
		var words []string
		for _, d := range actions.Of(c) {
			if d.Channel != id && id != "" {
				t.Errorf("of another channel: %+v", d)
			}
			if (d.Message != "") != (d.Kind == actions.Published || d.Kind == actions.MessageStateChanged) {
				t.Errorf("got %+v", d)
			}
			words = append(words, strings.TrimSpace(fmt.Sprint(d.Kind, " ", d.Member)))
		}
		got = append(got, strings.Join(words, ", "))
	}
	c, err := s.Create(within(t), as("ann"), channel.Draft{Members: []channel.Member{{Agent: "agent://bob"}}, Metadata: []byte(`{"a":1}`)})
	step(err)
	id = c.ID
	name := "x"
	_, err = s.Update(within(t), as("ann"), id, channel.Update{ExpectedVersion: 1, Name: &name})
	step(err)
	_, err = s.Members().Add(within(t), as("ann"), id, "cleo", "")
	step(err)
	_, err = s.Members().Add(within(t), as("ann"), id, "cleo", channel.Moderator)
	step(err)
	_, err = s.Members().Remove(within(t), as("ann"), id, "cleo")
	step(err)
	r, err := s.Publish(within(t), as("bob"), channels.Publication{Channel: id, Parts: text("x")})
	step(err)
	_, err = s.Retract(within(t), as("bob"), channels.Retraction{Channel: id, Message: r.Message.ID})
	step(err)
	step(s.Delete(within(t), as("ann"), id))
	if _, err = s.store.Update(within(t), kg.Meta{}, func(tx *kg.Tx) error {
		return tx.Apply(kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: kg.IRI("urn:s"), Predicate: kg.IRI("urn:p"), Object: kg.Integer(1), Graph: kg.DefaultGraph}})
	}); err != nil {
		t.Fatal(err)
	}
	step(nil)
	want := []string{
		"created", "updated", "memberAdded agent://cleo", "memberAdded agent://cleo", "memberRemoved agent://cleo",
		"published", "noted, published", "deleted", "",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
