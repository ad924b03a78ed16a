package kg

import (
	"context"
	"slices"
	"testing"
	"time"

	"koine/internal/slowtest"
)

// wall is an Access with which one principal reads no graph, another does not see one
// predicate, and a third sees no past.
type wall struct{ AllowAll }

const (
	outside   AgentID = "agent://outside"
	partly    AgentID = "agent://partly"
	forgetter AgentID = "agent://forgetter"
	insider   AgentID = "agent://insider"
)

func (wall) Allowed(p Principal, graph Term, _ Right) bool {
	return p.ID != outside || graph == DefaultGraph
}

func (wall) Hides(p Principal) func(predicate, graph Term) bool {
	if p.ID != partly {
		return nil
	}
	return func(predicate, _ Term) bool { return predicate == IRI("urn:p:0") }
}

func (wall) Forgets(p Principal) func(graph Term) bool {
	if p.ID != forgetter {
		return nil
	}
	return func(graph Term) bool { return graph == wholeGraph }
}

// told lists the events of a watcher with the filter from a position on, up to its end or n
// events, and the error that ended it.
func told(t *testing.T, s *Store, f Filter, from Position, n int) (events []Event, ended error) {
	t.Helper()
	w, err := s.Watch(t.Context(), f, from)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for e, err := range w.Events() {
		if err != nil {
			return events, err
		}
		if events = append(events, e); len(events) == n {
			break
		}
	}
	return events, nil
}

func replacements(who AgentID, p ...Pattern) Filter {
	f := Filter{View: View{Principal: Principal{ID: who, Method: "key"}}, Replacements: true}
	if len(p) > 0 {
		f.Patterns = p
	}
	return f
}

// justification is the reason of a commit in a snapshot for a principal.
func justification(t *testing.T, s *Store, who AgentID, r Revision) string {
	t.Helper()
	v, err := s.View(t.Context(), View{Principal: Principal{ID: who, Method: "key"}})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	why, err := v.Justification(r)
	if err != nil {
		t.Fatal(err)
	}
	return why
}

// TestReplacedGraphIsTold shows the event of a replaced graph, its readers and its counts,
// and that the stream then continues with the resync.
func TestReplacedGraphIsTold(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{Governor: Governor{Access: wall{}}})
	m := Meta{Principal: SystemPrincipal(), Actor: "agent://loader", Justification: "a new edition"}
	const n = MaxPatches + 100
	replaceWith(t, s, m, wholeQuads(0, n))
	from := s.Head()
	done := replaceWith(t, s, m, wholeQuads(10, n+3))
	commitOf(t, s, numbered(1)) // elsewhere
	counts := GraphReplacement{Graph: wholeGraph, Before: n, Statements: n - 7, Added: 3, Removed: 10}
	bare := GraphReplacement{Graph: wholeGraph, Uncounted: true}
	for _, row := range []struct {
		filter Filter
		want   *GraphReplacement
		why    string
	}{
		{replacements(insider), &counts, m.Justification},
		{replacements(insider, Pattern{Graph: wholeGraph}), &counts, m.Justification},
		{replacements(insider, Pattern{Subject: IRI("urn:any")}), &counts, m.Justification},
		{replacements(partly), &bare, ""},
		{replacements(forgetter), &bare, ""},
		{replacements(insider, Pattern{Graph: DefaultGraph}), nil, ""},
		{replacements(insider, Pattern{Predicate: Sequence}), nil, ""},
		{replacements(outside, Pattern{Graph: DefaultGraph}, Pattern{Graph: wholeGraph}), nil, ""},
	} {
		who := row.filter.View.Principal.ID
		if row.want == nil {
			if row.filter.Patterns[0].Graph.IsZero() {
				continue // nothing will ever come
			}
			events, err := told(t, s, row.filter, from, 1)
			if err != nil || len(events) != 1 || events[0].Replaced != nil || events[0].Statement.Quad != numbered(1) {
				t.Errorf("%s, of another graph, is told %+v, %v", who, events, err)
			}
			continue
		}
		events, err := told(t, s, row.filter, from, 0)
		if len(events) != 1 || events[0].Replaced == nil || !sameReplacement(events[0].Replaced, row.want) {
			t.Fatalf("%s is told %+v, want %+v", who, events, row.want)
		}
		e := events[0]
		if e.Commit.Revision != done.Revision || e.Commit.Justification != row.why {
			t.Errorf("%s is told of revision %d, made for %q", who, e.Commit.Revision, e.Commit.Justification)
		}
		if CodeOf(err) != CodeResync || AsError(err).Oldest == nil || AsError(err).Oldest.Compare(done.Position) != 0 {
			t.Errorf("%s: it ends with %v", who, err)
		}
		// A reader that was cut off between the two gets the second one again, and nothing
		// else.
		again, err := told(t, s, row.filter, e.Position, 0)
		if len(again) != 0 || CodeOf(err) != CodeResync {
			t.Errorf("%s: behind the event there is %+v, %v", who, again, err)
		}
		// A reader that resumes before it gets all of it.
		again, _ = told(t, s, row.filter, from, 0)
		if len(again) != 1 || !sameReplacement(again[0].Replaced, row.want) || again[0].Position != e.Position {
			t.Errorf("%s: a replay tells %+v", who, again)
		}
		if row.filter.Patterns == nil {
			behind, err := told(t, s, row.filter, done.Position, 1)
			if err != nil || len(behind) != 1 || behind[0].Statement.Quad != numbered(1) {
				t.Errorf("%s: behind the replacement there is %+v, %v", who, behind, err)
			}
		}
		c, err := s.Commit(t.Context(), row.filter.View.Principal, done.Revision)
		if err != nil || !sameReplacement(c.Replaced, row.want) || c.Justification != row.why {
			t.Errorf("%s: the commit is %+v, %v", who, c, err)
		}
		if why := justification(t, s, who, done.Revision); why != row.why {
			t.Errorf("%s: a snapshot gives the reason %q, want %q", who, why, row.why)
		}
	}
	if why := justification(t, s, outside, done.Revision); why != "" {
		t.Errorf("who may not read the graph is told that it was replaced for %q", why)
	}
	if _, err := s.Commit(t.Context(), Principal{ID: outside, Method: "key"}, done.Revision); CodeOf(err) != CodeNotFound {
		t.Errorf("who may not read the graph gets the commit: %v", err)
	}
}

func sameReplacement(a, b *GraphReplacement) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Graph == b.Graph && a.Before == b.Before && a.Statements == b.Statements && a.Added == b.Added && a.Removed == b.Removed &&
		a.Uncounted == b.Uncounted && a.Began == b.Began && len(a.Sources) == len(b.Sources)
}

// TestFollowersOfOtherThingsAreNotSentBack shows that a follower of koine's own graphs only
// gets no event of the replacement of another.
func TestFollowersOfOtherThingsAreNotSentBack(t *testing.T) {
	slowtest.Long(t)
	s := openStore(t, t.TempDir(), Options{})
	m := Meta{Principal: SystemPrincipal(), Actor: "agent://loader"}
	w, err := s.Watch(t.Context(), Filter{Patterns: []Pattern{{Predicate: Sequence}}, View: View{AllGraphs: true}, Replacements: true}, s.Head())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	replaceWith(t, s, m, wholeQuads(0, MaxPatches+1))
	own := Quad{Subject: IRI("urn:x"), Predicate: Sequence, Object: Integer(1), Graph: IRI(JournalGraphPrefix + "test")}
	if _, err := s.Update(t.Context(), m, func(tx *Tx) error { return tx.ApplyOwn(Patch{Op: Add, Quad: own}) }); err != nil {
		t.Fatal(err)
	}
	for e, err := range w.Events() {
		if err != nil || e.Statement.Quad != own {
			t.Errorf("it is told %+v, %v", e, err)
		}
		break
	}
}

// TestReplacedGraphInTheLog shows that a reading of the log has a replacement once, in
// its place, from both ends, and that the pages of one fit together.
func TestReplacedGraphInTheLog(t *testing.T) {
	slowtest.Long(t)
	dir := t.TempDir()
	s := openStore(t, dir, Options{})
	m := Meta{Principal: SystemPrincipal(), Actor: "agent://loader"}
	commitOf(t, s, numbered(1))
	done := replaceWith(t, s, m, wholeQuads(0, MaxPatches+1))
	commitOf(t, s, numbered(2))
	text := func(e *Event) string {
		if e.Replaced != nil {
			return "replaced " + e.Replaced.Graph.Value()
		}
		return e.Statement.Subject.Value()
	}
	want := []string{numbered(1).Subject.Value(), "replaced " + wholeGraph.Value(), numbered(2).Subject.Value()}
	check := func(s *Store) {
		t.Helper()
		for _, backward := range []bool{false, true} {
			for most := 1; most <= len(want); most++ { // events of a page
				var got []string
				part := LogRange{After: s.Oldest(), Until: s.Head(), Backward: backward}
				for range 10 {
					l, err := s.ReadLog(t.Context(), replacements(insider), part)
					if err != nil {
						t.Fatal(err)
					}
					n := 0
					for e, err := range l.Events() {
						if err != nil {
							t.Fatal(err)
						}
						if n == most {
							break
						}
						n++
						got = append(got, text(&e))
						if e.Replaced != nil && (e.Commit.Revision != done.Revision || e.Start().Revision != done.Revision-1) {
							t.Errorf("it is of revision %d, behind %v", e.Commit.Revision, e.Start())
						}
					}
					if l.Done() {
						break
					}
					if part.After = l.Reached(); backward {
						part.After, part.Until = s.Oldest(), l.Reached()
					}
				}
				expected := slices.Clone(want)
				if backward {
					slices.Reverse(expected)
				}
				if !slices.Equal(got, expected) {
					t.Errorf("backward %v, %d at a time: got %v, want %v", backward, most, got, expected)
				}
			}
		}
	}
	check(s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	check(openStore(t, dir, Options{}))
}

// TestReplacementsOfADeletedGraphAreNotTold shows that replacements of a name before its
// deletion are delivered to no reader any more.
func TestReplacementsOfADeletedGraphAreNotTold(t *testing.T) {
	slowtest.Long(t)
	s := openStore(t, t.TempDir(), Options{})
	m := Meta{Principal: SystemPrincipal(), Actor: "agent://loader", Justification: "an edition"}
	from := s.Head()
	old := replaceWith(t, s, m, wholeQuads(0, MaxPatches+1))
	if _, err := s.DropGraph(t.Context(), m, wholeGraph, DropOptions{}); err != nil {
		t.Fatal(err)
	}
	again := replaceWith(t, s, m, wholeQuads(5, MaxPatches+10))
	events, err := told(t, s, replacements(insider), from, 0)
	want := &GraphReplacement{Graph: wholeGraph, Statements: MaxPatches + 5, Added: MaxPatches + 5}
	if len(events) != 1 || !sameReplacement(events[0].Replaced, want) || events[0].Commit.Revision != again.Revision || CodeOf(err) != CodeResync {
		t.Errorf("told are %+v, %v", events, err)
	}
	if c, err := s.Commit(t.Context(), Principal{ID: insider, Method: "key"}, old.Revision); err == nil && c.Replaced != nil {
		t.Errorf("the commit of before is %+v", c.Replaced)
	}
	if why := justification(t, s, insider, old.Revision); why != "" {
		t.Errorf("the commit of before was made for %q", why)
	}
}

// TestLiveFollowersAreToldOfReplacedGraph follows while the graph is replaced, event by
// event and commit by commit.
func TestLiveFollowersAreToldOfReplacedGraph(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	m := Meta{Principal: SystemPrincipal(), Actor: "agent://loader"}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	type end struct {
		events int
		err    error
	}
	ended := make(chan end, 2)
	for _, commits := range []bool{false, true} {
		w, err := s.Watch(ctx, replacements(insider), s.Head())
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		go func() {
			var out end
			if commits {
				for list, err := range w.Commits() {
					out.events, out.err = out.events+len(list), err
				}
			} else {
				for e, err := range w.Events() {
					if out.err = err; e.Replaced != nil {
						out.events++
					}
				}
			}
			ended <- out
		}()
	}
	replaceWith(t, s, m, wholeQuads(0, MaxPatches+1))
	for range 2 {
		if got := <-ended; got.events != 1 || CodeOf(got.err) != CodeResync {
			t.Errorf("told are %d events, then %v", got.events, got.err)
		}
	}
}
