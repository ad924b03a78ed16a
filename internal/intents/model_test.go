package intents_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"koine/channels/scope"
	"koine/internal/intents"
	"koine/kg"
)

// model is what an intent should be, kept in the simplest way.
type model struct {
	state   map[string]int
	status  intents.Status
	version int64
	level   map[string]scope.Level // by grant; ann is the creator
	works   map[string]bool        // assigned
	events  []string               // type and actor
}

func (m *model) levelOf(agent string) scope.Level {
	if agent == "ann" {
		return scope.Admin
	}
	level := m.level[agent]
	if m.works[agent] {
		level = level.Greater(scope.Write)
	}
	return level
}

// refusal returns the code with which an agent is refused what needs a level.
func (m *model) refusal(agent string, need scope.Level) kg.Code {
	switch level := m.levelOf(agent); {
	case level == "":
		return kg.CodeScopeNotFound
	case !level.Includes(need):
		return kg.CodePermissionDenied
	}
	return ""
}

// changes returns the code of a change of state or status, and counts one that succeeds.
func (m *model) changes(agent string, version int64, kind string) kg.Code {
	if code := m.refusal(agent, scope.Write); code != "" {
		return code
	}
	if m.status.IsFinal() {
		return kg.CodeScopeEnded
	}
	if version != m.version {
		return kg.CodeVersionConflict
	}
	m.version++
	m.tell(kind, agent)
	return ""
}

func (m *model) tell(kind, agent string) { m.events = append(m.events, kind+" agent://"+agent) }

// Several agents do what comes to their minds: what they are answered, what they read and
// what a feed tells is what the model says, also after a restart.
func TestAgainstModel(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 1))
	s := serve(t)
	start := s.store.Head()
	it := s.create(t, intents.NewIntent{})
	m := &model{state: map[string]int{}, status: intents.Draft, version: 1, level: map[string]scope.Level{}, works: map[string]bool{}}
	m.tell(intents.EventCreated, "ann")
	agents := []string{"ann", "bob", "cleo", "dora"}
	grants := map[string]string{}
	one := func(list []string) string { return list[dice.IntN(len(list))] }
	for i := range 150 {
		by, about := one(agents), one(agents[1:])
		version := m.version
		if dice.IntN(5) == 0 {
			version += int64(1 - 2*dice.IntN(2))
		}
		var what string
		var err error
		var want kg.Code
		switch dice.IntN(12) {
		default:
			key, value := one([]string{"a", "b", "c"}), dice.IntN(9)
			what = fmt.Sprint("patch ", key)
			_, err = s.PatchState(t.Context(), as(by), it.ID, version, []intents.Patch{set(key, fmt.Sprint(value))})
			if want = m.changes(by, version, intents.EventStatePatched); want == "" {
				m.state[key] = value
			}
		case 0, 1:
			list := []intents.Status{intents.Draft, intents.Active, intents.Blocked, intents.Suspended}
			status := list[dice.IntN(len(list))]
			if i > 120 && dice.IntN(10) == 0 {
				status = intents.Completed
			}
			what = "status " + string(status)
			_, err = s.SetStatus(t.Context(), as(by), it.ID, version, status, "")
			if want = m.changes(by, version, intents.EventStatusChanged); want == "" {
				m.status = status
			}
		case 2:
			what = "assign " + about
			_, err = s.Assign(t.Context(), as(by), it.ID, kg.AgentID(about), "")
			if want = m.refusal(by, scope.Admin); want == "" && m.status.IsFinal() {
				want = kg.CodeScopeEnded
			} else if want == "" && !m.works[about] {
				m.works[about] = true
				m.tell(intents.EventAssigned, by)
			}
		case 3:
			what = "unassign " + about
			_, err = s.Unassign(t.Context(), as(by), it.ID, kg.AgentID(about))
			need := scope.Admin
			if by == about {
				need = scope.Read
			}
			if want = m.refusal(by, need); want == "" && !m.works[about] {
				want = kg.CodeNotFound
			} else if want == "" {
				delete(m.works, about)
				m.tell(intents.EventUnassigned, by)
			}
		case 4:
			level := []scope.Level{scope.Read, scope.Write, scope.Admin}[dice.IntN(3)]
			if grants[about] != "" {
				continue
			}
			what = "grant " + about
			var g *scope.Grant
			g, err = s.Grant(t.Context(), as(by), it.ID, scope.Grant{Agent: kg.AgentID(about), Level: level})
			if want = m.refusal(by, scope.Admin); want == "" && err == nil {
				grants[about], m.level[about] = g.ID, level
				m.tell(intents.EventGranted, by)
			}
		case 5:
			what = "revoke " + about
			_, err = s.Revoke(t.Context(), as(by), it.ID, grants[about])
			if want = m.refusal(by, scope.Admin); want == "" && grants[about] == "" {
				want = kg.CodeNotFound
			} else if want == "" {
				delete(grants, about)
				delete(m.level, about)
				m.tell(intents.EventRevoked, by)
			}
		case 6:
			what = "comment"
			_, err = s.AppendEvent(t.Context(), as(by), it.ID, intents.NewEvent{Type: "comment"})
			if want = m.refusal(by, scope.Write); want == "" {
				m.tell("comment", by)
			}
		case 7:
			what = "restart"
			s.restart(t)
		}
		wantCode(t, fmt.Sprintf("step %d: %s by %s", i, what, by), err, want)
		s.compare(t, it.ID, m, agents)
		if t.Failed() {
			return
		}
	}
	// The whole log in pieces, each resumed where the one before ended.
	at := &start
	for told := 0; told < len(m.events); {
		n := min(1+dice.IntN(20), len(m.events)-told)
		list, err := next(s.follow(t, "ann", intents.FeedQuery{Intent: it.ID, After: at}), n)
		if err != nil || len(list) != n {
			t.Fatalf("the feed ends after %d events: %v", told+len(list), err)
		}
		for _, e := range list {
			if got := e.Event.Type + " " + string(e.Event.Actor); got != m.events[told] || e.Event.Sequence != int64(told+1) {
				t.Fatalf("event %d is %s, want %s", told, got, m.events[told])
			}
			told++
		}
		at = &list[n-1].Position
	}
	if check, err := s.VerifyEvents(t.Context(), as("ann"), it.ID, 1); err != nil || check.Verified != int64(len(m.events)) {
		t.Errorf("verified %+v, %v", check, err)
	}
}

// compare compares what each agent reads with the model.
func (s *server) compare(t *testing.T, id scope.ID, m *model, agents []string) {
	t.Helper()
	state, err := json.Marshal(m.state)
	if err != nil {
		t.Fatal(err)
	}
	for _, agent := range agents {
		got, err := s.Get(t.Context(), as(agent), id)
		wantCode(t, agent+" reads", err, m.refusal(agent, scope.Read))
		if err == nil && (got.Version != m.version || got.Status != m.status || string(got.State) != string(state)) {
			t.Errorf("%s reads %s %s in version %d, want %s %s in version %d", agent, got.Status, got.State, got.Version, m.status, state, m.version)
		}
	}
	var types []string
	for q := (scope.EventQuery{}); ; {
		page, next, err := s.Events(t.Context(), as("ann"), id, q)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page {
			types = append(types, e.Type+" "+string(e.Actor))
		}
		if q.After = next; next == 0 {
			break
		}
	}
	if !slices.Equal(types, m.events) {
		t.Errorf("events %q, want %q", types, m.events)
	}
}

// Of patches that expect the same version one is applied.
func TestConcurrentPatches(t *testing.T) {
	s := serve(t)
	it := s.create(t, intents.NewIntent{Access: scope.Access{Everybody: true}})
	for version := it.Version; version < 6; version++ {
		var wg sync.WaitGroup
		codes := make([]kg.Code, 4)
		for i := range codes {
			wg.Go(func() {
				_, err := s.PatchState(t.Context(), as(fmt.Sprint("a", i)), it.ID, version, []intents.Patch{set("n", fmt.Sprint(i))})
				codes[i] = kg.CodeOf(err)
			})
		}
		wg.Wait()
		slices.Sort(codes)
		if want := []kg.Code{"", kg.CodeVersionConflict, kg.CodeVersionConflict, kg.CodeVersionConflict}; !slices.Equal(codes, want) {
			t.Fatalf("version %d: %q", version, codes)
		}
	}
}
