package agents_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"koine/internal/agents"
	"koine/internal/observertest"
	"koine/kg"
)

const patience = time.Minute

var admin = kg.Meta{Principal: kg.Principal{ID: "agent://root", Roles: []string{kg.RoleAdmin}, Method: "key"}}

func newRegistry(t *testing.T, options kg.Options) (*kg.Store, *agents.Registry) {
	t.Helper()
	g := agents.NewRegistry(nil)
	options.ReserveBytes, options.OnSystemChange = 1, g.Follow
	dir := t.TempDir()
	observertest.Replay(t, dir)
	store, err := kg.Open(dir, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		g.Close()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store, g
}

func load(t *testing.T, g *agents.Registry, store *kg.Store) {
	t.Helper()
	if err := g.Load(t.Context(), store); err != nil {
		t.Fatal(err)
	}
}

func ensure(t *testing.T, store *kg.Store, r agents.Record) {
	t.Helper()
	if _, err := store.Update(t.Context(), admin, func(tx *kg.Tx) error { return agents.Ensure(tx, r) }); err != nil {
		t.Fatal(err)
	}
}

// awaitRecord waits for the record that is written behind the requests.
func awaitRecord(t *testing.T, store *kg.Store, id kg.AgentID) *agents.Record {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		r, err := agents.NewService(store).Get(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if r != nil {
			return r
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s got no record", id)
		}
	}
}

func TestSeenAgentGetsARecordOnce(t *testing.T) {
	store, g := newRegistry(t, kg.Options{})
	load(t, g, store)
	p := kg.Principal{ID: "agent://dora", Roles: []string{"x"}, Method: "jwt"}
	for range 100 {
		g.Seen(p)
	}
	r := awaitRecord(t, store, p.ID)
	if r.Status != agents.Active || !slices.Equal(r.Roles, p.Roles) || r.Since.IsZero() {
		t.Errorf("got %+v", r)
	}
	g.Seen(p)
	g.Seen(kg.Principal{ID: "agent://chen"})
	awaitRecord(t, store, "agent://chen")
	if head := store.Head().Revision; head != 2 {
		t.Errorf("two agents made %d commits", head)
	}
}

// More agents than the queue of records holds are not lost: they get a record when they
// come again. Seen blocks never, also before the first write.
func TestSeenNeverBlocks(t *testing.T) {
	store, g := newRegistry(t, kg.Options{})
	const n = 400 // more than the queue takes
	for i := range n {
		g.Seen(kg.Principal{ID: kg.AgentID(fmt.Sprintf("agent://a%03d", i))})
	}
	load(t, g, store)
	for i := range n {
		id := kg.AgentID(fmt.Sprintf("agent://a%03d", i))
		for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
			g.Seen(kg.Principal{ID: id})
			if r, err := agents.NewService(store).Get(t.Context(), id); err != nil {
				t.Fatal(err)
			} else if r != nil {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s got no record", id)
			}
		}
	}
}

func TestSuspension(t *testing.T) {
	store, g := newRegistry(t, kg.Options{})
	changed := 0
	g.OnSuspend = func() { changed++ }
	ensure(t, store, agents.Record{ID: "agent://dora"})
	load(t, g, store)
	s := agents.NewService(store)
	for i, status := range []agents.Status{agents.Suspended, agents.Active, agents.Suspended} {
		if _, err := s.Update(t.Context(), admin, "dora", agents.Change{Status: &status}); err != nil {
			t.Fatal(err)
		}
		if got, want := g.Suspended("agent://dora"), status == agents.Suspended; got != want || changed != i/2+1 {
			t.Errorf("%s: suspended %v, told %d times", status, got, changed)
		}
	}
	if g.Suspended("agent://chen") {
		t.Error("somebody unknown is suspended")
	}
	// One that loads knows it as well.
	fresh := agents.NewRegistry(nil)
	defer fresh.Close()
	load(t, fresh, store)
	if !fresh.Suspended("agent://dora") {
		t.Error("it is forgotten")
	}
}

func TestEnsureAddsRoles(t *testing.T) {
	store, _ := newRegistry(t, kg.Options{})
	ensure(t, store, agents.Record{ID: "agent://dora", Name: "Dora", Owner: "agent://chen", Roles: []string{"b"}})
	ensure(t, store, agents.Record{ID: "agent://dora", Name: "other", Roles: []string{"a"}})
	before := store.Head()
	ensure(t, store, agents.Record{ID: "agent://dora", Roles: []string{"b"}})
	var limit []string
	for i := range agents.MaxRoles {
		limit = append(limit, fmt.Sprintf("r%d", i))
	}
	ensure(t, store, agents.Record{ID: "agent://dora", Roles: limit}) // with a and b too many
	if store.Head() != before {
		t.Error("nothing new made a commit")
	}
	r, err := agents.NewService(store).Get(t.Context(), "agent://dora")
	if err != nil || r.Name != "Dora" || r.Owner != "agent://chen" || !slices.Equal(r.Roles, []string{"a", "b"}) {
		t.Errorf("got %+v, %v", r, err)
	}
}

func TestUpdateRefusals(t *testing.T) {
	store, _ := newRegistry(t, kg.Options{})
	ensure(t, store, agents.Record{ID: "agent://root"})
	text := func(s string) *string { return &s }
	long := strings.Repeat("x", agents.MaxNameBytes)
	bad, suspended := kg.AgentID("a b"), agents.Suspended
	odd := agents.Status("ODD")
	for _, row := range []struct {
		name   string
		id     kg.AgentID
		change agents.Change
		code   kg.Code
	}{
		{"a longest name", "root", agents.Change{Name: &long}, ""},
		{"a name too long", "root", agents.Change{Name: text(long + "x")}, kg.CodeInvalid},
		{"a name of two lines", "root", agents.Change{Name: text("a\nb")}, kg.CodeInvalid},
		{"a bad owner", "root", agents.Change{Owner: &bad}, kg.CodeInvalid},
		{"a status that is none", "root", agents.Change{Status: &odd}, kg.CodeInvalid},
		{"itself", "root", agents.Change{Status: &suspended}, kg.CodeInvalid},
		{"nobody", "nobody", agents.Change{Name: text("x")}, kg.CodeNotFound},
	} {
		if _, err := agents.NewService(store).Update(t.Context(), admin, row.id, row.change); kg.CodeOf(err) != row.code {
			t.Errorf("%s: got %v, want %q", row.name, err, row.code)
		}
	}
}
