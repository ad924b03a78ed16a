package executor

import (
	"context"
	"errors"
	"reflect"

	"github.com/vektah/gqlparser/v2/ast"
)

// Coercer coerces arguments.
type Coercer struct {
	Ctx context.Context // for scalars that depend on the request
}

// ArgumentError is the error of an argument, or of a member of one.
type ArgumentError struct {
	Path ast.Path // from the argument's name on
	Err  error
}

func (e *ArgumentError) Error() string { return e.Err.Error() }

func (e *ArgumentError) Unwrap() error { return e.Err }

// placeError places an error in an argument, in a member of an input object, or in an
// element of a list.
//
//go:noinline
func placeError(at ast.PathElement, err error) error {
	inner, ok := err.(*ArgumentError)
	if !ok {
		return &ArgumentError{Path: ast.Path{at}, Err: err}
	}
	inner.Path = append(ast.Path{at}, inner.Path...)
	return inner
}

// Input is an input object, or the arguments of a field, while it is coerced.
type Input struct {
	c       *Coercer
	members map[string]any
	err     error
}

// Arguments returns the arguments of a field.
func Arguments(c *Coercer, raw map[string]any) *Input { return &Input{c: c, members: raw} }

// InputObject returns the members of an input object.
func InputObject(c *Coercer, v any) *Input {
	m, ok := v.(map[string]any)
	if !ok {
		return &Input{err: errors.New("expected an input object")}
	}
	return &Input{c: c, members: m}
}

// Err returns the error of the first member that could not be coerced.
func (in *Input) Err() error { return in.err }

// Member coerces a member that was given.
func Member[T any](in *Input, name string, to *T, coerce func(*Coercer, any) (T, error)) {
	if v, ok := in.members[name]; ok {
		setMember(in, name, to, coerce, v)
	}
}

// MemberOr is Member for a member with a default value.
func MemberOr[T any](in *Input, name string, unset any, to *T, coerce func(*Coercer, any) (T, error)) {
	v, ok := in.members[name]
	if !ok {
		v = unset
	}
	setMember(in, name, to, coerce, v)
}

func setMember[T any](in *Input, name string, to *T, coerce func(*Coercer, any) (T, error), v any) {
	if in.err != nil {
		return
	}
	out, err := coerce(in.c, v)
	if err != nil {
		in.fail(name, err)
		return
	}
	*to = out
}

// fail notes the error of a member, the first one.
//
//go:noinline
func (in *Input) fail(name string, err error) { in.err = placeError(ast.PathName(name), err) }

// CoerceList coerces a list. A single value is a list of one.
func CoerceList[T any](c *Coercer, v any, element func(*Coercer, any) (T, error)) ([]T, error) {
	list := listOf(v)
	out := make([]T, len(list))
	for i, e := range list {
		var err error
		if out[i], err = element(c, e); err != nil {
			return nil, placeError(ast.PathIndex(i), err)
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
