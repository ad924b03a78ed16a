package channels_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/message"
	"koine/internal/slowtest"
	"koine/kg"
)

// A later retraction withdraws the facts left, once; facts that the caller may not write
// stay, and are counted.
func TestRetractFactsLater(t *testing.T) {
	closed := &closable{graph: kg.IRI("urn:closed")}
	s := serve(t, channels.Options{}, kg.Options{Governor: kg.Governor{Access: closed}})
	c := s.make(t, channel.Private, "bob")
	fact := func(graph kg.Term) kg.Patch {
		return kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: kg.IRI("urn:s"), Predicate: kg.IRI("urn:p"), Object: kg.Integer(1), Graph: graph}}
	}
	r, err := s.Publish(within(t), as("bob"), channels.Publication{Channel: c.ID, Parts: text("see"), Patches: []kg.Patch{fact(kg.Term{}), fact(closed.graph)}})
	if err != nil {
		t.Fatal(err)
	}
	closed.shut = true
	retract := func(by string, facts, dry bool, withdrawn, kept int, replayed bool) *channels.RetractionReceipt {
		t.Helper()
		out, err := s.Retract(within(t), as(by), channels.Retraction{Channel: c.ID, Message: r.Message.ID, WithdrawFacts: facts, DryRun: dry})
		if err != nil {
			t.Fatal(err)
		}
		if len(out.Withdrawn) != withdrawn || out.Kept != kept || out.Replayed != replayed {
			t.Errorf("%s: withdrawn %v, kept %d, replayed %t; want %d, %d, %t", by, out.Withdrawn, out.Kept, out.Replayed, withdrawn, kept, replayed)
		}
		return out
	}
	first := retract("bob", false, false, 0, 0, false)
	retract("ann", true, true, 1, 1, true)
	later := retract("ann", true, false, 1, 1, true)
	if later.Message.ID != first.Message.ID || later.Affected != 1 {
		t.Errorf("later: %+v", later)
	}
	if commit, err := s.store.Commit(within(t), kg.SystemPrincipal(), s.store.Head().Revision); err != nil || commit.MessageID != string(first.Message.ID) {
		t.Errorf("the commit is of the message %q, %v; want %s", commit.MessageID, err, first.Message.ID)
	}
	retract("bob", true, false, 0, 1, true)
	closed.shut = false
	retract("bob", true, false, 1, 0, true)
	retract("bob", true, false, 0, 0, true)
	page, _, err := s.History(within(t), as("bob"), c.ID, channels.HistoryQuery{})
	if err != nil || len(page) != 2 {
		t.Errorf("%v, %v", sequences(page), err)
	}
}

// A fact repeated by the same source belongs to the first message: a change without effect
// is not stored. The fact is withdrawn with that message, and stays if it is published
// again.
func TestRetractWhatWasSaidTwice(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	c := s.make(t, channel.Private, "bob")
	said := 0
	say := func(affected int) message.ID {
		t.Helper()
		said++
		fact := kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: kg.IRI("urn:s"), Predicate: kg.IRI("urn:p"), Object: kg.Integer(1)}}
		r, err := s.Publish(within(t), as("bob"), channels.Publication{Channel: c.ID, Parts: text("see %d", said), Patches: []kg.Patch{fact}})
		if err != nil || r.Affected != affected || r.Message.FactCount != 1 {
			t.Fatalf("published: %+v, %v", r, err)
		}
		return r.Message.ID
	}
	retract := func(m message.ID, dry bool, withdrawn int) {
		t.Helper()
		out, err := s.Retract(within(t), as("bob"), channels.Retraction{Channel: c.ID, Message: m, WithdrawFacts: true, DryRun: dry})
		if err != nil || len(out.Withdrawn) != withdrawn || out.Kept != 0 {
			t.Errorf("withdrawn: %+v, %v; want %d", out, err, withdrawn)
		}
	}
	first, second := say(1), say(0)
	retract(second, true, 0)
	retract(first, true, 1)
	retract(first, false, 1)
	retract(second, false, 0)
	retract(say(1), false, 1)
}

// closable refuses writes to a graph while it is closed.
type closable struct {
	kg.AllowAll
	graph kg.Term
	shut  bool
}

func (c *closable) Allowed(p kg.Principal, graph kg.Term, right kg.Right) bool {
	return p.Trusted() || !c.shut || graph != c.graph || right == kg.Read || right == kg.Discover
}

// The author, owners and moderators retract; others do not.
func TestWhoRetracts(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	c, err := s.Create(within(t), as("ann"), channel.Draft{Members: []channel.Member{
		{Agent: "agent://bob"}, {Agent: "agent://cleo"}, {Agent: "agent://mod", Role: channel.Moderator}, {Agent: "agent://obs", Role: channel.Observer},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		author, by string
		want       kg.Code
	}{
		{"bob", "bob", ""}, {"bob", "ann", ""}, {"bob", "mod", ""}, {"ann", "mod", ""},
		{"bob", "cleo", kg.CodePermissionDenied}, {"mod", "bob", kg.CodePermissionDenied}, {"bob", "obs", kg.CodePermissionDenied},
	} {
		m := s.say(t, row.author, c.ID, "said")
		_, err := s.Retract(within(t), as(row.by), channels.Retraction{Channel: c.ID, Message: m.ID})
		wantCode(t, row.by+" of "+row.author, err, row.want)
	}
}

// A retraction that is only tried is not counted as a message in a minute.
func TestDryRetractionIsNotCounted(t *testing.T) {
	s := serve(t, channels.Options{Tier: channels.Tier{MessagesPerMinute: 2}}, kg.Options{})
	c := s.make(t, channel.Private)
	m := s.say(t, "ann", c.ID, "said")
	r := channels.Retraction{Channel: c.ID, Message: m.ID, DryRun: true}
	for range 3 {
		if _, err := s.Retract(within(t), as("ann"), r); err != nil {
			t.Fatal(err)
		}
	}
	r.DryRun = false
	if _, err := s.Retract(within(t), as("ann"), r); err != nil {
		t.Fatal(err)
	}
	_, err := s.Publish(within(t), as("ann"), channels.Publication{Channel: c.ID, Parts: text("more")})
	wantCode(t, "the third", err, kg.CodeRateLimited)
}

// The hash is removed with the content, so that a message of few words cannot be guessed.
// The key returns it nevertheless.
func TestHashGoesWithContent(t *testing.T) {
	slowtest.Long(t)
	clock := startClock()
	hashes := func(s *server) (n uint64) {
		t.Helper()
		snapshot, err := s.store.View(within(t), kg.View{Principal: kg.SystemPrincipal(), AllGraphs: true})
		if err != nil {
			t.Fatal(err)
		}
		defer snapshot.Close()
		for _, name := range []string{"contentHash", "contentSalt"} {
			k, err := snapshot.Count(kg.Pattern{Predicate: kg.IRI(kg.OwnVocabulary + name)})
			if err != nil {
				t.Fatal(err)
			}
			n += k
		}
		return n
	}
	s := serve(t, channels.Options{Clock: clock.now}, kg.Options{Clock: clock.now})
	kept, err := s.Create(within(t), as("ann"), channel.Draft{KeepMessages: 2})
	if err != nil {
		t.Fatal(err)
	}
	c := s.make(t, channel.Private, "bob")
	var list []channels.Publication
	say := func(id channel.ID, e message.Envelope) *message.Message {
		t.Helper()
		p := channels.Publication{Channel: id, Parts: text("yes"), IdempotencyKey: fmt.Sprint("k", len(list)), Envelope: e}
		list = append(list, p)
		r, err := s.Publish(within(t), as("ann"), p)
		if err != nil {
			t.Fatal(err)
		}
		return r.Message
	}
	retracted := say(c.ID, message.Envelope{})
	say(c.ID, message.Envelope{ExpiresAt: clock.now().Add(time.Minute)})
	say(kept.ID, message.Envelope{})
	if n := hashes(s); n != 3 {
		t.Fatalf("%d hashes", n)
	}
	if _, err := s.Retract(within(t), as("ann"), channels.Retraction{Channel: c.ID, Message: retracted.ID}); err != nil {
		t.Fatal(err)
	}
	s.say(t, "ann", kept.ID, "more")
	s.say(t, "ann", kept.ID, "more")
	clock.step(time.Hour)
	eventually(t, "the hashes go", func() bool { return hashes(s) == 0 })
	s.restart(t)
	for _, p := range list {
		if again, err := s.Publish(within(t), as("ann"), p); err != nil || !again.Replayed || again.Message.Withheld == "" {
			t.Errorf("again: %+v, %v", again, err)
		}
	}
}

// Commits follow each other without a pause while something is overdue.
func TestOverdueIsNotWaitedFor(t *testing.T) {
	clock := startClock()
	s := serve(t, channels.Patient(channels.Options{Clock: clock.now}, time.Hour), kg.Options{Clock: clock.now})
	c := s.make(t, channel.Private, "bob")
	tags := make([]string, 16)
	for i := range tags {
		tags[i] = fmt.Sprint("t", i)
	}
	const messages = 400 // of 24 changes each: more than two commits
	for range messages {
		s.mustSend(t, "ann", c.ID, message.Envelope{Tags: tags, ExpiresAt: clock.now().Add(time.Minute)})
	}
	_, before := s.contents(t)
	s.knowsDue(t, messages)
	clock.step(2 * time.Minute)
	s.mustSend(t, "ann", c.ID, message.Envelope{ExpiresAt: clock.now().Add(time.Minute)}) // wakes it
	eventually(t, "all expire", func() bool { n, _ := s.contents(t); return n == 1 })
	if _, now := s.contents(t); now-before < 3 {
		t.Errorf("%d commits: the test has to have more to do", now-before-1)
	}
}

// The facts of a message are removed with it from the channel's own facts, also if the
// retracting agent may not publish there any more, or never could; elsewhere facts that it
// may not write stay. Facts that it could not propose stay too, if the withdrawal waits for
// review.
func TestFactsOfWhoDoesNotPublish(t *testing.T) {
	closed := &closable{graph: kg.IRI("urn:closed")}
	judge, holder := new(judge), new(holder)
	s := serve(t, channels.Options{}, kg.Options{Governor: kg.Governor{Access: closed, Verifier: judge, Holder: holder}})
	draft := channel.Draft{Kind: channel.Broadcast, Members: []channel.Member{{Agent: "bob", Role: channel.Owner}, {Agent: "mod", Role: channel.Moderator}}}
	c, err := s.Create(within(t), as("ann"), draft)
	if err != nil {
		t.Fatal(err)
	}
	said := int64(0)
	say := func() *message.Message {
		t.Helper()
		said++
		var patches []kg.Patch
		for _, graph := range []kg.Term{{}, kg.IRI("urn:open"), closed.graph} {
			patches = append(patches, kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: kg.IRI("urn:s"), Predicate: kg.IRI("urn:p"), Object: kg.Integer(said), Graph: graph}})
		}
		r, err := s.Publish(within(t), as("bob"), channels.Publication{Channel: c.ID, Parts: text("see"), Patches: patches})
		if err != nil {
			t.Fatal(err)
		}
		return r.Message
	}
	left := func() string {
		t.Helper()
		snapshot, err := s.store.View(within(t), kg.View{Principal: as("ann").Principal, Graphs: []kg.Term{c.ID.FactsGraph(), kg.IRI("urn:open"), closed.graph}})
		if err != nil {
			t.Fatal(err)
		}
		defer snapshot.Close()
		var out []string
		for st, err := range snapshot.Match(kg.Pattern{Subject: kg.IRI("urn:s")}) {
			if err != nil {
				t.Fatal(err)
			}
			where := strings.TrimPrefix(st.Graph.Value(), "urn:")
			if st.Graph == c.ID.FactsGraph() {
				where = "channel"
			}
			out = append(out, fmt.Sprint(st.Object.Value(), " ", where))
		}
		slices.Sort(out)
		return strings.Join(out, ", ")
	}
	retract := func(by string, m *message.Message, dry bool, withdrawn, kept int) {
		t.Helper()
		out, err := s.Retract(within(t), as(by), channels.Retraction{Channel: c.ID, Message: m.ID, WithdrawFacts: true, DryRun: dry})
		if err != nil {
			t.Fatal(err)
		}
		if len(out.Withdrawn) != withdrawn || out.Kept != kept {
			t.Errorf("%s: withdrawn %v, kept %d; want %d, %d", by, out.Withdrawn, out.Kept, withdrawn, kept)
		}
	}
	one, two, three, four := say(), say(), say(), say()
	closed.shut = true
	retract("mod", one, true, 2, 1)
	retract("mod", one, false, 2, 1)
	if got, want := left(), "1 closed, 2 channel, 2 closed, 2 open, 3 channel, 3 closed, 3 open, 4 channel, 4 closed, 4 open"; got != want {
		t.Errorf("left are %s, want %s", got, want)
	}
	if _, err := s.Members().Add(within(t), as("ann"), c.ID, "bob", channel.Observer); err != nil {
		t.Fatal(err)
	}
	retract("bob", two, true, 2, 1)
	retract("bob", two, false, 2, 1)
	_, err = s.Publish(within(t), as("bob"), channels.Publication{Channel: c.ID, Parts: text("see")})
	wantCode(t, "publishes", err, kg.CodePermissionDenied)
	remove := kg.Patch{Op: kg.Remove, Quad: kg.Quad{Subject: kg.IRI("urn:s"), Predicate: kg.IRI("urn:p"), Object: kg.Integer(3), Graph: c.ID.FactsGraph()}}
	_, err = s.store.Update(within(t), kg.Meta{Principal: as("bob").Principal}, func(tx *kg.Tx) error { return tx.Apply(remove) })
	wantCode(t, "withdraws without a retraction", err, kg.CodePermissionDenied)
	if err := s.Members().Mute(within(t), as("ann"), c.ID, "bob", time.Time{}); err != nil {
		t.Fatal(err)
	}
	_, err = s.Retract(within(t), as("bob"), channels.Retraction{Channel: c.ID, Message: three.ID, WithdrawFacts: true})
	wantCode(t, "muted", err, kg.CodePermissionDenied)
	judge.verdict = kg.Verdict{Outcome: kg.Held, Reason: "look", Hold: &kg.Hold{}}
	retract("mod", three, false, 1, 2)
	if n := len(holder.held); n != 1 || len(holder.held[0].Patches) != 1 || holder.held[0].Patches[0].Quad.Graph != kg.IRI("urn:open") {
		t.Errorf("held are %+v", holder.held)
	}
	judge.verdict = kg.Verdict{}
	retract("ann", three, false, 2, 1) // the publisher, later
	if got, want := left(), "1 closed, 2 closed, 3 closed, 4 channel, 4 closed, 4 open"; got != want {
		t.Errorf("left are %s, want %s", got, want)
	}
	judge.verdict = kg.Verdict{Outcome: kg.Rejected, Reason: "no"}
	if out, err := s.Retract(within(t), as("mod"), channels.Retraction{Channel: c.ID, Message: four.ID, WithdrawFacts: true}); err != nil || out.Message != nil || out.Verdict.Outcome != kg.Rejected {
		t.Errorf("refused: %+v, %v", out, err)
	}
	if now, err := s.Message(within(t), as("ann"), four.ID); err != nil || now.Withheld != "" {
		t.Errorf("what was refused: %+v, %v", now, err)
	}
}

// afterLook is a judge that lets something be done once between the look of a retraction
// and its commit.
type afterLook struct {
	judge
	do func()
}

func (a *afterLook) Verify(ctx context.Context, of kg.Judgement) (kg.Verdict, error) {
	if do := a.do; do != nil && of.Meta.Method == "channels/retract" {
		a.do = nil
		do()
	}
	return a.judge.Verify(ctx, of)
}

// Changes of a message during its retraction are included: facts approved in between are
// withdrawn with it, and a second retraction returns the first.
func TestRetractMeanwhile(t *testing.T) {
	hook := new(afterLook)
	s := serve(t, channels.Options{}, kg.Options{Governor: kg.Governor{Verifier: hook, Holder: new(holder)}})
	c := s.make(t, channel.Private, "bob")
	fact := kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: kg.IRI("urn:s"), Predicate: kg.IRI("urn:p"), Object: kg.Integer(1), Graph: c.ID.FactsGraph()}, Source: "agent://bob"}
	hook.verdict = kg.Verdict{Outcome: kg.Held, Reason: "look", Hold: &kg.Hold{}}
	r, err := s.Publish(within(t), as("bob"), channels.Publication{Channel: c.ID, Parts: text("see"), Patches: []kg.Patch{fact}})
	if err != nil || r.Message.ProposalID == "" {
		t.Fatal(r, err)
	}
	hook.verdict = kg.Verdict{}
	hook.do = func() { // the proposal is applied, as a review does it
		graph := kg.IRI(kg.ProposalGraphPrefix + r.Message.ProposalID)
		_, err := s.store.Update(within(t), kg.Meta{Principal: kg.SystemPrincipal()}, func(tx *kg.Tx) error {
			if err := tx.Apply(fact); err != nil {
				return err
			}
			return tx.ApplyOwn(kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: graph, Predicate: vocab("appliedIn"), Object: kg.Integer(int64(tx.Revision())), Graph: graph}})
		})
		wantCode(t, "applied", err, "")
	}
	retraction := channels.Retraction{Channel: c.ID, Message: r.Message.ID, WithdrawFacts: true}
	out, err := s.Retract(within(t), as("bob"), retraction)
	if err != nil || len(out.Withdrawn) != 1 || out.Replayed {
		t.Errorf("retracted: %+v, %v", out, err)
	}
	if hook.do != nil {
		t.Error("nothing came between")
	}

	other := s.say(t, "bob", c.ID, "another")
	var first *channels.RetractionReceipt
	hook.do = func() {
		first, err = s.Retract(within(t), as("ann"), channels.Retraction{Channel: c.ID, Message: other.ID})
		wantCode(t, "the first", err, "")
	}
	retraction.Message = other.ID
	second, err := s.Retract(within(t), as("bob"), retraction)
	if err != nil || !second.Replayed || first == nil || second.Message.ID != first.Message.ID {
		t.Errorf("the second: %+v, %v", second, err)
	}
	page, _, err := s.History(within(t), as("bob"), c.ID, channels.HistoryQuery{})
	if err != nil || fmt.Sprint(sequences(page)) != "[1 2 3 4]" {
		t.Errorf("%v, %v", sequences(page), err)
	}
}
