package shapes

import (
	"context"

	"koine/kg"
)

// Limits of a report.
const (
	DefaultReported = 100
	MaxReported     = 1_000
	// maxRemembered is the number of lookups after which a report drops its cache.
	maxRemembered = 100_000
)

// ReportOptions selects the findings of a report.
type ReportOptions struct {
	Limit  int     // largest number of findings; 0 is DefaultReported
	Shape  kg.Term // restricts the report to one shape; zero for all
	Budget Budget
}

// Report is the result of validating a snapshot (a sh:ValidationReport).
type Report struct {
	// Conforms reports that nothing was found in the validated part.
	Conforms bool
	// Complete reports that everything was validated and all findings are listed.
	// Otherwise the limit or the budget ended the report.
	Complete bool
	Findings []Finding
	// Judged is the number of validated targets.
	Judged int
	// LeftOut is the number of omitted parts of the shapes.
	LeftOut int
}

// Report validates all targets in the snapshot's view.
func (s *Set) Report(ctx context.Context, snapshot *kg.Snapshot, o ReportOptions) (*Report, error) {
	return s.currentSet().reportOn(ctx, snapshot, o)
}

// Validate validates with shapes that are not stored. All of them must be supported.
func Validate(ctx context.Context, snapshot *kg.Snapshot, shapes []kg.Quad, o ReportOptions) (*Report, error) {
	compiled, err := compileWhole(documentOf(shapes))
	if err != nil {
		return nil, err
	}
	return compiled.reportOn(ctx, snapshot, o)
}

func (s *shapeSet) reportOn(ctx context.Context, snapshot *kg.Snapshot, o ReportOptions) (*Report, error) {
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
		if err := r.validateTargets(v, root, o.Limit); kg.CodeOf(err) == kg.CodeJudgeLimit {
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
		return nil, kg.Errorf(kg.CodeNotFound, "shape %s not found, or it has no targets", o.Shape)
	}
	r.Conforms = len(r.Findings) == 0
	return r, nil
}

// validateTargets adds the violations of a shape by its targets.
func (r *Report) validateTargets(v *dataView, root *shape, limit int) error {
	targets, err := root.targets.allTargets(v)
	if err != nil {
		return err
	}
	for _, node := range targets {
		if len(v.links)+len(v.all)+v.conforming.size() > maxRemembered {
			clear(v.links)
			clear(v.all)
			v.conforming = newFixpoint(true)
		}
		r.Judged++
		err := root.collectFindings(v, node, func(f finding) bool {
			if len(r.Findings) == limit {
				r.Complete = false
				return false
			}
			r.Findings = append(r.Findings, f.export(root, node))
			return true
		})
		if err != nil || !r.Complete {
			return err
		}
	}
	return nil
}

func (t *targets) allTargets(v *dataView) ([]kg.Term, error) {
	var out nodeSet
	out.add(t.nodes)
	if len(t.classes) > 0 {
		instances := sequence{upward.reverse(), link{rdfType, true}}
		list, err := instances.endNodes(v, t.classes)
		if err != nil {
			return nil, err
		}
		out.add(list)
	}
	for i, properties := range [...][]kg.Term{t.subjectsOf, t.objectsOf} {
		for _, p := range properties {
			list, err := v.readEnds(p, i == 1)
			if err != nil {
				return nil, err
			}
			out.add(list)
		}
	}
	return out.list, nil
}
