package channels_test

import (
	"iter"
	"math/rand/v2"
	"sync"
	"testing"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/message"
	"koine/kg"
)

// For any start of a stream while others publish, it delivers every message after its start
// once and in order.
func TestReplayAndLiveMeet(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	c := s.make(t, channel.Public, "bob")
	const total = 600
	var publishing, following sync.WaitGroup
	publishing.Go(func() {
		for i := range total {
			s.say(t, "bob", c.ID, "%d", i)
		}
	})
	for range 40 {
		following.Go(func() {
			head, err := s.Get(within(t), as("eve"), c.ID)
			if err != nil {
				t.Error(err)
				return
			}
			since := rand.Int64N(head.Messages + 1)
			stream, err := s.Stream(within(t), as("eve"), c.ID, &since)
			if err != nil {
				t.Error(err)
				return
			}
			defer stream.Close()
			next := since + 1
			for m, err := range stream.Messages() {
				if err != nil || m.Sequence != next {
					t.Errorf("behind %d: got %+v, %v; want %d", since, m, err, next)
					return
				}
				if next++; next > total {
					return
				}
			}
		})
	}
	publishing.Wait()
	following.Wait()
}

// A stream ends as if the channel did not exist when its agent is removed, and continues
// after other changes.
func TestStreamEndsWithMembership(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	c, other := s.make(t, channel.Private, "bob", "cleo"), s.make(t, channel.Private, "bob", "cleo")
	stream, err := s.Stream(within(t), as("bob"), c.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	got := make(chan *message.Message)
	ended := make(chan error)
	go func() {
		for m, err := range stream.Messages() {
			if err != nil {
				ended <- err
				return
			}
			got <- m
		}
	}()
	s.say(t, "ann", c.ID, "one")
	if m := <-got; m.Sequence != 1 {
		t.Errorf("got %+v", m)
	}
	// bob loses another channel: this one continues.
	if _, err := s.Members().Remove(within(t), as("ann"), other.ID, "bob"); err != nil {
		t.Fatal(err)
	}
	s.say(t, "ann", c.ID, "two")
	if m := <-got; m.Sequence != 2 {
		t.Errorf("got %+v", m)
	}
	if _, err := s.Members().Remove(within(t), as("ann"), c.ID, "bob"); err != nil {
		t.Fatal(err)
	}
	s.say(t, "ann", c.ID, "three")
	wantCode(t, "the end", <-ended, kg.CodeChannelNotFound)
	_, err = s.Stream(within(t), as("cleo"), c.ID, at(4))
	wantCode(t, "ahead of the channel", err, kg.CodeInvalid)
	_, err = s.Stream(within(t), as("cleo"), c.ID, at(-1))
	wantCode(t, "before the channel", err, kg.CodeInvalid)
}

func at(sequence int64) *int64 { return &sequence }

// Streams of a channel with the same view share one reading, and addressed messages reach
// only their recipients and the author, however many follow.
func TestStreamsShareWhatIsRead(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	c := s.make(t, channel.Private, "bob", "cleo", "dan")
	readers := []string{"ann", "bob", "cleo", "dan"}
	next := make([]func() (*message.Message, error, bool), len(readers))
	for i, name := range readers {
		stream, err := s.Stream(within(t), as(name), c.ID, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer stream.Close()
		pull, stop := iter.Pull2(stream.Messages())
		defer stop()
		next[i] = pull
	}
	told := func() []*message.Message {
		list := make([]*message.Message, len(next))
		for i := range next {
			var err error
			if list[i], err, _ = next[i](); err != nil {
				t.Fatal(readers[i], err)
			}
		}
		return list
	}
	s.say(t, "ann", c.ID, "what stands")
	told() // each is behind its own reads
	s.say(t, "ann", c.ID, "for all")
	toBob := channels.Publication{Channel: c.ID, Parts: benchParts(3), Envelope: message.Envelope{To: "bob"}}
	if _, err := s.Publish(within(t), as("ann"), toBob); err != nil {
		t.Fatal(err)
	}
	all := told()
	for i, m := range all {
		if m != all[0] || m.Sequence != 2 || m.Withheld != "" || len(m.Parts) != 1 {
			t.Errorf("%s: got %+v, want what the others got", readers[i], m)
		}
	}
	some := told()
	for i, m := range some {
		if reads := i < 2; m.Sequence != 3 || reads != (len(m.Parts) == 1) || reads != (m.Withheld == "") || reads != (m == some[0]) {
			t.Errorf("%s: got %+v of what is addressed to bob", readers[i], m)
		}
	}
}
