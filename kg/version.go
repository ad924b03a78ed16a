package kg

import (
	"iter"
	"slices"

	"koine/kg/internal/keys"
)

// Version is a statement as it stood from one revision until another: always
// shown, and by the same assertions.
type Version struct {
	Row
	// From is the revision in which it began to stand like this. To is the
	// first in which it no longer did; 0 when it still does at the revision that
	// the snapshot reads.
	From, To Revision
}

// StandsAt tells whether the version is the one of that revision, which must
// not be newer than the snapshot's.
func (v *Version) StandsAt(r Revision) bool { return v.From <= r && (v.To == 0 || r < v.To) }

// Versions yields the past and the present of the statements that fit the
// pattern, as far as access and view admit: each version of each, those of one
// statement together and the oldest first, the statements in the order of
// MatchIDs. What was changed twice in one commit has no version between. It is
// read from the index of the past: it costs what it yields, and does not need
// the log. With after, it starts behind that statement.
func (s *Snapshot) Versions(p IDPattern, after *IDQuad) iter.Seq2[Version, error] {
	if s.generations != nil {
		return s.versionsOfGenerations(p, after)
	}
	return func(yield func(Version, error) bool) {
		sc := newVersionScanner(s, IDQuad(p), after)
		defer sc.close()
		var held Version // may go on with the next row
		for sc.next() {
			v := s.version(sc.row)
			if held.From != 0 && held.continues(&v) {
				held.To = v.To
				continue
			}
			if held.From != 0 && !yield(held, nil) {
				return
			}
			held = v
		}
		if sc.err != nil {
			yield(Version{}, sc.err)
		} else if held.From != 0 {
			yield(held, nil)
		}
	}
}

// version is what a row of a version scanner says of its time. What ended only
// after the revision that is read stands.
func (s *Snapshot) version(row Row) Version {
	v := Version{Row: row, From: row.from, To: row.to}
	if v.To > s.position.Revision {
		v.To = 0
	}
	return v
}

// continues tells whether next is the same statement with the same assertions,
// from where v ends: what changed between is not shown, or was undone in the same
// commit.
func (v *Version) continues(next *Version) bool {
	return v.IDQuad == next.IDQuad && v.To == next.From && sameShown(v.shown, next.shown)
}

// sameShown tells whether the assertions of two versions of one statement are the
// same.
func sameShown(a, b []Assertion) bool {
	return slices.EqualFunc(a, b, func(a, b Assertion) bool {
		return a.Source == b.Source && a.Revision == b.Revision
	})
}

// newVersionScanner walks all intervals of the past that began by the revision
// that is read, and what stands.
func newVersionScanner(s *Snapshot, pattern IDQuad, after *IDQuad) *scanner {
	sc := &scanner{s: s, pattern: pattern, after: after, states: true, versions: true}
	sc.start()
	return sc
}

// takeVersion is takePast of a walk over versions.
func (sc *scanner) takeVersion(q IDQuad, from, to uint64) bool {
	if from > uint64(sc.s.position.Revision) || !keys.Matches(sc.pattern, q) || !sc.admits(&q) || sc.forgotten(sc.name, to) {
		return false
	}
	sc.row = Row{IDQuad: q, from: Revision(from), to: Revision(to)}
	return sc.decode(sc.past, sc.order == keys.SPOG) && sc.err == nil
}
