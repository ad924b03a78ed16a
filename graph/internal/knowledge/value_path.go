package knowledge

import (
	"slices"

	"github.com/99designs/gqlgen/graphql"

	"koine/graph/internal/scalar"
	"koine/graph/limit"
	"koine/internal/query"
	"koine/internal/query/path"
	"koine/internal/query/valuespace"
	"koine/kg"
)

func (b entityFieldPlan) planValue(f graphql.CollectedField) error {
	args, err := coerceArgs(b.planner, f, CoerceEntityValueArgs)
	if err != nil {
		return err
	}
	b.field.kind, b.field.first = entityValue, 1
	return b.planValuesOf(args.Predicate, args.Path)
}

func (b entityFieldPlan) planValues(f graphql.CollectedField) error {
	args, err := coerceArgs(b.planner, f, CoerceEntityValuesArgs)
	if err != nil {
		return err
	}
	b.field.kind = entityValues
	if b.field.first, err = b.planner.run.Reader.Limits.CheckFirst(args.First, limit.DefaultMaxPageSize); err != nil {
		return err
	}
	return b.planValuesOf(args.Predicate, args.Path)
}

// planValuesOf plans the values of a property, or those at the ends of a path. A
// path of one forward step is planned as a property.
func (b entityFieldPlan) planValuesOf(predicate *kg.Term, along *string) (err error) {
	var way *path.Path
	if along != nil {
		way, err = b.planner.parsePath(*along)
	}
	switch {
	case err != nil:
		return err
	case (predicate == nil) == (way == nil):
		return kg.Errorf(kg.CodeInvalid, "exactly one of predicate and path is required").At("predicate")
	case predicate != nil:
		b.plan.wantPredicate(*predicate, 0)
		return nil
	}
	if one, inverted, ok := way.Single(); ok && !inverted {
		b.plan.wantPredicate(one, 0)
		return nil
	}
	b.field.way = way
	return nil
}

// valuesAt writes the values at the ends of a path, for all entities.
func (l *loader) valuesAt(plan *entityPlan, field int, nodes []entityNode, batch *entityBatch) error {
	f := &plan.fields[field]
	led, err := l.followPath(f.way, nodes)
	if err != nil {
		return err
	}
	g := &gathered{}
	for i, ids := range led {
		from := len(batch.arena)
		found := make([]query.Candidate, len(ids))
		for k, id := range ids {
			found[k].Row.Object = id
		}
		if f.kind == entityValues {
			batch.arena, err = l.appendValues(g, found, f.first, batch.arena)
		} else {
			batch.arena, err = l.appendSmallest(g, found, batch.arena)
		}
		if err == nil {
			err = l.run.ChargeBytes(len(batch.arena) - from)
		}
		if err != nil {
			return err
		}
		nodes[i].slots[field].from, nodes[i].slots[field].to = from, len(batch.arena)
	}
	return nil
}

// appendSmallest writes the smallest value. The ends of a path have neither
// certainty nor time to choose by.
func (l *loader) appendSmallest(g *gathered, found []query.Candidate, b []byte) ([]byte, error) {
	terms, err := l.decodeObjects(g, found)
	if err != nil || len(terms) == 0 {
		return append(b, "null"...), err
	}
	return scalar.AppendValue(b, slices.MinFunc(terms, valuespace.OrderTerms)), nil
}
