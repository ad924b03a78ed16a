package kg_test

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"koine/internal/slowtest"
	"koine/kg"
)

const (
	// killWhole is how many statements a graph of the kill tests may hold that is
	// replaced in one commit; killWholeCommit is how many make a commit of a larger one.
	killWhole, killWholeCommit = 400, 120
	// killLarge is a size that is replaced as a whole by every store.
	killLarge = kg.MaxPatches + 500
)

// replacing makes replacements of graphs, one after the other.
type replacing struct {
	name  string
	n     int
	large bool // the first is of more statements than an ordinary commit has
}

// exchange is one replacement: its name as a task describes the new content of the graph.
type exchange struct {
	task    string
	n, size int
}

func (r *replacing) next() exchange {
	r.n++
	size := 10 + 350*(r.n%4) // every fourth is small
	if r.large && r.n == 1 {
		size = killLarge
	}
	return exchange{fmt.Sprintf("%s.replace/%d/%d", r.name, r.n, size), r.n, size}
}

// exchangeOf is the one of a task; ok is false for a task of another kind.
func exchangeOf(task string) (e exchange, ok bool) {
	_, rest, ok := strings.Cut(task, ".replace/")
	if !ok {
		return e, false
	}
	e.task = task
	_, err := fmt.Sscanf(rest, "%d/%d", &e.n, &e.size)
	return e, err == nil
}

func (e exchange) graph() kg.Term { return kg.IRI(fmt.Sprint("urn:replaced:", e.n%2)) }

// meta has an idempotency key every other time for each of the graphs.
func (e exchange) meta() kg.Meta {
	m := kg.Meta{Principal: tester, TaskID: e.task, Justification: "replaced"}
	if e.n/2%2 == 0 {
		m.IdempotencyKey, m.ContentHash = e.task, [32]byte{byte(e.n), byte(e.size)}
	}
	return m
}

// quads are the new content of the graph. The next one shares much of it.
func (e exchange) quads() (out []kg.Quad) {
	for i := e.n * 50; len(out) < e.size; i++ {
		out = append(out, kg.Quad{
			Subject: kg.IRI(fmt.Sprint("urn:r:", i/3)), Predicate: kg.IRI(fmt.Sprint("urn:p", i%3)),
			Object: kg.String(fmt.Sprint("the content of a graph, number ", i)), Graph: e.graph(),
		})
	}
	return append(out, kg.Quad{Subject: kg.IRI("urn:task:" + e.task), Predicate: kg.IRI("urn:done"), Object: kg.Integer(int64(e.n)), Graph: e.graph()})
}

func (e exchange) replace(ctx context.Context, s *kg.Store) (kg.ReplaceReport, error) {
	return s.ReplaceGraph(ctx, e.meta(), e.graph(), quadSeq(e.quads()), kg.ReplaceOptions{})
}

func quadSeq(quads []kg.Quad) iter.Seq2[kg.Quad, error] {
	return func(yield func(kg.Quad, error) bool) {
		for _, q := range quads {
			if !yield(q, nil) {
				return
			}
		}
	}
}

// replace replaces graphs until the process is killed.
func (j job) replace(s *kg.Store) {
	for r := (replacing{name: j.Name, large: j.Load > 0}); ; {
		e := r.next()
		say("replacing", e.task)
		done, err := e.replace(context.Background(), s)
		must(err)
		say("replaced", e.task, done.Revision)
	}
}

// replayReplaced applies a commit that replaced a graph to the model, and compares the
// graph with the requested content: all of it, or this is another commit.
func (l *life) replayReplaced(c *kg.Commit, e exchange) (err error) {
	if c.Replaced != nil {
		l.whole++
		err = l.model.Exchange(c, e.graph(), e.quads())
	} else {
		err = l.model.Replay(c)
	}
	if err != nil {
		return err
	}
	want, got := map[kg.Quad]bool{}, map[kg.Quad]bool{}
	for _, q := range e.quads() {
		want[q] = true
	}
	for _, st := range l.model.Match(kg.View{Principal: tester}, kg.Pattern{Graph: e.graph()}) {
		got[st.Quad] = true
	}
	if !maps.Equal(want, got) {
		return fmt.Errorf("%s leaves %d statements in the graph, want its %d", e.task, len(got), len(want))
	}
	return nil
}

// askReplacedAgain repeats a replacement under way that has an idempotency key, twice.
func (l *life) askReplacedAgain(s *kg.Store, e exchange) {
	if e.meta().IdempotencyKey == "" {
		return
	}
	there := l.tasks[e.task]
	for range 2 {
		r, err := e.replace(within(l.t), s)
		if err != nil || r.Replayed != (there != 0) || there != 0 && r.Revision != there {
			l.t.Errorf("asking again for %s: %+v, %v; it was commit %d", e.task, r, err, there)
		}
		there = r.Revision
	}
}

// nothingStray waits until the index has nothing of a replacement that was not finished.
func nothingStray(t testing.TB, s *kg.Store) {
	t.Helper()
	ctx := within(t)
	for {
		rows, writing, err := s.StrayRows()
		if err != nil {
			t.Fatal(err)
		}
		if writing > 0 {
			t.Fatalf("%d graphs are still being replaced after a start", writing)
		}
		if rows == 0 {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("the index still has %d rows of graphs that were never replaced", rows)
		case <-time.After(10 * time.Millisecond): // it is removed beside everything else
		}
	}
}

// resyncs are the positions that the subscriber was sent to, as it noted them, which must
// be those of all exchanges up to the last thing it saw.
func (l *life) resyncs(s *kg.Store, seen []kg.Position, last kg.Position) {
	var want []kg.Position
	for _, p := range l.model.Resyncs(everything(), kg.Position{Epoch: s.Epoch(), Index: kg.EndOfCommit}) {
		if p.Compare(last) <= 0 {
			want = append(want, p)
		}
	}
	if !slices.Equal(want, seen) {
		l.t.Errorf("the subscriber was sent on to %v, want %v", seen, want)
	}
}

// noteRest notes the events that the subscriber saw in this process, in order.
func (l *life) noteRest(s *kg.Store, from kg.Position, rest []kg.Event) {
	on := l.model.Resyncs(everything(), from)
	for _, e := range rest {
		for len(on) > 0 && on[0].Compare(e.Position) < 0 {
			l.seen = append(l.seen, sighting{s.FormatPosition(on[0]), resynced})
			on = on[1:]
		}
		l.seen = append(l.seen, sighting{s.FormatPosition(e.Position), digest(e)})
	}
}

// resynced takes the place of an event's digest where the subscriber was sent on.
const resynced = "resync"

// A power failure at any moment of a replacement leaves the old content of the graph or,
// after the switch, the requested one, with the index intact, set back, or lost; and
// nothing else of the new content is left.
func TestPowerCutInReplacement(t *testing.T) {
	slowtest.Long(t)
	t.Parallel()
	f := newFaulty(t)
	mustClose(t, f.Store)
	f.o = smallLog(kg.Faults{LogFiles: f.files, WholeFrom: 20, WholeCommit: 12})
	after := smallLog(kg.Faults{WholeFrom: 20, WholeCommit: 12})
	f.Store = openStore(t, f.dir, f.o)
	newWorker(6, "w").work(t, f.Store, 5)
	old, next := exchange{"old.replace/2/150", 2, 150}, exchange{"new.replace/4/150", 4, 150}
	if r, err := old.replace(within(t), f.Store); err != nil || !r.Whole {
		t.Fatalf("%+v, %v", r, err)
	}
	older := t.TempDir()
	copyTree(t, filepath.Join(f.dir, "index"), older, nil)
	const asItIs = "index as it is"
	spoils := map[string]func(dir string){
		asItIs:           func(string) {},
		"index lost":     func(dir string) { remove(t, dir, "index") },
		"index set back": func(dir string) { remove(t, dir, "index"); copyTree(t, older, filepath.Join(dir, "index"), nil) },
	}
	look := func(what string, want exchange) {
		for name, spoil := range spoils {
			for _, keep := range []int{0, 100} {
				if keep > 0 && name != asItIs {
					continue
				}
				dir := f.powerCut(keep)
				spoil(dir)
				t.Run(fmt.Sprintf("%s, %s, %d bytes kept", what, name, keep), func(t *testing.T) {
					s := openStore(t, dir, after)
					holdsExactly(t, s, want)
					nothingStray(t, s)
					mustCheck(t, s)
					mustClose(t, s)
					again := after
					again.Rebuild = true
					s = openStore(t, dir, again)
					holdsExactly(t, s, want)
					nothingStray(t, s)
					mustCheck(t, s)
					if r, err := next.replace(within(t), s); err != nil || r.Replayed != (want == next) {
						t.Errorf("the replacement again: %+v, %v", r, err)
					}
					holdsExactly(t, s, next)
				})
			}
		}
	}
	quads := next.quads()
	_, err := f.ReplaceGraph(within(t), next.meta(), next.graph(), func(yield func(kg.Quad, error) bool) {
		for i, q := range quads {
			if i == 40 || i == len(quads)-1 {
				look(fmt.Sprint("after ", i), old)
			}
			if !yield(q, nil) {
				return
			}
		}
	}, kg.ReplaceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	look("at the end", next)
}

// holdsExactly compares a graph with the result of a replacement.
func holdsExactly(t *testing.T, s *kg.Store, e exchange) {
	t.Helper()
	snap, err := s.View(within(t), kg.View{Principal: tester})
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	want, got := map[kg.Quad]bool{}, map[kg.Quad]bool{}
	for _, q := range e.quads() {
		want[q] = true
	}
	for st, err := range snap.Match(kg.Pattern{Graph: e.graph()}) {
		if err != nil {
			t.Fatal(err)
		}
		got[st.Quad] = true
	}
	if !maps.Equal(want, got) {
		t.Errorf("the graph has %d statements, and not the %d of %s", len(got), len(want), e.task)
	}
}
