package kg

import "iter"

// Commits yields what Events does, but the events of one commit together: a
// commit is atomic. Of one in the middle of which the watcher starts it yields
// those behind the start. It takes the place of Events.
func (w *Watcher) Commits() iter.Seq2[[]Event, error] {
	return func(yield func([]Event, error) bool) {
		err := w.read(func(r Revision) (more bool, err error) {
			c, from, err := w.look(r)
			if err != nil {
				return false, err
			}
			if w.filter.touches(c) {
				return false, w.replaced(c, from, func(e *Event) bool { return yield([]Event{*e}, nil) })
			}
			var events []Event
			w.eachEvent(c, from, func(e *Event) bool {
				events = append(events, *e)
				return true
			})
			if err := w.filter.broken(w.s); err != nil {
				return false, err
			}
			if len(events) > 0 && !yield(events, nil) {
				return false, nil
			}
			w.moveTo(Position{w.s.dir.epoch, r, EndOfCommit})
			return true, nil
		})
		if err != nil {
			ended(yield, err)
		}
	}
}

// Refilter makes the watcher go on with another filter, from behind the commit
// that the loop over Commits is at: only there it may be called. Nothing that
// fits the new filter is missed. It fails as Watch does, and then the watcher
// goes on with the filter that it has.
func (w *Watcher) Refilter(f Filter) error {
	seen, err := f.ready(w.s)
	if err != nil {
		return err
	}
	seen.followed, seen.known = w.filter.followed, w.filter.known
	known, err := w.s.tailer.refilter(w, seen)
	if err != nil {
		return err
	}
	// What came meanwhile was matched with the old filter.
	w.known = max(w.known, known)
	return nil
}
