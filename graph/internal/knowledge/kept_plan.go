package knowledge

import (
	"github.com/vektah/gqlparser/v2/ast"

	"koine/kg"
)

// keptPlan is the plan of a field of a document. It is used by all requests with the document
// while the prefixes are those that its names were read with, at the same time: it holds nothing
// of a request, its caller or its view, and loading and writing do not change it.
type keptPlan struct {
	prefixes *kg.Prefixes // nil if the plan cannot be kept
	entity   *entityPlan
}

// entityPlan returns the plan of a field of type Entity.
func (r reading) entityPlan() (*entityPlan, error) {
	field, prefixes := r.field.Field, r.run.Reader.Prefixes
	if r.run.Derived == nil || !r.ownSelections() {
		return r.planEntity(r.field.Selections)
	}
	if v, ok := r.run.Derived.Load(field); ok {
		if kept := v.(*keptPlan); kept.prefixes == nil {
			return r.planEntity(r.field.Selections)
		} else if prefixes.Same(kept.prefixes) {
			return kept.entity, nil
		}
	}
	kept := &keptPlan{prefixes: prefixes.Fixed()} // before names are read
	plan, err := r.planEntity(r.field.Selections)
	if err != nil {
		return nil, err
	}
	if kept.entity = plan; !isConstant(field.SelectionSet) || !plan.canBeKept() {
		kept = &keptPlan{}
	}
	r.run.Derived.Store(field, kept)
	return plan, nil
}

// ownSelections reports whether the field has the selections of its place in the document alone:
// another field with its response name adds its own.
func (r reading) ownSelections() bool {
	set := r.field.Selections
	return len(set) == len(r.field.SelectionSet) && (len(set) == 0 || set[0] == r.field.SelectionSet[0])
}

// isConstant reports whether a selection set has neither variables nor directives, so that it
// selects the same in each request.
func isConstant(set ast.SelectionSet) bool {
	for _, s := range set {
		switch s := s.(type) {
		case *ast.Field:
			if len(s.Directives) > 0 || !isConstant(s.SelectionSet) {
				return false
			}
			for _, a := range s.Arguments {
				if hasVariable(a.Value) {
					return false
				}
			}
		case *ast.InlineFragment:
			if len(s.Directives) > 0 || !isConstant(s.SelectionSet) {
				return false
			}
		case *ast.FragmentSpread:
			if len(s.Directives) > 0 || !isConstant(s.Definition.SelectionSet) {
				return false
			}
		}
	}
	return true
}

func hasVariable(v *ast.Value) bool {
	if v == nil {
		return false
	}
	if v.Kind == ast.Variable {
		return true
	}
	for _, child := range v.Children {
		if hasVariable(child.Value) {
			return true
		}
	}
	return false
}

// canBeKept reports whether the plan follows from its selection set, the schema, the prefixes and
// the options of the server. It lists the kinds of fields that do: others have parts of their
// request, as its context, view or evaluation time.
func (plan *entityPlan) canBeKept() bool {
	for i := range plan.fields {
		switch f := &plan.fields[i]; f.kind {
		case entityTypename, entityID, entityName, entityTypes, entityLabel, entityDegree:
		case entityValue, entityValues:
			if f.way != nil {
				return false
			}
		case entityStatements, entityFollow:
			if !f.page.canBeKept() {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// canBeKept reports whether a page inside of an entity has neither cursors nor groups, and no
// condition but terms that its statements must have.
func (c *connection) canBeKept() bool {
	if c.after != nil || c.cursors || c.backward || len(c.groups) > 0 || len(c.statementList.Order) > 0 || !c.statementList.Match.IsPattern() {
		return false
	}
	if m := c.entityList.Match; m != nil && !m.IsEmpty() {
		return false
	}
	for _, plan := range c.entities {
		if !plan.canBeKept() {
			return false
		}
	}
	for _, plan := range c.statements {
		if !plan.canBeKept() {
			return false
		}
	}
	for i := range c.fields {
		switch c.fields[i].kind {
		case connectionTypename, connectionNodes, connectionEdges, connectionPageInfo, connectionTotal:
		default:
			return false
		}
	}
	return true
}

// canBeKept is that of entityPlan, for statements.
func (plan *statementPlan) canBeKept() bool {
	for i := range plan.fields {
		f := &plan.fields[i]
		switch f.kind {
		case statementTypename, statementID, statementPredicate, statementGraph, statementCertainty, statementAssertedBy,
			statementRecordedAt, statementRevision, statementPending, statementSubject, statementPredicateEntity, statementObject:
		default:
			return false
		}
		if f.entity != nil && !f.entity.canBeKept() {
			return false
		}
	}
	return true
}
