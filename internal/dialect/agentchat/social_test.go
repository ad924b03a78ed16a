package agentchat_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/message"
	"koine/internal/caller"
	"koine/internal/dialect/agentchat"
	"koine/internal/tasks"
	"koine/kg"
)

// as returns an agent as the caller of the domain.
func as(id string) channels.Caller {
	return channels.Caller{Principal: kg.Principal{ID: kg.CanonicalAgent(id), Method: "key"}}
}

// work gives a task to an agent, which ends it.
func (s *server) work(creator, handler string, state tasks.State) {
	s.t.Helper()
	by := func(id string) caller.Caller { return caller.Caller{Principal: as(id).Principal} }
	sent, err := s.tasks.Send(s.t.Context(), by(creator), tasks.SendRequest{To: kg.CanonicalAgent(handler), AlwaysTask: true, Message: tasks.Message{Parts: []tasks.Part{tasks.TextPart("x")}}})
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := s.tasks.Report(s.t.Context(), by(handler), sent.Task.ID, tasks.Report{State: state}); err != nil {
		s.t.Fatal(err)
	}
}

// request asks an agent in a room, which answers or not.
func (s *server) request(room, asker, asked string, answers bool) {
	s.t.Helper()
	p := channels.Publication{Channel: channel.ID(room), Parts: []json.RawMessage{json.RawMessage(`{"text":"?"}`)}}
	p.Interaction, p.To, p.Envelope.To = message.Request, "", asked
	p.ExpiresAt = time.Now().Add(time.Hour)
	if !answers {
		p.ExpiresAt = time.Now().Add(50 * time.Millisecond)
	}
	r, err := s.channels.Publish(s.t.Context(), as(asker), p)
	if err != nil {
		s.t.Fatal(err)
	}
	if !answers {
		return
	}
	q := channels.Publication{Channel: channel.ID(room), Parts: []json.RawMessage{json.RawMessage(`{"text":"!"}`)}}
	q.Interaction, q.Correlation = message.Response, r.Message.ID
	if _, err := s.channels.Publish(s.t.Context(), as(asked), q); err != nil {
		s.t.Fatal(err)
	}
}

// assert publishes a message with a fact.
func (s *server) assert(room, who string, object kg.Term, n int) {
	s.t.Helper()
	p := channels.Publication{Channel: channel.ID(room), Parts: []json.RawMessage{json.RawMessage(`{"text":"a fact"}`)}}
	p.Patches = []kg.Patch{{Op: kg.Add, Quad: kg.Quad{Subject: kg.IRI(fmt.Sprint("https://example.org/", n)), Predicate: kg.IRI("https://example.org/size"), Object: object}}}
	if _, err := s.channels.Publish(s.t.Context(), as(who), p); err != nil {
		s.t.Fatal(err)
	}
}

// Nothing that an agent, its owner, or another agent of its owner says or does raises the
// reputation of the agent; the same from others does.
func TestReputationIsNotRaisedFromInside(t *testing.T) {
	s := startWithTiers(t)
	lab, _ := s.registerAs(`{"name":"lab"}`)
	ann, annKey := s.registerAs(`{"name":"ann","owner":"` + lab + `"}`)
	twin, _ := s.registerAs(`{"name":"twin","owner":"` + lab + `"}`)
	other, otherKey := s.registerAs(`{"name":"other","owner":"elsewhere"}`)
	room := s.room(otherKey, `{"name":"r","type":"broadcast","members":["`+ann+`","`+twin+`","`+lab+`"]}`)
	if _, err := s.channels.Update(t.Context(), as(other), channel.ID(room), channel.Update{ExpectedVersion: 1, Rights: &channel.Rights{Post: channel.Everybody}}); err != nil {
		t.Fatal(err)
	}
	reputation := func(key string) string {
		t.Helper()
		status, answer := s.ask(key, "GET", "/agents/"+ann+"/reputation", "")
		if status != 200 {
			t.Fatal(answer)
		}
		return answer[:strings.Index(answer, `,"since"`)]
	}
	const nothing = `{"score":null,"counts":{"tasks_completed":0,"tasks_failed":0,"requests_answered":0,"requests_expired":0,"facts_confirmed":0,"facts_contradicted":0,"messages_retracted":0,"bans":0,"mutes":0}`
	fact := 0
	for _, inside := range []string{twin, lab, ann} {
		for range 5 {
			s.work(inside, ann, tasks.Completed)
			if inside != ann {
				s.request(room, inside, ann, true)
			}
			fact++
			s.assert(room, ann, kg.Integer(1), fact)
			s.assert(room, inside, kg.Integer(1), fact)
		}
	}
	// An agent that the agent owns is inside too.
	own, _ := s.registerAs(`{"name":"own","owner":"` + ann + `"}`)
	s.work(own, ann, tasks.Completed)
	for _, key := range []string{annKey, otherKey} {
		if got := reputation(key); got != nothing {
			t.Errorf("from inside: %s", got)
		}
	}
	for range 4 {
		s.work(other, ann, tasks.Completed)
		s.request(room, other, ann, true)
		fact++
		s.assert(room, ann, kg.Integer(1), fact)
		s.assert(room, other, kg.Integer(1), fact)
	}
	if got, want := reputation(otherKey), `{"score":93,"counts":{"tasks_completed":4,"tasks_failed":0,"requests_answered":4,"requests_expired":0,"facts_confirmed":4,"facts_contradicted":0,"messages_retracted":0,"bans":0,"mutes":0}`; got != want {
		t.Errorf("from others: got %s, want %s", got, want)
	}
	// What lowers it, by the formula: 12 good, 1 failed, 1 expired, 1 contradicted, 1
	// retracted, a ban (5) and a mute (2).
	if _, err := s.store.Update(t.Context(), kg.Meta{Principal: as(other).Principal}, func(tx *kg.Tx) error {
		return tx.Apply(kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: kg.IRI("https://example.org/size"), Predicate: kg.IRI(kg.RDFType), Object: kg.IRI("http://www.w3.org/2002/07/owl#FunctionalProperty")}})
	}); err != nil {
		t.Fatal(err)
	}
	s.work(other, ann, tasks.Failed)
	s.request(room, other, ann, false)
	s.assert(room, ann, kg.Integer(1), 1000)
	s.assert(room, other, kg.Integer(2), 1000)
	var said struct{ ID string }
	s.must(&said, annKey, "POST", "/rooms/"+room+"/messages", `{"content":"wrong"}`)
	s.must(nil, annKey, "DELETE", "/rooms/"+room+"/messages/"+said.ID, "")
	s.must(nil, otherKey, "POST", "/rooms/"+room+"/mute", `{"agent_id":"`+ann+`"}`)
	s.must(nil, otherKey, "POST", "/rooms/"+room+"/ban", `{"agent_id":"`+ann+`"}`)
	deadline := time.Now().Add(10 * time.Second)
	want := `{"score":52,"counts":{"tasks_completed":4,"tasks_failed":1,"requests_answered":4,"requests_expired":1,"facts_confirmed":4,"facts_contradicted":1,"messages_retracted":1,"bans":1,"mutes":1}`
	for reputation(otherKey) != want {
		if time.Now().After(deadline) {
			t.Fatalf("lowered: got %s, want %s", reputation(otherKey), want)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// What is computed for a reader is computed from what it may read: a store that holds
// only that gives the same answers, to the byte.
func TestComputedFromWhatTheReaderSees(t *testing.T) {
	paths := []string{
		"/agents", "/agents?capability=translation", "/capabilities", "/agents/%s", "/agents/%s/reputation", "/agents/%s/followers", "/agents/%s/following", "/rooms", "/rooms?capability=translation",
		"/rooms?q=e", "/me/feed", "/me", "/rooms/%s/analytics", "/rooms/%s",
		// Of a room that the reader may not find, which only one of the stores has.
		"/rooms/hidden/analytics", "/rooms/hidden", "/rooms/hidden/messages",
		// For a visitor without a key, if the directory is public.
		"visitor /agents", "visitor /agents/%s", "visitor /capabilities",
	}
	answers := func(hidden bool) (out []string) {
		s := startWith(t, agentchat.Options{Registration: agentchat.RegisterOpen, PublicDirectory: true}, channels.Options{Tiers: map[string]channels.Tier{}})
		ann, annKey := s.registerAs(`{"name":"ann","capabilities":["translation"]}`)
		bob, bobKey := s.registerAs(`{"name":"bob","owner":"elsewhere"}`)
		_, eve := s.registerAs(`{"name":"eve"}`)
		s.must(nil, bobKey, "GET", "/me", "") // presence is everybody's to see
		open := s.room(annKey, `{"name":"open","type":"broadcast","metadata":{"wanted":["translation"]}}`)
		s.must(nil, eve, "PUT", "/agents/"+ann+"/follow", "")
		for range 3 {
			s.must(nil, annKey, "POST", "/rooms/"+open+"/messages", `{"content":"to everybody"}`)
		}
		secret := "01a21998-2957-76f1-af17-0a41405b94a7"
		if hidden {
			secret = s.room(annKey, `{"name":"secret","type":"private","members":["`+bob+`"],"metadata":{"wanted":["translation"]}}`)
			direct := s.room(annKey, `{"type":"direct","members":["`+bob+`"]}`)
			for range 12 {
				s.must(nil, annKey, "POST", "/rooms/"+secret+"/messages", `{"content":"x"}`)
				s.must(nil, bobKey, "POST", "/rooms/"+direct+"/messages", `{"content":"x"}`)
				s.work(bob, ann, tasks.Completed)
				s.request(secret, bob, ann, true)
				s.assert(secret, ann, kg.Integer(1), 1)
			}
		}
		room := regexp.MustCompile(`^/rooms/`)
		for _, path := range paths {
			of := ann
			key, what := eve, path
			if after, ok := strings.CutPrefix(path, "visitor "); ok {
				key, path = "", after
			}
			if room.MatchString(path) {
				of = open
			}
			path = strings.Replace(path, "hidden", secret, 1)
			if strings.Contains(path, "%s") {
				path = fmt.Sprintf(path, of)
			}
			status, answer := s.ask(key, "GET", path, "")
			out = append(out, fmt.Sprint(what, " ", status, " ", answer))
		}
		return out
	}
	whole, seen := answers(true), answers(false)
	for i := range whole {
		a, b := valueMasks.Apply(whole[i]), valueMasks.Apply(seen[i])
		want := " 200 "
		if strings.Contains(paths[i], "hidden") {
			want = " 404 "
		}
		if a != b || !strings.Contains(a, want) {
			t.Errorf("%s:\nwith the hidden %s\nwithout         %s", paths[i], a, b)
		}
	}
}
