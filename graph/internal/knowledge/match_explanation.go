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

// planMatchExtra plans a field that only MatchConnection has.
func (p *Planner) planMatchExtra(c *matchList, f graphql.CollectedField) (matchExtra, error) {
	switch f.Name {
	case "columns":
		return matchExtra{columns: true}, nil
	case "explanation":
		plan := &explanationPlan{}
		return matchExtra{explanation: plan}, p.EachField(f.Selections, MatchExplanationImplementors, func(f graphql.CollectedField, key []byte) error {
			plan.fields = append(plan.fields, scalarField{key, f.Name})
			var steps []scalarField
			var err error
			switch f.Name {
			case "__typename", "statementsRead":
			case "steps":
				steps, err = p.planScalars(f.Selections, MatchStepImplementors, "depth", "operation", "pattern", "index", "estimate", "rows", "statementsRead")
			default:
				err = UnplannedField(f)
			}
			plan.steps = append(plan.steps, steps)
			return err
		})
	}
	return matchExtra{}, UnplannedField(f)
}

func (x *explanationPlan) appendTo(b []byte, steps []pattern.Step, read int64) []byte {
	return scalar.AppendFields(b, x.fields, func(b []byte, i int, f *scalarField) []byte {
		b = append(b, f.key...)
		switch f.name {
		case "steps":
			return append(x.writeSteps(append(b, '['), x.steps[i], steps, 0), ']')
		case "statementsRead":
			return scalar.AppendUint(b, uint64(read))
		}
		return append(b, `"MatchExplanation"`...)
	})
}

// writeSteps writes each step, followed by the steps of its groups.
func (x *explanationPlan) writeSteps(b []byte, fields []scalarField, steps []pattern.Step, depth int) []byte {
	for i := range steps {
		if b[len(b)-1] != '[' {
			b = append(b, ',')
		}
		b = appendObject(b, fields, "MatchStep", func(b []byte, name string) []byte { return appendStep(b, &steps[i], depth, name) })
		for _, g := range steps[i].Groups {
			b = x.writeSteps(b, fields, g, depth+1)
		}
	}
	return b
}

func appendStep(b []byte, s *pattern.Step, depth int, field string) []byte {
	switch field {
	case "depth":
		return scalar.AppendUint(b, uint64(depth))
	case "operation":
		if s.Kind == "join" {
			return append(b, `"nested loop"`...)
		}
		return scalar.AppendString(b, s.Kind)
	case "pattern":
		return scalar.AppendString(b, strings.Join(append([]string{s.Pattern}, s.Merged...), " & "))
	case "index":
		if s.Index == "" {
			return append(b, "null"...)
		}
		return scalar.AppendString(b, s.Index)
	case "estimate":
		return scalar.AppendUint(b, uint64(min(math.Ceil(s.Estimate), 1e15)))
	case "rows":
		return scalar.AppendUint(b, uint64(s.Rows))
	}
	return scalar.AppendUint(b, uint64(s.Statements))
}
