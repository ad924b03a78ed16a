package celrules_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/message"
	"koine/channels/scope"
	"koine/internal/celrules"
	"koine/internal/proposals"
	"koine/kg"
)

// talk is a store with channels that are judged by rules, and reviews.
type talk struct {
	*channels.Service
	t       *testing.T
	store   *kg.Store
	reviews *proposals.Service
	file    *celrules.File
	path    string
	looks   atomic.Int64 // how often messages were asked for
	behind  before       // is called behind the first verdict of the rules
}

func newTalk(t *testing.T, text string) *talk {
	t.Helper()
	w := &talk{t: t, Service: channels.New(channels.Options{}), reviews: proposals.New(proposals.Options{}), path: filepath.Join(t.TempDir(), "rules.yaml")}
	if err := os.WriteFile(w.path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	w.file, err = celrules.Open(w.path, celrules.Options{Messages: func(ctx context.Context, j kg.Judgement) ([]channels.JudgedMessage, error) {
		w.looks.Add(1)
		return w.JudgedMessages(ctx, j)
	}}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	w.store, err = kg.Open(t.TempDir(), kg.Options{
		Governor:  kg.Governor{Verifier: kg.Verifiers(w.file, &w.behind), RulesVersion: w.file.Reloads, Holder: w.reviews, Access: w.Guard(w.reviews.Guard(kg.AllowAll{})), OnSystemChange: func(c *kg.Commit) { w.reviews.Follow(c); w.Follow(c) }},
		FreeBytes: func(string) (uint64, error) { return 1 << 40, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.reviews.Open(t.Context(), w.store), w.Load(t.Context(), w.store)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.Close()
		if err := w.store.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func by(name string, roles ...string) channels.Caller {
	return channels.Caller{Principal: caller(name, roles...)}
}

// make creates a channel of ann with bob and cleo in it.
func (w *talk) make(d channel.Draft) channel.ID {
	w.t.Helper()
	d.Members = []channel.Member{{Agent: "agent://bob"}, {Agent: "agent://cleo"}}
	c, err := w.Create(w.t.Context(), by("ann"), d)
	if err != nil {
		w.t.Fatal(err)
	}
	return c.ID
}

func publication(id channel.ID, text string) channels.Publication {
	raw, _ := json.Marshal(map[string]string{"type": "text", "text": text})
	return channels.Publication{Channel: id, Parts: []json.RawMessage{raw}}
}

// outcomeOf names how a publication ended.
func outcomeOf(r *channels.Receipt, err error) string {
	if err != nil {
		return outcome(kg.Receipt{}, err)
	}
	if (r.Message == nil) != (r.Verdict.Outcome == kg.Rejected) {
		return fmt.Sprintf("%+v", r)
	}
	return outcome(kg.Receipt{Verdict: r.Verdict}, nil)
}

func (w *talk) publish(by channels.Caller, p channels.Publication) string {
	w.t.Helper()
	return outcomeOf(w.Publish(w.t.Context(), by, p))
}

// sequences lists the sequences of the channel that ann reads.
func (w *talk) sequences(id channel.ID) (out []int64) {
	w.t.Helper()
	page, _, err := w.History(w.t.Context(), by("ann"), id, channels.HistoryQuery{})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, m := range page {
		out = append(out, m.Sequence)
	}
	return out
}

func onMessage(when, effect string) string {
	return fmt.Sprintf("rules:\n  - name: r\n    on: message\n    when: %q\n    effect: %s\n    message: No\n", when, effect)
}

// TestWhatRulesSeeOfMessages proves the content of the variable, in rules on messages
// and in rules on updates with one.
func TestWhatRulesSeeOfMessages(t *testing.T) {
	fact := patch(kg.Add, "urn:s", "urn:p", kg.String("x"))
	second := patch(kg.Add, "urn:s", "urn:p", kg.String("y"))
	expires := time.Now().Add(time.Hour).UTC().Truncate(time.Millisecond)
	full := func(id channel.ID) channels.Publication {
		return channels.Publication{
			Channel: id, Metadata: []byte(`{"phase":{"n":2}}`), ArtifactRefs: []string{"a1"}, Justification: "because", TaskID: "t",
			Parts: []json.RawMessage{[]byte(`{"type":"text","text":"one"}`), []byte(`{"kind":"data","data":{"x":1}}`), []byte(`{"text":"two"}`)},
			Envelope: message.Envelope{Interaction: message.Request, ContentType: message.Structured, Format: "json", Tags: []string{"b", "a"}, To: "bob",
				Thread: "th", ExpiresAt: expires},
			Patches: []kg.Patch{fact, second},
		}
	}
	plain := func(id channel.ID) channels.Publication { return publication(id, "one") }
	withFact := func(id channel.ID) channels.Publication {
		p := publication(id, "one")
		p.Patches = []kg.Patch{fact}
		return p
	}
	for _, row := range []struct {
		when string
		of   func(channel.ID) channels.Publication
	}{
		{`message.channelName == "lab" && message.kind == "channel" && message.visibility == "private" && message.scope == "" && message.channel != ""`, full},
		{`message.author == "agent://ann" && message.id.size() == 36 && message.facts == 2`, full},
		{`message.parts.size() == 3 && message.parts[1].data.x == 1 && message.text == "one\ntwo"`, full},
		{fmt.Sprintf(`message.metadata.phase.n == 2 && message.artifactRefs == ["a1"] && message.size == %d`, 28+30+14+17+2), full},
		{`message.interaction == "request" && message.contentType == "structured" && message.format == "json" && message.tags == ["a", "b"]`, full},
		{`message.to == "agent://bob" && message.recipients == ["agent://bob"] && message.private`, full},
		{`message.replyTo.size() == 36 && message.thread == "th" && message.correlation == "" && message.retracts == ""`, full},
		{fmt.Sprintf(`message.expires && message.expiresAt == timestamp(%q)`, expires.Format(time.RFC3339Nano)), full},
		{`caller.id == "agent://ann" && method == "channels/publish" && justification == "because" && taskId == "t" && metadata == {}`, full},
		{`message.interaction == "" && message.tags == [] && message.recipients == [] && !message.private && message.to == ""`, plain},
		{`message.metadata == {} && message.artifactRefs == [] && message.facts == 0 && !message.expires && message.text == "one"`, plain},
		{`message.facts == 1`, withFact},
	} {
		for _, on := range []string{"message", "update"} {
			if on == "update" && len(row.of("").Patches) == 0 {
				continue
			}
			w := newTalk(t, "rules: []\n")
			id := w.make(channel.Draft{Name: "lab"})
			first, err := w.Publish(t.Context(), by("bob"), publication(id, "first"))
			if err != nil {
				t.Fatal(err)
			}
			w.rules(strings.Replace(onMessage(row.when, "reject"), "on: message", "on: "+on, 1))
			p := row.of(id)
			if p.Thread != "" {
				p.ReplyTo = first.Message.ID
			}
			if r, err := w.Publish(t.Context(), by("ann"), p); outcomeOf(r, err) != "rejected" || r.Verdict.Reason != "No" || strings.Contains(r.Verdict.Details, "evaluated") {
				t.Errorf("on %s: %s: got %+v, %v", on, row.when, r, err)
			}
		}
	}
	w := newTalk(t, strings.Replace(onMessage(`message.id == "" && message.parts == [] && message.kind == "" && message.author == "" && !message.expires`, "reject"), "on: message", "on: update", 1))
	if got := outcome(apply(w.store, kg.Meta{Principal: caller("ann")}, fact)); got != "rejected" {
		t.Errorf("of an update without a message: %s", got)
	}
}

// TestEveryWayToPublishIsJudged proves that every way to publish is judged, that a
// refused message takes no sequence, and that koine's notices are not judged.
func TestEveryWayToPublishIsJudged(t *testing.T) {
	w := newTalk(t, onMessage(`message.text.contains("bad") || message.retracts != "" || message.contentType == "system"`, "reject"))
	ctx := t.Context()
	lab := w.make(channel.Draft{Name: "lab"})
	scope, err := w.Scopes().Create(ctx, by("ann"), scope.Draft{Title: "intent"})
	if err != nil {
		t.Fatal(err)
	}
	w.publish(by("ann"), publication(lab, "good"))
	first := publication(lab, "a question")
	first.Interaction, first.Envelope.To = message.Request, "bob"
	held, err := w.Publish(ctx, by("ann"), first)
	if err != nil {
		t.Fatal(err)
	}
	answer := publication(lab, "bad")
	answer.Interaction, answer.Correlation = message.Response, held.Message.ID
	direct := publication("", "bad")
	direct.To = "agent://bob"
	addressed := publication(lab, "bad")
	addressed.Envelope.To = "bob"
	for what, got := range map[string]string{
		"a message":              w.publish(by("ann"), publication(lab, "bad")),
		"a response":             w.publish(by("bob"), answer),
		"one that is addressed":  w.publish(by("ann"), addressed),
		"a first direct message": w.publish(by("ann"), direct),
		"the first of a name":    outcomeOf(w.PublishByName(ctx, by("ann"), scope.ID, "new", publication("", "bad"))),
		"a question": func() string {
			a, err := w.Ask(ctx, by("ann"), channels.Question{Publication: addressed})
			return outcomeOf(&a.Receipt, err)
		}(),
		"a question to all": func() string {
			a, err := w.AskAll(ctx, by("ann"), channels.Question{Publication: addressed})
			return outcomeOf(&a.Receipt, err)
		}(),
		"a retraction": func() string {
			r, err := w.Retract(ctx, by("ann"), channels.Retraction{Channel: lab, Message: held.Message.ID})
			if err != nil {
				return err.Error()
			}
			return outcomeOf(&r.Receipt, nil)
		}(),
	} {
		if got != "rejected" {
			t.Errorf("%s: %s", what, got)
		}
	}
	if got := w.sequences(lab); !slices.Equal(got, []int64{1, 2}) {
		t.Errorf("the sequences are %v", got)
	}
	if page, _, err := w.List(ctx, by("ann"), channel.ListQuery{Scope: scope.ID}); err != nil || len(page) != 0 {
		t.Errorf("the scope has %v, %v", page, err)
	}
	if m, err := w.Message(ctx, by("ann"), held.Message.ID); err != nil || m.Withheld != "" || len(m.Parts) != 1 {
		t.Errorf("what was not retracted is %+v, %v", m, err)
	}
	if _, err := w.Members().RemoveAgent(ctx, by("cleo"), "agent://cleo"); err != nil {
		t.Errorf("what koine says of who left: %v", err)
	}
	if got := w.sequences(lab); !slices.Equal(got, []int64{1, 2, 3}) {
		t.Errorf("with what koine said the sequences are %v", got)
	}
	if got := w.publish(by("ann"), publication(lab, "good")); got != "accepted" {
		t.Errorf("behind all of it: %s", got)
	}
}

// TestRefusedMessages proves the ways to refuse a message: a violation with an error, a
// rule that cannot be evaluated, one that costs too much; and that a published message
// is not refused later when its key is reused.
func TestRefusedMessages(t *testing.T) {
	w := newTalk(t, `rules:
  - {name: v, on: message, when: 'message.tags.exists(t, t == "violation")', effect: violation, message: Not this}
  - {name: m, on: message, when: 'has(message.metadata.size) && message.metadata.size > 3', effect: reject, message: Too large}
  - {name: k, on: message, when: 'message.metadata[message.text] == 1', effect: reject}
`)
	id := w.make(channel.Draft{})
	tagged := publication(id, "x")
	tagged.Tags, tagged.Metadata = []string{"violation"}, []byte(`{"x":0}`)
	if _, err := w.Publish(t.Context(), by("ann"), tagged); kg.CodeOf(err) != kg.CodeConstraintViolation || !strings.Contains(err.Error(), "Not this: v: the message") {
		t.Errorf("a violation: %v", err)
	}
	r, err := w.Publish(t.Context(), by("ann"), publication(id, "x"))
	if outcomeOf(r, err) != "rejected" || r.Verdict.Reason != "Rule Failed" || !strings.Contains(r.Verdict.Details, "k: the message (the rule could not be evaluated: no such key") {
		t.Errorf("a rule that cannot be evaluated: %+v, %v", r, err)
	}
	p := publication(id, "x")
	p.Metadata, p.IdempotencyKey = []byte(`{"x":0,"size":3}`), "key"
	if got := w.publish(by("ann"), p); got != "accepted" {
		t.Fatal(got)
	}
	w.rules(onMessage("true", "reject"))
	if r, err := w.Publish(t.Context(), by("ann"), p); outcomeOf(r, err) != "accepted" || !r.Replayed {
		t.Errorf("the same again, under other rules: %+v, %v", r, err)
	}
	if got := w.publish(by("ann"), publication(id, "x")); got != "rejected" {
		t.Errorf("under other rules: %s", got)
	}
	w.rules(onMessage(`message.parts.all(a, message.parts.all(b, message.parts.all(c, message.parts.all(d, a == b))))`, "reject"))
	p.IdempotencyKey = ""
	for range message.MaxParts - 1 {
		p.Parts = append(p.Parts, p.Parts[0])
	}
	if got := w.publish(by("ann"), p); !strings.Contains(got, "the limit of steps") {
		t.Errorf("too costly a rule: %s", got)
	}
	if got := w.sequences(id); !slices.Equal(got, []int64{1}) {
		t.Errorf("the sequences are %v", got)
	}
}

// rules brings other rules into force.
func (w *talk) rules(text string) {
	w.t.Helper()
	if err := os.WriteFile(w.path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	if err := w.file.Reload(); err != nil {
		w.t.Fatal(err)
	}
}

// TestFactsWaitForTheirMessage proves that a rule on updates can hold facts by their
// message, which is published; that no reason and no proposal reveals an addressed
// message; and that approved facts still refer to it.
func TestFactsWaitForTheirMessage(t *testing.T) {
	w := newTalk(t, `rules:
  - {name: held, on: update, when: 'message.text.contains("psst")', effect: review, message: Look at this}
  - {name: alone, on: update, when: 'message.id == ""', effect: reject, message: Facts come with a message}
`)
	ctx := t.Context()
	id := w.make(channel.Draft{Visibility: channel.Public})
	p := publication(id, "psst, the secret is 4711")
	p.Envelope.To = "bob"
	p.Patches = []kg.Patch{patch(kg.Add, "urn:s", "urn:p", kg.String("x"))}
	r, err := w.Publish(ctx, by("ann"), p)
	if outcomeOf(r, err) != "held" || r.Message.Sequence != 1 || r.Message.ProposalID == "" {
		t.Fatalf("got %+v, %v", r, err)
	}
	if r.Verdict.Details != "held: <urn:s> <urn:p>: Look at this" {
		t.Errorf("the details are %q", r.Verdict.Details)
	}
	reviewer := proposals.Caller{Principal: caller("rita", kg.RoleReviewer)}
	v, err := w.store.View(ctx, kg.View{Principal: reviewer.Principal, AllGraphs: true})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	seen := 0
	for st, err := range v.Match(kg.Pattern{}) {
		if err != nil {
			t.Fatal(err)
		}
		seen++
		if strings.Contains(st.Object.Value(), "4711") {
			t.Errorf("the reviewer reads %v", st.Quad)
		}
	}
	if seen == 0 {
		t.Error("the reviewer reads nothing")
	}
	decided, err := w.reviews.Decide(ctx, reviewer, r.Message.ProposalID, proposals.Approve, "", nil)
	if err != nil || decided.Status != proposals.Applied {
		t.Errorf("approved: %+v, %v", decided, err)
	}
	if got := outcome(apply(w.store, kg.Meta{Principal: caller("ann"), MessageID: string(r.Message.ID)}, patch(kg.Add, "urn:s", "urn:q", kg.String("x")))); got != "rejected" {
		t.Errorf("facts that name a message: %s", got)
	}
}

// TestRulesSeeTheChannelOfTheCommit proves that a verdict about a message does not
// outlast a change of its channel.
func TestRulesSeeTheChannelOfTheCommit(t *testing.T) {
	w := newTalk(t, onMessage(`message.channelName == "closed"`, "reject"))
	id := w.make(channel.Draft{Name: "lab"})
	c, err := w.Get(t.Context(), by("ann"), id)
	if err != nil {
		t.Fatal(err)
	}
	renamed, name := false, "closed"
	w.behind.fn = func() {
		renamed = true
		if _, err := w.Update(t.Context(), by("ann"), id, channel.Update{Name: &name, ExpectedVersion: c.Version}); err != nil {
			t.Error(err)
		}
	}
	if got := w.publish(by("ann"), publication(id, "x")); got != "rejected" || !renamed {
		t.Errorf("renamed between verdict and commit: %s", got)
	}
}

// TestNobodyAsksForMessagesInVain proves that messages are prepared only if a rule uses
// them.
func TestNobodyAsksForMessagesInVain(t *testing.T) {
	w := newTalk(t, rule(`patch.predicate == "urn:never"`, "reject"))
	id := w.make(channel.Draft{})
	p := publication(id, "x")
	p.Patches = []kg.Patch{patch(kg.Add, "urn:s", "urn:p", kg.String("x"))}
	if got := w.publish(by("ann"), p); got != "accepted" || w.looks.Load() != 0 {
		t.Errorf("%s; messages were asked for %d times", got, w.looks.Load())
	}
	w.rules(onMessage("false", "reject"))
	if got := outcome(apply(w.store, kg.Meta{Principal: caller("ann")}, patch(kg.Add, "urn:s", "urn:q", kg.String("x")))); got != "accepted" || w.looks.Load() != 0 {
		t.Errorf("an update without a message: %s; messages were asked for %d times", got, w.looks.Load())
	}
	// A verdict overtaken by another commit, such as one of receipts, is made again.
	if got := w.publish(by("ann"), publication(id, "x")); got != "accepted" || w.looks.Load() == 0 {
		t.Errorf("%s; messages were asked for %d times", got, w.looks.Load())
	}
}

// TestMessagesExample proves that the shipped example for messages refuses exactly the
// messages it describes.
func TestMessagesExample(t *testing.T) {
	text, err := os.ReadFile("../../examples/policies/messages.yaml")
	if err != nil {
		t.Fatal(err)
	}
	w := newTalk(t, string(text))
	lab, news := w.make(channel.Draft{}), w.make(channel.Draft{Kind: channel.Broadcast})
	open := w.make(channel.Draft{Visibility: channel.Public})
	fact := []kg.Patch{patch(kg.Add, "urn:s", "urn:p", kg.String("x"))}
	with := func(p channels.Publication, change func(*channels.Publication)) channels.Publication {
		change(&p)
		return p
	}
	facts := func(p *channels.Publication) { p.Patches = fact }
	for _, row := range []struct {
		name string
		by   channels.Caller
		p    channels.Publication
		want string
	}{
		{"a text", by("ann"), publication(lab, "hello"), "accepted"},
		{"a key", by("ann"), publication(lab, "this is it:\n-----BEGIN PRIVATE KEY-----\n"), "rejected"},
		{"an announcement", by("ann"), publication(news, "hello"), "rejected"},
		{"one with a tag", by("ann"), with(publication(news, "hello"), func(p *channels.Publication) { p.Tags = []string{"greeting"} }), "accepted"},
		{"a guest in private", by("bob", "guest"), publication(lab, "hello"), "accepted"},
		{"a guest in public", by("bob", "guest"), publication(open, "hello"), "violation"},
		{"others in public", by("bob", "staff"), publication(open, "hello"), "accepted"},
		{"facts in private", by("ann"), with(publication(lab, "look"), facts), "accepted"},
		{"facts in public", by("ann"), with(publication(open, "look"), func(p *channels.Publication) { p.Patches = []kg.Patch{patch(kg.Add, "urn:s", "urn:q", kg.String("x"))} }), "held"},
	} {
		if got := w.publish(row.by, row.p); got != row.want {
			t.Errorf("%s: %s, want %s", row.name, got, row.want)
		}
	}
}
