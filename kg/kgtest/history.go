package kgtest

import (
	"fmt"
	"slices"

	"github.com/google/go-cmp/cmp"

	"koine/kg"
)

// History is the recording of one watcher.
type History struct {
	// From is the position at which the watcher started.
	From   kg.Position
	Events []kg.Event
}

// Ordered checks that events are in the order of their positions, that each belongs to the commit
// that its position names, and that time does not go back.
func Ordered(h History) error {
	last := h.From
	for i, e := range h.Events {
		switch {
		case e.Commit == nil:
			return fmt.Errorf("event %d at %s has no commit", i, positionText(e.Position))
		case e.Commit.Revision != e.Position.Revision:
			return fmt.Errorf("event %d at %s is said to be of commit %d", i, positionText(e.Position), e.Commit.Revision)
		case e.Position.Epoch != h.From.Epoch:
			return fmt.Errorf("event %d at %s is of another log", i, positionText(e.Position))
		case e.Position.Compare(last) < 0:
			return fmt.Errorf("event %d at %s comes after %s", i, positionText(e.Position), positionText(last))
		case i > 0 && e.Commit.Time.Before(h.Events[i-1].Commit.Time):
			return fmt.Errorf("event %d at %s is older than the one before it", i, positionText(e.Position))
		}
		last = e.Position
	}
	return nil
}

// Unique checks that no change is delivered twice, neither by itself nor among the removals of a
// replace, and that nothing before the start is delivered.
func Unique(h History) error {
	told := map[change]bool{}
	for i, e := range h.Events {
		if e.Position.Compare(h.From) <= 0 {
			return fmt.Errorf("event %d at %s does not lie behind the start %s", i, positionText(e.Position), positionText(h.From))
		}
		for _, c := range coveredChanges(e) {
			if told[c] {
				return fmt.Errorf("event %d at %s tells change %d of the commit again", i, positionText(e.Position), c.index)
			}
			told[c] = true
		}
	}
	return nil
}

// Gapless checks, for a watcher without a filter, that between the start and the last event every
// commit with changes is delivered. log has the commits from revision 1 on.
func Gapless(h History, log []*kg.Commit) error {
	if len(h.Events) == 0 {
		return nil
	}
	told := map[kg.Revision]bool{}
	for _, e := range h.Events {
		told[e.Position.Revision] = true
	}
	last := h.Events[len(h.Events)-1].Position.Revision
	for _, c := range log {
		expected := len(c.Changes) > 0 && !isBehind(c, len(c.Changes)-1, h.From) && c.Revision <= last
		if expected && !told[c.Revision] {
			return fmt.Errorf("nothing is told of commit %d", c.Revision)
		}
	}
	return nil
}

// Atomic checks, for a watcher without a filter, that the events of one commit are contiguous and
// deliver every change behind the start.
func Atomic(h History, log []*kg.Commit) error {
	done := map[kg.Revision]bool{}
	for i := 0; i < len(h.Events); {
		revision := h.Events[i].Position.Revision
		if done[revision] {
			return fmt.Errorf("commit %d is told in two parts", revision)
		}
		done[revision] = true
		if revision == 0 || int(revision) > len(log) {
			return fmt.Errorf("there is no commit %d", revision)
		}
		told := map[change]bool{}
		for ; i < len(h.Events) && h.Events[i].Position.Revision == revision; i++ {
			for _, c := range coveredChanges(h.Events[i]) {
				told[c] = true
			}
		}
		for index := range log[revision-1].Changes {
			if !isBehind(log[revision-1], index, h.From) && !told[change{revision, index}] {
				return fmt.Errorf("change %d of commit %d is not told", index, revision)
			}
		}
	}
	return nil
}

// Resumable checks that a watcher which stops anywhere, even inside a commit, and resumes from the
// position of its last event receives exactly the rest. resume watches from a position until it has
// n events. About tries cuts are made, spread over the history.
func Resumable(h History, tries int, resume func(from kg.Position, n int) ([]kg.Event, error)) error {
	step := max(1, (len(h.Events)+1)/max(1, tries))
	for cut := 0; cut < len(h.Events); cut += step {
		from := h.From
		if cut > 0 {
			from = h.Events[cut-1].Position
		}
		rest, err := resume(from, len(h.Events)-cut)
		if err != nil {
			return fmt.Errorf("resuming behind %s: %w", positionText(from), err)
		}
		if diff := cmp.Diff(eventLines(h.Events[cut:]), eventLines(rest)); diff != "" {
			return fmt.Errorf("resuming behind %s tells something else (-whole +resumed):\n%s", positionText(from), diff)
		}
	}
	return nil
}

// Filtered checks that the events are exactly those of the model for the filter.
func Filtered(h History, m *Model, f kg.Filter) error {
	if diff := cmp.Diff(eventLines(m.Events(f, h.From)), eventLines(h.Events)); diff != "" {
		return fmt.Errorf("the events are not those of the filter (-want +got):\n%s", diff)
	}
	return nil
}

type change struct {
	revision kg.Revision
	index    int
}

// coveredChanges returns the changes that an event delivers.
func coveredChanges(e kg.Event) []change {
	index := int(e.Position.Index)
	if e.Position.Index == kg.EndOfCommit && e.Commit != nil {
		index = len(e.Commit.Changes) - 1
	}
	out := []change{{e.Position.Revision, index}}
	if e.Op != kg.Replace || e.Commit == nil || index >= len(e.Commit.Changes) {
		return out
	}
	for _, r := range e.Commit.Changes[index].Replaces {
		gone := e.Commit.Changes[r]
		if slices.ContainsFunc(e.Previous, func(s kg.Statement) bool { return s.Quad == gone.Quad }) {
			out = append(out, change{e.Position.Revision, int(r)})
		}
	}
	return out
}

func positionText(p kg.Position) string {
	if p.Index == kg.EndOfCommit {
		return fmt.Sprintf("%d.end", p.Revision)
	}
	return fmt.Sprintf("%d.%d", p.Revision, p.Index)
}
