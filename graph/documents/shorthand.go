package documents

import (
	"encoding/json"
	"koine/graph/internal/hint"
	"maps"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

// A condition may be given by its value alone: {label: "Water"} stands for
// {label: {eq: "Water"}}, and a list stands for {in: [...]}. Documents are
// expanded once, before they are validated, and values of variables for each
// request, before they are coerced, so that everything after sees the long
// form only.

// shorthand expands the short form of conditions.
type shorthand struct {
	schema *ast.Schema
	// conditions are the input types with a short form, by name, with the
	// member that takes a list, "" if there is none.
	conditions map[string]string
	// holders are the input types that are such a condition or contain one,
	// however deep.
	holders map[string]bool
}

// newShorthand finds the conditions of a schema: the input types that `eq`
// alone is a complete value of.
func newShorthand(schema *ast.Schema) *shorthand {
	s := &shorthand{schema: schema, conditions: map[string]string{}, holders: map[string]bool{}}
	for name, def := range schema.Types {
		if def.Kind != ast.InputObject || def.Fields.ForName("eq") == nil || hint.RequiresMore(def) {
			continue
		}
		s.conditions[name], s.holders[name] = "", true
		if def.Fields.ForName("in") != nil {
			s.conditions[name] = "in"
		}
	}
	for found := true; found; {
		found = false
		for name, def := range schema.Types {
			if def.Kind == ast.InputObject && !s.holders[name] && s.holdsCondition(def) {
				s.holders[name], found = true, true
			}
		}
	}
	return s
}

func (s *shorthand) holdsCondition(def *ast.Definition) bool {
	for _, f := range def.Fields {
		if s.holders[f.Type.Name()] {
			return true
		}
	}
	return false
}

// A variable that is given as a condition is null or absent without making a
// condition, as a literal null is: {label: $name} with a null $name is
// {label: null} and not {label: {eq: null}}. So it is validated as
// {eq: $name}, and afterwards becomes a variable of its own, of the type of
// the condition, whose value is made of that of $name. Its name contains a
// colon, which no name of a document can.

// conditionVariable is a variable in the place of a condition.
type conditionVariable struct {
	operation *ast.OperationDefinition
	of        *ast.VariableDefinition
	value     *ast.Value // the long form
	condition *ast.Definition
}

// expandDocument writes the long form into a document that is not validated
// yet. Positions stay those of the text.
func (s *shorthand) expandDocument(doc *ast.QueryDocument) []conditionVariable {
	x := &expansion{shorthand: s, doc: doc, made: map[*ast.Value]*ast.VariableDefinition{}}
	for _, op := range doc.Operations {
		x.operation, x.visited = op, map[string]bool{}
		for _, v := range op.VariableDefinitions {
			x.expandLiteral(v.Type, v.DefaultValue)
		}
		x.expandSet(s.rootType(op.Operation), op.SelectionSet)
	}
	return x.variables
}

func (s *shorthand) rootType(kind ast.Operation) *ast.Definition {
	switch kind {
	case ast.Mutation:
		return s.schema.Mutation
	case ast.Subscription:
		return s.schema.Subscription
	}
	return s.schema.Query
}

// expansion is the state of expandDocument.
type expansion struct {
	*shorthand
	doc       *ast.QueryDocument
	operation *ast.OperationDefinition
	visited   map[string]bool                        // fragments of the operation
	made      map[*ast.Value]*ast.VariableDefinition // long forms of variables
	variables []conditionVariable
}

func (x *expansion) expandSet(of *ast.Definition, set ast.SelectionSet) {
	for _, sel := range set {
		switch sel := sel.(type) {
		case *ast.Field:
			if of == nil {
				continue
			}
			def := of.Fields.ForName(sel.Name)
			if def == nil {
				continue // refused by validation, or introspection
			}
			for _, a := range sel.Arguments {
				if to := def.Arguments.ForName(a.Name); to != nil {
					x.expandLiteral(to.Type, a.Value)
				}
			}
			x.expandSet(x.schema.Types[def.Type.Name()], sel.SelectionSet)
		case *ast.InlineFragment:
			x.expandSet(x.conditioned(of, sel.TypeCondition), sel.SelectionSet)
		case *ast.FragmentSpread:
			f := x.doc.Fragments.ForName(sel.Name)
			if f == nil || x.visited[sel.Name] {
				continue
			}
			x.visited[sel.Name] = true
			x.expandSet(x.conditioned(of, f.TypeCondition), f.SelectionSet)
		}
	}
}

func (x *expansion) conditioned(of *ast.Definition, name string) *ast.Definition {
	if name == "" {
		return of
	}
	return x.schema.Types[name]
}

// expandLiteral expands a value where the type is expected.
func (x *expansion) expandLiteral(t *ast.Type, v *ast.Value) {
	if v == nil || !x.holders[t.Name()] || v.Kind == ast.NullValue {
		return
	}
	if t.Elem != nil && v.Kind == ast.ListValue {
		for _, child := range v.Children {
			x.expandLiteral(t.Elem, child.Value)
		}
		return
	}
	def := x.schema.Types[t.Name()]
	list, isCondition := x.conditions[t.Name()]
	switch {
	case v.Kind == ast.ObjectValue:
		if of := x.made[v]; of != nil { // in a fragment that another operation has, too
			x.noteVariable(of.Variable, v, t, def)
			return
		}
		for _, child := range v.Children {
			if f := def.Fields.ForName(child.Name); f != nil {
				x.expandLiteral(f.Type, child.Value)
			}
		}
	case !isCondition:
	case v.Kind == ast.ListValue:
		if list != "" && !hasObjects(v) {
			wrapLiteral(v, list)
		}
	case v.Kind == ast.Variable:
		x.expandVariable(t, v, def, list)
	default:
		wrapLiteral(v, "eq")
	}
}

// expandVariable expands a variable that is no condition itself.
func (x *expansion) expandVariable(t *ast.Type, v *ast.Value, def *ast.Definition, list string) {
	of := x.operation.VariableDefinitions.ForName(v.Raw)
	if of == nil {
		return // validation says so
	}
	if declared := x.schema.Types[of.Type.Name()]; declared == nil || declared.Kind == ast.InputObject {
		return
	}
	member := memberFor(of.Type, list)
	if member == "" {
		return
	}
	wrapLiteral(v, member)
	x.made[v] = of
	x.noteVariable(of.Variable, v, t, def)
}

func (x *expansion) noteVariable(name string, v *ast.Value, t *ast.Type, def *ast.Definition) {
	of := x.operation.VariableDefinitions.ForName(name)
	if of != nil && t.Elem == nil {
		x.variables = append(x.variables, conditionVariable{x.operation, of, v, def})
	}
}

// memberFor returns the member of a condition that takes a variable.
func memberFor(declared *ast.Type, list string) string {
	if declared.Elem != nil {
		return list
	}
	return "eq"
}

func hasObjects(v *ast.Value) bool {
	for _, child := range v.Children {
		if child.Value.Kind == ast.ObjectValue {
			return true
		}
	}
	return false
}

// wrapLiteral makes a value the only member of an object in its place.
func wrapLiteral(v *ast.Value, member string) {
	inner := *v
	*v = ast.Value{Kind: ast.ObjectValue, Position: inner.Position, Children: ast.ChildValueList{
		{Name: member, Value: &inner, Position: inner.Position},
	}}
}

// declareVariables completes a document that has become valid: each variable
// in the place of a condition becomes a variable of the condition's type.
func (s *shorthand) declareVariables(list []conditionVariable) {
	for _, x := range list {
		name := x.of.Variable + ":" + x.condition.Name
		def := x.operation.VariableDefinitions.ForName(name)
		if def == nil {
			def = &ast.VariableDefinition{
				Variable: name, Type: ast.NamedType(x.condition.Name, x.of.Position), Definition: x.condition,
				Used: true, Position: x.of.Position,
			}
			x.operation.VariableDefinitions = append(x.operation.VariableDefinitions, def)
		}
		v := x.value
		v.Kind, v.Raw, v.Children, v.VariableDefinition = ast.Variable, name, nil, def
	}
}

// expandVariables returns the variables of a request in the long form, and
// whether they differ from the given ones, which are not changed.
func (s *shorthand) expandVariables(op *ast.OperationDefinition, given map[string]any) (out map[string]any, copied bool, err error) {
	out = given
	set := func(name string, value any) {
		if !copied {
			out, copied = maps.Clone(given), true
			if out == nil {
				out = map[string]any{}
			}
		}
		out[name] = value
	}
	for _, v := range op.VariableDefinitions {
		if name, _, made := strings.Cut(v.Variable, ":"); made {
			set(v.Variable, nil)
			value, there, err := valueOf(op.VariableDefinitions.ForName(name), given)
			switch {
			case err != nil:
				return nil, false, err
			case !there:
				delete(out, v.Variable)
			case value != nil:
				of := op.VariableDefinitions.ForName(name)
				set(v.Variable, map[string]any{memberFor(of.Type, s.conditions[v.Type.Name()]): value})
			}
			continue
		}
		if value, there := given[v.Variable]; there {
			if long, changed := s.expandValue(v.Type, value); changed {
				set(v.Variable, long)
			}
		}
	}
	return out, copied, nil
}

// valueOf returns the value of a variable of a request, or its default.
func valueOf(v *ast.VariableDefinition, given map[string]any) (value any, there bool, err error) {
	if value, there = given[v.Variable]; there || v.DefaultValue == nil {
		return value, there, nil
	}
	value, err = v.DefaultValue.Value(nil)
	return value, true, err
}

// expandValue returns a value of a variable in the long form, and whether it
// differs.
func (s *shorthand) expandValue(t *ast.Type, value any) (long any, changed bool) {
	if value == nil || !s.holders[t.Name()] {
		return value, false
	}
	elements, isList := value.([]any)
	if isList && t.Elem != nil {
		return s.expandElements(t.Elem, elements)
	}
	list, isCondition := s.conditions[t.Name()]
	switch value := value.(type) {
	case map[string]any:
		return s.expandMembers(s.schema.Types[t.Name()], value)
	case []any:
		for _, e := range value {
			if _, isObject := e.(map[string]any); isObject {
				return value, false
			}
		}
		if isCondition && list != "" {
			return map[string]any{list: value}, true
		}
	case string, bool, json.Number, float64, float32, int, int32, int64:
		if isCondition {
			return map[string]any{"eq": value}, true
		}
	}
	return value, false
}

func (s *shorthand) expandElements(t *ast.Type, list []any) (long any, changed bool) {
	out := list
	for i, e := range list {
		if e, differs := s.expandValue(t, e); differs {
			if !changed {
				out, changed = append([]any(nil), list...), true
			}
			out[i] = e
		}
	}
	return out, changed
}

func (s *shorthand) expandMembers(def *ast.Definition, members map[string]any) (long any, changed bool) {
	out := members
	for _, f := range def.Fields {
		member, there := members[f.Name]
		if !there {
			continue
		}
		if member, differs := s.expandValue(f.Type, member); differs {
			if !changed {
				out, changed = maps.Clone(members), true
			}
			out[f.Name] = member
		}
	}
	return out, changed
}
