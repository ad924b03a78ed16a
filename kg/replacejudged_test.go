package kg

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"koine/internal/slowtest"
	"koine/kg/internal/keys"
)

// verdicts is a Verifier whose verdicts the test sets.
type verdicts struct {
	of func(j Judgement) (Verdict, error)
}

func (v *verdicts) Verify(_ context.Context, j Judgement) (Verdict, error) { return v.of(j) }

// nothingIsLeft checks that the graph has its former content, accepts changes, and that
// nothing is left in the index of the generations that were given up.
func nothingIsLeft(t *testing.T, s *Store, m Meta, want []string) {
	t.Helper()
	if got := holdsAt(t, s, 0); !slices.Equal(got, want) {
		t.Errorf("the graph has %d statements, want %d", len(got), len(want))
	}
	if err := s.purgeGenerations(t.Context()); err != nil {
		t.Fatal(err)
	}
	gone := givenUp(t, s)
	for _, began := range gone {
		id := keys.Generation(uint64(began))
		if n := indexedOf(t, s, id); n != 0 || s.head.Load().generations.ByID(id) != nil {
			t.Errorf("%d keys are left of a generation that never counted, or its entry", n)
		}
	}
	if len(gone) == 0 {
		t.Error("no generation was given up: the test shows nothing")
	}
	extra := wholeQuad(-1)
	for _, op := range []Op{Add, Remove} {
		if r, err := s.Update(t.Context(), m, func(tx *Tx) error { return tx.Apply(Patch{Op: op, Quad: extra}) }); err != nil || r.Affected != 1 {
			t.Errorf("the graph takes no changes: %+v, %v", r, err)
		}
	}
	mustBeClean(t, s)
}

// givenUp lists the generations that were given up, by the log.
func givenUp(t *testing.T, s *Store) (began []Revision) {
	t.Helper()
	for r := Revision(1); r <= s.Head().Revision; r++ {
		c, err := s.readCommit(r)
		if err != nil {
			t.Fatal(err)
		}
		if c.Written != nil && c.Written.GivenUp {
			began = append(began, c.Written.Began)
		}
	}
	return began
}

// TestJudgedReplacementThatIsRefused shows that rules and shapes judge a replacement before
// it counts, each part against the whole graph before and after, and that one that they
// refuse, hold or fail at leaves nothing behind, also after a restart.
func TestJudgedReplacementThatIsRefused(t *testing.T) {
	slowtest.WithoutRace(t)
	slowtest.Long(t)
	dir := t.TempDir()
	const n = MaxPatches + 10
	failure := errors.New("the rule cannot be judged")
	v := &verdicts{of: func(Judgement) (Verdict, error) { return Verdict{}, nil }}
	s := openStore(t, dir, Options{Governor: Governor{Verifier: v}})
	m := Meta{Principal: Principal{ID: "agent://loader", Method: "key"}}
	first := replaceWith(t, s, m, wholeQuads(0, n))
	refusals := map[string]struct {
		verdict Verdict
		err     error
		code    Code
	}{
		"rejected": {Verdict{Outcome: Rejected, Reason: "Constraint Violation", Details: "too many"}, nil, CodeConstraintViolation},
		"held":     {Verdict{Outcome: Held, Hold: &Hold{}}, nil, CodeConstraintViolation},
		"failed":   {Verdict{}, failure, ""},
	}
	for name, row := range refusals {
		seen := 0
		v.of = func(j Judgement) (Verdict, error) {
			if len(j.Changes) == 0 || j.Meta.Principal.ID != m.Principal.ID {
				t.Errorf("%s: judged are %d changes of %q", name, len(j.Changes), j.Meta.Principal.ID)
			}
			for snapshot, want := range map[*Snapshot]uint64{j.Before: n, j.After: n + 20_000} {
				if got, err := snapshot.Count(Pattern{Graph: wholeGraph}); err != nil || got != want {
					t.Errorf("%s: it is judged with %d statements, want %d: %v", name, got, want, err)
				}
			}
			if seen += len(j.Changes); seen < 20_000 { // the last part decides
				return Verdict{}, nil
			}
			return row.verdict, row.err
		}
		_, err := s.ReplaceGraph(t.Context(), m, wholeGraph, wholeQuads(0, n+20_000), ReplaceOptions{})
		if row.err != nil && !errors.Is(err, row.err) || row.code != "" && CodeOf(err) != row.code {
			t.Errorf("%s: got %v", name, err)
		}
		v.of = func(Judgement) (Verdict, error) { return Verdict{}, nil }
		if c, err := s.Commit(t.Context(), m.Principal, s.Head().Revision); err == nil && c.Replaced != nil {
			t.Errorf("%s: a commit tells %+v", name, c.Replaced)
		}
	}
	nothingIsLeft(t, s, m, wholeObjects(0, n))
	if got := holdsAt(t, s, first.Revision); len(got) != n {
		t.Errorf("at %d there were %d statements", first.Revision, len(got))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openStore(t, dir, Options{Governor: Governor{Verifier: v}, Rebuild: true})
	nothingIsLeft(t, s, m, wholeObjects(0, n))
}

// TestRestatedStatementsAreJudged shows that statements which stay, and which the caller
// backs now, are judged as in an ordinary update; those that stay as they are, are not.
func TestRestatedStatementsAreJudged(t *testing.T) {
	slowtest.Long(t)
	const n, same = MaxPatches + 10, 7
	v := &verdicts{of: func(Judgement) (Verdict, error) { return Verdict{}, nil }}
	s := openStore(t, t.TempDir(), Options{Governor: Governor{Verifier: v}})
	first := Meta{Principal: Principal{ID: "agent://first", Method: "key"}}
	second := Meta{Principal: Principal{ID: "agent://second", Method: "key"}}
	replaced := replaceWith(t, s, first, wholeQuads(0, n))
	if _, err := s.Update(t.Context(), second, func(tx *Tx) error {
		for i := range same {
			if err := tx.Apply(Patch{Op: Add, Quad: wholeQuad(i)}); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	var judged []Change
	v.of = func(j Judgement) (Verdict, error) {
		judged = append(judged, j.Changes...)
		return Verdict{Details: strings.Repeat("warned ", maxReplacedDetails)}, nil
	}
	report, err := s.ReplaceGraph(t.Context(), second, wholeGraph, wholeQuads(0, n), ReplaceOptions{})
	if err != nil || report.Added != n-same || report.Removed != 0 {
		t.Fatalf("got %+v, %v", report, err)
	}
	if n := len(report.Verdict.Details); n < maxReplacedDetails || n > 8*maxReplacedDetails {
		t.Errorf("the report has %d bytes of warnings", n)
	}
	if len(judged) != n-same {
		t.Fatalf("%d changes are judged, want %d", len(judged), n-same)
	}
	for i := range judged {
		c := &judged[i]
		if c.Op != Add || c.Assertion.Source != "agent://second" || c.Since != replaced.Revision ||
			len(c.Before) != 1 || c.Before[0].Source != "agent://first" || len(c.After) != 2 {
			t.Fatalf("judged is %+v", *c)
		}
	}
	judged, v.of = nil, func(Judgement) (Verdict, error) { return Verdict{Outcome: Rejected, Details: "not by you"}, nil }
	third := Meta{Principal: Principal{ID: "agent://third", Method: "key"}}
	if _, err := s.ReplaceGraph(t.Context(), third, wholeGraph, wholeQuads(0, n), ReplaceOptions{}); CodeOf(err) != CodeConstraintViolation {
		t.Errorf("a replacement that the rules refuse: %v", err)
	}
}

// TestOwnGraphsAreNotReplacedAsAWhole shows that not even koine itself replaces one of its
// own graphs as a whole: observers of their commits would not learn of it.
func TestOwnGraphsAreNotReplacedAsAWhole(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	own := IRI(OwnGraphPrefix + "shapes")
	_, err := s.ReplaceGraph(t.Context(), Meta{Principal: SystemPrincipal(), Actor: System}, own, func(yield func(Quad, error) bool) {
		for i := range MaxPatches + 1 {
			q := wholeQuad(i)
			if q.Graph = own; !yield(q, nil) {
				return
			}
		}
	}, ReplaceOptions{})
	if CodeOf(err) != CodeReserved || !strings.Contains(err.Error(), "urn:koine:graph:shapes") {
		t.Errorf("got %v", err)
	}
}

// TestReplacementBeyondAQuota shows that the quota of a source is decided at the switch:
// the removals of a replacement make room for its additions.
func TestReplacementBeyondAQuota(t *testing.T) {
	slowtest.Long(t)
	const n = MaxPatches + 10
	s := openStore(t, t.TempDir(), Options{MaxSourceStatements: n + 5})
	m := Meta{Principal: Principal{ID: "agent://loader", Method: "key"}}
	first := replaceWith(t, s, m, wholeQuads(0, n))
	_, err := s.ReplaceGraph(t.Context(), m, wholeGraph, wholeQuads(1, n+7), ReplaceOptions{})
	if CodeOf(err) != CodeLimitExceeded || AsError(err).Limit != LimitStatements {
		t.Fatalf("beyond its share it gets %v", err)
	}
	if backed, err := s.SourceStatements("agent://loader"); err != nil || backed != n {
		t.Errorf("it backs %d statements: %v", backed, err)
	}
	nothingIsLeft(t, s, m, wholeObjects(0, n))
	done := replaceWith(t, s, m, wholeQuads(1, n+6))
	if backed, err := s.SourceStatements("agent://loader"); err != nil || backed != n+5 || done.Revision <= first.Revision {
		t.Errorf("up to its share it backs %d statements: %v", backed, err)
	}
}

// TestReplacementAskedForAgain shows that a replacement with an idempotency key is made
// once, and that the same key gets the first answer regardless of later changes.
func TestReplacementAskedForAgain(t *testing.T) {
	slowtest.Long(t)
	t.Parallel()
	dir := t.TempDir()
	s := openStore(t, dir, Options{})
	const n = MaxPatches + 10
	m := Meta{Principal: Principal{ID: "agent://loader", Method: "key"}, IdempotencyKey: "edition 2", ContentHash: [32]byte{2}}
	plain := Meta{Principal: m.Principal}
	replaceWith(t, s, plain, wholeQuads(0, n))
	first := replaceWith(t, s, m, wholeQuads(5, n+1))
	if first.Replayed || first.Added != 1 || first.Removed != 5 {
		t.Fatalf("the first answer is %+v", first)
	}
	later := replaceWith(t, s, plain, wholeQuads(7, n))
	again := func(what string, quads int) {
		t.Helper()
		head := s.Head()
		got := replaceWith(t, s, m, wholeQuads(5, 5+quads))
		if !got.Replayed || !got.Whole || got.Added != first.Added || got.Removed != first.Removed || got.Revision != first.Revision || got.Position != first.Position {
			t.Errorf("%s: again it is %+v, want %+v", what, got, first)
		}
		if s.Head() != head {
			t.Errorf("%s: something was written", what)
		}
		if got := holdsAt(t, s, 0); !slices.Equal(got, wholeObjects(7, n)) {
			t.Errorf("%s: the graph has %d statements", what, len(got))
		}
	}
	again("whole", n-4)
	again("small", 3) // the adapter hashes the request; the key decides nevertheless
	other := m
	other.ContentHash = [32]byte{3}
	for _, quads := range []int{3, n} {
		if _, err := s.ReplaceGraph(t.Context(), other, wholeGraph, wholeQuads(0, quads), ReplaceOptions{}); CodeOf(err) != CodeIdempotencyConflict {
			t.Errorf("the key with other content, %d statements, gets %v", quads, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openStore(t, dir, Options{Rebuild: true})
	again("after a restart", n-4)
	if later.Replayed {
		t.Errorf("without a key it is %+v", later)
	}
}

// TestReplacementThatDependsOnTooMuch shows the bound on the dependencies of a verdict on a
// replacement, at and past it.
func TestReplacementThatDependsOnTooMuch(t *testing.T) {
	slowtest.Long(t)
	const n = MaxPatches + 10
	depends := 0
	v := &verdicts{of: func(j Judgement) (Verdict, error) {
		out := Verdict{}
		for range depends / 2 { // the changes come in two parts
			out.Depends = append(out.Depends, Dependency{Node: IRI("urn:elsewhere")})
		}
		return out, nil
	}}
	const most = 40
	s := openStore(t, t.TempDir(), Options{Governor: Governor{Verifier: v}, replacedDepends: most})
	m := Meta{Principal: Principal{ID: "agent://loader", Method: "key"}}
	depends = most
	replaceWith(t, s, m, wholeQuads(0, n))
	depends = most + 2
	_, err := s.ReplaceGraph(t.Context(), m, wholeGraph, wholeQuads(n, 2*n), ReplaceOptions{})
	if e := AsError(err); CodeOf(err) != CodeLimitExceeded || e.Limit != LimitReplacedDepends || e.Hint == "" ||
		!strings.Contains(e.Message, wholeGraph.Value()) || !strings.Contains(e.Message, fmt.Sprint(most, " inputs (replacedDepends)")) {
		t.Errorf("past the bound it gets %v", err)
	}
	depends = 0
	nothingIsLeft(t, s, m, wholeObjects(0, n))
	if got := (Options{}).withDefaults().replacedDepends; got != MaxReplacedDepends {
		t.Errorf("the bound is %d, want %d", got, MaxReplacedDepends)
	}
}

// TestOtherGraphsTakeChangesMeanwhile shows that only the graph that is being replaced is
// closed, for callers that may write it, with an error that names it and the time to retry;
// and that a caller that may not read it gets the answer for a graph that does not exist.
func TestOtherGraphsTakeChangesMeanwhile(t *testing.T) {
	slowtest.Long(t)
	t.Parallel()
	s := openStore(t, t.TempDir(), Options{Governor: Governor{Access: wall{}}})
	m := Meta{Principal: Principal{ID: "agent://loader", Method: "key"}}
	other := IRI("urn:g:other")
	elsewhere := func(i int) Quad {
		q := wholeQuad(i)
		q.Graph = other
		return q
	}
	apply := func(who AgentID, p ...Patch) error {
		_, err := s.Update(t.Context(), Meta{Principal: Principal{ID: who, Method: "key"}}, func(tx *Tx) error {
			for _, p := range p {
				if err := tx.Apply(p); err != nil {
					return err
				}
			}
			return nil
		})
		return err
	}
	first := replaceWith(t, s, m, wholeQuads(0, MaxPatches+1))
	looked := 0
	look := func() {
		looked++
		for _, p := range [][]Patch{
			{{Op: Add, Quad: wholeQuad(-1)}},
			{{Op: Remove, Quad: wholeQuad(1)}},
			{{Op: Add, Quad: elsewhere(-1)}, {Op: Add, Quad: wholeQuad(-1)}}, // all or nothing
		} {
			err := apply(insider, p...)
			if e := AsError(err); e.Code != CodeOverloaded || e.RetryAfter != retryReplaced || !strings.Contains(e.Message, "the graph <"+wholeGraph.Value()+"> is being replaced") || e.Hint == "" {
				t.Errorf("a change of it meanwhile gets %v", err)
			}
		}
		hidden, absent := apply(outside, Patch{Op: Add, Quad: wholeQuad(-1)}), apply(outside, Patch{Op: Add, Quad: elsewhere(-1)})
		if a, b := AsError(hidden), AsError(absent); CodeOf(hidden) == CodeOverloaded || a.Code != b.Code || a.RetryAfter != b.RetryAfter || strings.ReplaceAll(a.Message, wholeGraph.Value(), other.Value()) != b.Message {
			t.Errorf("who may not read it gets %v, of one that is not there %v", hidden, absent)
		}
		if err := apply(insider, Patch{Op: Add, Quad: elsewhere(looked)}); err != nil {
			t.Errorf("a change of another graph meanwhile gets %v", err)
		}
		done, err := s.ReplaceGraph(t.Context(), m, IRI("urn:g:third"), func(yield func(Quad, error) bool) {
			for i := range MaxPatches + 1 {
				q := wholeQuad(i + looked)
				q.Graph = IRI("urn:g:third")
				if !yield(q, nil) {
					return
				}
			}
		}, ReplaceOptions{})
		if err != nil || !done.Whole {
			t.Errorf("the replacement of another graph meanwhile gets %+v, %v", done, err)
		}
	}
	n := 0
	_, err := s.ReplaceGraph(t.Context(), m, wholeGraph, func(yield func(Quad, error) bool) {
		for q := range wholeQuads(5, 2*MaxPatches) {
			if n++; n == MaxPatches+5 || n == 2*MaxPatches-10 {
				look()
			}
			if !yield(q, nil) {
				return
			}
		}
	}, ReplaceOptions{})
	if err != nil || looked != 2 {
		t.Fatalf("looked %d times: %v", looked, err)
	}
	if got := holdsAt(t, s, 0); !slices.Equal(got, wholeObjects(5, 2*MaxPatches)) {
		t.Errorf("the graph has %d statements", len(got))
	}
	if got := holdsAt(t, s, first.Revision); len(got) != MaxPatches+1 {
		t.Errorf("before, it had %d", len(got))
	}
	if err := apply(insider, Patch{Op: Add, Quad: wholeQuad(-1)}); err != nil {
		t.Errorf("behind it, a change gets %v", err)
	}
}
