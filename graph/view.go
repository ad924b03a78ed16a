package graph

import (
	"math"
	"slices"
	"time"

	"koine/kg"
)

// fieldView returns the view of a field: the request's view, narrowed by the
// field's own argument (docs/reference/knowledge.md).
func (r *run) fieldView(v *ViewInput) (kg.View, error) {
	view := r.request.View
	view.Principal = r.request.Principal
	if v == nil {
		return view, view.Valid()
	}
	if v.At != nil {
		at, err := r.resolveReadable(*v.At)
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
		span := kg.TimeSpan{From: orZero(v.RecordedAt.From), Until: orZero(v.RecordedAt.Until)}
		if err := (&kg.View{Recorded: span}).Valid(); err != nil {
			return view, kg.AsError(err).At("view.recordedAt")
		}
		view.Recorded = view.Recorded.Intersect(span)
	}
	if deref(v.IncludeQuarantined) {
		view.Doubted = true
	}
	if v.ValidAt != nil {
		at := v.ValidAt.UTC()
		if !view.ValidAt.IsZero() && !view.ValidAt.Equal(at) {
			return view, kg.Errorf(kg.CodeInvalid, "the request reads the validity at %s: its fields cannot read another time", formatTime(view.ValidAt)).At("view.validAt")
		}
		view.ValidAt = at
	}
	if deref(v.IncludePending) && view.Graphs == nil {
		view.IncludePending = true
	}
	if v.BelievedBy != nil {
		narrowBelieved(&view, v.BelievedBy)
	}
	return view, view.Valid()
}

// orZero returns a time in UTC, so that equal views compare equal; the zero
// time for nil.
func orZero(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
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
	if v.AllGraphs != nil && *v.AllGraphs && view.Graphs == nil {
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
