package knowledge

import (
	"slices"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"koine/graph/internal/scalar"
	"koine/internal/query"
	"koine/kg"
)

// rowPlan is the plan of a selection set on rows of a pattern.
type rowPlan struct{ fields []rowField }

type rowKind uint8

const (
	rowTypename rowKind = iota
	rowValues
	rowValue
	rowEntity
	rowTerm
)

type rowField struct {
	kind    rowKind
	key     []byte
	name    string        // of the variable
	entity  *entityPlan   // for an entity, and for a term that is an entity
	literal []scalarField // for a term that is a literal
}

func (p *Planner) planRow(c *matchList, set ast.SelectionSet) (*rowPlan, error) {
	plan := &rowPlan{}
	err := p.EachField(set, MatchRowImplementors, func(f graphql.CollectedField, key []byte) error {
		plan.fields = append(plan.fields, rowField{key: key})
		return rowFieldPlan{p, c, &plan.fields[len(plan.fields)-1]}.planNamed(f)
	})
	return plan, err
}

// rowFieldPlan plans a field of a row.
type rowFieldPlan struct {
	planner *Planner
	list    *matchList
	field   *rowField
}

func (b rowFieldPlan) planValues(graphql.CollectedField) error {
	b.field.kind = rowValues
	return nil
}

func (b rowFieldPlan) planValue(f graphql.CollectedField) error {
	args, err := coerceArgs(b.planner, f, CoerceMatchRowValueArgs)
	if err != nil {
		return err
	}
	return b.planVariable(rowValue, args.Var)
}

func (b rowFieldPlan) planEntity(f graphql.CollectedField) error {
	args, err := coerceArgs(b.planner, f, CoerceMatchRowEntityArgs)
	if err == nil {
		err = b.planVariable(rowEntity, args.Var)
	}
	if err == nil {
		b.field.entity, err = b.planner.planEntity(f.Selections)
	}
	return err
}

func (b rowFieldPlan) planTerm(f graphql.CollectedField) error {
	args, err := coerceArgs(b.planner, f, CoerceMatchRowTermArgs)
	if err == nil {
		err = b.planVariable(rowTerm, args.Var)
	}
	if err == nil {
		b.field.entity, b.field.literal, err = b.planner.planTerm(f)
	}
	return err
}

// planVariable plans a field of one variable.
func (b rowFieldPlan) planVariable(kind rowKind, name string) error {
	b.field.kind, b.field.name = kind, name
	if !slices.Contains(b.list.columns, name) {
		return query.UnknownVariable(name, b.list.columns).At("var")
	}
	return nil
}

// planTerm plans a field that is an entity or a literal.
func (p *Planner) planTerm(f graphql.CollectedField) (entity *entityPlan, literal []scalarField, err error) {
	if entity, err = p.planEntity(f.Selections); err == nil {
		literal, err = p.planScalars(f.Selections, LiteralImplementors)
	}
	return entity, literal, err
}

// solutionBatch holds the loaded rows of a page.
type solutionBatch struct {
	list  *matchList
	terms map[string][]kg.Term // for each variable that is shown as a value
	links [][][]*entityNode    // per selection and field
}

// loadSolutions loads the rows: the entities of each column in one batch.
func (l *loader) loadSolutions(c *matchList, g *page, found []solution) error {
	batch := &solutionBatch{list: c, terms: map[string][]kg.Term{}, links: make([][][]*entityNode, len(c.rows))}
	for s, plan := range c.rows {
		batch.links[s] = make([][]*entityNode, len(plan.fields))
		for i := range plan.fields {
			f := &plan.fields[i]
			names := []string{f.name}
			switch f.kind {
			case rowTypename:
				continue
			case rowValues:
				names = c.columns
			}
			if f.kind != rowEntity {
				for _, name := range names {
					if err := l.decodeColumn(batch, found, name); err != nil {
						return err
					}
				}
			}
			if f.entity != nil {
				var err error
				if batch.links[s][i], err = l.linkColumn(c, f, found); err != nil {
					return err
				}
			}
		}
	}
	g.node = batch.write
	return nil
}

// decodeColumn decodes the values of a variable, once.
func (l *loader) decodeColumn(batch *solutionBatch, found []solution, name string) error {
	if _, done := batch.terms[name]; done {
		return nil
	}
	column := batch.list.pattern.Column(name)
	terms := make([]kg.Term, len(found))
	for k, row := range found {
		if row[column].IsZero() {
			continue
		}
		t, err := l.snapshot.Term(row[column])
		if err != nil {
			return err
		}
		if err := l.run.ChargeBytes(len(t.Value())); err != nil {
			return err
		}
		terms[k] = t
	}
	batch.terms[name] = terms
	return nil
}

// linkColumn loads the entities of a variable.
func (l *loader) linkColumn(c *matchList, f *rowField, found []solution) ([]*entityNode, error) {
	column := c.pattern.Column(f.name)
	return l.loadSome(f.entity, len(found), func(k int) (entityRef, bool, error) {
		id := found[k][column]
		return entityRef{id: id}, id.IsResource(), nil
	})
}

// write writes row k.
func (batch *solutionBatch) write(w *writer, selection, k int) {
	scalar.WriteFields(w, batch.list.rows[selection].fields, func(i int, f *rowField) {
		w.EnterField(f.key)
		switch f.kind {
		case rowTypename:
			w.B = append(w.B, `"MatchRow"`...)
		case rowValues:
			w.B = scalar.AppendList(w.B, batch.list.columns, func(b []byte, name *string) []byte { return appendSolution(b, batch.terms[*name][k]) })
		case rowValue:
			w.B = appendSolution(w.B, batch.terms[f.name][k])
		default:
			batch.writeTerm(w, f, batch.links[selection][i][k], k)
		}
		w.LeaveField()
	})
}

func (batch *solutionBatch) writeTerm(w *writer, f *rowField, entity *entityNode, k int) {
	switch {
	case entity != nil:
		entity.write(w)
	case f.kind == rowTerm && batch.terms[f.name][k].IsLiteral():
		w.B = appendLiteral(w.B, batch.terms[f.name][k], f.literal)
	default:
		w.B = append(w.B, "null"...)
	}
}

// appendSolution writes the value of a variable. The default graph is null, as
// everywhere.
func appendSolution(b []byte, t kg.Term) []byte {
	if t.IsZero() || t == kg.DefaultGraph {
		return append(b, "null"...)
	}
	return scalar.AppendValue(b, t)
}
