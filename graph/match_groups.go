package graph

import (
	"slices"
	"strconv"

	"github.com/99designs/gqlgen/graphql"

	"koine/kg"
)

// planMatchGroups plans the field `groups`.
func (p *planner) planMatchGroups(c *matchList, f graphql.CollectedField) error {
	args, err := p.parseArgs(f, p.run.ec.field_MatchConnection_groups_args)
	if err != nil {
		return err
	}
	g := &grouping[solution]{}
	var keys, computed []string
	for i, by := range argumentOf[[]MatchGroupKey](args, "by") {
		of, err := c.extractColumn(by.Var, "by["+strconv.Itoa(i)+"].var")
		if err != nil {
			return err
		}
		name := by.Var
		if by.As != nil {
			name = *by.As
		}
		g.keys, keys = append(g.keys, of), append(keys, name)
	}
	for i, what := range argumentOf[[]MatchAggregate](args, "compute") {
		field := "compute[" + strconv.Itoa(i) + "]"
		var of extract[solution]
		if what.Var != nil {
			if of, err = c.extractColumn(*what.Var, field+".var"); err != nil {
				return err
			}
		}
		if err := checkComputable(what.Fn, of == nil); err != nil {
			return kg.AsError(err).At(field)
		}
		g.compute, computed = append(g.compute, computation[solution]{what.Fn, of}), append(computed, what.As)
	}
	g.groupShape, err = p.planGrouping(f, args, keys, computed)
	c.groups = append(c.groups, g)
	return err
}

// extractColumn extracts the value of a variable.
func (c *matchList) extractColumn(name, field string) (extract[solution], error) {
	among := c.names
	if c.distinct {
		among = c.columns
	}
	if !slices.Contains(among, name) {
		return nil, unknownVariable(name, among).At(field)
	}
	return func(all *termTable, row solution, to []termNumber) ([]termNumber, error) {
		id := row[c.pattern.Column(name)]
		if id == (kg.ID{}) {
			return to, nil
		}
		n, err := all.indexOfID(id)
		return append(to, n), err
	}, nil
}
