package channels_test

import (
	"testing"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/message"
	"koine/kg"
)

// An administrator counts the messages of others, retracted ones included. In open mode,
// where every caller is one, no caller does.
func TestAdministratorsInOpenMode(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	c := s.make(t, channel.Private, "bob", "cleo")
	s.say(t, "ann", c.ID, "to all")
	if _, err := s.send(t, "ann", c.ID, message.Envelope{Interaction: message.Request, To: "bob"}); err != nil {
		t.Fatal(err)
	}
	gone := s.say(t, "ann", c.ID, "gone")
	before := s.store.Head().Revision
	if _, err := s.Retract(within(t), as("ann"), channels.Retraction{Channel: c.ID, Message: gone.ID}); err != nil {
		t.Fatal(err)
	}
	open := func(name string) kg.Principal {
		return kg.Principal{ID: kg.CanonicalAgent(name), Method: kg.MethodOpen, Roles: []string{kg.RoleAdmin}}
	}
	for what, row := range map[string]struct {
		who       kg.Principal
		now, past uint64
	}{
		"an administrator":     {admin("root").Principal, 3, 3},
		"anybody in open mode": {open("root"), 0, 0},
		"a member in it":       {open("cleo"), 2, 1},
		"an author in it":      {open("ann"), 3, 2},
	} {
		for at, want := range map[kg.Revision]uint64{0: row.now, before: row.past} {
			snapshot, err := s.store.View(within(t), kg.View{Principal: row.who, At: at, AllGraphs: true})
			if err != nil {
				t.Fatal(err)
			}
			if n, err := snapshot.Count(kg.Pattern{Predicate: kg.Parts}); err != nil || n != want {
				t.Errorf("%s counts %d contents at revision %d, %v; want %d", what, n, at, err, want)
			}
			snapshot.Close()
		}
	}
}
