package channels_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/message"
	"koine/channels/scope"
	"koine/internal/agents"
	"koine/internal/slowtest"
	"koine/internal/systemgraph"
	"koine/kg"
)

// The parts of a message are accepted at each bound, and refused past it.
func TestBoundsOfAMessage(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	c := s.make(t, channel.Private)
	list := func(n int) (out []string) {
		for i := range n {
			out = append(out, fmt.Sprint("x", i))
		}
		return out
	}
	for name, row := range map[string]struct {
		most int
		fill func(p *channels.Publication, n int)
	}{
		"parts": {message.MaxParts, func(p *channels.Publication, n int) {
			for len(p.Parts) < n {
				p.Parts = append(p.Parts, p.Parts[0])
			}
		}},
		"artifacts":             {message.MaxArtifactRefs, func(p *channels.Publication, n int) { p.ArtifactRefs = list(n) }},
		"bytes of an artifact":  {message.MaxReferenceBytes, func(p *channels.Publication, n int) { p.ArtifactRefs = []string{strings.Repeat("x", n)} }},
		"characters of a key":   {channels.MaxKeyRunes, func(p *channels.Publication, n int) { p.IdempotencyKey = strings.Repeat("ä", n) }},
		"tags":                  {message.MaxTags, func(p *channels.Publication, n int) { p.Tags = list(n) }},
		"characters of a tag":   {message.MaxTagRunes, func(p *channels.Publication, n int) { p.Tags = []string{strings.Repeat("ä", n)} }},
		"characters of thread":  {message.MaxThreadRunes, func(p *channels.Publication, n int) { p.Thread = strings.Repeat("ä", n) }},
		"characters of format":  {message.MaxFormatRunes, func(p *channels.Publication, n int) { p.Format = strings.Repeat("ä", n) }},
		"bytes of the metadata": {channel.MaxMetadataBytes, func(p *channels.Publication, n int) { p.Metadata = []byte(`{"a":"` + strings.Repeat("x", n-8) + `"}`) }},
	} {
		for n, want := range map[int]kg.Code{row.most: "", row.most + 1: kg.CodeLimitExceeded} {
			p := channels.Publication{Channel: c.ID, Parts: text("hi")}
			row.fill(&p, n)
			_, err := s.Publish(within(t), as("ann"), p)
			wantCode(t, fmt.Sprintf("%d %s", n, name), err, want)
		}
	}
}

// A server keeps so many channels, deleted and direct ones included; a topic is so
// long.
func TestBoundsOfChannels(t *testing.T) {
	s := serve(t, channels.Options{MaxChannels: 3}, kg.Options{})
	long := strings.Repeat("ä", channel.MaxTopicRunes)
	_, err := s.Create(within(t), as("ann"), channel.Draft{Topic: long + "x"})
	wantCode(t, "a topic too long", err, kg.CodeLimitExceeded)
	c, err := s.Create(within(t), as("ann"), channel.Draft{Topic: long})
	wantCode(t, "the longest topic", err, "")
	wantCode(t, "delete", s.Delete(within(t), as("ann"), c.ID), "")
	s.make(t, channel.Private)
	direct := channels.Publication{To: "bob", Parts: text("hi")}
	_, err = s.Publish(within(t), as("ann"), direct)
	wantCode(t, "the last one", err, "")
	_, err = s.Create(within(t), as("ann"), channel.Draft{})
	wantCode(t, "one more", err, kg.CodeLimitExceeded)
	direct.To = "cleo"
	_, err = s.Publish(within(t), as("ann"), direct)
	wantCode(t, "one more direct one", err, kg.CodeLimitExceeded)
	direct.To = "bob"
	_, err = s.Publish(within(t), as("ann"), direct)
	wantCode(t, "in one that is there", err, "")
}

// own writes statements of koine's own, many with each update.
func (s *server) own(t testing.TB, list []kg.Quad) {
	t.Helper()
	for len(list) > 0 {
		n := min(len(list), 2000)
		_, err := s.store.Update(within(t), kg.Meta{Principal: kg.SystemPrincipal()}, func(tx *kg.Tx) error {
			for _, q := range list[:n] {
				if err := tx.ApplyOwn(kg.Patch{Op: kg.Add, Quad: q}); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		list = list[n:]
	}
}

// A message goes to so many agents of a role.
func TestBoundOfRecipients(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	intent := s.scope(t, scope.Draft{Access: scope.Access{Roles: []string{"dev"}}})
	c := s.makeIn(t, intent.ID, "all", channel.ByScope)
	ensure := func(from, to int) {
		t.Helper()
		for ; from < to; from += 250 {
			err := systemgraph.Update(within(t), s.store, kg.Meta{Principal: kg.SystemPrincipal()}, func(tx *kg.Tx) error {
				for i := from; i < min(to, from+250); i++ {
					if err := agents.Ensure(tx, agents.Record{ID: kg.CanonicalAgent(fmt.Sprint("a", i)), Roles: []string{"dev"}}); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	ensure(0, message.MaxRecipients)
	ask := message.Envelope{Interaction: message.Request, To: "role:dev"}
	if m := s.mustSend(t, "ann", c.ID, ask); len(m.Recipients) != message.MaxRecipients {
		t.Errorf("%d recipients", len(m.Recipients))
	}
	ensure(message.MaxRecipients, message.MaxRecipients+1)
	_, err := s.send(t, "ann", c.ID, ask)
	wantCode(t, "one more", err, kg.CodeLimitExceeded)
	_, err = s.send(t, "a7", c.ID, ask)
	wantCode(t, "one more, who is not in the channel", err, kg.CodeChannelNotFound)
}

// AskAll collects a bounded number of responses, from any authors.
func TestBoundOfAnswers(t *testing.T) {
	slowtest.Long(t)
	s := serve(t, channels.Options{}, kg.Options{})
	c := s.make(t, channel.Private, "bob", "cleo")
	s.role(t, "dev", "bob", "cleo")
	q := question(c.ID, "role:dev", channels.MaxAskTime)
	q.IdempotencyKey = "k"
	q.Interaction = message.Request
	asked, err := s.Publish(within(t), as("ann"), q.Publication)
	if err != nil {
		t.Fatal(err)
	}
	for range channels.MaxAnswers + 1 {
		s.mustSend(t, "bob", c.ID, message.Envelope{Interaction: message.Response, Correlation: asked.Message.ID})
	}
	a, err := s.AskAll(within(t), as("ann"), q)
	if err != nil || len(a.Responses) != channels.MaxAnswers {
		t.Errorf("%d responses, %v", len(a.Responses), err)
	}
	// So do pages of the history.
	for size, want := range map[int]int{0: channels.DefaultPage, channels.MaxPage: channels.MaxPage, channels.MaxPage + 1: channels.MaxPage, -1: 1} {
		if page, _, err := s.History(within(t), as("ann"), c.ID, channels.HistoryQuery{PageSize: size}); err != nil || len(page) != want {
			t.Errorf("a page of %d has %d messages, %v; want %d", size, len(page), err, want)
		}
	}
}

// hooked is a verifier that has nothing against anything, and lets something be done
// before an update is committed.
type hooked struct {
	method string
	do     func()
}

func (h *hooked) Verify(_ context.Context, of kg.Judgement) (kg.Verdict, error) {
	if of.Meta.Method == h.method {
		h.do()
	}
	return kg.Verdict{}, nil
}

// The number of attempts is bounded if a channel is created and deleted during a
// publication by its name.
func TestBoundOfNameTries(t *testing.T) {
	hook := &hooked{method: "channels/publish", do: func() {}}
	s := serve(t, channels.Options{}, kg.Options{Governor: kg.Governor{Verifier: hook}})
	for changes, want := range map[int]kg.Code{channels.MaxNameTries - 1: "", channels.MaxNameTries: kg.CodeOverloaded} {
		intent := s.scope(t, scope.Draft{Access: scope.Access{Agents: []kg.AgentID{"agent://bob"}}})
		var there channel.ID
		left := changes
		hook.do = func() {
			switch {
			case left == 0:
				return
			case there == "":
				there = s.makeIn(t, intent.ID, "lab", channel.ByScope).ID
			default:
				wantCode(t, "delete", s.Delete(within(t), as("ann"), there), "")
				there = ""
			}
			left--
		}
		_, err := s.PublishByName(within(t), as("bob"), intent.ID, "lab", channels.Publication{Parts: text("hi")})
		if wantCode(t, fmt.Sprint(changes, " changes"), err, want); left != 0 {
			t.Errorf("%d changes were not made", left)
		}
	}
}

// An intent and its tasks have so many channels, all of which close in one commit.
func TestBoundOfChannelsInAScope(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	intent := s.scope(t, scope.Draft{})
	task := s.scope(t, scope.Draft{Parent: intent.ID})
	var list []kg.Quad
	for i := range scope.MaxChannels - 2 {
		id := channel.ID(fmt.Sprint("c", i))
		for name, object := range map[string]kg.Term{
			"channelKind": kg.String("channel"), "channelVisibility": kg.String("private"), "channelCreatedAt": kg.DateTime(time.Now()),
			"channelCreatedBy": kg.IRI("agent://ann"), "channelVersion": kg.Integer(1), "channelScope": intent.ID.Entity(),
			"channelName": kg.String(fmt.Sprint("c", i)), "channelMemberPolicy": kg.String("explicit"), "channelOwner": kg.IRI("agent://ann"),
		} {
			list = append(list, kg.Quad{Subject: id.Entity(), Predicate: kg.IRI(kg.OwnVocabulary + name), Object: object, Graph: id.RecordGraph()})
		}
		list = append(list, kg.Quad{Subject: id.Entity(), Predicate: kg.IRI(kg.RDFType), Object: vocab("Channel"), Graph: id.RecordGraph()})
	}
	s.own(t, list)
	s.makeIn(t, intent.ID, "one", channel.ByScope)
	last := s.makeIn(t, task.ID, "last", channel.ByScope)
	for _, id := range []scope.ID{intent.ID, task.ID} {
		_, err := s.CreateIn(within(t), as("ann"), id, channel.Draft{Name: "one more"})
		wantCode(t, "one more", err, kg.CodeLimitExceeded)
		_, err = s.PublishByName(within(t), as("ann"), id, "one more", channels.Publication{Parts: text("hi")})
		wantCode(t, "one more by its name", err, kg.CodeLimitExceeded)
	}
	before := s.store.Head().Revision
	_, err := s.Scopes().End(within(t), as("ann"), intent.ID, scope.Completed, "")
	wantCode(t, "end", err, "")
	if n, err := s.countClosed(t); err != nil || n != scope.MaxChannels || s.store.Head().Revision != before+1 {
		t.Errorf("%d are closed, %v", n, err)
	}
	if c, err := s.Get(within(t), as("ann"), last.ID); err != nil || c.Status() != channel.Closed {
		t.Errorf("%+v, %v", c, err)
	}
}

// So many events of a scope are read at once, and so many verified.
func TestBoundsOfEvents(t *testing.T) {
	slowtest.WithoutRace(t)
	slowtest.Long(t)
	s := serve(t, channels.Options{}, kg.Options{})
	intent := s.scope(t, scope.Draft{})
	var list []kg.Quad
	at, previous := time.UnixMilli(1_750_000_000_000).UTC(), ""
	for n := range scope.MaxVerifyEvents + 1 {
		n++
		raw, err := json.Marshal([]any{intent.ID, n, "x", "agent://ann", at.UnixMilli(), "{}", previous})
		if err != nil {
			t.Fatal(err)
		}
		hash := fmt.Sprintf("%x", sha256.Sum256(raw))
		for name, object := range map[string]kg.Term{
			"eventType": kg.String("x"), "eventActor": kg.IRI("agent://ann"), "eventAt": kg.DateTime(at), "eventData": kg.Typed("{}", kg.RDF+"JSON"),
			"eventPreviousHash": kg.String(previous), "eventHash": kg.String(hash), "sequence": kg.Integer(int64(n)),
		} {
			list = append(list, kg.Quad{Subject: kg.IRI(fmt.Sprintf("urn:koine:event:%s:%d", intent.ID, n)), Predicate: kg.IRI(kg.OwnVocabulary + name), Object: object, Graph: intent.ID.EventsGraph()})
		}
		previous = hash
	}
	s.own(t, list)
	for n, want := range map[int]int{scope.MaxEvents: scope.MaxEvents, scope.MaxEvents + 1: scope.MaxEvents} {
		if page, err := s.Scopes().Events(within(t), as("ann"), intent.ID, 1, n); err != nil || len(page) != want {
			t.Errorf("%d events, %v", len(page), err)
		}
	}
	check, err := s.Scopes().VerifyEvents(t.Context(), as("ann"), intent.ID, 1)
	if err != nil || check.Verified != scope.MaxVerifyEvents || check.Next != scope.MaxVerifyEvents+1 {
		t.Errorf("all: %+v, %v", check, err)
	}
	if check, err = s.Scopes().VerifyEvents(within(t), as("ann"), intent.ID, scope.MaxVerifyEvents+1); err != nil || check.Verified != 1 || check.Next != 0 || check.Head != previous {
		t.Errorf("the last: %+v, %v", check, err)
	}
}
