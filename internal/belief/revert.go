package belief

import (
	"bytes"
	"context"
	"slices"

	"koine/kg"
)

// Bounds on what a Reversal tells.
const MaxConflicts = 100

// Writer is the write door of a store, and what is read on the way to it.
type Writer interface {
	Log
	Update(ctx context.Context, m kg.Meta, fn func(*kg.Tx) error) (kg.Receipt, error)
}

// Conflict is a statement that changed after the commit that is to be reverted,
// so that its state from before would undo that as well.
type Conflict struct {
	Quad kg.Quad
	// Now is what backs it as the caller sees it, none when it is gone.
	Now []kg.Assertion
}

// Reversal is what became of a Revert.
type Reversal struct {
	// Conflicts keep the commit from being reverted; there are Total, of which
	// MaxConflicts are listed.
	Conflicts []Conflict
	Total     int
	// Blocked tells that they kept it from being made.
	Blocked bool
	Receipt kg.Receipt
}

// Revert undoes a commit with a new one: every statement that it changed is
// backed again as it was before, by the same sources with their certainty,
// validity and provenance, recorded now. Where a statement is no longer what the
// commit left, nothing is written and the conflicts are told; with force it is
// put back all the same. What a statement has gained from others since stays
// only with force false, because it is a conflict.
//
// The caller needs the right to write every graph that the commit changed, and to
// act for every source that gets an assertion back or loses one; administrators
// need neither. The new commit is judged like any other.
//
// Errors: CodeNotFound for a revision that the caller sees nothing of,
// CodeRevisionGone when the log no longer has it, CodePermissionDenied for one of
// which the caller does not see everything or may not speak for a source,
// CodeReserved for a commit that changed only what is koine's own (where it
// changed that too, as when a proposal is applied, the rest is reverted), those of
// Store.Update.
func Revert(ctx context.Context, store Writer, m kg.Meta, revision kg.Revision, force bool) (*Reversal, error) {
	c, err := store.Commit(ctx, m.Principal, revision)
	if err != nil {
		return nil, err
	}
	whole, err := store.Commit(ctx, kg.SystemPrincipal(), revision)
	if err != nil {
		return nil, err
	}
	if len(claims(c.Changes)) != len(claims(whole.Changes)) {
		return nil, kg.Errorf(kg.CodePermissionDenied, "a commit is reverted as a whole, and this one is more than you may see")
	}
	states := undone(claims(whole.Changes))
	if len(states) == 0 && len(whole.Changes) > 0 {
		return nil, kg.Errorf(kg.CodeReserved, "the commit changed nothing but what is koine's own: that is changed back by its own calls")
	}
	for i := range states {
		if err := states[i].mayBy(&m.Principal); err != nil {
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

// claims are the changes of what is not koine's own.
func claims(changes []kg.Change) []kg.Change {
	return slices.DeleteFunc(slices.Clone(changes), func(c kg.Change) bool { return kg.Reserved(c.Quad) })
}

// undo is a statement with what backed it before a commit and after.
type undo struct {
	quad          kg.Quad
	before, after []kg.Assertion
}

// undone lists the statements of a commit, each once with the state before its
// first change and after its last, in order. Those that it left as they were are
// left out.
func undone(changes []kg.Change) []undo {
	index := map[kg.Quad]int{}
	var list []undo
	for i := range changes {
		c := &changes[i]
		at, seen := index[c.Quad]
		if !seen {
			at = len(list)
			index[c.Quad] = at
			list = append(list, undo{quad: c.Quad, before: c.Before})
		}
		list[at].after = c.After
	}
	return slices.DeleteFunc(list, func(u undo) bool { return sameSaid(u.before, u.after) })
}

// mayBy refuses who may not speak for a source whose assertion comes back or
// goes. Rights in the graph are asked by the store.
func (u *undo) mayBy(by *kg.Principal) error {
	if by.IsAdmin() {
		return nil
	}
	for _, list := range [...][]kg.Assertion{u.before, u.after} {
		for _, a := range list {
			if !by.MayActFor(a.Source) {
				return kg.Errorf(kg.CodePermissionDenied, "the commit is about what %s says, for whom you may not speak", a.Source)
			}
		}
	}
	return nil
}

// says tells whether two assertions say the same, whenever it was recorded.
func says(a, b kg.Assertion) bool {
	return a.Source == b.Source && a.HasCertainty == b.HasCertainty && a.Certainty == b.Certainty && a.Validity.Equal(b.Validity) && bytes.Equal(a.Provenance, b.Provenance)
}

func sameSaid(a, b []kg.Assertion) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(x kg.Assertion) bool {
		return !slices.ContainsFunc(b, func(y kg.Assertion) bool { return says(x, y) })
	})
}

// errConflicts ends an update that would undo more than the commit.
var errConflicts = kg.Errorf(kg.CodeRevisionConflict, "statements of the commit have changed since")

// reverting is the update under way.
type reverting struct {
	states []undo
	force  bool

	conflicts []Conflict
	total     int
}

func (r *reverting) run(tx *kg.Tx) error {
	r.conflicts, r.total = nil, 0
	now := make([][]kg.Assertion, len(r.states))
	for i := range r.states {
		// Everything, also what agents under quarantine say: it stands.
		for st, err := range tx.MatchOwn(kg.Pattern(r.states[i].quad)) {
			if err != nil {
				return err
			}
			now[i] = st.Assertions
		}
		if sameSaid(now[i], r.states[i].after) || sameSaid(now[i], r.states[i].before) {
			continue
		}
		if r.total++; len(r.conflicts) < MaxConflicts {
			told, err := seen(tx, r.states[i].quad)
			if err != nil {
				return err
			}
			r.conflicts = append(r.conflicts, Conflict{r.states[i].quad, told})
		}
	}
	if r.total > 0 && !r.force {
		return errConflicts
	}
	for i := range r.states {
		if err := r.states[i].back(tx, now[i]); err != nil {
			return err
		}
	}
	return nil
}

// seen is what backs a statement as the caller sees it.
func seen(tx *kg.Tx, q kg.Quad) ([]kg.Assertion, error) {
	for st, err := range tx.Match(kg.Pattern(q)) {
		return st.Assertions, err
	}
	return nil, nil
}

// back backs the statement as before.
func (u *undo) back(tx *kg.Tx, now []kg.Assertion) error {
	for _, a := range now {
		if !slices.ContainsFunc(u.before, func(b kg.Assertion) bool { return b.Source == a.Source }) {
			if err := tx.Apply(kg.Patch{Op: kg.Remove, Quad: u.quad, Source: a.Source}); err != nil {
				return err
			}
		}
	}
	for _, a := range u.before {
		if slices.ContainsFunc(now, func(b kg.Assertion) bool { return says(a, b) }) {
			continue // as it is
		}
		p := kg.Patch{Op: kg.Add, Quad: u.quad, Source: a.Source, Certainty: a.Certainty, HasCertainty: a.HasCertainty, Validity: a.Validity, Provenance: a.Provenance}
		apply := tx.Apply
		if m := tx.Meta(); m.Principal.IsAdmin() && !m.Principal.MayActFor(a.Source) {
			apply = tx.ApplyOwn // an administrator gives an agent back what it said
		}
		if err := apply(p); err != nil {
			return err
		}
	}
	return nil
}
