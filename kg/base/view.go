package base

import (
	"slices"
	"time"
)

// View states the conditions of a read: the principal, the revision, and bounds on graphs and
// assertions. The zero View reads the newest revision as the anonymous caller.
type View struct {
	Principal Principal
	// At is the revision to read; 0 means the newest.
	At Revision
	// AtStart reads revision 0, the store before its first commit, which retention never
	// removes. At is 0.
	AtStart bool
	// Graphs restricts the read to these graphs (DefaultGraph is one). Nil
	// means all readable graphs but koine's own, AllGraphs those as well.
	Graphs    []Term
	AllGraphs bool
	// IncludePending adds, if Graphs is nil, the statements that proposals under review
	// would add, as far as the principal may read the proposals.
	IncludePending bool
	WithoutPending bool // AllGraphs excludes pending graphs as well
	// MinCertainty admits only assertions with at least this certainty; one
	// without a certainty counts as 1. 0 admits all.
	MinCertainty float64
	// MaxAge admits only assertions recorded at most this long before Now.
	// 0 admits all.
	MaxAge time.Duration
	// Recorded admits only assertions that were recorded in this span of time.
	// The zero span admits all.
	Recorded TimeSpan
	// ValidAt admits only assertions that are valid at this time: see
	// Assertion.Validity. The zero time admits all.
	ValidAt time.Time
	// Now is the evaluation time for MaxAge; zero means the time at which the
	// snapshot is taken.
	Now time.Time
	// Believed admits only assertions of these sources. Nil admits all.
	Believed []AgentID
	// Doubted admits also assertions of agents under quarantine, which otherwise
	// are not there (see Distrust). Only administrators may set it.
	Doubted bool

	Doubts Doubts // set where the view is read
}

// MaxBelieved bounds the sources in a view.
const MaxBelieved = 1024

// AdmitsAll reports whether the view shows every assertion of a statement.
func (v *View) AdmitsAll() bool {
	return v.MinCertainty <= 0 && v.MaxAge == 0 && v.Believed == nil && v.Recorded.IsZero() && v.ValidAt.IsZero() && v.Doubts == nil
}

// Admits reports whether the view shows the assertion.
func (v *View) Admits(a Assertion) bool {
	if a.EffectiveCertainty() < v.MinCertainty || v.Doubts.Excludes(&a) {
		return false
	}
	if v.MaxAge > 0 && a.Time.Before(v.Now.Add(-v.MaxAge)) {
		return false
	}
	if !v.Recorded.Contains(a.Time) {
		return false
	}
	if !v.ValidAt.IsZero() && !a.Validity.Contains(v.ValidAt) {
		return false
	}
	if v.Believed != nil {
		for _, b := range v.Believed {
			if a.Source == b {
				return true
			}
		}
		return false
	}
	return true
}

// Visible returns the assertions that the view admits. It allocates only if some are left
// out.
func (v *View) Visible(all []Assertion) []Assertion {
	if v.AdmitsAll() {
		return all
	}
	for i, a := range all {
		if v.Admits(a) {
			continue
		}
		out := append([]Assertion(nil), all[:i]...)
		for _, b := range all[i+1:] {
			if v.Admits(b) {
				out = append(out, b)
			}
		}
		return out
	}
	return all
}

// Valid returns an error if a view from outside is invalid.
func (v *View) Valid() error {
	if !(v.MinCertainty >= 0 && v.MinCertainty <= 1) {
		return Errorf(CodeInvalid, "a certainty is between 0 and 1, not %v", v.MinCertainty)
	}
	if v.AtStart && v.At != 0 {
		return Errorf(CodeInvalid, "a view of the start is of revision 0, not %d", v.At)
	}
	if v.MaxAge < 0 {
		return Errorf(CodeInvalid, "an age cannot be negative")
	}
	if n := len(v.Believed); n > MaxBelieved {
		return Errorf(CodeLimitExceeded, "%d believed agents are more than the %d that a view may name", n, MaxBelieved)
	}
	if r := v.Recorded; !r.Until.IsZero() && r.Until.Before(r.From) {
		return Errorf(CodeInvalid, "a span of time cannot end before it begins")
	}
	return nil
}

// Shows reports whether the view includes the graph.
func (v *View) Shows(graph Term) bool {
	switch {
	case v.Graphs != nil:
		return slices.Contains(v.Graphs, graph)
	case v.AllGraphs:
		return !v.WithoutPending || !IsPendingGraph(graph)
	}
	return !IsOwnGraph(graph) || v.IncludePending && IsPendingGraph(graph)
}
