// Package views makes the view that a field shows: that of the request, narrowed by
// the argument `view` (Narrow). The ids of entities and statements contain the view in
// which they were shown (IDs, ParseNodeID).
package views

import (
	"math"
	"slices"
	"time"

	"koine/graph/internal/scalar"
	"koine/kg"
)

// ViewInput narrows the view of the request, as the argument `view` of a field. An
// absent member narrows nothing.
type ViewInput struct {
	// The moment to read at.
	At *kg.Moment
	// Only these graphs; null is the default graph. System graphs are included if they are listed.
	Graphs []*kg.Term
	// All graphs that you may read, including system graphs.
	AllGraphs *bool
	// Only assertions with at least this certainty, from 0 to 1. An assertion without one counts as 1.
	MinCertainty *float64
	// Only assertions recorded at most this many seconds ago.
	MaxAgeSeconds *int64
	// Only assertions recorded in this time span.
	RecordedAt *TimeSpanInput
	// Read at this revision or a newer one, as returned by `applyPatches`: the operation waits for it for a few seconds.
	MinRevision *kg.Revision
	// Only assertions valid at this time, past or future: see `Assertion.validFrom`.
	ValidAt *time.Time
	// Only assertions of these agents, at most 1024.
	BelievedBy []string
	// Include the statements of proposals under review that you may read; `Statement.pending` marks them.
	IncludePending *bool
	// Include assertions of agents under quarantine. For administrators.
	IncludeQuarantined *bool
}

// TimeSpanInput is a time span. Without From it has no beginning, without Until no end.
type TimeSpanInput struct {
	// The inclusive beginning.
	From *time.Time
	// The exclusive end.
	Until *time.Time
}

// Narrow returns the view of a field: the request's view, narrowed by the
// field's own argument (docs/reference/knowledge.md). resolve returns the revision
// of a moment.
func Narrow(view kg.View, v *ViewInput, resolve func(kg.Moment) (kg.Revision, error)) (kg.View, error) {
	if v == nil {
		return view, view.Valid()
	}
	if v.At != nil {
		at, err := resolve(*v.At)
		if err != nil {
			return view, kg.AsError(err).At("view.at")
		}
		if view.At != 0 && view.At != at {
			return view, kg.Errorf(kg.CodeInvalid, "the request reads revision %d: its fields cannot read revision %d", view.At, at).At("view.at")
		}
		view.At = at
	}
	narrowGraphs(&view, v)
	if v.MinCertainty != nil {
		if !(*v.MinCertainty >= 0 && *v.MinCertainty <= 1) {
			return view, kg.Errorf(kg.CodeInvalid, "minCertainty must be between 0 and 1, not %v", *v.MinCertainty).At("view.minCertainty")
		}
		view.MinCertainty = max(view.MinCertainty, *v.MinCertainty)
	}
	if v.MaxAgeSeconds != nil {
		age, err := maxAge(*v.MaxAgeSeconds)
		if err != nil {
			return view, err
		}
		if view.MaxAge == 0 || age < view.MaxAge {
			view.MaxAge = age
		}
	}
	if v.RecordedAt != nil {
		span := v.RecordedAt.span()
		if err := (&kg.View{Recorded: span}).Valid(); err != nil {
			return view, kg.AsError(err).At("view.recordedAt")
		}
		view.Recorded = view.Recorded.Intersect(span)
	}
	if isTrue(v.IncludeQuarantined) {
		view.Doubted = true
	}
	if v.ValidAt != nil {
		at := v.ValidAt.UTC()
		if !view.ValidAt.IsZero() && !view.ValidAt.Equal(at) {
			return view, kg.Errorf(kg.CodeInvalid, "the request reads the validity at %s: its fields cannot read another time", scalar.FormatTime(view.ValidAt)).At("view.validAt")
		}
		view.ValidAt = at
	}
	if isTrue(v.IncludePending) && view.Graphs == nil {
		view.IncludePending = true
	}
	if v.BelievedBy != nil {
		narrowBelieved(&view, v.BelievedBy)
	}
	return view, view.Valid()
}

// maxAge converts seconds to an age. 0 seconds becomes the shortest age,
// because an age of 0 in a kg.View means any age.
func maxAge(seconds int64) (time.Duration, error) {
	if seconds < 0 {
		return 0, kg.Errorf(kg.CodeInvalid, "maxAgeSeconds must not be negative").At("view.maxAgeSeconds")
	}
	if seconds > math.MaxInt64/int64(time.Second) {
		return math.MaxInt64, nil
	}
	return max(time.Duration(seconds)*time.Second, 1), nil
}

// narrowGraphs intersects the graphs. System graphs are shown only if they are
// named, which a request without graphs allows.
func narrowGraphs(view *kg.View, v *ViewInput) {
	if isTrue(v.AllGraphs) && view.Graphs == nil {
		view.AllGraphs = true
	}
	if v.Graphs == nil {
		return
	}
	named := make([]kg.Term, 0, len(v.Graphs))
	for _, g := range v.Graphs {
		t := kg.DefaultGraph
		if g != nil {
			t = *g
		}
		if view.Graphs == nil || slices.Contains(view.Graphs, t) {
			named = append(named, t)
		}
	}
	view.Graphs = named
}

func narrowBelieved(view *kg.View, agents []string) {
	believed := make([]kg.AgentID, 0, len(agents))
	for _, a := range agents {
		id := kg.CanonicalAgent(a)
		if view.Believed == nil || slices.Contains(view.Believed, id) {
			believed = append(believed, id)
		}
	}
	view.Believed = believed
}

// span returns the span in UTC, so that equal views compare equal.
func (t *TimeSpanInput) span() (s kg.TimeSpan) {
	if t.From != nil {
		s.From = t.From.UTC()
	}
	if t.Until != nil {
		s.Until = t.Until.UTC()
	}
	return s
}

func isTrue(b *bool) bool { return b != nil && *b }
