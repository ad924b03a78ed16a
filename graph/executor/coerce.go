package executor

import (
	"context"
	"errors"
	"reflect"

	"github.com/vektah/gqlparser/v2/ast"
)

// Coercer coerces arguments.
type Coercer struct {
	Ctx context.Context // for scalars whose meaning depends on the request
}

// ArgumentError is the error of an argument, or of a member of one.
type ArgumentError struct {
	Path ast.Path // from the argument's name on
	Err  error
}

func (e *ArgumentError) Error() string { return e.Err.Error() }

func (e *ArgumentError) Unwrap() error { return e.Err }

// InMember places an error in an argument or in a member of an input object.
func InMember(name string, err error) error { return within(ast.PathName(name), err) }

// InElement places an error in an element of a list.
func InElement(i int, err error) error { return within(ast.PathIndex(i), err) }

func within(at ast.PathElement, err error) error {
	inner, ok := err.(*ArgumentError)
	if !ok {
		return &ArgumentError{Path: ast.Path{at}, Err: err}
	}
	inner.Path = append(ast.Path{at}, inner.Path...)
	return inner
}

var errNotObject = errors.New("expected an input object")

// Members returns the members of an input object.
func Members(v any) (map[string]any, error) {
	m, ok := v.(map[string]any)
	if !ok {
		return nil, errNotObject
	}
	return m, nil
}

// CoerceList coerces a list. A single value is a list of one.
func CoerceList[T any](c *Coercer, v any, element func(*Coercer, any) (T, error)) ([]T, error) {
	list := listOf(v)
	out := make([]T, len(list))
	for i, e := range list {
		var err error
		if out[i], err = element(c, e); err != nil {
			return nil, InElement(i, err)
		}
	}
	return out, nil
}

// listOf returns the elements of a list. The library makes a single value of a
// variable a slice of that value's type.
func listOf(v any) []any {
	if list, ok := v.([]any); ok {
		return list
	}
	if r := reflect.ValueOf(v); r.Kind() == reflect.Slice {
		out := make([]any, r.Len())
		for i := range out {
			out[i] = r.Index(i).Interface()
		}
		return out
	}
	return []any{v}
}

// CoerceOptional coerces a nullable value to a pointer.
func CoerceOptional[T any](c *Coercer, v any, value func(*Coercer, any) (T, error)) (*T, error) {
	if v == nil {
		return nil, nil
	}
	out, err := value(c, v)
	if err != nil {
		return nil, err
	}
	return &out, nil
}
