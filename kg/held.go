package kg

import "strings"

// ReasonHeld is the reason of the verdict on a held update.
const ReasonHeld = "Pending Review"

// MaxHeldForBytes bounds what a commit tells about why an update was held.
const MaxHeldForBytes = 4 << 10

// HeldUpdate is an update that was not made, because its verdict is Held.
type HeldUpdate struct {
	Meta Meta
	// Patches are those that the update applied, in order and normalised: to
	// apply them is to make the update.
	Patches []Patch
	Verdict Verdict

	id    string // of what keeps it
	rules uint64 // Options.RulesVersion, of the verdict
}

// Holder keeps held updates, so that somebody can decide about them.
type Holder interface {
	// Hold writes, in a commit of its own and with Tx.ApplyOwn, what is kept of
	// the update, and gives the id under which it is found. It is called under
	// the committer, once for each held update. Where the same is kept already it
	// may write nothing, and give that id. An error refuses the update.
	Hold(tx *Tx, h *HeldUpdate) (id string, err error)
}

// keeps tells whether an update with this verdict is handed to the holder. One
// that comes out of a review already is not held twice.
func (s *Store) keeps(u *update, v Verdict) bool {
	return v.Outcome == Held && s.options.Holder != nil && u.held == nil && !u.patient && u.meta.ProposalID == ""
}

// forOwn is the verdict on an update that changed what is koine's own too: that
// part cannot be kept as patches. Unless the update says what becomes of it
// (Meta.WhenHeld), it is refused where it would be held.
func (v Verdict) forOwn(tx *Tx) Verdict {
	if v.Outcome == Held && tx.own && tx.meta.ProposalID == "" && tx.meta.WhenHeld == nil {
		return Verdict{Outcome: Rejected, Reason: "Needs Review", Details: v.Details}
	}
	return v
}

// heldUpdate is what is kept of an update, nil for one that is not held.
func heldUpdate(u *update, tx *Tx, v Verdict, rules uint64) *HeldUpdate {
	if v.Outcome != Held {
		return nil
	}
	if len(v.Details) > MaxHeldForBytes {
		v.Details = strings.ToValidUTF8(v.Details[:MaxHeldForBytes], "")
	}
	return &HeldUpdate{Meta: u.meta, Patches: tx.patches, Verdict: v, rules: rules}
}

// hold makes the update one that keeps what it would have done. It is not
// judged: what it writes is koine's own.
func (u *update) hold(holder Holder, held *HeldUpdate) {
	u.held, u.judged = held, nil
	u.meta.HasExpected = false // that was looked at before
	u.fn = func(tx *Tx) (err error) {
		held.id, err = holder.Hold(tx, held)
		if err == nil && held.Meta.WhenHeld != nil {
			err = held.Meta.WhenHeld(tx, held.id)
		}
		return err
	}
}
