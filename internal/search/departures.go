package search

import (
	"slices"
	"sync"

	"koine/internal/textindex"
	"koine/kg"
)

// MaxDepartures bounds the subjects that are remembered because a text of theirs went. A page of
// a match with a text can be followed by the next one as long as they are.
const MaxDepartures = 100_000

// departures remembers the subjects that lost a text, so that they are found in snapshots from
// before. Its methods are safe for concurrent use.
type departures struct {
	mu    sync.Mutex
	since kg.Revision                       // all that lost a text in later commits are in the list
	list  []departure                       // the oldest first
	last  map[textindex.Subject]kg.Revision // the newest departure of each
	count uint64                            // of all texts that went, and of the times when it is not known which
}

type departure struct {
	revision kg.Revision
	subject  textindex.Subject
}

// add notes that a subject loses a text in a commit.
func (d *departures) add(r kg.Revision, subject textindex.Subject) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.count++
	if len(d.list) == MaxDepartures {
		half := len(d.list) / 2
		d.since = d.list[half-1].revision
		for _, x := range d.list[:half] {
			if d.last[x.subject] == x.revision {
				delete(d.last, x.subject)
			}
		}
		d.list = append(d.list[:0], d.list[half:]...)
	}
	if n := len(d.list); n > 0 {
		r = max(r, d.list[n-1].revision) // after an interruption commits are read again
	}
	if d.last == nil {
		d.last = map[textindex.Subject]kg.Revision{}
	}
	d.list, d.last[subject] = append(d.list, departure{r, subject}), r
}

// forget notes that texts which are not known have gone up to a revision.
func (d *departures) forget(r kg.Revision) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.since, d.list, d.last = max(d.since, r), nil, nil
	d.count++
}

// after returns the subjects that lost a text after a revision, in their order, and false if they are not
// all known.
func (d *departures) after(r kg.Revision) (list []textindex.Subject, known bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	first, _ := slices.BinarySearchFunc(d.list, r+1, func(x departure, r kg.Revision) int {
		if x.revision < r {
			return -1
		}
		return 1
	})
	for _, x := range d.list[first:] {
		list = append(list, x.subject)
	}
	slices.SortFunc(list, textindex.Subject.Compare)
	return slices.Compact(list), d.since <= r
}

// hasLost reports whether a subject lost a text after a revision, and false if that is not known.
func (d *departures) hasLost(subject textindex.Subject, r kg.Revision) (lost, known bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.last[subject] > r, d.since <= r
}

// total returns a number that grows when texts go.
func (d *departures) total() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.count
}
