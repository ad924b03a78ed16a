package scan_test

import (
	"compress/gzip"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/message"
	"koine/internal/celrules"
	"koine/internal/proposals"
	"koine/internal/scan"
	"koine/kg"
)

const rules = `rules:
  - {name: secret, on: message, when: 'message.text.contains("secret")', effect: reject, message: No secrets}
  - {name: odd, on: message, when: 'message.text.contains("odd")', effect: review, message: Odd words are looked at}
  - {name: loud, on: message, when: 'message.text.contains("!")', effect: tag, tags: [loud]}
`

// byText answers with the verdict that the text of a message begins with.
func byText(calls *atomic.Int32) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		var body struct {
			Message struct{ Parts []struct{ Text string } }
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		word, _, _ := strings.Cut(body.Message.Parts[0].Text, " ")
		_ = json.NewEncoder(w).Encode(map[string]any{"verdict": map[string]string{"bad": "reject", "wait": "hold"}[word] + map[bool]string{true: "accept"}[word != "bad" && word != "wait"],
			"reason": "because", "tags": []string{"seen"}})
	}
}

// Each verdict of rules and of a hook is that of a repetition, for which the hook is not
// asked again.
func TestVerdictsAreRepeated(t *testing.T) {
	var calls atomic.Int32
	s := serve(t, options{rules: rules, hook: newHook(t, scan.HookOptions{}, byText(&calls))})
	of := s.make(t, "bob")
	for i, row := range []struct {
		text      string
		calls     int32
		outcome   kg.Outcome
		reason    string
		tags      string
		published bool
	}{
		{"fine", 1, kg.Accepted, "", "[seen]", true},
		{"fine!", 1, kg.Accepted, "", "[loud seen]", true},
		{"bad", 1, kg.Rejected, "because", "", false},
		{"a secret", 0, kg.Rejected, "No secrets", "", false},
		{"wait", 1, kg.Held, "", "", false},
		{"odd!", 0, kg.Held, "", "", false},
	} {
		key := fmt.Sprint("key", i)
		calls.Store(0)
		first, err := s.publish(t, "bob", row.text, of, key)
		again, errAgain := s.publish(t, "bob", row.text, of, key)
		if n := calls.Load(); n != row.calls {
			t.Errorf("%s: the hook was called %d times", row.text, n)
		}
		_, other := s.publish(t, "bob", "something else", of, key)
		wantCode(t, row.text+": the key of another message", other, kg.CodeIdempotencyConflict)
		if row.outcome == kg.Held {
			wantCode(t, row.text, err, kg.CodeContentHeld)
			wantCode(t, row.text, errAgain, kg.CodeContentHeld)
			if kg.AsError(err).ProposalID != kg.AsError(errAgain).ProposalID {
				t.Errorf("%s: two proposals", row.text)
			}
			continue
		}
		if err != nil || errAgain != nil {
			t.Fatalf("%s: %v, %v", row.text, err, errAgain)
		}
		if first.Replayed || !again.Replayed || first.Verdict.Outcome != row.outcome || first.Verdict.Reason != row.reason || (first.Message != nil) != row.published ||
			again.Verdict.Outcome != row.outcome || again.Verdict.Reason != row.reason || again.Verdict.Details != first.Verdict.Details {
			t.Errorf("%s: %+v, again %+v", row.text, first, again)
		}
		if row.published && (fmt.Sprint(first.Message.Tags) != row.tags || again.Message.ID != first.Message.ID) {
			t.Errorf("%s: tags %v", row.text, first.Message.Tags)
		}
	}
	if got := s.history(t, "ann", of); len(got) != 2 {
		t.Errorf("published: %v", got)
	}
}

// A held message is published at approval with the next number, once, with its facts and
// its tags; streams and histories see nothing before and no gap after.
func TestApprovalPublishesOnce(t *testing.T) {
	s := serve(t, options{rules: rules})
	of := s.make(t, "bob", "rob", "ron", "rex")
	stream, err := s.Stream(within(t), as("ann"), of, new(int64))
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	if _, err := s.publish(t, "bob", "one", of, ""); err != nil {
		t.Fatal(err)
	}
	fact := kg.Quad{Subject: kg.IRI("urn:s"), Predicate: kg.IRI("urn:p"), Object: kg.String("o")}
	ofMessage, ofFact := &kg.Embedding{Model: "m", Vector: []float32{0.1, -1}}, &kg.Embedding{Model: "m", Vector: []float32{2}}
	odd := channels.Publication{Channel: of, Parts: text("odd!  two"), Embedding: ofMessage, IdempotencyKey: "k", Patches: []kg.Patch{{Op: kg.Add, Quad: fact, Source: "agent://bob", Embedding: ofFact}}}
	_, err = s.Publish(within(t), as("bob"), odd)
	wantCode(t, "odd", err, kg.CodeContentHeld)
	id := kg.AsError(err).ProposalID
	if _, err := s.publish(t, "ann", "three", of, ""); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(s.history(t, "ann", of)); got != "[1 agent://bob one 2 agent://ann three]" {
		t.Fatalf("before: %s", got)
	}
	// Its author, another name of it, and those without the role do not approve it.
	for _, by := range []proposals.Caller{reviewer("bob", "reviewer", "admin"), {Principal: reviewer("bob", "reviewer").Principal, Actor: "agent://rob"}, {Principal: reviewer("rob", "reviewer").Principal, Actor: "agent://bob"}} {
		_, err := s.reviews.Decide(within(t), by, id, proposals.Approve, "", nil)
		wantCode(t, "approval by "+string(by.Principal.ID), err, kg.CodePermissionDenied)
	}
	_, err = s.reviews.Decide(within(t), reviewer("ann"), id, proposals.Approve, "", nil)
	wantCode(t, "approval by a member", err, kg.CodeNotFound)
	_, err = s.reviews.Decide(within(t), reviewer("eve", "reviewer"), id, proposals.Approve, "", nil)
	wantCode(t, "approval by a reviewer outside", err, kg.CodeNotFound)
	var wg sync.WaitGroup
	for _, name := range []string{"rob", "ron", "rex"} {
		wg.Go(func() {
			if _, err := s.reviews.Decide(within(t), reviewer(name, "reviewer"), id, proposals.Approve, "", nil); err != nil && kg.CodeOf(err) != kg.CodeProposalClosed {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	wg.Wait()
	if got := fmt.Sprint(s.history(t, "ann", of)); got != "[1 agent://bob one 2 agent://ann three 3 agent://bob odd!  two]" {
		t.Fatalf("after: %s", got)
	}
	var last int64
	for m, err := range stream.Messages() {
		if err != nil {
			t.Fatal(err)
		}
		if m.Sequence != last+1 {
			t.Errorf("the stream goes from %d to %d", last, m.Sequence)
		}
		if last = m.Sequence; last == 3 {
			if fmt.Sprint(m.Tags) != "[loud]" || m.FactCount != 1 {
				t.Errorf("%+v", m)
			}
			if e, err := channels.ReadEmbedding(within(t), s.Service, m); err != nil || !e.Equal(ofMessage) {
				t.Errorf("the embedding is %v, %v, want %v", e, err, ofMessage)
			}
			break
		}
	}
	again, err := s.Publish(within(t), as("bob"), odd)
	if err != nil || !again.Replayed || again.Message.Sequence != 3 {
		t.Errorf("a repetition: %+v, %v", again, err)
	}
	view, err := s.store.View(within(t), kg.View{Principal: kg.SystemPrincipal(), AllGraphs: true})
	if err != nil {
		t.Fatal(err)
	}
	defer view.Close()
	fact.Graph = of.FactsGraph()
	found := 0
	for st, err := range view.Match(kg.Pattern(fact)) {
		if err != nil || len(st.Assertions) != 1 || st.Assertions[0].Source != "agent://bob" || !st.Assertions[0].Embedding.Equal(ofFact) {
			t.Errorf("the fact: %+v, %v", st, err)
		}
		found++
	}
	if found != 1 {
		t.Errorf("the fact stands %d times", found)
	}
	for st, err := range view.Match(kg.Pattern{Graph: of.VerdictsGraph()}) {
		t.Errorf("left of the hold: %v, %v", st.Quad, err)
	}
}

// The author of a message that is not published finds the reason in its inbox, and the
// key keeps its answer.
func TestAuthorsAreTold(t *testing.T) {
	banned := new(atomic.Pointer[kg.AgentID])
	for _, row := range []struct {
		name string
		end  func(t *testing.T, s *server, of channel.ID, id string) error
		want string
	}{
		{"rejected", func(t *testing.T, s *server, _ channel.ID, id string) error {
			_, err := s.reviews.Decide(within(t), reviewer("rob", "reviewer"), id, proposals.Reject, "Not like this.", nil)
			return err
		}, "Not like this."},
		{"expired", func(t *testing.T, s *server, _ channel.ID, id string) error {
			s.now.Add(int64(proposals.DefaultExpires))
			_, err := s.reviews.ExpireHeld(within(t))
			return err
		}, "It was not reviewed in time."},
		{"withdrawn", func(t *testing.T, s *server, _ channel.ID, id string) error {
			_, err := s.reviews.Withdraw(within(t), reviewer("bob"), id)
			return err
		}, ""},
		{"removed author", func(t *testing.T, s *server, of channel.ID, id string) error {
			_, err := s.Members().Remove(within(t), as("ann"), of, "agent://bob")
			return errors.Join(err, approve(t, s, id))
		}, "channel"},
		{"banned author", func(t *testing.T, s *server, of channel.ID, id string) error {
			who := kg.AgentID("agent://bob")
			banned.Store(&who)
			defer banned.Store(nil)
			return approve(t, s, id)
		}, "no longer has the rights"},
		{"closed channel", func(t *testing.T, s *server, of channel.ID, id string) error {
			return errors.Join(closeChannel(t, s, of), approve(t, s, id))
		}, "closed"},
		{"deleted channel", func(t *testing.T, s *server, of channel.ID, id string) error {
			return errors.Join(s.Delete(within(t), as("ann"), of), approve(t, s, id))
		}, "channel"},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := serve(t, options{rules: rules, banned: banned})
			of := s.make(t, "bob", "rob")
			id := s.held(t, "bob", "odd", of, "k")
			if err := row.end(t, s, of, id); err != nil {
				t.Fatal(err)
			}
			p, err := s.reviews.Get(within(t), reviewer("bob"), id)
			if err != nil || p.Status == proposals.Pending || p.Status == proposals.Applied {
				t.Errorf("the proposal: %+v, %v", p, err)
			}
			direct := channel.DirectID(kg.System, "agent://bob")
			page, _, err := s.History(within(t), as("bob"), direct, channels.HistoryQuery{})
			if row.want == "" {
				if len(page) > 0 {
					t.Errorf("told: %+v", page)
				}
			} else if err != nil || len(page) != 1 || page[0].ContentType != message.Notice || !strings.Contains(string(page[0].Parts[0]), row.want) || !strings.Contains(string(page[0].Metadata), id) {
				t.Errorf("told: %+v, %v", page, err)
			}
			if row.name == "rejected" {
				_, err := s.publish(t, "bob", "odd", of, "k")
				wantCode(t, "a repetition", err, kg.CodeContentHeld)
				if got := kg.AsError(err).ProposalID; got != id {
					t.Errorf("a repetition: proposal %s", got)
				}
			}
			if m, err := channels.NewHeld(s.Service).Message(within(t), of, message.ID(p.MessageID)); m != nil || err != nil {
				t.Errorf("its content is still there: %+v, %v", m, err)
			}
		})
	}
}

func approve(t *testing.T, s *server, id string) error {
	_, err := s.reviews.Decide(within(t), reviewer("rob", "admin"), id, proposals.Approve, "", nil)
	return err
}

func closeChannel(t *testing.T, s *server, of channel.ID) error {
	_, err := s.CloseChannel(within(t), as("ann"), of, "done")
	return err
}

// A hold survives a restart.
func TestHeldOverRestart(t *testing.T) {
	s := serve(t, options{rules: rules})
	of := s.make(t, "bob", "rob")
	id := s.held(t, "bob", "odd", of, "k")
	s.close()
	s.open(t)
	if err := approve(t, s, id); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(s.history(t, "ann", of)); got != "[1 agent://bob odd]" {
		t.Errorf("history: %s", got)
	}
}

// Only administrators review what is addressed to others, and the content is in no graph
// that anyone reads.
func TestAddressedMessages(t *testing.T) {
	s := serve(t, options{rules: rules})
	of := s.make(t, "bob", "rob", "dan")
	_, err := s.Publish(within(t), as("bob"), channels.Publication{Channel: of, Parts: text("odd canary"), Envelope: message.Envelope{To: "agent://dan"}})
	wantCode(t, "addressed", err, kg.CodeContentHeld)
	id := kg.AsError(err).ProposalID
	_, err = s.reviews.Get(within(t), reviewer("rob", "reviewer"), id)
	wantCode(t, "a reviewer in the channel", err, kg.CodeNotFound)
	for _, by := range []kg.Principal{as("rob", "reviewer").Principal, as("ann").Principal, as("root", "admin").Principal} {
		view, err := s.store.View(within(t), kg.View{Principal: by, AllGraphs: true, IncludePending: true})
		if err != nil {
			t.Fatal(err)
		}
		for st, err := range view.Match(kg.Pattern{}) {
			if err != nil || strings.Contains(st.Object.Value(), "canary") {
				t.Errorf("%s reads %v, %v", by.ID, st.Quad, err)
			}
		}
		for st := range view.Match(kg.Pattern{Graph: of.VerdictsGraph()}) {
			t.Errorf("%s reads %v", by.ID, st.Quad)
		}
		view.Close()
	}
	if _, err := s.reviews.Decide(within(t), reviewer("root", "admin"), id, proposals.Approve, "", nil); err != nil {
		t.Fatal(err)
	}
	if page, _, err := s.History(within(t), as("rob"), of, channels.HistoryQuery{}); err != nil || len(page) != 1 || len(page[0].Parts) != 0 {
		t.Errorf("%+v, %v", page, err)
	}
}

// A held first message makes no direct channel, and its approval does.
func TestHeldFirstMessage(t *testing.T) {
	s := serve(t, options{rules: rules})
	_, err := s.Publish(within(t), as("bob"), channels.Publication{To: "agent://dan", Parts: text("odd")})
	wantCode(t, "held", err, kg.CodeContentHeld)
	direct := channel.DirectID("agent://bob", "agent://dan")
	if page, _, _ := s.History(within(t), as("dan"), direct, channels.HistoryQuery{}); len(page) != 0 {
		t.Errorf("dan reads %+v", page)
	}
	if err := approve(t, s, kg.AsError(err).ProposalID); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(s.history(t, "dan", direct)); got != "[1 agent://bob odd]" {
		t.Error(got)
	}
}

// The bounds of held messages hold at the bound and past it, and expired ones make room.
func TestBoundsOfHeldMessages(t *testing.T) {
	s := serve(t, options{rules: rules, reviews: proposals.Options{HeldPerAgent: 2, HeldMessages: 3}})
	of := s.make(t, "bob", "rob")
	s.held(t, "bob", "odd 1", of, "")
	s.held(t, "bob", "odd 2", of, "")
	_, err := s.publish(t, "bob", "odd 3", of, "")
	if e := kg.AsError(err); e.Code != kg.CodeLimitExceeded || e.Limit != "heldPerAgent" {
		t.Errorf("one more of bob: %v", err)
	}
	s.held(t, "rob", "odd 1", of, "")
	_, err = s.publish(t, "ann", "odd 1", of, "")
	if e := kg.AsError(err); e.Code != kg.CodeLimitExceeded || e.Limit != "heldMessages" {
		t.Errorf("one more of all: %v", err)
	}
	if _, err := s.publish(t, "bob", "even", of, ""); err != nil {
		t.Error(err)
	}
	s.now.Add(int64(proposals.DefaultExpires))
	if more, err := s.reviews.ExpireHeld(within(t)); more || err != nil {
		t.Errorf("expiry: %v, %v", more, err)
	}
	s.held(t, "bob", "odd 4", of, "")
}

// The refusals kept for keys are bounded: the oldest goes first.
func TestBoundOfVerdicts(t *testing.T) {
	s := serve(t, options{rules: rules, most: 2})
	of := s.make(t, "bob")
	for _, row := range []struct {
		key      string
		replayed bool
	}{{"a", false}, {"b", false}, {"a", true}, {"b", true}, {"c", false}, {"b", true}, {"c", true}, {"a", false}} {
		r, err := s.publish(t, "bob", "secret", of, row.key)
		if err != nil || r.Verdict.Outcome != kg.Rejected || r.Replayed != row.replayed {
			t.Fatalf("%s: %+v, %v", row.key, r, err)
		}
	}
}

// What a hook does not judge is accepted, rejected or held, by choice; a rejected
// repetition is judged anew.
func TestHooksThatFail(t *testing.T) {
	answers := map[string]http.HandlerFunc{
		"away": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadGateway)
			_, _ = io.WriteString(w, `{"verdict":"accept"}`)
		},
		"slow to end": func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			_, _ = io.WriteString(w, `{"verdict":"accept"}`)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		},
		"huge when decoded": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			_, _ = io.WriteString(z, `{"verdict":"accept"}`+strings.Repeat(" ", 1<<20))
			_ = z.Close()
		},
		"slow": func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // only then is the end of the request noticed
			<-r.Context().Done()
		},
		"huge": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"verdict":"accept","reason":"`+strings.Repeat("x", scan.MaxResponseBytes)+`"}`)
		},
		"malformed":   func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "accept") },
		"two answers": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"verdict":"accept"}{}`) },
		"no verdict":  func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{}`) },
		"many tags": func(w http.ResponseWriter, _ *http.Request) {
			_ = json.NewEncoder(w).Encode(map[string]any{"verdict": "accept", "tags": make([]string, 17)})
		},
		"redirects": func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/elsewhere" {
				t.Error("a redirect is followed")
			}
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		},
		"a long reason": func(w http.ResponseWriter, _ *http.Request) {
			_ = json.NewEncoder(w).Encode(map[string]any{"verdict": "reject", "reason": strings.Repeat("ä", scan.MaxReasonRunes+1)})
		},
	}
	for name, answer := range answers {
		for _, choice := range []scan.OnFailure{scan.Accept, scan.Reject, scan.Hold} {
			t.Run(name+" "+string(choice), func(t *testing.T) {
				t.Parallel()
				o := scan.HookOptions{OnFailure: choice}
				if strings.HasPrefix(name, "slow") {
					o.Timeout = 50 * time.Millisecond
				}
				s := serve(t, options{hook: newHook(t, o, answer)})
				of := s.make(t, "bob")
				r, err := s.publish(t, "bob", "canary", of, "k")
				switch choice {
				case scan.Accept:
					if err != nil || r.Message == nil {
						t.Errorf("%+v, %v", r, err)
					}
				case scan.Reject:
					if err != nil || r.Message != nil || r.Verdict.Outcome != kg.Rejected || r.Verdict.Reason != "Content Not Checked" || strings.Contains(r.Verdict.Details, "canary") {
						t.Fatalf("%+v, %v", r, err)
					}
					if again, err := s.publish(t, "bob", "canary", of, "k"); err != nil || again.Replayed {
						t.Errorf("a repetition: %+v, %v", again, err)
					}
				case scan.Hold:
					wantCode(t, name, err, kg.CodeContentHeld)
				}
			})
		}
	}
}

// After five failures in a row the hook is asked again only after a pause, once.
func TestBreaker(t *testing.T) {
	var calls, now atomic.Int64
	var works atomic.Bool
	base := time.Now()
	hook := newHook(t, scan.HookOptions{OnFailure: scan.Accept, Clock: func() time.Time { return base.Add(time.Duration(now.Load())) }}, func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		if works.Load() {
			_, _ = io.WriteString(w, `{"verdict":"reject"}`)
			return
		}
		w.WriteHeader(http.StatusInternalServerError)
	})
	s := serve(t, options{hook: hook})
	of := s.make(t, "bob")
	say := func(n int) int64 {
		calls.Store(0)
		for range n {
			if _, err := s.publish(t, "bob", "x", of, ""); err != nil {
				t.Fatal(err)
			}
		}
		return calls.Load()
	}
	if n := say(8); n != 5 {
		t.Errorf("%d calls before the pause", n)
	}
	now.Add(int64(time.Second))
	if n := say(3); n != 1 {
		t.Errorf("%d calls after the pause", n)
	}
	now.Add(int64(time.Second)) // the second pause is twice as long
	if n := say(3); n != 0 {
		t.Errorf("%d calls in the second pause", n)
	}
	now.Add(int64(time.Second))
	works.Store(true)
	if n := say(3); n != 3 {
		t.Errorf("%d calls when it works again", n)
	}
}

// The body of a call has the message, its facts and its caller, is signed, and is bounded.
func TestCall(t *testing.T) {
	secret := []byte("shared")
	var body []byte
	var header http.Header
	hook := newHook(t, scan.HookOptions{Secret: secret, MaxBytes: 2000}, func(w http.ResponseWriter, r *http.Request) {
		body, _ = io.ReadAll(r.Body)
		header = r.Header
		_, _ = io.WriteString(w, `{"verdict":"accept"}`)
	})
	s := serve(t, options{hook: hook})
	of := s.make(t, "bob")
	_, err := s.Publish(within(t), as("bob", "guest"), channels.Publication{
		Channel: of, Parts: text("hello"), Metadata: []byte(`{"a":1}`), Envelope: message.Envelope{To: "agent://ann", Tags: []string{"t"}},
		Patches: []kg.Patch{{Op: kg.Add, Quad: kg.Quad{Subject: kg.IRI("urn:s"), Predicate: kg.IRI("urn:p"), Object: kg.String("o")}, Source: "agent://bob"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Message map[string]any
		Caller  map[string]any
	}
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatal(err)
	}
	delete(got.Message, "id")
	want := fmt.Sprintf(`{"author":"agent://bob","channelId":%q,"channelKind":"channel","channelName":"lab","facts":[{"graph":"\u003curn:koine:facts:%s\u003e","object":"\"o\"","op":"add","predicate":"\u003curn:p\u003e","subject":"\u003curn:s\u003e"}],"metadata":{"a":1},"parts":[{"text":"hello","type":"text"}],"recipient":"agent://ann","recipients":["agent://ann"],"tags":["t"],"visibility":"private"}`, of, of)
	if raw, _ := json.Marshal(got.Message); string(raw) != want {
		t.Errorf("the message:\n%s\nwant\n%s", raw, want)
	}
	if fmt.Sprint(got.Caller) != "map[id:agent://bob roles:[guest]]" {
		t.Errorf("the caller: %v", got.Caller)
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write(slices.Concat([]byte(header.Get(scan.TimestampHeader)+"."), body))
	if header.Get(scan.SignatureHeader) != "sha256="+hex.EncodeToString(mac.Sum(nil)) {
		t.Errorf("the signature: %v", header)
	}
	body = nil
	if r, err := s.publish(t, "bob", strings.Repeat("x", 2000), of, ""); err != nil || r.Verdict.Outcome != kg.Rejected || body != nil {
		t.Errorf("a larger one: %+v, %v", r, err)
	}
}

// A reason of a retraction is judged, too; it does not wait.
func TestRetractionsAreJudged(t *testing.T) {
	s := serve(t, options{rules: rules})
	of := s.make(t, "bob")
	r, err := s.publish(t, "bob", "fine", of, "")
	if err != nil {
		t.Fatal(err)
	}
	refused, err := s.Retract(within(t), as("bob"), channels.Retraction{Channel: of, Message: r.Message.ID, Reason: "odd"})
	if err != nil || refused.Message != nil || refused.Verdict.Outcome != kg.Rejected {
		t.Errorf("%+v, %v", refused, err)
	}
	if done, err := s.Retract(within(t), as("bob"), channels.Retraction{Channel: of, Message: r.Message.ID}); err != nil || done.Message == nil {
		t.Errorf("%+v, %v", done, err)
	}
}

// Messages are scanned only if a rule or a hook asks for it, which is found out without an
// allocation.
func TestScansThatAreNeeded(t *testing.T) {
	const refuses = `rules: [{name: secret, on: message, when: 'message.text.contains("secret")', effect: reject, message: No secrets}]`
	for _, row := range []struct {
		what        string
		rules       string
		hook        bool
		plain, with bool // without and with a key
	}{
		{"nothing", "", false, false, false},
		{"a rule on updates", `rules: [{name: x, on: update, when: 'false', effect: reject, message: No}]`, false, false, false},
		{"a rule that refuses", refuses, false, false, true},
		{"rules that tag and hold", rules, false, true, true},
		{"a hook", "", true, true, true},
		{"both", refuses, true, true, true},
	} {
		var set scan.Rules
		if row.rules != "" {
			parsed, err := celrules.Parse([]byte(row.rules), celrules.Options{})
			if err != nil {
				t.Fatal(row.what, err)
			}
			set = parsed
		}
		var hook *scan.Hook
		if row.hook {
			hook = newHook(t, scan.HookOptions{}, func(http.ResponseWriter, *http.Request) {})
		}
		s := scan.New(set, hook)
		if s.Needed(false) != row.plain || s.Needed(true) != row.with {
			t.Errorf("%s: %v, with a key %v", row.what, s.Needed(false), s.Needed(true))
		}
		if n := testing.AllocsPerRun(100, func() { s.Needed(true) }); n != 0 {
			t.Errorf("%s: %v allocations", row.what, n)
		}
	}
}
