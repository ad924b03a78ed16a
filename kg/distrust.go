package kg

import "time"

// Doubts are the agents whose assertions do not count, each with the time from
// which on: what it recorded then or later is not there for any read. Nil for
// nobody; not changed once it is given out.
type Doubts map[AgentID]time.Time

// Hide tells whether the assertion is one that does not count.
func (d Doubts) Hide(a *Assertion) bool {
	since, doubted := d[a.Source]
	return doubted && !a.Time.Before(since)
}

// Distrust knows whose assertions do not count. The newest doubts decide, also
// for reads of the past and of the log. They are about what agents say of the
// world: koine's own graphs (policies, proposals, records of agents) are not a
// matter of belief, and stay as they are. Nothing is removed: who is trusted again
// is read again. It must be fast and safe for concurrent use.
type Distrust interface {
	// Doubted is asked once for each read, and for each assertion that a watcher
	// looks at.
	Doubted() Doubts
	// DoubtsChanged tells whether they changed in a commit behind the revision, and
	// up to which revision that is the answer, which is not before after. It is
	// asked at every commit that a watcher looks at.
	DoubtsChanged(after Revision) (changed bool, upTo Revision)
}

// trustAll is the Distrust of a store without any.
type trustAll struct{}

func (trustAll) Doubted() Doubts                               { return nil }
func (trustAll) DoubtsChanged(after Revision) (bool, Revision) { return false, after }

// visible gives the assertions of a statement in the graph that the view admits.
func (s *Snapshot) visible(graph ID, all []Assertion) []Assertion {
	if s.view.doubts != nil {
		if t, err := s.dict.term(graph); err == nil && IsOwnGraph(t) {
			trusting := s.view
			trusting.doubts = nil
			return trusting.visible(all)
		}
	}
	return s.view.visible(all)
}

// doubted tells whether a watcher leaves the assertion out for the doubts of the
// moment.
func (f *sight) doubted(graph Term, a *Assertion) bool {
	doubts := f.distrust.Doubted()
	return doubts != nil && doubts.Hide(a) && !IsOwnGraph(graph)
}

// doubting fills in whose assertions the view leaves out.
func (v *View) doubting(d Distrust) error {
	v.doubts = nil
	if !v.Doubted {
		v.doubts = d.Doubted()
		return nil
	}
	if !v.Principal.IsAdmin() {
		return Errorf(CodePermissionDenied, "only administrators see what agents under quarantine said")
	}
	return nil
}
