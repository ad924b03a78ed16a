package shapes

import (
	"context"

	"koine/kg"
)

// Bounds of a report.
const (
	DefaultReported = 100
	MaxReported     = 1_000
	// maxRemembered is after how many lookups a report forgets what it read.
	maxRemembered = 100_000
)

// ReportOptions say what a report lists.
type ReportOptions struct {
	Limit  int     // findings; 0 is DefaultReported
	Shape  kg.Term // only of this one; zero for all
	Budget Budget
}

// Report is what a snapshot holds against the shapes (a sh:ValidationReport).
type Report struct {
	// Conforms tells that nothing was found in all that was judged.
	Conforms bool
	// Complete tells that all was judged and all findings are listed. Otherwise
	// the limit or the budget ended the report.
	Complete bool
	Findings []Finding
	// Judged counts the targets.
	Judged int
	// LeftOut counts what of the shapes is not judged.
	LeftOut int
}

// Report judges all targets in the snapshot, as its view shows them.
func (s *Set) Report(ctx context.Context, snapshot *kg.Snapshot, o ReportOptions) (*Report, error) {
	return s.current().report(ctx, snapshot, o)
}

// Validate judges by shapes that are not kept, if all of them can be judged.
func Validate(ctx context.Context, snapshot *kg.Snapshot, shapes []kg.Quad, o ReportOptions) (*Report, error) {
	compiled, err := compileWhole(documentOf(shapes))
	if err != nil {
		return nil, err
	}
	return compiled.report(ctx, snapshot, o)
}

func (s *set) report(ctx context.Context, snapshot *kg.Snapshot, o ReportOptions) (*Report, error) {
	if o.Limit == 0 {
		o.Limit = DefaultReported
	}
	if o.Limit < 0 || o.Limit > MaxReported {
		return nil, tooMuch("a report lists at most %d findings", MaxReported)
	}
	r := &Report{Complete: true, LeftOut: len(s.issues)}
	v := newView(snapshot, newMeter(ctx, o.Budget))
	found := o.Shape.IsZero()
	for _, root := range s.roots {
		if !o.Shape.IsZero() && root.id != o.Shape {
			continue
		}
		found = true
		if err := r.judge(v, root, o.Limit); kg.CodeOf(err) == kg.CodeJudgeLimit {
			r.Complete = false
			break
		} else if err != nil {
			return nil, err
		}
		if !r.Complete {
			break
		}
	}
	if !found {
		return nil, kg.Errorf(kg.CodeNotFound, "there is no shape %s with targets", o.Shape)
	}
	r.Conforms = len(r.Findings) == 0
	return r, nil
}

// judge adds what the targets of a shape violate.
func (r *Report) judge(v *view, root *shape, limit int) error {
	targets, err := root.targets.all(v)
	if err != nil {
		return err
	}
	for _, node := range targets {
		if len(v.known)+len(v.all)+v.conforming.size() > maxRemembered {
			clear(v.known)
			clear(v.all)
			v.conforming = newFixpoint(true)
		}
		r.Judged++
		err := root.collect(v, node, func(f finding) bool {
			if len(r.Findings) == limit {
				r.Complete = false
				return false
			}
			r.Findings = append(r.Findings, f.public(root, node))
			return true
		})
		if err != nil || !r.Complete {
			return err
		}
	}
	return nil
}

// all lists the targets that there are.
func (t *targets) all(v *view) ([]kg.Term, error) {
	var out nodes
	out.add(t.nodes)
	if len(t.classes) > 0 {
		instances := sequence{upward.back(), link{rdfType, true}}
		list, err := instances.from(v, t.classes)
		if err != nil {
			return nil, err
		}
		out.add(list)
	}
	for i, properties := range [...][]kg.Term{t.subjectsOf, t.objectsOf} {
		for _, p := range properties {
			list, err := v.ends(p, i == 1)
			if err != nil {
				return nil, err
			}
			out.add(list)
		}
	}
	return out.list, nil
}
