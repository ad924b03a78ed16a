package kg

import (
	"fmt"
	"iter"
	"strings"
	"testing"

	"koine/internal/slowtest"
)

// bothReplacements runs a test with graphs that are replaced as a whole, and in one
// ordinary commit.
func bothReplacements(t *testing.T, test func(t *testing.T, o Options, whole bool)) {
	for _, whole := range []bool{true, false} {
		t.Run(fmt.Sprint("whole ", whole), func(t *testing.T) {
			o := Options{}
			if whole {
				o = smallWhole()
			}
			test(t, o, whole)
		})
	}
}

// TestReplacementThatChangesNothingRemembersItsKey shows that a replacement which leaves the
// graph as it is answers its idempotency key again, also after a restart, and refuses the
// key with other content.
func TestReplacementThatChangesNothingRemembersItsKey(t *testing.T) {
	slowtest.Long(t)
	bothReplacements(t, func(t *testing.T, o Options, whole bool) {
		dir := t.TempDir()
		s := openStore(t, dir, o)
		m := Meta{Principal: Principal{ID: "agent://loader", Method: "key"}}
		replaceWith(t, s, m, wholeQuads(0, 6))
		keyed := m
		keyed.IdempotencyKey, keyed.ContentHash = "the same again", [32]byte{1}
		first := replaceWith(t, s, keyed, wholeQuads(0, 6))
		if first.Replayed || first.Whole || first.Commits != 1 || first.Added != 0 || first.Removed != 0 || first.Revision > s.Head().Revision {
			t.Errorf("the first answer is %+v", first)
		}
		replaceWith(t, s, m, wholeQuads(1, 7))
		again := func() {
			t.Helper()
			head := s.Head()
			got := replaceWith(t, s, keyed, wholeQuads(0, 6))
			if !got.Replayed || got.Whole || got.Added != 0 || got.Removed != 0 || got.Revision != first.Revision || got.Position != first.Position {
				t.Errorf("again it is %+v, want %+v", got, first)
			}
			other := keyed
			other.ContentHash = [32]byte{2}
			if r, err := s.ReplaceGraph(t.Context(), other, wholeGraph, wholeQuads(0, 5), ReplaceOptions{}); CodeOf(err) != CodeIdempotencyConflict {
				t.Errorf("the key with other content gets %+v, %v", r, err)
			}
			if s.Head() != head {
				t.Error("something was written")
			}
		}
		again()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		o.Rebuild = true
		s = openStore(t, dir, o)
		again()
		mustBeClean(t, s)
	})
}

// TestCreatedIsToldByWhatIsSeen shows that the answer whether a replacement created a graph
// depends on the caller's view, also if it writes a statement that it does not see.
func TestCreatedIsToldByWhatIsSeen(t *testing.T) {
	slowtest.Long(t)
	hidden, shown := wholeQuads(0, 1), wholeQuads(1, 2) // urn:p:0 is hidden from the caller
	both := func(yield func(Quad, error) bool) {
		for _, q := range []int{0, 1} {
			if !yield(wholeQuad(q), nil) {
				return
			}
		}
	}
	for name, row := range map[string]struct {
		stands  iter.Seq2[Quad, error]
		created bool
	}{"nothing": {wholeQuads(0, 0), true}, "a hidden statement": {hidden, true}, "a shown one": {shown, false}, "both": {both, false}} {
		bothReplacements(t, func(t *testing.T, o Options, whole bool) {
			for _, n := range []int{0, 6} { // with the hidden statement in the new content, and without
				o.Access = wall{}
				s := openStore(t, t.TempDir(), o)
				for q := range row.stands {
					commitOf(t, s, q)
				}
				quads := func(yield func(Quad, error) bool) {
					for i := range 6 {
						q := wholeQuad(i)
						if n == 0 && q.Predicate == IRI("urn:p:0") {
							q.Predicate = IRI("urn:p:1")
						}
						if !yield(q, nil) {
							return
						}
					}
				}
				r := replaceWith(t, s, Meta{Principal: Principal{ID: partly, Method: "key"}}, quads)
				if r.Whole != whole || r.Created != row.created {
					t.Errorf("%s: it says %+v, want created %v", name, r, row.created)
				}
			}
		})
	}
}

// TestReplacedGraphNeedsAName shows that terms that cannot name a graph are refused alike.
func TestReplacedGraphNeedsAName(t *testing.T) {
	bothReplacements(t, func(t *testing.T, o Options, whole bool) {
		s := openStore(t, t.TempDir(), o)
		for _, name := range []Term{String("a text"), IRI("no scheme")} {
			_, err := s.ReplaceGraph(t.Context(), Meta{Principal: Principal{ID: "agent://loader", Method: "key"}}, name, func(yield func(Quad, error) bool) {
				for q := range wholeQuads(0, 6) {
					if q.Graph = name; !yield(q, nil) {
						return
					}
				}
			}, ReplaceOptions{})
			if e := AsError(err); err == nil || e.Code != CodeInvalid || !strings.HasSuffix(e.Field, "graph") {
				t.Errorf("%v gets %v at %q", name, err, e.Field)
			}
			if head := s.Head().Revision; head != 0 {
				t.Errorf("revision %d", head)
			}
		}
	})
}

// TestReplacementBeyondAQuotaEndsEarly shows that a replacement is refused while it is
// read, once its source would back more than its quota and more than it does; and that one
// which leaves it with no more than before is made, though that is more than its quota.
func TestReplacementBeyondAQuotaEndsEarly(t *testing.T) {
	const backs, most = 40, 20
	dir := t.TempDir()
	o := smallWhole()
	s := openStore(t, dir, o)
	m := Meta{Principal: Principal{ID: "agent://loader", Method: "key"}}
	replaceWith(t, s, m, wholeQuads(0, backs))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	o.MaxSourceStatements = most
	s = openStore(t, dir, o)
	replaces := func(who Meta, from, n int) (read int, err error) {
		_, err = s.ReplaceGraph(t.Context(), who, wholeGraph, func(yield func(Quad, error) bool) {
			for q := range wholeQuads(from, n) {
				if read++; !yield(q, nil) {
					return
				}
			}
		}, ReplaceOptions{})
		return read, err
	}
	// The replacement in transit at that time: wholeAhead commits and the next.
	slack := (wholeAhead + 2) * o.wholeCommit
	for who, bound := range map[AgentID]int{"agent://loader": backs, "agent://other": most} {
		read, err := replaces(Meta{Principal: Principal{ID: who, Method: "key"}}, 100, 1000)
		if CodeOf(err) != CodeLimitExceeded || AsError(err).Limit != LimitStatements || !strings.Contains(err.Error(), string(who)) {
			t.Errorf("%s gets %v", who, err)
		}
		if read <= bound || read > bound+slack {
			t.Errorf("%s is refused behind %d statements, want at most %d behind %d", who, read, slack, bound)
		}
	}
	if st := s.Stats(); st.QuotaRefusals != 2 {
		t.Errorf("%d updates are counted as refused, want 2", st.QuotaRefusals)
	}
	if _, err := replaces(m, 1, backs+1); err != nil {
		t.Errorf("a replacement that backs no more than before gets %v", err)
	}
	if _, err := replaces(m, 1, backs); err != nil {
		t.Errorf("a replacement that backs less than before gets %v", err)
	}
	nothingIsLeft(t, s, Meta{Principal: SystemPrincipal(), Actor: "agent://writer"}, wholeObjects(1, backs))
}

// TestCarriedStatementsCountForNobodyElse shows that statements which the caller does not
// see, and which are carried over, do not count for its share.
func TestCarriedStatementsCountForNobodyElse(t *testing.T) {
	const n, most = 40, 20
	o := smallWhole()
	o.Access, o.MaxSourceStatements = wall{}, most
	s := openStore(t, t.TempDir(), o)
	for i := range n { // each of it is hidden
		q := wholeQuad(i)
		q.Predicate = IRI("urn:p:0")
		commitOf(t, s, q)
	}
	r := replaceWith(t, s, Meta{Principal: Principal{ID: partly, Method: "key"}}, func(yield func(Quad, error) bool) {
		for i := range most {
			q := wholeQuad(i)
			q.Predicate = IRI("urn:p:1")
			if !yield(q, nil) {
				return
			}
		}
	})
	if r.Added != most || !r.Whole {
		t.Errorf("it says %+v", r)
	}
	if got := holdsAt(t, s, 0); len(got) != n+most {
		t.Errorf("the graph has %d statements", len(got))
	}
}
