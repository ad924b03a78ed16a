package channels_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/message"
	"koine/channels/scope"
	"koine/kg"
)

// A reader to whom a message is not addressed gets its event without the content, and no
// statement of it; the sequence stays complete.
func TestAddressedIsWithheld(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	c := s.make(t, channel.Private, "bob", "cleo")
	streams := map[string]*channels.Stream{}
	for _, who := range []string{"ann", "bob", "cleo"} {
		stream, err := s.Stream(within(t), as(who), c.ID, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer stream.Close()
		streams[who] = stream
	}
	s.say(t, "ann", c.ID, "to all")
	r, err := s.Publish(within(t), as("ann"), channels.Publication{
		Channel: c.ID, Parts: text("psst"), Metadata: []byte(`{"a":1}`), ArtifactRefs: []string{"x"}, IdempotencyKey: "k",
		Envelope: message.Envelope{Interaction: message.Request, ContentType: message.Text, Tags: []string{"t"}, Thread: "th", To: "bob", ExpiresAt: time.Now().Add(time.Hour)},
	})
	if err != nil || !r.Message.Private || r.Message.Withheld != "" {
		t.Fatalf("%+v, %v", r, err)
	}
	look := func() {
		for who, stream := range streams {
			page, _, err := s.History(within(t), as(who), c.ID, channels.HistoryQuery{})
			if err != nil || fmt.Sprint(sequences(page)) != "[1 2]" {
				t.Fatalf("%s reads %v, %v", who, page, err)
			}
			got := []*message.Message{page[1]}
			if stream != nil {
				for m, err := range stream.Messages() {
					if err != nil {
						t.Fatal(err)
					}
					if m.Sequence == 2 {
						got = append(got, m)
						break
					}
				}
				streams[who] = nil
			}
			for _, m := range got {
				if m.ID != r.Message.ID || m.Author != "agent://ann" || m.To != "agent://bob" || !m.Time.Equal(r.Message.Time) || m.Interaction != message.Request {
					t.Errorf("%s gets %+v", who, m)
				}
				whole := string(m.Metadata) == `{"a":1}` && len(m.Parts) == 1 && len(m.Tags) == 1 && m.Thread == "th" && m.IdempotencyKey == "k" && m.Withheld == ""
				bare := m.Withheld == message.Addressed && m.Parts == nil && m.Metadata == nil && m.ArtifactRefs == nil && m.Tags == nil && m.Thread == "" &&
					m.IdempotencyKey == "" && m.ContentType == "" && m.ExpiresAt.IsZero()
				if whole != (who != "cleo") || bare != (who == "cleo") {
					t.Errorf("%s gets %+v", who, m)
				}
			}
		}
	}
	look()
	for _, who := range []string{"ann", "bob", "cleo", "eve"} {
		snapshot, err := s.store.View(within(t), kg.View{Principal: as(who).Principal, AllGraphs: true})
		if err != nil {
			t.Fatal(err)
		}
		n, err := snapshot.Count(kg.Pattern{Predicate: kg.IRI(kg.OwnVocabulary + "parts")})
		if want := map[string]uint64{"ann": 2, "bob": 2, "cleo": 1}[who]; err != nil || n != want {
			t.Errorf("%s counts %d contents, %v; want %d", who, n, err, want)
		}
		snapshot.Close()
	}
	// An agent reads the same through a caller that acts for it, and an administrator that
	// is no recipient reads in the channel what its agent may read.
	acting := channels.Caller{Principal: kg.Principal{ID: "agent://eve", Method: "key", ActFor: []kg.AgentID{kg.Anybody}}, Actor: "agent://cleo"}
	admin := channels.Caller{Principal: kg.Principal{ID: "agent://cleo", Method: "key", Roles: []string{kg.RoleAdmin}}}
	for _, by := range []channels.Caller{acting, admin} {
		page, _, err := s.History(within(t), by, c.ID, channels.HistoryQuery{SinceSequence: at(1)})
		if err != nil || len(page) != 1 || page[0].Withheld != message.Addressed || page[0].Parts != nil {
			t.Errorf("%+v reads %+v, %v", by, page[0], err)
		}
	}
	s.restart(t)
	look()
	if _, err := s.Members().Remove(within(t), as("ann"), c.ID, "bob"); err != nil {
		t.Fatal(err)
	}
	if n := s.counts(t, "bob"); n != 0 {
		t.Errorf("bob, who has left, still reads %d messages", n)
	}
}

// counts is how many contents of messages an agent reads.
func (s *server) counts(t *testing.T, who string) uint64 {
	t.Helper()
	snapshot, err := s.store.View(within(t), kg.View{Principal: as(who).Principal, AllGraphs: true})
	if err != nil {
		t.Fatal(err)
	}
	defer snapshot.Close()
	n, err := snapshot.Count(kg.Pattern{Predicate: kg.IRI(kg.OwnVocabulary + "parts")})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A response goes to the asking agent, and uses the same graph as its request.
func TestLanesAreBounded(t *testing.T) {
	s := serve(t, channels.Options{MaxPartitions: 2}, kg.Options{})
	c := s.make(t, channel.Private, "bob", "cleo")
	m := s.mustSend(t, "ann", c.ID, message.Envelope{Interaction: message.Request, To: "bob"})
	s.mustSend(t, "bob", c.ID, message.Envelope{Interaction: message.Response, Correlation: m.ID})
	s.mustSend(t, "ann", c.ID, message.Envelope{To: "cleo"})
	_, err := s.send(t, "bob", c.ID, message.Envelope{To: "cleo"})
	wantCode(t, "a third set", err, kg.CodeLimitExceeded)
	s.mustSend(t, "cleo", c.ID, message.Envelope{To: "ann"})
	s.mustSend(t, "bob", c.ID, message.Envelope{To: "*"})
	if n := s.counts(t, "cleo"); n != 3 {
		t.Errorf("cleo reads %d contents, want 3", n)
	}
}

// The view of others does not depend on the content of addressed messages: two stores with
// the same conversation except for that content look the same to all other agents. That
// holds for histories, streams, all statements, the log and the commits.
func TestAddressedLeavesNoTrace(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	views := [2]string{}
	for world := range views {
		r := rand.New(rand.NewPCG(seed, 1)) // the same choices in both
		clock := startClock()
		s := serve(t, channels.Options{Clock: clock.now}, kg.Options{Clock: clock.now})
		c := s.make(t, channel.Public, "bob", "cleo", "dora")
		s.role(t, "pair", "ann", "bob")
		names := []string{"ann", "bob"}
		for i := range 60 {
			clock.step(time.Millisecond)
			p := channels.Publication{Channel: c.ID, Parts: text("%d", i)}
			by := []string{"ann", "bob", "cleo"}[r.IntN(3)]
			switch r.IntN(3) {
			case 0:
				by = names[r.IntN(2)]
				p.To, p.Envelope.To = "", "role:pair"
				p.Interaction = message.Request
			case 1:
				by = "ann"
				p.Envelope.To = "bob"
			}
			if p.Envelope.To != "" && world == 1 { // otherwise in every way
				p.Parts = append(text("something else %d", i), text("and more")...)
				p.Metadata, p.Tags, p.Thread, p.ArtifactRefs = []byte(`{"x":1}`), []string{"a", "b"}, "th", []string{"r"}
				p.ContentType, p.Format, p.IdempotencyKey = message.Structured, "f", fmt.Sprint(i)
				p.ExpiresAt = clock.now().Add(time.Hour)
			}
			if _, err := s.Publish(within(t), as(by), p); err != nil {
				t.Fatal(err)
			}
		}
		views[world] = s.seen(t, c, "dora") + s.seen(t, c, "eve")
	}
	if views[0] != views[1] {
		a, b := strings.Split(views[0], "\n"), strings.Split(views[1], "\n")
		for i := range a {
			if i >= len(b) || a[i] != b[i] {
				t.Fatalf("line %d of %d and %d:\n%s\n%s", i, len(a), len(b), a[i], b[min(i, len(b)-1)])
			}
		}
		t.Fatalf("%d lines and %d", len(a), len(b))
	}
	if !strings.Contains(views[0], "addressed") {
		t.Error("nothing was addressed")
	}
}

// seen is everything that an agent can observe, as a text without random parts.
func (s *server) seen(t *testing.T, c *channel.Channel, who string) string {
	t.Helper()
	var out []string
	chance := []string{string(c.ID), "C"}
	note := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	page, _, err := s.History(within(t), as(who), c.ID, channels.HistoryQuery{PageSize: channels.MaxPage})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range page {
		chance = append(chance, string(m.ID), fmt.Sprintf("M%d", m.Sequence))
		raw, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		note("history %s", raw)
	}
	stream, err := s.Stream(within(t), as(who), c.ID, new(int64))
	if err != nil {
		t.Fatal(err)
	}
	for m, err := range stream.Messages() {
		raw, _ := json.Marshal(m)
		note("stream %s %v", raw, err)
		if m.Sequence == page[len(page)-1].Sequence {
			break
		}
	}
	stream.Close()
	view := kg.View{Principal: as(who).Principal, AllGraphs: true}
	snapshot, err := s.store.View(within(t), view)
	if err != nil {
		t.Fatal(err)
	}
	defer snapshot.Close()
	var statements []string
	for st, err := range snapshot.Match(kg.Pattern{}) {
		statements = append(statements, fmt.Sprint("statement ", st, err))
	}
	graphs, err := snapshot.Graphs()
	note("graphs %v %v", graphs, err)
	predicates, err := snapshot.Predicates()
	note("predicates %v %v", predicates, err)
	reader, err := s.store.ReadLog(within(t), kg.Filter{View: view}, kg.LogRange{After: s.store.Oldest(), Until: s.store.Head()})
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range reader.Events() {
		statements = append(statements, fmt.Sprint("event ", e.Op, e.Statement, e.Previous, e.StatementRemains, err))
	}
	for r := kg.Revision(1); r <= snapshot.Revision(); r++ {
		commit, err := s.store.Commit(within(t), view.Principal, r)
		if err != nil {
			note("commit %d %v", r, err)
			continue
		}
		note("commit %d %d changes, %q, %v", r, len(commit.Changes), commit.Justification, commit.Time)
	}
	text := strings.NewReplacer(chance...).Replace(strings.Join(append(out, statements...), "\n"))
	lines := strings.Split(text, "\n")
	slices.SortStableFunc(lines, cmp.Compare[string]) // ids by chance are in another order
	return strings.Join(lines, "\n")
}

// Readers find addressed replies, and agents with access by a role find a message in a
// scope.
func TestAddressedReplies(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	c := s.make(t, channel.Private, "bob", "cleo")
	asked := s.mustSend(t, "ann", c.ID, message.Envelope{Interaction: message.Request, To: "bob"})
	answer := s.mustSend(t, "bob", c.ID, message.Envelope{Interaction: message.Response, Correlation: asked.ID, ReplyTo: asked.ID})
	for who, want := range map[string]int{"ann": 1, "bob": 1, "cleo": 0} {
		list, _, err := s.Replies(within(t), as(who), asked.ID, 0, "")
		if err != nil || len(list) != want || want == 1 && (list[0].ID != answer.ID || list[0].Parts == nil) {
			t.Errorf("%s finds %v, %v", who, list, err)
		}
	}
	// Among the others, in their order.
	s.mustSend(t, "cleo", c.ID, message.Envelope{ReplyTo: asked.ID})
	s.mustSend(t, "bob", c.ID, message.Envelope{Interaction: message.Response, Correlation: asked.ID, ReplyTo: asked.ID})
	for who, want := range map[string][]int64{"ann": {2, 3, 4}, "bob": {2, 3, 4}, "cleo": {3}} {
		list, _, err := s.Replies(within(t), as(who), asked.ID, 0, "")
		if err != nil || !slices.Equal(sequences(list), want) {
			t.Errorf("%s finds %v, %v; want %v", who, sequences(list), err, want)
		}
	}
	if m, err := s.Message(within(t), as("cleo"), asked.ID); err != nil || m.Withheld != message.Addressed || m.Parts != nil {
		t.Errorf("cleo finds %+v, %v", m, err)
	}
	scope := s.scope(t, scope.Draft{Access: scope.Access{Roles: []string{"analyst"}}})
	in := s.makeIn(t, scope.ID, "all", channel.ByScope)
	m := s.say(t, "ann", in.ID, "to analysts")
	if _, err := s.Message(within(t), withRole("finn", "analyst"), m.ID); err != nil {
		t.Errorf("an analyst finds nothing: %v", err)
	}
	_, err := s.Message(within(t), as("finn"), m.ID)
	wantCode(t, "who is none", err, kg.CodeNotFound)
}
