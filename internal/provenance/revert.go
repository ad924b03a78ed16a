package provenance

import (
	"context"
	"slices"

	"koine/internal/systemgraph"
	"koine/kg"
)

// MaxConflicts bounds the conflicts that a Reversal lists.
const MaxConflicts = 100

// Writer is the part of a store that Resolve and Revert need.
type Writer interface {
	Log
	Update(ctx context.Context, m kg.Meta, fn func(*kg.Tx) error) (kg.Receipt, error)
}

// Conflict is a statement that changed after the commit to be reverted, so that
// restoring the earlier state would undo the later change as well.
type Conflict struct {
	Quad kg.Quad
	// Now are the assertions that the caller sees today; none if the statement is gone.
	Now []kg.Assertion
}

// Reversal is the outcome of a Revert.
type Reversal struct {
	// Conflicts lists at most MaxConflicts statements that changed since; Total is
	// their number.
	Conflicts []Conflict
	Total     int
	// Blocked reports that the conflicts prevented the reversal.
	Blocked bool
	Receipt kg.Receipt
}

// Revert undoes a commit with a new one: it restores the assertions that every changed
// statement had before, with their sources, certainty, validity and provenance,
// recorded now. If a statement has changed since the commit, Revert writes nothing and
// returns the conflicts; with force it restores the earlier state all the same, and
// assertions that others have added since are lost.
//
// The caller needs the right to write every graph that the commit changed, and the
// right to act for every source that regains or loses an assertion; administrators need
// neither. The new commit is judged like any other.
//
// Errors: CodeNotFound if the caller sees nothing of the revision, CodeRevisionGone
// when the log no longer has it, CodePermissionDenied if the caller does not see the
// whole commit or may not act for a source, CodeReserved for a commit that changed
// koine's own statements only (if it changed others too, as when a proposal is applied,
// those are reverted), those of Store.Update.
func Revert(ctx context.Context, store Writer, m kg.Meta, revision kg.Revision, force bool) (*Reversal, error) {
	c, err := store.Commit(ctx, m.Principal, revision)
	if err != nil {
		return nil, err
	}
	whole, err := store.Commit(ctx, kg.SystemPrincipal(), revision)
	if err != nil {
		return nil, err
	}
	if len(foreignChanges(c.Changes)) != len(foreignChanges(whole.Changes)) {
		return nil, kg.Errorf(kg.CodePermissionDenied, "the commit can only be reverted as a whole, and part of it is not visible to you")
	}
	states := netChanges(foreignChanges(whole.Changes))
	if len(states) == 0 && len(whole.Changes) > 0 {
		return nil, kg.Errorf(kg.CodeReserved, "the commit changed koine's own statements only: undo it with the calls that manage them")
	}
	for i := range states {
		if err := states[i].checkSources(&m.Principal); err != nil {
			return nil, err
		}
	}
	out := new(Reversal)
	m.HasExpected = false
	r := &reverting{states: states, force: force}
	out.Receipt, err = store.Update(ctx, m, r.run)
	if err == errConflicts {
		err = nil
	}
	out.Blocked = r.total > 0 && !force
	out.Conflicts, out.Total = r.conflicts, r.total
	return out, err
}

// foreignChanges filters out the changes of koine's own statements.
func foreignChanges(changes []kg.Change) []kg.Change {
	return slices.DeleteFunc(slices.Clone(changes), func(c kg.Change) bool { return kg.Reserved(c.Quad) })
}

// netChange is a statement with its assertions before and after a commit.
type netChange struct {
	quad          kg.Quad
	before, after []kg.Assertion
}

// netChanges lists the statements of a commit in order, each once with its assertions
// before the first change and after the last. Statements without a net change are left
// out.
func netChanges(changes []kg.Change) []netChange {
	index := map[kg.Quad]int{}
	var list []netChange
	for i := range changes {
		c := &changes[i]
		at, seen := index[c.Quad]
		if !seen {
			at = len(list)
			index[c.Quad] = at
			list = append(list, netChange{quad: c.Quad, before: c.Before})
		}
		list[at].after = c.After
	}
	return slices.DeleteFunc(list, func(u netChange) bool { return sameAssertions(u.before, u.after) })
}

// checkSources returns an error if the principal may not act for a source that regains or
// loses an assertion. The store checks the rights in the graph.
func (u *netChange) checkSources(by *kg.Principal) error {
	if by.IsAdmin() {
		return nil
	}
	for _, list := range [...][]kg.Assertion{u.before, u.after} {
		for _, a := range list {
			if !by.MayActFor(a.Source) {
				return kg.Errorf(kg.CodePermissionDenied, "the commit changed assertions of %s, for which you may not act", a.Source)
			}
		}
	}
	return nil
}

// sameAssertion reports whether two assertions are equal apart from the time of recording.
func sameAssertion(a, b kg.Assertion) bool {
	return a.Source == b.Source && a.SameContent(b)
}

func sameAssertions(a, b []kg.Assertion) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(x kg.Assertion) bool {
		return !slices.ContainsFunc(b, func(y kg.Assertion) bool { return sameAssertion(x, y) })
	})
}

// errConflicts aborts an update that would undo later changes.
var errConflicts = kg.Errorf(kg.CodeRevisionConflict, "statements of the commit have changed since")

type reverting struct {
	states []netChange
	force  bool

	conflicts []Conflict
	total     int
}

func (r *reverting) run(tx *kg.Tx) error {
	r.conflicts, r.total = nil, 0
	now := make([][]kg.Assertion, len(r.states))
	for i := range r.states {
		// MatchOwn includes the assertions of agents in quarantine: they are restored
		// too.
		st, _, err := systemgraph.First(tx.MatchOwn, kg.Pattern(r.states[i].quad))
		if err != nil {
			return err
		}
		now[i] = st.Assertions
		if sameAssertions(now[i], r.states[i].after) || sameAssertions(now[i], r.states[i].before) {
			continue
		}
		if r.total++; len(r.conflicts) < MaxConflicts {
			visible, _, err := systemgraph.First(tx.Match, kg.Pattern(r.states[i].quad))
			if err != nil {
				return err
			}
			r.conflicts = append(r.conflicts, Conflict{r.states[i].quad, visible.Assertions})
		}
	}
	if r.total > 0 && !r.force {
		return errConflicts
	}
	for i := range r.states {
		if err := r.states[i].restore(tx, now[i]); err != nil {
			return err
		}
	}
	return nil
}

// restore restores the assertions of the statement.
func (u *netChange) restore(tx *kg.Tx, now []kg.Assertion) error {
	for _, a := range now {
		if !slices.ContainsFunc(u.before, func(b kg.Assertion) bool { return b.Source == a.Source }) {
			if err := tx.Apply(kg.Patch{Op: kg.Remove, Quad: u.quad, Source: a.Source}); err != nil {
				return err
			}
		}
	}
	for _, a := range u.before {
		if slices.ContainsFunc(now, func(b kg.Assertion) bool { return sameAssertion(a, b) }) {
			continue // unchanged
		}
		p := kg.Patch{Op: kg.Add, Quad: u.quad, Source: a.Source, Certainty: a.Certainty, HasCertainty: a.HasCertainty, Validity: a.Validity, Provenance: a.Provenance, Embedding: a.Embedding}
		apply := tx.Apply
		if m := tx.Meta(); m.Principal.IsAdmin() && !m.Principal.MayActFor(a.Source) {
			apply = tx.ApplyOwn // an administrator restores another agent's assertion
		}
		if err := apply(p); err != nil {
			return err
		}
	}
	return nil
}

// MaxDropped bounds the statements that one Resolve removes.
const MaxDropped = 1000

// Resolve settles a contradiction: it removes the dropped statements with all their
// assertions in one commit, provided that the kept statements still exist. The caller
// needs the right to write their graphs, and the operator's rules judge it like any
// removal.
//
// Errors: CodeInvalid when nothing is dropped, or a statement is both kept and dropped;
// CodeLimitExceeded past MaxDropped; CodeRevisionConflict when one of the statements no
// longer exists; those of Store.Update.
func Resolve(ctx context.Context, store Writer, m kg.Meta, keep, drop []kg.Quad) (kg.Receipt, error) {
	switch {
	case len(drop) == 0:
		return kg.Receipt{}, kg.Errorf(kg.CodeInvalid, "drop must have at least one statement").At("drop")
	case len(drop) > MaxDropped:
		return kg.Receipt{}, kg.Errorf(kg.CodeLimitExceeded, "%d statements exceed the limit of %d", len(drop), MaxDropped).At("drop")
	}
	dropped := make(map[kg.Quad]bool, len(drop))
	for _, q := range drop {
		dropped[q] = true
	}
	for _, q := range keep {
		if dropped[q] {
			return kg.Receipt{}, kg.Errorf(kg.CodeInvalid, "a statement cannot be in both keep and drop").At("keep")
		}
	}
	return store.Update(ctx, m, func(tx *kg.Tx) error {
		for field, list := range map[string][]kg.Quad{"keep": keep, "drop": drop} {
			for _, q := range list {
				if err := requireStatement(tx, q); err != nil {
					return kg.AsError(err).At(field)
				}
			}
		}
		for _, q := range drop {
			if err := tx.Apply(kg.Patch{Op: kg.Remove, Quad: q}); err != nil {
				return err
			}
		}
		return nil
	})
}

func requireStatement(tx *kg.Tx, q kg.Quad) error {
	_, found, err := systemgraph.First(tx.Match, kg.Pattern(q))
	if err == nil && !found {
		err = kg.Errorf(kg.CodeRevisionConflict, "one of the statements no longer exists")
	}
	return err
}
