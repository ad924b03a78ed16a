package kg_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"koine/kg"
	"koine/kg/kgtest"
)

// salaries holds every update with the property salary for review, and refuses one with the
// property bad. A test may change its verdict.
type salaries struct {
	mind func(j kg.Judgement) kg.Verdict
}

func (v *salaries) Verify(_ context.Context, j kg.Judgement) (kg.Verdict, error) {
	if v.mind != nil {
		return v.mind(j), nil
	}
	for _, c := range j.Changes {
		if strings.HasSuffix(c.Quad.Predicate.Value(), "salary") && !slices.Contains(j.Meta.Reviewed, "salaries") {
			return kg.Verdict{Outcome: kg.Held, Reason: "salaries", Details: "two people look at salaries", Hold: &kg.Hold{Rules: []string{"salaries"}}}, nil
		}
	}
	return kg.Verdict{}, nil
}

// keeper stores held updates in a graph of koine's own.
type keeper struct {
	held []*kg.HeldUpdate
	err  error
}

func (k *keeper) Hold(tx *kg.Tx, h *kg.HeldUpdate) (string, error) {
	if k.err != nil {
		return "", k.err
	}
	k.held = append(k.held, h)
	id := fmt.Sprint("p", len(k.held))
	return id, tx.ApplyOwn(kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: kg.IRI("urn:" + id), Predicate: kg.IRI("urn:kept"), Object: kg.Integer(int64(len(h.Patches))), Graph: kg.IRI(kg.ProposalGraphPrefix + id)}})
}

func salary(n int64) kg.Patch {
	return kg.Patch{Op: kg.Replace, Quad: kg.Quad{Subject: kg.IRI("urn:me"), Predicate: kg.IRI("urn:salary"), Object: kg.Integer(n)}}
}

func applying(patches ...kg.Patch) func(*kg.Tx) error {
	return func(tx *kg.Tx) error {
		for _, p := range patches {
			if err := tx.Apply(p); err != nil {
				return err
			}
		}
		return nil
	}
}

// TestHeldUpdates proves that a held update is handed to the holder with its effect,
// changes nothing itself, and gets the same answer when it is repeated, also after a
// restart.
func TestHeldUpdates(t *testing.T) {
	dir := t.TempDir()
	k := &keeper{}
	o := kg.Options{Governor: kg.Governor{Verifier: &salaries{}, Holder: k}, FreeBytes: func(string) (uint64, error) { return 1 << 40, nil }}
	s := openStore(t, dir, o)
	meta := kg.Meta{Principal: tester, IdempotencyKey: "k", ContentHash: [32]byte{1}, Justification: "a rise"}
	dry := meta
	dry.DryRun = true
	if r, err := s.Update(within(t), dry, applying(salary(2))); err != nil || r.Verdict.Outcome != kg.Held || r.ProposalID != "" || len(k.held) != 0 {
		t.Fatalf("a dry run: got %+v, %v, and %d kept", r, err, len(k.held))
	}
	first, err := s.Update(within(t), meta, applying(salary(1), salary(2)))
	if err != nil || first.Verdict.Outcome != kg.Held || first.ProposalID != "p1" || first.Affected != 0 || first.Subjects != nil || first.Committed {
		t.Fatalf("got %+v, %v", first, err)
	}
	if got := k.held[0]; len(got.Patches) != 2 || got.Patches[1].Quad.Object != kg.Integer(2) || got.Meta.Justification != "a rise" || got.Verdict.Hold == nil {
		t.Errorf("was handed %+v", got)
	}
	snapshot, err := s.View(within(t), kg.View{Principal: tester})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := snapshot.Count(kg.Pattern{}); n != 0 || err != nil {
		t.Errorf("%d statements stand, %v", n, err)
	}
	snapshot.Close()
	c, err := s.Commit(within(t), tester, first.Revision)
	if err != nil || !c.Held || c.ProposalID != "p1" || c.HeldFor != "two people look at salaries" {
		t.Errorf("the commit is %+v, %v", c, err)
	}
	for _, when := range []string{"at once", "after a restart"} {
		again, err := s.Update(within(t), meta, applying(salary(1), salary(2)))
		if !again.Replayed || again.ProposalID != "p1" || again.Verdict.Outcome != kg.Held || again.Verdict.Details != first.Verdict.Details || again.Revision != first.Revision || err != nil {
			t.Errorf("asked again %s: got %+v, %v", when, again, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = openStore(t, dir, o)
	}
	approved := kg.Meta{Principal: tester, ProposalID: "p1", Reviewed: []string{"salaries"}}
	r, err := s.Update(within(t), approved, applying(salary(2)))
	if err != nil || r.Affected != 1 || r.Verdict.Outcome != kg.Accepted {
		t.Fatalf("approved: got %+v, %v", r, err)
	}
	if c, err := s.Commit(within(t), tester, r.Revision); err != nil || c.Held || c.ProposalID != "p1" {
		t.Errorf("the commit is %+v, %v", c, err)
	}
	approved.Reviewed = nil
	if r, err := s.Update(within(t), approved, applying(salary(3))); err != nil || r.Verdict.Outcome != kg.Held || r.ProposalID != "" || len(k.held) != 1 {
		t.Errorf("held again: got %+v, %v, and %d kept", r, err, len(k.held))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestWhatCannotBeHeld proves that an update that cannot be stored as a proposal is
// refused, not lost.
func TestWhatCannotBeHeld(t *testing.T) {
	k := &keeper{}
	s := kgtest.Disk(t, kg.Options{Governor: kg.Governor{Verifier: &salaries{}, Holder: k}})
	own := func(tx *kg.Tx) error {
		q := kg.Quad{Subject: kg.IRI("urn:s"), Predicate: kg.IRI(kg.OwnVocabulary + "p"), Object: kg.Integer(1)}
		if err := tx.ApplyOwn(kg.Patch{Op: kg.Add, Quad: q}); err != nil {
			return err
		}
		return tx.Apply(salary(1))
	}
	if r, err := s.Update(within(t), kg.Meta{Principal: tester}, own); err != nil || r.Verdict.Outcome != kg.Rejected || r.Committed {
		t.Errorf("an update with what is koine's own: got %+v, %v", r, err)
	}
	quads := func(yield func(kg.Quad, error) bool) { yield(salary(1).Quad, nil) }
	if _, err := s.Load(within(t), kg.Meta{Principal: tester}, quads, kg.LoadOptions{}); kg.CodeOf(err) != kg.CodeConstraintViolation || !strings.Contains(err.Error(), "review") {
		t.Errorf("a load: got %v", err)
	}
	k.err = kg.Errorf(kg.CodeLimitExceeded, "too many")
	if _, err := s.Update(within(t), kg.Meta{Principal: tester}, applying(salary(1))); kg.CodeOf(err) != kg.CodeLimitExceeded {
		t.Errorf("a holder that refuses: got %v", err)
	}
	if head := s.Head().Revision; head != 0 || len(k.held) != 0 {
		t.Errorf("there are %d revisions and %d kept", head, len(k.held))
	}
}

// TestHeldWhenJudgedAgain proves that an update which is found to need review
// only by the second look is kept as well.
func TestHeldWhenJudgedAgain(t *testing.T) {
	k, v := &keeper{}, &salaries{}
	s := kgtest.Disk(t, kg.Options{Governor: kg.Governor{Verifier: v, Holder: k}})
	looks := 0
	v.mind = func(j kg.Judgement) kg.Verdict {
		if len(j.Changes) == 1 {
			return kg.Verdict{}
		}
		looks++
		return kg.Verdict{Outcome: kg.Held, Reason: "two"}
	}
	runs := 0
	r, err := s.Update(within(t), kg.Meta{Principal: tester}, func(tx *kg.Tx) error {
		if runs++; runs > 1 { // something has changed since the trial
			if err := tx.Apply(kg.Patch{Op: kg.Add, Quad: integer(1)}); err != nil {
				return err
			}
		}
		return tx.Apply(salary(1))
	})
	if err != nil || r.ProposalID != "p1" || looks != 1 || len(k.held[0].Patches) != 2 {
		t.Errorf("got %+v, %v after %d looks, kept %+v", r, err, looks, k.held)
	}
}

// secretive hides a property from all principals but one.
type secretive struct {
	kg.AllowAll
	from kg.AgentID
}

func (a secretive) Hides(p kg.Principal) func(predicate, graph kg.Term) bool {
	if p.ID == a.from {
		return func(predicate, _ kg.Term) bool {
			return predicate.Value() == "urn:salary" || predicate.Value() == kg.RDFType
		}
	}
	return nil
}

// TestHiddenStatements proves that hidden statements do not exist in scans, counts, lists,
// commits and watches, while others see them.
func TestHiddenStatements(t *testing.T) {
	s := kgtest.Disk(t, kg.Options{Governor: kg.Governor{Access: secretive{from: stranger.ID}}})
	class := kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: kg.IRI("urn:me"), Predicate: kg.IRI(kg.RDFType), Object: kg.IRI("urn:Person")}}
	if _, err := s.Update(within(t), kg.Meta{Principal: tester}, applying(class, salary(1), kg.Patch{Op: kg.Add, Quad: integer(1)})); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Update(within(t), kg.Meta{Principal: tester}, applying(salary(2))); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		principal                                     kg.Principal
		at                                            kg.Revision
		statements, salaries, classes, typed, commits int
	}{
		{tester, 0, 3, 1, 1, 1, 2},
		{stranger, 0, 1, 0, 0, 0, 0},
		{tester, 1, 3, 1, 1, 1, 2},
		{stranger, 1, 1, 0, 0, 0, 0},
	} {
		v, err := s.View(within(t), kg.View{Principal: row.principal, At: row.at})
		if err != nil {
			t.Fatal(err)
		}
		defer v.Close()
		seen := 0
		for _, err := range v.Match(kg.Pattern{}) {
			if err != nil {
				t.Fatal(err)
			}
			seen++
		}
		all, err := v.Count(kg.Pattern{})
		if err != nil || int(all) != row.statements || seen != row.statements {
			t.Errorf("%s: counts %d and scans %d statements, %v; want %d", row.principal.ID, all, seen, err, row.statements)
		}
		one, err := v.Count(kg.Pattern{Predicate: kg.IRI("urn:salary")})
		if err != nil || int(one) != row.salaries {
			t.Errorf("%s: counts %d salaries, %v; want %d", row.principal.ID, one, err, row.salaries)
		}
		typed, err := v.Count(kg.Pattern{Predicate: kg.IRI(kg.RDFType), Object: kg.IRI("urn:Person")})
		if err != nil || int(typed) != row.typed {
			t.Errorf("%s: counts %d of the class, %v; want %d", row.principal.ID, typed, err, row.typed)
		}
		if classes, err := v.Classes(); err != nil || len(classes) != row.classes {
			t.Errorf("%s: lists classes %v, %v", row.principal.ID, classes, err)
		}
		if predicates, err := v.Predicates(); err != nil || len(predicates) != row.statements {
			t.Errorf("%s: lists predicates %v, %v", row.principal.ID, predicates, err)
		}
		if c, err := s.Commit(within(t), row.principal, 2); (err == nil) != (row.commits == 2) {
			t.Errorf("%s: commit 2 is %+v, %v", row.principal.ID, c, err)
		}
		from := s.Head()
		from.Revision = 0
		ctx, cancel := context.WithCancel(within(t))
		w, err := s.Watch(ctx, kg.Filter{View: kg.View{Principal: row.principal}}, from)
		if err != nil {
			t.Fatal(err)
		}
		// A last commit that all principals see ends the watch.
		last := kg.Patch{Op: kg.Replace, Quad: kg.Quad{Subject: kg.IRI("urn:last"), Predicate: kg.IRI("urn:last"), Object: kg.String(fmt.Sprint(row))}}
		end, err := s.Update(within(t), kg.Meta{Principal: tester}, applying(last))
		if err != nil {
			t.Fatal(err)
		}
		for e, err := range w.Events() {
			if err != nil {
				t.Fatal(err)
			}
			if p := e.Statement.Predicate.Value(); row.principal.ID == stranger.ID && p != "urn:p" && p != "urn:last" {
				t.Errorf("%s watches %v", row.principal.ID, e.Statement)
			}
			if e.Commit.Revision == end.Revision {
				break
			}
		}
		w.Close()
		cancel()
		if _, err := s.Update(within(t), kg.Meta{Principal: tester}, applying(kg.Patch{Op: kg.Remove, Quad: last.Quad})); err != nil {
			t.Fatal(err)
		}
	}
}

// TestHiddenStatementsAreNotWrittenAway proves that an update reveals nothing hidden to its
// author, and does not change it: hidden statements cannot be removed or replaced.
func TestHiddenStatementsAreNotWrittenAway(t *testing.T) {
	s := kgtest.Disk(t, kg.Options{Governor: kg.Governor{Access: secretive{from: stranger.ID}}})
	if _, err := s.Update(within(t), kg.Meta{Principal: tester}, applying(salary(1))); err != nil {
		t.Fatal(err)
	}
	patch := func(op kg.Op, n int64, by kg.AgentID) kg.Patch {
		return kg.Patch{Op: op, Quad: salary(n).Quad, Source: by}
	}
	for _, row := range []struct {
		name     string
		by       kg.Principal
		patch    kg.Patch
		affected int
	}{
		{"removing what is hidden", stranger, patch(kg.Remove, 1, ""), 0},
		{"removing what is hidden, of its source", stranger, patch(kg.Remove, 1, tester.ID), 0},
		{"removing what is not there", stranger, patch(kg.Remove, 3, ""), 0},
		{"replacing what is hidden", stranger, patch(kg.Replace, 2, ""), 1},
		{"removing what is seen", tester, patch(kg.Remove, 1, ""), 1},
		{"replacing what is seen", tester, patch(kg.Replace, 2, ""), 1},
	} {
		for _, dry := range []bool{true, false} {
			r, err := s.Update(within(t), kg.Meta{Principal: row.by, DryRun: dry}, applying(row.patch))
			if err != nil || r.Affected != row.affected {
				t.Errorf("%s (dry run: %v): %d affected, %v; want %d", row.name, dry, r.Affected, err, row.affected)
			}
		}
	}
	v, err := s.View(within(t), kg.View{Principal: tester})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	var left []kg.Statement
	for st, err := range v.Match(kg.Pattern{}) {
		if err != nil {
			t.Fatal(err)
		}
		left = append(left, st)
	}
	if len(left) != 1 || left[0].Object != kg.Integer(2) || len(left[0].Assertions) != 2 {
		t.Errorf("left is %v", left)
	}
}

// changing is secretive from the moment at which it is enabled.
type changing struct {
	secretive
	on *atomic.Bool
}

func (a changing) Hides(p kg.Principal) func(predicate, graph kg.Term) bool {
	if !a.on.Load() {
		return nil
	}
	return a.secretive.Hides(p)
}

// TestWatchersFollowWhatIsHidden proves that an open watch does not deliver statements that
// are hidden from now on.
func TestWatchersFollowWhatIsHidden(t *testing.T) {
	on := new(atomic.Bool)
	s := kgtest.Disk(t, kg.Options{Governor: kg.Governor{Access: changing{secretive{from: stranger.ID}, on}}})
	w, err := s.Watch(within(t), kg.Filter{View: kg.View{Principal: stranger}}, s.Head())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	next, stop := iter.Pull2(w.Events())
	defer stop()
	for _, row := range []struct {
		hidden bool
		n      int
		want   string
	}{{false, 1, "urn:salary"}, {true, 2, "urn:p"}, {false, 3, "urn:salary"}} {
		on.Store(row.hidden)
		seen := kg.Patch{Op: kg.Add, Quad: integer(row.n)}
		for _, p := range []kg.Patch{salary(int64(row.n)), seen} {
			if _, err := s.Update(within(t), kg.Meta{Principal: tester}, applying(p)); err != nil {
				t.Fatal(err)
			}
		}
		e, err, _ := next()
		if err != nil || e.Statement.Predicate.Value() != row.want {
			t.Fatalf("hidden %v: got %v, %v; want one with %s", row.hidden, e.Statement, err, row.want)
		}
		if !row.hidden {
			if e, err, _ = next(); err != nil || e.Statement.Object != seen.Quad.Object || e.Statement.Predicate != seen.Quad.Predicate {
				t.Fatalf("then: got %v, %v", e.Statement, err)
			}
		}
	}
}

// TestPendingGraphs proves that pending statements of proposals are shown on request, and
// otherwise not.
func TestPendingGraphs(t *testing.T) {
	s := kgtest.Disk(t, kg.Options{})
	pending := integer(1)
	pending.Graph = kg.IRI(kg.PendingGraphPrefix + "1")
	proposal := integer(2)
	proposal.Graph = kg.IRI(kg.ProposalGraphPrefix + "1")
	_, err := s.Update(within(t), kg.Meta{Principal: tester}, func(tx *kg.Tx) error {
		for _, q := range []kg.Quad{pending, proposal, integer(3)} {
			if err := tx.ApplyOwn(kg.Patch{Op: kg.Add, Quad: q}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		view kg.View
		want uint64
	}{
		{kg.View{}, 1},
		{kg.View{IncludePending: true}, 2},
		{kg.View{IncludePending: true, Graphs: []kg.Term{kg.DefaultGraph}}, 1},
		{kg.View{AllGraphs: true}, 3},
	} {
		v, err := s.View(within(t), row.view)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := v.Count(kg.Pattern{}); n != row.want || err != nil {
			t.Errorf("%+v: got %d, %v, want %d", row.view, n, err, row.want)
		}
		v.Close()
	}
}

// TestWhatDoesNotWait proves that an update may write koine's own records without the
// review, and that the proposal has the caller's patches alone.
func TestWhatDoesNotWait(t *testing.T) {
	k := &keeper{}
	s := kgtest.Disk(t, kg.Options{Governor: kg.Governor{Verifier: &salaries{}, Holder: k}})
	journal := kg.IRI(kg.JournalGraphPrefix + "m")
	said := func(tx *kg.Tx, object kg.Term) error {
		q := kg.Quad{Subject: kg.IRI("urn:s"), Predicate: kg.IRI(kg.OwnVocabulary + "p"), Object: object, Graph: journal}
		return tx.ApplyOwn(kg.Patch{Op: kg.Add, Quad: q})
	}
	m := kg.Meta{Principal: tester, WhenHeld: func(tx *kg.Tx, id string) error { return said(tx, kg.String(id)) }}
	r, err := s.Update(within(t), m, func(tx *kg.Tx) error {
		if err := said(tx, kg.String("with its facts")); err != nil {
			return err
		}
		return tx.Apply(salary(1))
	})
	if err != nil || r.Verdict.Outcome != kg.Held || r.ProposalID != "p1" || len(k.held) != 1 || len(k.held[0].Patches) != 1 {
		t.Fatalf("got %+v, %v; kept %+v", r, err, k.held)
	}
	if got := textsOf(t, s.Store, journal); !slices.Equal(got, []string{"p1"}) {
		t.Errorf("the journal says %q, want the proposal alone", got)
	}
	// An error of that part refuses the whole.
	m.WhenHeld = func(*kg.Tx, string) error { return kg.Errorf(kg.CodeInvalid, "no") }
	if _, err := s.Update(within(t), m, applying(salary(2))); kg.CodeOf(err) != kg.CodeInvalid {
		t.Errorf("got %v, want the error", err)
	}
	if head := s.Head().Revision; head != 1 {
		t.Errorf("there are %d revisions, want the one", head)
	}
}

func textsOf(t *testing.T, s *kg.Store, graph kg.Term) (out []string) {
	t.Helper()
	snapshot, err := s.View(t.Context(), kg.View{Principal: tester, AllGraphs: true})
	if err != nil {
		t.Fatal(err)
	}
	defer snapshot.Close()
	for st, err := range snapshot.Match(kg.Pattern{Graph: graph}) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, st.Object.Value())
	}
	return out
}
