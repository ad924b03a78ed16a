package reference

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"koine/channels"
	"koine/graph"
	"koine/graph/limit"
	"koine/internal/agents"
	"koine/internal/operation"
	"koine/internal/policy"
	"koine/internal/presence"
	"koine/internal/proposals"
	"koine/internal/provenance"
	"koine/internal/shapes"
	"koine/internal/slowtest"
	"koine/internal/tasks"
	"koine/kg"
)

const ex = "https://example.org/"

// world is a store with something of everything that the schema shows, and the engine over
// it. All worlds are the same but for the ids that are made at random, which have names:
// documents contain "@NAME@" where they mean one.
type world struct {
	t     testing.TB
	store *kg.Store
	// engine has the default limits, wide none that a plain form could reach.
	engine, wide *graph.Engine
	ids          map[string]string // by name
	names        *strings.Replacer // of ids
	texts        *strings.Replacer // of names
	tick         func()            // a second later
}

// The callers.
var (
	root = kg.Principal{ID: "agent://root", Roles: []string{kg.RoleAdmin, kg.RoleReviewer}, ActFor: []kg.AgentID{kg.Anybody}, Method: "key"}
	ann  = kg.Principal{ID: "agent://ann", Method: "key"}
	bob  = kg.Principal{ID: "agent://bob", Method: "key"}
	eve  = kg.Principal{ID: "agent://eve", Roles: []string{"guest"}, Method: "key"}
)

// held is a verifier that holds facts with ex:pay for review.
type held struct{}

func (held) Verify(_ context.Context, j kg.Judgement) (kg.Verdict, error) {
	for _, c := range j.Changes {
		if c.Quad.Predicate == kg.IRI(ex+"pay") && len(j.Meta.Reviewed) == 0 {
			return kg.Verdict{Outcome: kg.Held, Reason: "pay", Details: "pay is looked at", Hold: &kg.Hold{Approvals: 1, Rules: []string{"pay"}}}, nil
		}
	}
	return kg.Verdict{}, nil
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, ids: map[string]string{}}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var mu sync.Mutex
	clock := func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return now
	}
	w.tick = func() {
		mu.Lock()
		defer mu.Unlock()
		now = now.Add(time.Second)
	}
	var (
		policies    = policy.New(policy.Options{})
		set         = &shapes.Set{}
		quarantines = new(provenance.Quarantines)
		tracker     = presence.New(presence.Options{Settle: time.Hour}) // it writes nothing at a time of its own
		reviews     = proposals.New(proposals.Options{Clock: clock})
		rooms       = channels.New(channels.Options{Clock: clock, WithdrawProposal: reviews.WithdrawIn})
		ctx         = slowtest.Context(t)
	)
	store, err := kg.Open(t.TempDir(), kg.Options{
		ReserveBytes: 1, Clock: clock, Logger: slog.New(slog.DiscardHandler),
		Governor: kg.Governor{
			Verifier: kg.Verifiers(held{}, set), Holder: reviews, Distrust: quarantines,
			Access: tasks.NewGuard(rooms.Guard(reviews.Guard(policies))),
			OnSystemChange: func(c *kg.Commit) {
				policies.Follow(c)
				set.Follow(c)
				reviews.Follow(c)
				quarantines.Follow(c)
				rooms.Follow(c)
				tracker.Follow(c)
			},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	w.store = store
	work := tasks.New(tasks.Options{Known: func(kg.AgentID) bool { return true }, Clock: clock, Expiry: 1000 * time.Hour})
	t.Cleanup(func() {
		work.Close()
		rooms.Close()
		tracker.Close()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, load := range []func() error{
		func() error { return policies.Load(ctx, store) }, func() error { return set.Load(ctx, store) },
		func() error { return reviews.Open(ctx, store) }, func() error { return quarantines.Load(ctx, store) },
		func() error { return rooms.Load(ctx, store) }, func() error { return tracker.Load(ctx, store) },
		func() error { return work.Load(ctx, store) },
	} {
		if err := load(); err != nil {
			t.Fatal(err)
		}
	}
	directory := agents.NewDirectory(store, agents.DirectoryOptions{Self: &agents.Record{ID: kg.System, Name: "koine", Registration: &agents.Registration{Capabilities: []string{"weather"}}}})
	deps := graph.Deps{
		Store: store, Logger: slog.New(slog.DiscardHandler), Graphs: policy.NewGraphs(store, policies), Shapes: set, Reviews: reviews,
		Channels: rooms, Agents: directory, Tasks: work, Presence: tracker, Quarantines: quarantines,
	}
	limits := limit.Limits{Duration: slowtest.Slack(time.Minute)}
	w.engine = graph.NewEngine(deps, graph.Options{Limits: limits})
	const none = 1 << 30
	limits.Tokens, limits.Depth, limits.Fields, limits.Aliases, limits.Repeats, limits.RootFields, limits.Complexity = none, none, none, none, none, none, none
	w.wide = graph.NewEngine(deps, graph.Options{Limits: limits})
	w.populate()
	return w
}

// populate fills the store. Each operation has a second of its own.
func (w *world) populate() {
	for _, step := range population {
		w.tick()
		result := w.engine.Execute(context.Background(), w.request(w.engine, step.by, w.named(step.does), nil).request())
		if len(result.Errors) > 0 {
			w.t.Fatalf("%s: %v", step.does, result.Errors)
		}
		if step.name != "" {
			w.remember(step.name, result.Data)
		}
	}
	w.tick()
	var data struct {
		Statements struct{ Nodes []struct{ ID string } }
	}
	result := w.engine.Execute(context.Background(), operation.Request{Query: `{ statements(first: 3) { nodes { id } } }`, Principal: root})
	if err := json.Unmarshal(result.Data, &data); err != nil || len(data.Statements.Nodes) < 3 {
		w.t.Fatalf("%v: %s", err, result.Data)
	}
	for i, n := range data.Statements.Nodes {
		w.name(fmt.Sprintf("statement%d", i), n.ID)
	}
}

// remember names the id in an answer.
func (w *world) remember(name string, data json.RawMessage) {
	w.t.Helper()
	id := regexp.MustCompile(`"(?:id|proposalId)":"([^"]+)"`).FindSubmatch(data)
	if id == nil {
		w.t.Fatalf("no id for %s in %s", name, data)
	}
	w.name(name, string(id[1]))
}

// name names an id.
func (w *world) name(name, id string) {
	w.ids[name] = id
	var to, from []string
	names := make([]string, 0, len(w.ids))
	for n := range w.ids {
		names = append(names, n)
	}
	// The longest id first: one may be part of another.
	sort.Slice(names, func(i, j int) bool {
		a, b := w.ids[names[i]], w.ids[names[j]]
		return len(a) > len(b) || len(a) == len(b) && names[i] < names[j]
	})
	for _, n := range names {
		to = append(to, "@"+n+"@", w.ids[n])
		from = append(from, w.ids[n], "@"+n+"@")
	}
	w.texts, w.names = strings.NewReplacer(to...), strings.NewReplacer(from...)
}

// named replaces names by ids.
func (w *world) named(text string) string {
	if w.texts == nil {
		return text
	}
	return w.texts.Replace(text)
}

// Tokens that are sealed at random, and ids that are made at random: of cursors, positions, and views; of what mutations made.
var (
	sealed  = regexp.MustCompile(`A[Q-Za-f][A-Za-z0-9_-]{36,}`)
	tokens  = regexp.MustCompile(`[A-Za-z0-9_-]{38,}`)
	uuids   = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	secrets = regexp.MustCompile(`ak_(live|test)_[0-9A-Za-z_]+`)
	keyIDs  = regexp.MustCompile(`"[0-9A-Za-z]{12}"([,\]}])`)
	times   = regexp.MustCompile(`20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z`)
)

// masked is an answer as it is in every world.
func (w *world) masked(text string) string {
	text = w.names.Replace(text)
	text = uuids.ReplaceAllString(text, "UUID")
	text = secrets.ReplaceAllString(text, "KEY")
	return tokens.ReplaceAllString(text, "TOKEN")
}

// maskedNew is an answer to a mutation as it is in every world. Keys get an id at random, and
// the presence of agents has the time of the computer.
func (w *world) maskedNew(text string) string {
	text = times.ReplaceAllStringFunc(w.masked(text), func(text string) string {
		if t, err := time.Parse(time.RFC3339, text); err == nil && time.Since(t).Abs() < 24*time.Hour {
			return "NOW"
		}
		return text
	})
	return keyIDs.ReplaceAllString(text, `"KEYID"$1`)
}

// answer is what the comparison looks at.
type answer struct {
	kind   string // "valid" if it was executed
	data   string // "" if there is none
	errors []failure
	codes  []string
}

type failure struct {
	Message string `json:"message"`
	Path    []any  `json:"path"`
}

type asked struct {
	engine    *graph.Engine
	by        kg.Principal
	text      string
	name      string
	variables map[string]any
}

func (w *world) request(e *graph.Engine, by kg.Principal, text string, variables map[string]any) *asked {
	return &asked{engine: e, by: by, text: text, variables: variables}
}

func (a *asked) request() operation.Request {
	return operation.Request{Query: a.text, OperationName: a.name, Variables: a.variables, Principal: a.by}
}

// ask executes an operation.
func (w *world) ask(a *asked) answer {
	result := a.engine.Execute(context.Background(), a.request())
	kind := "valid"
	if result.Kind == "" {
		kind = ""
	}
	return w.answerOf(result, kind)
}

// answerOf is an answer of a kind, "" for that of its first error.
func (w *world) answerOf(result operation.Result, kind string) answer {
	out := answer{kind: kind, data: string(result.Data)}
	for _, e := range result.Errors {
		f := failure{Message: e.Message}
		raw, err := json.Marshal(e.Path)
		if err == nil && len(e.Path) > 0 {
			err = json.Unmarshal(raw, &f.Path)
		}
		if err != nil {
			w.t.Fatal(err)
		}
		code, _ := e.Extensions["code"].(string)
		out.errors, out.codes = append(out.errors, f), append(out.codes, code)
	}
	if kind == "" {
		out.kind = cmp.Or(slices.Concat(out.codes, []string{"valid"})...)
	}
	return out
}

// paths are the paths of the errors, sorted.
func paths(errors []failure) (all []string) {
	for _, f := range errors {
		all = append(all, pathOf(f))
	}
	sort.Strings(all)
	return all
}

func pathOf(f failure) (text string) {
	for _, step := range f.Path {
		text += fmt.Sprint("/", step)
	}
	return text
}
