package knowledge

import (
	"math"
	"strings"

	"github.com/99designs/gqlgen/graphql"

	"koine/graph/internal/scalar"
	"koine/internal/query/pattern"
)

// explanationPlan is the plan of a MatchExplanation.
type explanationPlan struct {
	fields []scalarField
	steps  [][]scalarField // for each `steps`
}

func (b connectionFieldPlan) planColumns(f graphql.CollectedField) error {
	return b.planMatchExtra(f, matchExtra{columns: true})
}

func (b connectionFieldPlan) planExplanation(f graphql.CollectedField) error {
	plan := &explanationPlan{}
	if err := b.planMatchExtra(f, matchExtra{explanation: plan}); err != nil {
		return err
	}
	return b.planner.EachField(f.Selections, MatchExplanationImplementors, func(f graphql.CollectedField, key []byte) error {
		plan.fields = append(plan.fields, scalarField{key, f.Name})
		plan.steps = append(plan.steps, nil)
		return explanationFieldPlan{b.planner, &plan.steps[len(plan.steps)-1]}.planNamed(f)
	})
}

// planMatchExtra adds a field that only MatchConnection has.
func (b connectionFieldPlan) planMatchExtra(f graphql.CollectedField, x matchExtra) error {
	c := b.connection.match
	if c == nil {
		return UnplannedField(f)
	}
	b.field.kind, b.field.selection = connectionExtra, len(c.extras)
	c.extras = append(c.extras, x)
	return nil
}

// explanationFieldPlan plans a field of a MatchExplanation.
type explanationFieldPlan struct {
	planner *Planner
	steps   *[]scalarField
}

func (b explanationFieldPlan) planSteps(f graphql.CollectedField) (err error) {
	*b.steps, err = b.planner.planScalars(f.Selections, MatchStepImplementors)
	return err
}

func (x *explanationPlan) appendTo(b []byte, steps []pattern.Step, read int64) []byte {
	return scalar.AppendFields(b, x.fields, func(b []byte, i int, f *scalarField) []byte {
		b = append(b, f.key...)
		switch f.name {
		case "steps":
			return append(x.writeSteps(append(b, '['), x.steps[i], steps, 0), ']')
		case "__typename":
			return append(b, `"MatchExplanation"`...)
		}
		return explanationLeaves{read}.appendNamed(b, f.name)
	})
}

// explanationLeaves appends the scalars of a MatchExplanation.
type explanationLeaves struct{ read int64 }

func (v explanationLeaves) appendStatementsRead(b []byte) []byte {
	return scalar.AppendUint(b, uint64(v.read))
}

// writeSteps writes each step, followed by the steps of its groups.
func (x *explanationPlan) writeSteps(b []byte, fields []scalarField, steps []pattern.Step, depth int) []byte {
	for i := range steps {
		if b[len(b)-1] != '[' {
			b = append(b, ',')
		}
		b = appendObject(b, fields, "MatchStep", stepLeaves{&steps[i], depth}.appendNamed)
		for _, g := range steps[i].Groups {
			b = x.writeSteps(b, fields, g, depth+1)
		}
	}
	return b
}

// stepLeaves appends the fields of a MatchStep.
type stepLeaves struct {
	step  *pattern.Step
	depth int
}

func (v stepLeaves) appendDepth(b []byte) []byte { return scalar.AppendUint(b, uint64(v.depth)) }

func (v stepLeaves) appendOperation(b []byte) []byte {
	if v.step.Kind == "join" {
		return append(b, `"nested loop"`...)
	}
	return scalar.AppendString(b, v.step.Kind)
}

func (v stepLeaves) appendPattern(b []byte) []byte {
	return scalar.AppendString(b, strings.Join(append([]string{v.step.Pattern}, v.step.Merged...), " & "))
}

func (v stepLeaves) appendIndex(b []byte) []byte { return appendOptional(b, v.step.Index) }

func (v stepLeaves) appendEstimate(b []byte) []byte {
	return scalar.AppendUint(b, uint64(min(math.Ceil(v.step.Estimate), 1e15)))
}

func (v stepLeaves) appendRows(b []byte) []byte { return scalar.AppendUint(b, uint64(v.step.Rows)) }

func (v stepLeaves) appendStatementsRead(b []byte) []byte {
	return scalar.AppendUint(b, uint64(v.step.Statements))
}
