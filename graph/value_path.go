package graph

import (
	"slices"

	"github.com/99designs/gqlgen/graphql"

	"koine/kg"
)

// entityValue plans Entity.value and values: of a property, or at the ends of
// a path. A path of one predicate is a property.
func (p *planner) entityValue(plan *entityPlan, f graphql.CollectedField, field *entityField) error {
	field.kind, field.first = entityValue, 1
	parse := p.run.ec.field_Entity_value_args
	if f.Name == "values" {
		field.kind, parse = entityValues, p.run.ec.field_Entity_values_args
	}
	args, err := p.args(f, parse)
	if err != nil {
		return err
	}
	if field.kind == entityValues {
		if field.first, err = p.run.engine.limits.pageSize(argument[*int](args, "first"), DefaultMaxPageSize); err != nil {
			return err
		}
	}
	predicate := argument[*kg.Term](args, "predicate")
	way, err := p.way(args)
	switch {
	case err != nil:
		return err
	case (predicate == nil) == (way == nil):
		return kg.Errorf(kg.CodeInvalid, "either a predicate or a path must be given, and not both").At("predicate")
	case predicate != nil:
		plan.want(*predicate, 0)
		return nil
	}
	if one, inverted, ok := way.Single(); ok && !inverted {
		plan.want(one, 0)
		return nil
	}
	field.way = way
	return nil
}

// valuesAt writes the values at the ends of a path, for all entities.
func (l *loader) valuesAt(plan *entityPlan, field int, nodes []entityNode, batch *entityBatch) error {
	f := &plan.fields[field]
	led, err := l.led(f.way, nodes)
	if err != nil {
		return err
	}
	g := &gathered{}
	for i, ids := range led {
		from := len(batch.arena)
		found := make([]candidate, len(ids))
		for k, id := range ids {
			found[k].row.Object = id
		}
		if f.kind == entityValues {
			batch.arena, err = l.values(g, found, f.first, batch.arena)
		} else {
			batch.arena, err = l.smallest(g, found, batch.arena)
		}
		if err == nil {
			err = l.run.charge(len(batch.arena) - from)
		}
		if err != nil {
			return err
		}
		nodes[i].slots[field].from, nodes[i].slots[field].to = from, len(batch.arena)
	}
	return nil
}

// smallest writes the smallest value. The ends of a path have neither
// certainty nor time to choose by.
func (l *loader) smallest(g *gathered, found []candidate, b []byte) ([]byte, error) {
	terms, err := l.objects(g, found)
	if err != nil || len(terms) == 0 {
		return append(b, "null"...), err
	}
	return appendValue(b, slices.MinFunc(terms, compareTerms)), nil
}
