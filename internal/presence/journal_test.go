package presence_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"koine/internal/agents"
	"koine/internal/caller"
	"koine/internal/observertest"
	"koine/internal/policy"
	"koine/internal/presence"
	"koine/kg"
)

const patience = time.Minute

// served is a store with policies and a tracker.
type served struct {
	*kg.Store
	tracker *presence.Tracker
	told    []kg.Revision // of which OnSystemChange was told
}

// serve opens a store; changes are written at once.
func serve(t *testing.T, dir string, validity time.Duration) *served {
	t.Helper()
	observertest.Replay(t, dir)
	policies := policy.New(policy.Options{})
	s := &served{tracker: presence.New(presence.Options{Settle: 1, WriteInterval: 1, AgentWriteInterval: 1, Linger: 1, Validity: validity})}
	var err error
	s.Store, err = kg.Open(dir, kg.Options{ReserveBytes: 1, Governor: kg.Governor{Access: policies, OnSystemChange: func(c *kg.Commit) {
		policies.Follow(c)
		s.tracker.Follow(c)
		s.told = append(s.told, c.Revision)
	}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := policies.Load(t.Context(), s.Store); err != nil {
		t.Fatal(err)
	}
	if err := s.tracker.Load(t.Context(), s.Store); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	return s
}

func (s *served) close() {
	s.tracker.Close()
	_ = s.Store.Close()
}

// statements is the presence of agents in the graph, as a principal reads it; of all if none is
// named.
func (s *served) statements(t *testing.T, p kg.Principal, agents ...kg.AgentID) (lines []string) {
	t.Helper()
	snapshot, err := s.View(t.Context(), kg.View{Principal: p, Graphs: []kg.Term{presence.Graph}})
	if err != nil {
		t.Error(err)
		return nil
	}
	defer snapshot.Close()
	for st, err := range snapshot.Match(kg.Pattern{}) {
		if err != nil {
			t.Error(err)
			return nil
		}
		if len(agents) == 0 || slices.Contains(agents, kg.AgentID(st.Subject.Value())) {
			lines = append(lines, strings.TrimPrefix(st.Predicate.Value(), kg.OwnVocabulary)+" "+st.Object.Value())
		}
	}
	slices.Sort(lines)
	return lines
}

// awaits waits until the graph has the status of ann, and returns the statements.
func (s *served) awaits(t *testing.T, status presence.Status) []string {
	t.Helper()
	return s.awaitsOf(t, ann, status)
}

func (s *served) awaitsOf(t *testing.T, agent kg.AgentID, status presence.Status) []string {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		lines := s.statements(t, kg.Principal{ID: bob, Method: "key"}, agent)
		if len(lines) > 0 && lines[0] == "presence "+string(status) {
			return lines
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s never became %s: %q", agent, status, lines)
		}
	}
}

// Lasting states are in the graph, as two statements that every caller may read, in commits
// by koine itself with the time of the change.
func TestGraph(t *testing.T) {
	s := serve(t, t.TempDir(), time.Hour)
	if _, err := s.tracker.Heartbeat(t.Context(), ann, presence.Busy); err != nil {
		t.Fatal(err)
	}
	record, err := agents.NewService(s.Store).Get(t.Context(), ann)
	if err != nil || record == nil || record.Status != agents.Active {
		t.Errorf("the record of the first heartbeat: %v, %v", record, err)
	}
	lines := s.awaits(t, presence.Busy)
	if len(lines) != 2 || !strings.HasPrefix(lines[1], "presenceSince 2") {
		t.Errorf("the graph says %q", lines)
	}
	if _, err := s.tracker.Heartbeat(t.Context(), ann, presence.Offline); err != nil {
		t.Fatal(err)
	}
	lines = s.awaits(t, presence.Offline)
	if since := s.tracker.Get(ann).Since.Format("2006-01-02T15:04:05.999Z"); len(lines) != 2 || lines[1] != "presenceSince "+since {
		t.Errorf("the graph says %q, and it is offline since %s", lines, since)
	}
	head := s.Head().Revision
	for r := kg.Revision(2); r <= head; r++ { // 1 is the record
		c, err := s.Commit(t.Context(), kg.SystemPrincipal(), r)
		if err != nil {
			t.Fatal(err)
		}
		if c.Actor != kg.System || !strings.HasPrefix(c.Justification, "presence of agents as of 2") {
			t.Errorf("the commit is %+v", c)
		}
		for _, ch := range c.Changes {
			if ch.Quad.Graph != presence.Graph {
				t.Errorf("it changes %v", ch.Quad)
			}
		}
	}
	if head < 3 || fmt.Sprint(s.told) != "[1]" {
		t.Errorf("%d commits, and %v were told: they are to hold nobody up", head, s.told)
	}
	if _, err := s.Update(t.Context(), kg.Meta{Principal: kg.Principal{ID: ann, Roles: []string{kg.RoleAdmin}, Method: "key"}}, func(tx *kg.Tx) error {
		return tx.Apply(kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: kg.IRI(string(ann)), Predicate: kg.IRI(kg.OwnVocabulary + "presence"), Object: kg.String("ONLINE"), Graph: presence.Graph}})
	}); kg.CodeOf(err) != kg.CodeReserved {
		t.Errorf("written by hand: %v", err)
	}
}

// A server that was stopped or killed while an agent was present writes its end if it does
// not return, and nothing without a change.
func TestAfterRestart(t *testing.T) {
	dir := t.TempDir()
	s := serve(t, dir, time.Hour)
	if _, err := s.tracker.Heartbeat(t.Context(), ann, presence.Online); err != nil {
		t.Fatal(err)
	}
	defer s.tracker.Connect(ann)()
	s.awaits(t, presence.Online)
	s.close()
	stopped := time.Now()

	s = serve(t, dir, 50*time.Millisecond)
	lines := s.awaits(t, presence.Offline)
	if since, err := time.Parse(time.RFC3339, strings.TrimPrefix(lines[1], "presenceSince ")); err != nil || since.Before(stopped.Truncate(time.Millisecond)) || since.After(time.Now()) {
		t.Errorf("offline since %s, stopped at %s (%v)", since, stopped, err)
	}
	head := s.Head().Revision
	if got := s.tracker.Get(ann); got.Status != presence.Offline {
		t.Errorf("got %v", got)
	}
	s.close()
	for range 2 { // no agent is present, and only agents on record come
		s = serve(t, dir, 50*time.Millisecond)
		release := s.tracker.Connect(bob)
		time.Sleep(100 * time.Millisecond)
		release()
		s.close()
		if now := s.Head().Revision; now != head {
			t.Errorf("the head moved from %d to %d", head, now)
		}
	}
}

// Records that come to be in another way count too.
func TestRecordsAreFollowed(t *testing.T) {
	s := serve(t, t.TempDir(), time.Hour)
	defer s.tracker.Connect(ann)()
	if _, err := s.Update(t.Context(), kg.Meta{Principal: kg.SystemPrincipal()}, func(tx *kg.Tx) error {
		return agents.Ensure(tx, agents.Record{ID: ann, Roles: []string{"x"}})
	}); err != nil {
		t.Fatal(err)
	}
	s.awaits(t, presence.Online)
}

// The written presence of an agent is removed when it deregisters, and returns only with
// the agent.
func TestDeregistered(t *testing.T) {
	s := serve(t, t.TempDir(), time.Hour)
	d := agents.NewDirectory(s.Store, agents.DirectoryOptions{DeregisterTx: presence.Forget})
	by := caller.Caller{Principal: kg.Principal{ID: ann, Method: "key"}}
	if _, err := d.Register(t.Context(), by, agents.Record{ID: ann}); err != nil {
		t.Fatal(err)
	}
	for range 2 { // it may come again
		if _, err := s.tracker.Heartbeat(t.Context(), ann, presence.Online); err != nil {
			t.Fatal(err)
		}
		s.awaits(t, presence.Online)
		if _, err := d.Register(t.Context(), by, agents.Record{ID: ann}); err != nil {
			t.Fatal(err)
		}
		if err := d.Deregister(t.Context(), by, ann); err != nil {
			t.Fatal(err)
		}
		if lines := s.statements(t, kg.Principal{ID: bob, Method: "key"}, ann); len(lines) > 0 || s.tracker.Get(ann).Status != presence.Offline {
			t.Errorf("it is %s, the graph says %q", s.tracker.Get(ann).Status, lines)
		}
		// Later writes are not about ann.
		if _, err := s.tracker.Heartbeat(t.Context(), bob, presence.Online); err != nil {
			t.Fatal(err)
		}
		s.awaitsOf(t, bob, presence.Online)
		if lines := s.statements(t, kg.Principal{ID: bob, Method: "key"}, ann); len(lines) > 0 {
			t.Errorf("it came back: %q", lines)
		}
	}
	// With an open connection it is present, which is written when it registers again.
	if _, err := d.Register(t.Context(), by, agents.Record{ID: ann}); err != nil {
		t.Fatal(err)
	}
	defer s.tracker.Connect(ann)()
	s.awaits(t, presence.Online)
	if err := d.Deregister(t.Context(), by, ann); err != nil {
		t.Fatal(err)
	}
	for _, status := range []presence.Status{presence.Busy, presence.Online} {
		if _, err := s.tracker.Heartbeat(t.Context(), bob, status); err != nil {
			t.Fatal(err)
		}
		s.awaitsOf(t, bob, status)
	}
	if lines := s.statements(t, kg.Principal{ID: bob, Method: "key"}, ann); len(lines) > 0 || s.tracker.Get(ann).Status != presence.Online {
		t.Errorf("with a connection it is %s, the graph says %q", s.tracker.Get(ann).Status, lines)
	}
	if _, err := d.Register(t.Context(), by, agents.Record{ID: ann}); err != nil {
		t.Fatal(err)
	}
	s.awaits(t, presence.Online)
}
