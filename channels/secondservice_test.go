package channels_test

import (
	"fmt"
	"iter"
	"testing"
	"time"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/message"
	"koine/kg"
)

// TestSecondServiceTellsTheSame proves that the notices to a stream about changed messages,
// which serve does not compare, are derived from the log: a second service, which sees
// commits alone and whose methods wrote nothing, delivers the same to a stream that is
// behind as the first one.
func TestSecondServiceTellsTheSame(t *testing.T) {
	const kept = 3
	for _, row := range []struct {
		name string
		do   func(t *testing.T, s *server, id channel.ID)
		want string
	}{
		{"retracted", func(t *testing.T, s *server, id channel.ID) {
			m := s.say(t, "ann", id, "a secret")
			if _, err := s.Retract(within(t), as("ann"), channels.Retraction{Channel: id, Message: m.ID}); err != nil {
				t.Fatal(err)
			}
		}, "2 retracted; 3 retracts; "},
		{"evicted", func(t *testing.T, s *server, id channel.ID) {
			for i := range kept + 1 {
				s.say(t, "ann", id, "%d", i)
			}
		}, string(kg.CodePositionGone)},
		{"kept", func(t *testing.T, s *server, id channel.ID) {
			for i := range kept {
				s.say(t, "ann", id, "%d", i)
			}
		}, "2 whole; 3 whole; 4 whole; "},
		{"answered", func(t *testing.T, s *server, id channel.ID) {
			m := s.mustSend(t, "ann", id, message.Envelope{Interaction: message.Request, To: "bob", ExpiresAt: time.Now().Add(time.Hour)})
			s.mustSend(t, "bob", id, message.Envelope{Interaction: message.Response, Correlation: m.ID})
		}, "2 whole; 3 whole; "},
	} {
		t.Run(row.name, func(t *testing.T) {
			first := serve(t, channels.Options{}, kg.Options{})
			second := channels.New(channels.Options{})
			if err := second.Load(t.Context(), first.store.Store); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(second.Close)
			t.Cleanup(first.store.Observe(second.Follow))
			c, err := first.Create(within(t), as("ann"), channel.Draft{Members: []channel.Member{{Agent: "bob"}, {Agent: "carol"}}, KeepMessages: kept})
			if err != nil {
				t.Fatal(err)
			}
			var lagging []func() (*message.Message, error, bool)
			begun := first.say(t, "ann", c.ID, "what stands")
			for _, s := range []*channels.Service{first.Service, second} {
				stream, err := s.Stream(within(t), as("bob"), c.ID, new(int64))
				if err != nil {
					t.Fatal(err)
				}
				next, stop := iter.Pull2(stream.Messages())
				t.Cleanup(func() { stop(); stream.Close() })
				if m, err, _ := next(); err != nil || m.ID != begun.ID {
					t.Fatalf("told %+v, %v", m, err)
				}
				lagging = append(lagging, next)
			}
			row.do(t, first, c.ID)
			last := first.store.Head().Revision
			var told [2]string
			for i, next := range lagging {
				for {
					m, err, _ := next()
					if err != nil {
						told[i] = string(kg.CodeOf(err))
						break
					}
					what := string(m.Withheld)
					switch {
					case m.Retracts != "":
						what = "retracts"
					case what == "" && m.Parts != nil && m.ExpiresAt.IsZero():
						what = "whole"
					case what == "":
						what = fmt.Sprintf("as the log has it: %s until %s", m.Parts, m.ExpiresAt)
					}
					told[i] += fmt.Sprintf("%d %s; ", m.Sequence, what)
					if m.Revision >= last || len(told[i]) >= len(row.want) {
						break
					}
				}
			}
			if told[0] != row.want || told[1] != row.want {
				t.Errorf("the first service tells %q, the second %q; want %q", told[0], told[1], row.want)
			}
		})
	}
}
