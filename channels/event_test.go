package channels_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/message"
	"koine/channels/scope"
	"koine/kg"
)

// Each message of a channel with an audit copy is an event of its scope, in the same
// commit; the events are a chain, with concurrent publishers too.
func TestAudit(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	intent := s.scope(t, scope.Draft{Access: scope.Access{Agents: []kg.AgentID{"bob", "cleo"}}})
	var ids []channel.ID
	for i := range 3 {
		c, err := s.CreateIn(within(t), as("ann"), intent.ID, channel.Draft{Name: fmt.Sprint("c", i), MemberPolicy: channel.ByScope, Audit: i < 2})
		if err != nil || c.Audit != (i < 2) {
			t.Fatal(c, err)
		}
		ids = append(ids, c.ID)
	}
	_, err := s.Create(within(t), as("ann"), channel.Draft{Audit: true})
	wantCode(t, "a copy without a scope", err, kg.CodeInvalid)
	const each = 10
	var done sync.WaitGroup
	for i := range 12 {
		done.Go(func() {
			for n := range each {
				s.say(t, "bob", ids[i%3], "<%d> & %d", n, i)
			}
		})
	}
	done.Wait()
	newest, _, err := s.History(within(t), as("bob"), ids[0], channels.HistoryQuery{Descending: true, PageSize: 1})
	if err != nil {
		t.Fatal(err)
	}
	const events = 8 * each
	page, err := s.Scopes().Events(within(t), as("cleo"), intent.ID, 1, scope.MaxEvents)
	if err != nil || len(page) != events {
		t.Fatalf("%d events, %v; want %d", len(page), err, events)
	}
	previous := ""
	for i, e := range page {
		if e.Sequence != int64(i)+1 || e.Previous != previous || e.Type != scope.EventMessage || e.Actor != "agent://bob" || e.Time.IsZero() {
			t.Fatalf("event %d is %+v", i+1, e)
		}
		previous = e.Hash
	}
	if strings.Contains(string(page[0].Data), `"parts"`) || !strings.Contains(string(page[0].Data), `"contentHash":"`) {
		t.Errorf("the first says %s", page[0].Data)
	}
	check, err := s.Scopes().VerifyEvents(within(t), as("ann"), intent.ID, 1)
	if err != nil || check.Verified != events || check.Head != previous || check.Next != 0 {
		t.Errorf("verified: %+v, %v", check, err)
	}
	if check, err = s.Scopes().VerifyEvents(within(t), as("ann"), intent.ID, events-3); err != nil || check.Verified != 4 || check.Head != previous {
		t.Errorf("verified from near the end: %+v, %v", check, err)
	}
	if c, err := s.store.Commit(within(t), kg.SystemPrincipal(), newest[0].Revision); err != nil || !slices.ContainsFunc(c.Changes, func(ch kg.Change) bool { return ch.Quad.Graph == intent.ID.EventsGraph() }) {
		t.Errorf("the commit of a message has no event: %v", err)
	}
	_, err = s.Scopes().VerifyEvents(within(t), as("ann"), intent.ID, events+5)
	wantCode(t, "from behind the end", err, kg.CodeInvalid)
	for _, by := range []string{"eve"} {
		_, err = s.Scopes().Events(within(t), as(by), intent.ID, 1, 1)
		wantCode(t, "an outsider", err, kg.CodeScopeNotFound)
		_, err = s.Scopes().VerifyEvents(within(t), as(by), intent.ID, 1)
		wantCode(t, "an outsider", err, kg.CodeScopeNotFound)
		snapshot, err := s.store.View(within(t), kg.View{Principal: as(by).Principal, AllGraphs: true})
		if err != nil {
			t.Fatal(err)
		}
		if n, err := snapshot.Count(kg.Pattern{Graph: intent.ID.EventsGraph()}); n != 0 || err != nil {
			t.Errorf("an outsider counts %d, %v", n, err)
		}
		snapshot.Close()
	}
	// A changed or omitted event is detected.
	tamper := func(op kg.Op, property string, object kg.Term, n int) {
		t.Helper()
		subject := kg.IRI(fmt.Sprintf("urn:koine:event:%s:%d", intent.ID, n))
		_, err := s.store.Update(within(t), kg.Meta{Principal: kg.SystemPrincipal()}, func(tx *kg.Tx) error {
			return tx.ApplyOwn(kg.Patch{Op: op, Quad: kg.Quad{Subject: subject, Predicate: kg.IRI(kg.OwnVocabulary + property), Object: object, Graph: intent.ID.EventsGraph()}})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	tamper(kg.Replace, "eventActor", kg.IRI("agent://eve"), 40)
	_, err = s.Scopes().VerifyEvents(within(t), as("ann"), intent.ID, 1)
	wantCode(t, "one that was changed", err, kg.CodeLogDamaged)
	if err == nil || !strings.Contains(err.Error(), "event 40 ") {
		t.Errorf("it says %v", err)
	}
	tamper(kg.Replace, "eventActor", kg.IRI("agent://bob"), 40)
	if _, err = s.Scopes().VerifyEvents(within(t), as("ann"), intent.ID, 1); err != nil {
		t.Errorf("put right: %v", err)
	}
	tamper(kg.Remove, "sequence", kg.Integer(50), 50)
	_, err = s.Scopes().VerifyEvents(within(t), as("ann"), intent.ID, 1)
	wantCode(t, "one that is missing", err, kg.CodeLogDamaged)
	tamper(kg.Add, "sequence", kg.Integer(50), 50) // a check finds it too
}

// An event has the hash of a message for everybody with access to the scope, and its content
// for who may read the message.
func TestAuditKeepsSecrets(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	intent := s.scope(t, scope.Draft{Access: scope.Access{Agents: []kg.AgentID{"bob", "cleo"}}})
	open, err := s.CreateIn(within(t), as("ann"), intent.ID, channel.Draft{Name: "open", MemberPolicy: channel.ByScope})
	if err != nil {
		t.Fatal(err)
	}
	explicit, err := s.CreateIn(within(t), as("ann"), intent.ID, channel.Draft{Name: "explicit", Audit: true, Members: []channel.Member{{Agent: "bob"}}})
	if err != nil {
		t.Fatal(err)
	}
	audit := true
	_, err = s.Update(within(t), as("bob"), open.ID, channel.Update{ExpectedVersion: 1, Audit: &audit})
	wantCode(t, "who does not own it", err, kg.CodePermissionDenied)
	s.say(t, "bob", open.ID, "before")
	if _, err = s.Update(within(t), as("ann"), open.ID, channel.Update{ExpectedVersion: 1, Audit: &audit}); err != nil {
		t.Fatal(err)
	}
	s.say(t, "bob", open.ID, "secret: none")
	asked := s.mustSend(t, "ann", open.ID, message.Envelope{Interaction: message.Request, To: "bob"})
	among := s.say(t, "bob", explicit.ID, "among us")
	page, err := s.Scopes().Events(within(t), as("cleo"), intent.ID, 0, 0)
	if err != nil || len(page) != 1 {
		t.Fatalf("%d events, %v", len(page), err)
	}
	if page, err = s.Scopes().Events(within(t), as("cleo"), intent.ID, 1, 10); err != nil || len(page) != 3 {
		t.Fatalf("%d events, %v", len(page), err)
	}
	for i, shown := range []bool{true, false, false} {
		e := page[i]
		if bytes.Contains(e.Data, []byte(`"parts"`)) || !bytes.Contains(e.Data, []byte(`"contentHash"`)) {
			t.Errorf("event %d says %s", i+1, e.Data)
		}
		if got, err := s.Scopes().EventCopy(within(t), as("cleo"), e); err != nil || (got != nil) != shown {
			t.Errorf("event %d has the copy %+v, %v", i+1, got, err)
		}
	}
	// A few words cannot be guessed from their hash; a reader of the message can verify it.
	for _, m := range []*message.Message{asked, among} {
		raw, err := json.Marshal([]any{m.Parts, nil})
		if err != nil {
			t.Fatal(err)
		}
		guess, salted := fmt.Sprintf("%x", sha256.Sum256(raw)), ""
		for who, want := range map[string]uint64{"bob": 1, "cleo": 0} {
			snapshot, err := s.store.View(within(t), kg.View{Principal: as(who).Principal, AllGraphs: true})
			if err != nil {
				t.Fatal(err)
			}
			n := uint64(0)
			for st, err := range snapshot.Match(kg.Pattern{Subject: m.ID.Entity(), Predicate: kg.IRI(kg.OwnVocabulary + "contentSalt")}) {
				if n++; err != nil {
					t.Fatal(err)
				}
				raw, err := json.Marshal([]any{m.Parts, nil, st.Object.Value()})
				if err != nil {
					t.Fatal(err)
				}
				salted = fmt.Sprintf("%x", sha256.Sum256(raw))
			}
			if snapshot.Close(); n != want {
				t.Errorf("%s reads %d salts of message %d", who, n, m.Sequence)
			}
		}
		if all := fmt.Sprintf("%s%s", page[1].Data, page[2].Data); strings.Contains(all, guess) || salted == "" || !strings.Contains(all, salted) {
			t.Errorf("neither %s nor not %s in %s", guess, salted, all)
		}
	}
	// Readers of a response know the answered request.
	s.mustSend(t, "bob", open.ID, message.Envelope{Interaction: message.Response, Correlation: asked.ID})
	s.mustSend(t, "bob", open.ID, message.Envelope{Interaction: message.Notification, Correlation: asked.ID})
	s.mustSend(t, "bob", explicit.ID, message.Envelope{Interaction: message.Notification, Correlation: among.ID})
	if page, err = s.Scopes().Events(within(t), as("cleo"), intent.ID, 4, 10); err != nil || len(page) != 3 {
		t.Fatalf("%d events, %v", len(page), err)
	}
	for i, shown := range []bool{false, true, false} {
		if e := page[i]; bytes.Contains(e.Data, []byte(`correlationId`)) != shown {
			t.Errorf("event %d says %s", e.Sequence, e.Data)
		}
	}
	audit = false
	if _, err = s.Update(within(t), as("ann"), open.ID, channel.Update{ExpectedVersion: 2, Audit: &audit}); err != nil {
		t.Fatal(err)
	}
	s.say(t, "bob", open.ID, "after")
	if check, err := s.Scopes().VerifyEvents(within(t), as("bob"), intent.ID, 1); err != nil || check.Verified != 6 {
		t.Errorf("%+v, %v", check, err)
	}
}
