package observertest

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"koine/channels"
	"koine/internal/agents"
	"koine/internal/auth"
	"koine/internal/policy"
	"koine/internal/presence"
	"koine/internal/proposals"
	"koine/internal/provenance"
	"koine/internal/shapes"
	"koine/kg"
)

// server is the observers that koine serve has (cmd/koine/trust.go).
type server struct {
	channels    *channels.Service
	policies    *policy.Policies
	proposals   *proposals.Service
	shapes      *shapes.Set
	quarantines *provenance.Quarantines
	keys        *auth.Table
	agents      *agents.Registry
	presence    *presence.Tracker
}

func newServer() *server {
	return &server{
		channels.New(channels.Options{}), policy.New(policy.Options{}), proposals.New(proposals.Options{}), new(shapes.Set),
		new(provenance.Quarantines), auth.NewTable(), agents.NewRegistry(nil), presence.New(presence.Options{}),
	}
}

func (s *server) load(ctx context.Context, store *kg.Store) error {
	return errors.Join(s.channels.Load(ctx, store), s.policies.Load(ctx, store), s.proposals.Open(ctx, store), s.shapes.Load(ctx, store),
		s.quarantines.Load(ctx, store), s.keys.Load(ctx, store), s.agents.Load(ctx, store), s.presence.Load(ctx, store))
}

func (s *server) follow(c *kg.Commit) {
	s.channels.Follow(c)
	s.policies.Follow(c)
	s.proposals.Follow(c)
	s.shapes.Follow(c)
	s.quarantines.Follow(c)
	s.keys.Follow(c)
	s.agents.Follow(c)
	s.presence.Follow(c)
}

func (s *server) close() {
	s.channels.Close()
	s.agents.Close()
	s.presence.Close()
}

// Replay compares, at the end of a test, all observers of koine serve that load the store in dir with others
// that began on an empty store and were told of its commits, one by one. Call it before the function that closes
// the store is registered. With -short nothing is compared.
func Replay(t testing.TB, dir string) {
	if testing.Short() {
		return
	}
	t.TempDir() // removed after the comparison
	t.Cleanup(func() {
		if !t.Failed() && !t.Skipped() {
			CompareReplay(t, dir)
		}
	})
}

// CompareReplay is the comparison of Replay. It makes none if the directory has no store with its whole log.
func CompareReplay(t testing.TB, dir string) {
	t.Helper()
	ctx := context.Background()
	store, err := kg.Open(dir, kg.Options{ReadOnly: true, MustExist: true})
	if errors.Is(err, kg.ErrNoStore) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if store.Oldest().Revision > 0 {
		return
	}
	begun := newServer()
	if err := begun.load(ctx, store); err != nil {
		t.Fatal(err)
	}
	begun.close()
	empty, err := os.MkdirTemp("", "koine-replay-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(empty)
	nothing, err := kg.Open(empty, kg.Options{ReserveBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer nothing.Close()
	followed := newServer()
	if err := followed.load(ctx, nothing); err != nil {
		t.Fatal(err)
	}
	for r := kg.Revision(1); r <= store.Head().Revision; r++ {
		c, err := store.Commit(ctx, kg.SystemPrincipal(), r)
		if kg.CodeOf(err) == kg.CodeNotFound {
			continue // all its changes were in a graph that was deleted
		}
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(c.Changes, func(ch kg.Change) bool { return controls(ch.Quad.Graph) }) {
			followed.follow(c)
		}
	}
	followed.close()
	if d := difference(Dump("server", followed), Dump("server", begun)); d != "" {
		t.Errorf("observers that load a store differ from those that followed its commits (-followed, +loaded):\n%s", d)
	}
}

// controls reports whether commits to the graph are told to kg.Governor.OnSystemChange.
func controls(graph kg.Term) bool {
	return kg.IsOwnGraph(graph) && !strings.HasPrefix(graph.Value(), kg.JournalGraphPrefix)
}
