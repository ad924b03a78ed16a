package erasure

import (
	"slices"

	"koine/kg/internal/base"
)

// Eraser takes out of commits what is erased, one after the other in the order of
// the log, and says of what is left what it now follows on.
type Eraser struct {
	options *EraseOptions
	Changes uint64
	Commits uint64
	// since are the statements of which an assertion was erased, with the revision
	// from which what is left of them has stood: later changes refer to it.
	since map[base.Quad]base.Revision
	// sinceBefore gives that revision for a statement of which the log's head, which was
	// cut, knew more; nil with the whole log.
	sinceBefore func(q base.Quad, at base.Revision) (base.Revision, bool)

	erasedContents

	// Of a cut log: what was erased up to the checkpoint of what graphs hold then, nil from
	// there on; the graphs that were replaced since; the subjects in graphs of which something was erased, and the
	// last changes that are left up to the checkpoint's revision.
	checkpoint   base.Revision
	atCheckpoint *erasedContents
	exchanged    map[base.Term]bool
	pairs        map[[2]base.Term]bool
	last         map[[2]base.Term]base.Revision
}

func NewEraser(o *EraseOptions) *Eraser {
	return &Eraser{erasedContents: *newErasedContents(), exchanged: make(map[base.Term]bool), options: o, since: make(map[base.Quad]base.Revision), pairs: make(map[[2]base.Term]bool), last: make(map[[2]base.Term]base.Revision)}
}

// erasedJustification takes the place of what may have quoted what was erased.
const erasedJustification = "erased"

// Redact takes out of a commit what is erased, and tells whether that was
// anything.
func (x *Eraser) Redact(c *base.Commit) bool {
	if x.atCheckpoint != nil && c.Revision > x.checkpoint {
		x.erasedContents, x.atCheckpoint = *x.atCheckpoint, nil // the log alone does not have all of it
	}
	places := make([]int, len(c.Changes)) // where a change is now; -1 when it is gone
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
	c.ContentHash = [32]byte{} // it is of what was erased too
	x.Changes, x.Commits = x.Changes+touched, x.Commits+1
	return true
}

// relinkChange points a change at where others are now.
func relinkChange(c *base.Change, places []int) {
	if c.ReplacedBy >= 0 {
		c.ReplacedBy = places[c.ReplacedBy]
	}
	c.Replaces = slices.DeleteFunc(slices.Clone(c.Replaces), func(i uint32) bool { return places[i] < 0 })
	for i, at := range c.Replaces {
		c.Replaces[i] = uint32(places[at])
	}
}

// redactChange takes out of one change what is erased. keep tells whether anything is
// left of it, altered whether it is not what it was.
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
		return true, false // the source never had to do with it
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
