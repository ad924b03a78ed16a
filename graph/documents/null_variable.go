package documents

import (
	"github.com/vektah/gqlparser/v2/ast"

	"koine/kg"
)

// A nullable variable may be used where null is not allowed if either of the
// two has a default (GraphQL, "All Variable Usages Are Allowed"). Passing null
// all the same is an error of the field that uses it. The library panics on
// that, or ignores it, so it is detected before execution.

// nullChecker finds null variables used where a value is required.
type nullChecker struct {
	variables map[string]any
	fragments map[string]error // the error of each, nil for none
}

// WithoutNulls returns the root fields of an operation in a form that can be
// collected, and the error of each field that uses null as a value, by its
// alias.
func WithoutNulls(op *ast.OperationDefinition, variables map[string]any) (ast.SelectionSet, map[string]error) {
	given := false
	for _, v := range variables {
		given = given || v == nil
	}
	if !given {
		return op.SelectionSet, nil
	}
	n := &nullChecker{variables: variables, fragments: map[string]error{}}
	broken := map[string]error{}
	return n.rootFields(op.SelectionSet, nil, broken), broken
}

// rootFields copies root fields without directives that cannot be evaluated. All
// fields under such a directive get its error.
func (n *nullChecker) rootFields(set ast.SelectionSet, by error, broken map[string]error) (out ast.SelectionSet) {
	for _, sel := range set {
		switch sel := sel.(type) {
		case *ast.Field:
			err := by
			if err == nil {
				err = n.checkField(sel)
			}
			field := *sel
			if err != nil {
				field.Directives = nil
				if broken[sel.Alias] == nil {
					broken[sel.Alias] = err
				}
			}
			out = append(out, &field)
		case *ast.InlineFragment:
			out = append(out, n.rootFragment(*sel, by, broken))
		case *ast.FragmentSpread:
			out = append(out, n.rootFragment(ast.InlineFragment{
				TypeCondition: sel.Definition.TypeCondition, Directives: sel.Directives, SelectionSet: sel.Definition.SelectionSet,
				ObjectDefinition: sel.ObjectDefinition, Position: sel.Position,
			}, by, broken))
		}
	}
	return out
}

func (n *nullChecker) rootFragment(f ast.InlineFragment, by error, broken map[string]error) *ast.InlineFragment {
	if err := n.checkDirectives(f.Directives); by == nil && err != nil {
		by = err
	}
	if by != nil {
		f.Directives = nil
	}
	f.SelectionSet = n.rootFields(f.SelectionSet, by, broken)
	return &f
}

func (n *nullChecker) checkField(f *ast.Field) error {
	if err := n.checkDirectives(f.Directives); err != nil {
		return err
	}
	if err := n.checkArguments(f.Arguments); err != nil {
		return err
	}
	return n.checkSet(f.SelectionSet)
}

func (n *nullChecker) checkSet(set ast.SelectionSet) (err error) {
	for _, sel := range set {
		switch sel := sel.(type) {
		case *ast.Field:
			err = n.checkField(sel)
		case *ast.InlineFragment:
			if err = n.checkDirectives(sel.Directives); err == nil {
				err = n.checkSet(sel.SelectionSet)
			}
		case *ast.FragmentSpread:
			if err = n.checkDirectives(sel.Directives); err == nil {
				err = n.checkFragment(sel.Definition)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (n *nullChecker) checkFragment(f *ast.FragmentDefinition) error {
	err, known := n.fragments[f.Name]
	if !known {
		err = n.checkSet(f.SelectionSet)
		n.fragments[f.Name] = err
	}
	return err
}

func (n *nullChecker) checkDirectives(list ast.DirectiveList) error {
	for _, d := range list {
		if err := n.checkArguments(d.Arguments); err != nil {
			return err
		}
	}
	return nil
}

func (n *nullChecker) checkArguments(list ast.ArgumentList) error {
	for _, a := range list {
		if err := n.checkValue(a.Value); err != nil {
			return err
		}
	}
	return nil
}

func (n *nullChecker) checkValue(v *ast.Value) error {
	if v.Kind == ast.Variable {
		given, ok := n.variables[v.Raw]
		if !ok || given != nil || v.ExpectedType == nil || !v.ExpectedType.NonNull {
			return nil
		}
		e := kg.Errorf(kg.CodeInvalid, "the variable $%s is null, but %s is required", v.Raw, v.ExpectedType)
		e.Hint = "Leave the variable out to get the default."
		return e
	}
	for _, child := range v.Children {
		if err := n.checkValue(child.Value); err != nil {
			return err
		}
	}
	return nil
}
