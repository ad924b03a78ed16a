package shapes

import (
	"context"
	"fmt"
	"strings"

	"koine/kg"
)

// MaxDetails is the largest number of findings of each sort in a verdict.
const MaxDetails = 10

// Reason is the reason of a rejecting verdict (docs/reference/knowledge.md).
const Reason = "Constraint Violation"

// Idle reports whether there are no shapes to validate.
func (s *Set) Idle() bool { return len(s.currentSet().roots) == 0 }

// Verify validates an update. See the package documentation.
func (s *Set) Verify(ctx context.Context, j kg.Judgement) (kg.Verdict, error) {
	verdict := kg.Verdict{Depends: []kg.Dependency{{Graph: kg.ShapesGraph}}}
	shapes := s.currentSet()
	if len(shapes.roots) == 0 {
		return verdict, nil
	}
	m := newMeter(ctx, s.Budget)
	before, after := newView(j.Before, m), newView(j.After, m)
	foci, err := shapes.index.affectedBy(j.Changes, before, after)
	if err != nil {
		return kg.Verdict{}, err
	}
	var t tally
	for _, root := range foci.shapes {
		if !root.root {
			continue
		}
		for _, node := range foci.foci[root].list {
			if err := t.validateNode(root, node, before, after); err != nil {
				return kg.Verdict{}, err
			}
		}
	}
	if t.introduced.n > 0 {
		verdict.Outcome, verdict.Reason = kg.Rejected, Reason
	}
	verdict.Details = t.String()
	if len(foci.shapes) > 0 {
		verdict.Depends = append(verdict.Depends, kg.Dependency{Graph: kg.SystemGraph})
	}
	verdict.Depends = after.appendDepends(before.appendDepends(verdict.Depends))
	return verdict, nil
}

// tally collects the findings of a validation.
type tally struct {
	introduced sample // violations that the update introduces or makes worse
	warnings   sample // other findings that it introduces
	existing   sample // violations that exist without it
}

type sample struct {
	n    int
	list []Finding
}

func (s *sample) add(f Finding) {
	if s.n++; len(s.list) < MaxDetails {
		s.list = append(s.list, f)
	}
}

// validateNode compares the violations by a node after the update with those before it.
func (t *tally) validateNode(root *shape, node kg.Term, before, after *dataView) error {
	now, err := root.targetFindings(after, node)
	if err != nil || len(now) == 0 {
		return err
	}
	then, err := root.targetFindings(before, node)
	if err != nil {
		return err
	}
	old := newPriorFindings(then, before, after)
	for i := range now {
		covered, err := old.covers(&now[i])
		if err != nil {
			return err
		}
		f := now[i].export(root, node)
		switch {
		case covered:
			if f.Refuses() {
				t.existing.add(f)
			}
		case f.Refuses():
			t.introduced.add(f)
		default:
			t.warnings.add(f)
		}
	}
	return nil
}

// targetFindings returns the violations of the shape by the node if it is a target.
func (s *shape) targetFindings(v *dataView, node kg.Term) (list []finding, err error) {
	if ok, err := s.targets.isTarget(v, node); !ok || err != nil {
		return nil, err
	}
	return s.violationsOf(v, node)
}

// String returns the details of a verdict.
func (t *tally) String() string {
	var b strings.Builder
	t.introduced.write(&b, "")
	t.warnings.write(&b, "warning: ")
	t.existing.write(&b, "existing: ")
	return b.String()
}

func (s *sample) write(b *strings.Builder, sort string) {
	for i := range s.list {
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(sort + s.list[i].String())
	}
	if more := s.n - len(s.list); more > 0 {
		fmt.Fprintf(b, "\n%s%d more", sort, more)
	}
}

// appendDepends adds the dependencies that were read.
func (v *dataView) appendDepends(list []kg.Dependency) []kg.Dependency {
	for l := range v.links {
		list = append(list, kg.Dependency{Node: l.node, Predicate: l.predicate, Inverse: l.inverse})
	}
	for node := range v.all {
		list = append(list, kg.Dependency{Node: node})
	}
	return list
}
