package kg

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
)

func numbered(i int) Quad {
	return Quad{Subject: IRI("urn:s"), Predicate: IRI("urn:p"), Object: String(fmt.Sprint("object ", i)), Graph: DefaultGraph}
}

func commitOf(t *testing.T, s *Store, quads ...Quad) {
	t.Helper()
	_, err := s.Update(context.Background(), Meta{}, func(tx *Tx) error {
		for _, q := range quads {
			if err := tx.Apply(Patch{Op: Add, Quad: q}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestTailerReadsForWatchersOnly proves that commits are not read from the log without
// watchers, nor while the store closes.
func TestTailerReadsForWatchersOnly(t *testing.T) {
	var out bytes.Buffer
	s, err := Open(t.TempDir(), Options{Logger: slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelError}))})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		commitOf(t, s, numbered(i))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for watchers, want := range map[int]Revision{0: 3, 1: 1} { // reading a closed log would be an error
		late := newTailer(s)
		late.count = watchers
		late.head.Store(1)
		late.matchNew()
		if late.matchedHead() != want || out.Len() > 0 {
			t.Errorf("%d watchers: matched up to %d, want %d; logged %q", watchers, late.matchedHead(), want, out.String())
		}
	}
}

// TestWatchersAreToldOnce proves that a commit of many changes is not many calls
// for a watcher of all of them.
func TestWatchersAreToldOnce(t *testing.T) {
	x := newFilterIndex()
	patterns := []Pattern{{}, {Subject: IRI("urn:s")}, {Object: numbered(3).Object}, {Object: LangString("object 3", "en")}, {Subject: IRI("urn:other")}}
	for _, p := range patterns {
		x.add(&Watcher{filter: &watchFilter{Filter: Filter{Patterns: []Pattern{p}}}})
	}
	c := &Commit{}
	for i := range 100 {
		c.Changes = append(c.Changes, Change{Quad: numbered(i)})
	}
	told := make(map[Pattern]int)
	x.matchCommit(c, func(w *Watcher) { told[w.filter.Patterns[0]]++ })
	for i, want := range []int{1, 1, 1, 0, 0} {
		if got := told[patterns[i]]; got != want {
			t.Errorf("a watcher of %v was told %d times, want %d", patterns[i], got, want)
		}
	}
}

// TestWatchersOfSeveralPatterns proves that a watcher receives a commit once for any number
// of matching patterns, and that nothing of it is left in the index after its end.
func TestWatchersOfSeveralPatterns(t *testing.T) {
	x := newFilterIndex()
	filters := []Filter{
		{},
		{Patterns: []Pattern{{}}},
		{Patterns: []Pattern{{Subject: IRI("urn:s")}, {Predicate: IRI("urn:p")}, {Object: numbered(3).Object}, {Subject: IRI("urn:s")}}},
		{Patterns: []Pattern{{Subject: IRI("urn:other")}, {Object: numbered(3).Object}}},
		{Patterns: []Pattern{{Subject: IRI("urn:other")}, {Object: LangString("object 3", "en")}}},
		{Patterns: []Pattern{}},
	}
	told := make(map[*Watcher]int)
	var watchers []*Watcher
	for _, f := range filters {
		w := &Watcher{filter: &watchFilter{Filter: f}}
		watchers = append(watchers, w)
		x.add(w)
	}
	c := &Commit{}
	for i := range 10 {
		c.Changes = append(c.Changes, Change{Quad: numbered(i)})
	}
	const commits = 3
	for range commits {
		x.matchCommit(c, func(w *Watcher) { told[w]++ })
	}
	for i, want := range []int{commits, commits, commits, commits, 0, 0} {
		if got := told[watchers[i]]; got != want {
			t.Errorf("a watcher of %v was told %d times of %d commits, want %d", filters[i].Patterns, got, commits, want)
		}
	}
	for _, w := range watchers {
		x.remove(w)
	}
	for mask, byKey := range x.masks {
		if len(byKey) > 0 {
			t.Errorf("mask %b still holds %v", mask, byKey)
		}
	}
}

// TestWatchedPatternsAreBounded proves that watchers with many patterns are
// refused in time, and make room when they go.
func TestWatchedPatternsAreBounded(t *testing.T) {
	s, err := Open(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.tailer.patterns = MaxWatchedPatterns - 2
	watch := func(n int) (*Watcher, error) {
		return s.Watch(context.Background(), Filter{Patterns: make([]Pattern, n)}, s.Head())
	}
	if _, err := watch(3); CodeOf(err) != CodeOverloaded || AsError(err).RetryAfter == 0 {
		t.Errorf("past the bound: got %v, want %s and when to try again", err, CodeOverloaded)
	}
	for range 2 {
		w, err := watch(2)
		if err != nil {
			t.Fatalf("at the bound: %v", err)
		}
		w.Close()
	}
}

// TestRingIsBoundedInBytes proves that the memory for watchers counts the assertions from
// before each change.
func TestRingIsBoundedInBytes(t *testing.T) {
	const most = 4 << 20
	r := ring{maxCommits: 1000, maxBytes: most}
	for i := range 100 {
		before := make([]Assertion, MaxAssertions)
		for j := range before {
			before[j].Provenance = make([]byte, MaxProvenanceBytes)
		}
		r.add(&Commit{Revision: Revision(i + 1), Changes: []Change{{Quad: numbered(i), Before: before}}})
	}
	if kept := len(r.commits) * MaxAssertions * MaxProvenanceBytes; kept > most || kept == 0 {
		t.Errorf("it keeps %d bytes in %d commits, want some, and at most %d", kept, len(r.commits), most)
	}
}

// TestPositionInsideACommitThatIsNotMatchedYet proves that a watcher which begins
// within a commit does not claim the rest of it before the tailer has come there.
func TestPositionInsideACommitThatIsNotMatchedYet(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	commitOf(t, s, numbered(1), numbered(2), numbered(3))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = Open(dir, Options{}); err != nil { // nothing more comes to its tailer
		t.Fatal(err)
	}
	defer s.Close()
	s.tailer.mu.Lock()
	s.tailer.head.Store(0)
	s.tailer.mu.Unlock()
	from := Position{Epoch: s.Epoch(), Revision: 1, Index: 0}
	w, err := s.Watch(context.Background(), Filter{}, from)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if _, _, err := w.nextMatch(); err != nil {
		t.Fatal(err)
	}
	if got := w.Position(); got != from {
		t.Errorf("got %v, want %v", got, from)
	}
	s.tailer.notify()
	for e, err := range w.Events() {
		if err != nil || e.Position.Index != 1 {
			t.Errorf("the first event is %v, %v, want the change with index 1", e.Position, err)
		}
		break
	}
}

// TestWholeCommits proves that koine itself follows commits as they are in the log, also past
// the replacement of a graph, and that nobody else does.
func TestWholeCommits(t *testing.T) {
	s := openStore(t, t.TempDir(), tenthWhole())
	from := s.Head()
	commitOf(t, s, numbered(1), numbered(2))
	replaceWith(t, s, Meta{}, wholeQuads(0, 2*wholeBeyond))
	commitOf(t, s, numbered(4))
	w, err := s.Watch(t.Context(), Filter{View: View{Principal: SystemPrincipal()}}, from)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	var got []string
	for c, err := range w.WholeCommits() {
		if err != nil {
			t.Fatal(err)
		}
		if c == nil {
			got = append(got, "nudged")
			break
		}
		if c.Replaced != nil {
			got = append(got, "replaced "+c.Replaced.Graph.Value())
		}
		for _, ch := range c.Changes {
			got = append(got, ch.Quad.Object.Value())
		}
		if c.Revision == s.Head().Revision {
			w.Nudge()
		}
	}
	if want := []string{"object 1", "object 2", "replaced urn:g:whole", "object 4", "nudged"}; !slices.Equal(got, want) {
		t.Errorf("the commits have %q, want %q", got, want)
	}
	other, err := s.Watch(t.Context(), Filter{View: View{Principal: Principal{ID: "agent://ann"}}}, from)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for c, err := range other.WholeCommits() {
		if c != nil || CodeOf(err) != CodeInvalid {
			t.Errorf("an agent follows %v, %v", c, err)
		}
	}
}

// A watcher that is woken does not wait until the others are: it has the commits that were
// matched meanwhile, also the one that is being matched, and each once.
func TestWokenWhileMatching(t *testing.T) {
	s, err := Open(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	w, err := s.Watch(context.Background(), Filter{}, s.Head())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	head := s.tailer.matchedHead()
	s.tailer.mu.Lock() // as it does while it wakes them
	w.noteMatch(head + 1)
	w.noteMatch(head + 2)
	at, upTo, err := w.nextMatch()
	s.tailer.mu.Unlock()
	if at != head+1 || upTo != head+2 || err != nil {
		t.Errorf("got the commits %d to %d and %v, want %d to %d", at, upTo, err, head+1, head+2)
	}
	s.tailer.head.Store(uint64(head + 2))
	if at, upTo, err = w.nextMatch(); at != 0 || upTo != head+2 || err != nil {
		t.Errorf("afterwards: got the commits %d to %d and %v, want none", at, upTo, err)
	}
}
