package channels_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/message"
	"koine/kg"
)

// listen reads the signals of a channel into a list.
func (s *server) listen(t testing.TB, ctx context.Context, by channels.Caller, id channel.ID) (next func() (channels.Signal, error)) {
	t.Helper()
	list, err := s.Signals(ctx, by, id)
	if err != nil {
		t.Fatal(err)
	}
	pull, stop := iter.Pull2(list)
	t.Cleanup(stop)
	return func() (channels.Signal, error) {
		one, err, _ := pull()
		return one, err
	}
}

// Signals reach the current listeners of the channel, under its rights, and nothing of them
// is written.
func TestSignals(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	c, other := s.crew(t, channel.Draft{Visibility: channel.Public}), s.make(t, channel.Public, "bob")
	bob, eve := s.listen(t, within(t), as("bob"), c.ID), s.listen(t, within(t), as("eve"), c.ID)
	for who, want := range map[string]kg.Code{"mod": "", "ola": kg.CodePermissionDenied, "eve": kg.CodePermissionDenied} {
		wantCode(t, who, s.Signal(within(t), as(who), c.ID, channels.Typing, nil), want)
	}
	wantCode(t, "elsewhere", s.Signal(within(t), as("bob"), other.ID, channels.Typing, nil), "")
	data := fmt.Appendf(nil, `{"messageId":"%s","emoji":"+1"}`, s.say(t, "bob", c.ID, "look").ID)
	before := s.store.Head()
	wantCode(t, "a reaction", s.Signal(within(t), as("ann"), c.ID, channels.Reaction, data), "")
	for _, next := range []func() (channels.Signal, error){bob, eve} {
		one, err := next()
		if err != nil || one.From != "agent://mod" || one.Kind != channels.Typing || one.Channel != c.ID || one.Time.IsZero() || one.Data != nil {
			t.Errorf("first %+v, %v", one, err)
		}
		if one, err = next(); err != nil || one.From != "agent://ann" || string(one.Data) != string(data) || one.Dropped != 0 {
			t.Errorf("then %+v, %v", one, err)
		}
	}
	if now := s.store.Head(); now != before {
		t.Errorf("something was written: %v after %v", now, before)
	}
	for what, row := range map[string]struct {
		kind channels.SignalKind
		data string
		want kg.Code
	}{
		"no kind": {"", "", kg.CodeInvalid}, "no object": {"x", "[]", kg.CodeInvalid},
		"a kind at the bound":  {channels.SignalKind(strings.Repeat("x", channels.MaxSignalKindBytes)), "", ""},
		"a kind past it":       {channels.SignalKind(strings.Repeat("x", channels.MaxSignalKindBytes+1)), "", kg.CodeLimitExceeded},
		"data at the bound":    {"x", `{"a":"` + strings.Repeat("x", channels.MaxSignalBytes-8) + `"}`, ""},
		"data past the bound":  {"x", `{"a":"` + strings.Repeat("x", channels.MaxSignalBytes-7) + `"}`, kg.CodeLimitExceeded},
		"data that is too big": {"x", `{"a":"` + strings.Repeat("x", channel.MaxMetadataBytes) + `"}`, kg.CodeLimitExceeded},
	} {
		wantCode(t, what, s.Signal(within(t), as("bob"), c.ID, row.kind, []byte(row.data)), row.want)
	}
	private := s.make(t, channel.Private)
	wantCode(t, "a private channel", s.Signal(within(t), as("eve"), private.ID, channels.Typing, nil), kg.CodeChannelNotFound)
	_, err := s.Signals(within(t), as("eve"), private.ID)
	wantCode(t, "listening there", err, kg.CodeChannelNotFound)
	if err := s.Members().Mute(within(t), as("ann"), c.ID, "mod", time.Time{}); err != nil {
		t.Fatal(err)
	}
	wantCode(t, "a muted one", s.Signal(within(t), as("mod"), c.ID, channels.Typing, nil), kg.CodePermissionDenied)
}

// A slow reader misses the oldest, and gets their number.
func TestSignalsForTheSlow(t *testing.T) {
	now := startClock()
	s := serveAt(t, now, channels.Options{})
	c := s.make(t, channel.Public)
	next := s.listen(t, within(t), as("bob"), c.ID)
	const extra = 7
	for i := range channels.MaxSignalBacklog + extra {
		now.step(time.Second)
		wantCode(t, "a signal", s.Signal(within(t), as("ann"), c.ID, "n", fmt.Appendf(nil, `{"n":%d}`, i)), "")
	}
	for i := range channels.MaxSignalBacklog {
		one, err := next()
		want := 0
		if i == 0 {
			want = extra
		}
		if err != nil || string(one.Data) != fmt.Sprintf(`{"n":%d}`, i+extra) || one.Dropped != want {
			t.Fatalf("signal %d: %+v, %v", i, one, err)
		}
	}
}

// So many signals at once of a principal in a channel, then so many a second.
func TestSignalRate(t *testing.T) {
	now := startClock()
	s := serveAt(t, now, channels.Options{MaxRates: 2})
	c, other := s.make(t, channel.Public, "bob", "cleo"), s.make(t, channel.Public)
	send := func(who string, id channel.ID) error {
		return s.Signal(within(t), as(who), id, channels.Typing, nil)
	}
	for range channels.SignalBurst {
		wantCode(t, "in the burst", send("ann", c.ID), "")
	}
	wantLimit(t, "past it", send("ann", c.ID), kg.CodeRateLimited, "", time.Second/channels.SignalsPerSecond)
	wantCode(t, "in another channel", send("ann", other.ID), "")
	wantLimit(t, "a third pace", send("bob", c.ID), kg.CodeRateLimited, "", time.Second)
	now.step(time.Second / channels.SignalsPerSecond)
	wantCode(t, "then", send("ann", c.ID), "")
	wantCode(t, "once the other has rested", send("bob", c.ID), "")
	wantLimit(t, "past it", send("ann", c.ID), kg.CodeRateLimited, "", time.Second/channels.SignalsPerSecond)
}

// Listening ends with the access, with the context's cause, and with the service;
// and no more listen than may.
func TestSignalsEnd(t *testing.T) {
	s := serve(t, channels.Options{MaxListeners: 4}, kg.Options{})
	c := s.make(t, channel.Private, "bob", "cleo", "dora")
	because := errors.New("because")
	ctx, cancel := context.WithCancelCause(within(t))
	removed, banned, cancelled, left := s.listen(t, within(t), as("bob"), c.ID), s.listen(t, within(t), as("cleo"), c.ID), s.listen(t, ctx, as("ann"), c.ID), s.listen(t, within(t), as("dora"), c.ID)
	_, err := s.Signals(within(t), as("ann"), c.ID)
	wantCode(t, "a fifth", err, kg.CodeLimitExceeded)
	ended := func(next func() (channels.Signal, error)) chan error {
		out := make(chan error, 1)
		go func() {
			_, err := next()
			out <- err
		}()
		return out
	}
	first, second, third, fourth := ended(removed), ended(banned), ended(cancelled), ended(left)
	if _, err := s.Members().Remove(within(t), as("ann"), c.ID, "bob"); err != nil {
		t.Fatal(err)
	}
	wantCode(t, "removed", <-first, kg.CodeChannelNotFound)
	if err := s.Members().Ban(within(t), admin("root"), channel.AllChannels, "cleo", time.Time{}); err != nil {
		t.Fatal(err)
	}
	wantCode(t, "banned", <-second, kg.CodeChannelNotFound)
	cancel(because)
	if err := <-third; err != because {
		t.Errorf("cancelled: %v", err)
	}
	s.Close()
	wantCode(t, "closed", <-fourth, kg.CodeClosed)
}

// Readers react to messages of the channel that they can read, and to nothing else; the
// answer is the same for any reason.
func TestReactions(t *testing.T) {
	clock := startClock()
	s := serveAt(t, clock, channels.Options{})
	c, other := s.make(t, channel.Private, "bob", "cleo"), s.make(t, channel.Private, "bob")
	all, elsewhere := s.say(t, "ann", c.ID, "to all"), s.say(t, "ann", other.ID, "elsewhere")
	one := s.mustSend(t, "ann", c.ID, message.Envelope{To: "cleo"})
	soon := s.mustSend(t, "ann", c.ID, message.Envelope{ExpiresAt: clock.now().Add(time.Minute)})
	back := s.say(t, "ann", c.ID, "not so")
	react := func(by, data string) error {
		clock.step(time.Second)
		return s.Signal(within(t), as(by), c.ID, channels.Reaction, []byte(data))
	}
	to := func(m *message.Message) string { return fmt.Sprintf(`{"messageId":%q}`, m.ID) }
	for _, m := range []*message.Message{all, soon, back} {
		wantCode(t, "a message to all", react("bob", to(m)), "")
	}
	wantCode(t, "by its recipient", react("cleo", to(one)), "")
	wantCode(t, "by its author", react("ann", to(one)), "")
	if _, err := s.Retract(within(t), as("ann"), channels.Retraction{Channel: c.ID, Message: back.ID}); err != nil {
		t.Fatal(err)
	}
	clock.step(time.Minute)
	same := react("bob", `{"messageId":"none"}`)
	for what, data := range map[string]string{
		"none": `{"messageId":"none"}`, "of another channel": to(elsewhere), "to another": to(one), "expired": to(soon), "retracted": to(back),
		"no id": `{"messageId":"a b"}`, "too long": fmt.Sprintf(`{"messageId":%q}`, strings.Repeat("x", channel.MaxIDBytes+1)),
	} {
		err := react("bob", data)
		if wantCode(t, what, err, kg.CodeInvalid); err == nil || err.Error() != same.Error() {
			t.Errorf("%s: %v, not %v", what, err, same)
		}
	}
	for what, data := range map[string]string{"nothing": ``, "no name": `{"emoji":"+1"}`, "a number": `{"messageId":1}`} {
		wantCode(t, what, react("bob", data), kg.CodeInvalid)
	}
	wantCode(t, "an outsider", react("eve", to(all)), kg.CodeChannelNotFound)
}
