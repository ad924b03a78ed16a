package erasure

import (
	"slices"

	"koine/kg/base"
)

// Eraser removes erased content from commits, one after the other in the order of the log,
// and updates the references of the remaining changes. It belongs to one goroutine.
type Eraser struct {
	options *EraseOptions
	Changes uint64
	Commits uint64
	// since maps each statement with an erased assertion to the revision from which on its
	// rest existed. Later changes refer to it.
	since map[base.Quad]base.Revision
	// sinceBefore returns that revision from the checkpoint before a trimmed log; nil if
	// the log is complete.
	sinceBefore func(q base.Quad, at base.Revision) (base.Revision, bool)

	erasedContents

	// For a trimmed log: the revision of the checkpoint; the content erased from graphs up
	// to it, nil once it has been applied; the graphs replaced after it; the subjects with
	// erased content, by graph; and their last remaining changes up to the checkpoint.
	checkpoint   base.Revision
	atCheckpoint *erasedContents
	exchanged    map[base.Term]bool
	pairs        map[[2]base.Term]bool
	last         map[[2]base.Term]base.Revision
}

// NewEraser returns an Eraser for valid options.
func NewEraser(o *EraseOptions) *Eraser {
	return &Eraser{erasedContents: *newErasedContents(), exchanged: make(map[base.Term]bool), options: o, since: make(map[base.Quad]base.Revision), pairs: make(map[[2]base.Term]bool), last: make(map[[2]base.Term]base.Revision)}
}

// erasedJustification replaces justifications, which may quote erased content.
const erasedJustification = "erased"

// Redact removes erased content from a commit and reports whether the commit changed.
func (x *Eraser) Redact(c *base.Commit) bool {
	if x.atCheckpoint != nil && c.Revision > x.checkpoint {
		x.erasedContents, x.atCheckpoint = *x.atCheckpoint, nil // a trimmed log lacks the earlier commits
	}
	places := make([]int, len(c.Changes)) // new index of each change; -1 if it was removed
	kept := make([]base.Change, 0, len(c.Changes))
	touched := uint64(0)
	for i := range c.Changes {
		ch := c.Changes[i]
		keep, altered := x.redactChange(&ch, c.Revision)
		if altered {
			x.countErased(&c.Changes[i], &ch, keep)
		}
		pair := [2]base.Term{ch.Quad.Graph, ch.Quad.Subject}
		if altered {
			touched++
			x.pairs[pair] = true
		}
		if keep && c.Revision <= x.checkpoint {
			x.last[pair] = c.Revision
		}
		places[i] = -1
		if keep {
			places[i] = len(kept)
			kept = append(kept, ch)
		}
	}
	generation := x.redactGeneration(c)
	replaced := x.redactReplacement(c)
	if touched += generation; touched == 0 {
		return replaced
	}
	for i := range kept {
		relinkChange(&kept[i], places)
	}
	c.Changes = kept
	if c.Justification != "" {
		c.Justification = erasedJustification
	}
	c.ContentHash = [32]byte{} // it covers erased content
	x.Changes, x.Commits = x.Changes+touched, x.Commits+1
	return true
}

// relinkChange updates the indexes of related changes.
func relinkChange(c *base.Change, places []int) {
	if c.ReplacedBy >= 0 {
		c.ReplacedBy = places[c.ReplacedBy]
	}
	c.Replaces = slices.DeleteFunc(slices.Clone(c.Replaces), func(i uint32) bool { return places[i] < 0 })
	for i, at := range c.Replaces {
		c.Replaces[i] = uint32(places[at])
	}
}

// redactChange removes erased content from one change. keep reports whether anything
// remains, altered whether the change differs.
func (x *Eraser) redactChange(c *base.Change, r base.Revision) (keep, altered bool) {
	if !x.options.matches(&c.Quad) {
		return true, false
	}
	if x.options.Source == "" {
		return false, true
	}
	before, after := base.WithoutSource(c.Before, x.options.Source), base.WithoutSource(c.After, x.options.Source)
	since, tracked := x.since[c.Quad]
	if !tracked && len(before) == len(c.Before) && len(after) == len(c.After) {
		return true, false // the source never asserted it
	}
	if !tracked {
		since = c.Since
		if s, ok := x.stoodBefore(c.Quad, r); ok {
			since = s
		}
	}
	if base.EqualAssertions(before, after) {
		x.since[c.Quad] = since
		return false, true
	}
	x.since[c.Quad] = r
	altered = len(before) != len(c.Before) || len(after) != len(c.After) || len(before) > 0 && since != c.Since
	c.Before, c.After, c.Since = before, after, since
	if len(before) == 0 {
		c.Since = 0
	}
	if c.Op == base.Remove && len(after) == 0 {
		c.Assertion = before[0]
	}
	return true, altered
}
