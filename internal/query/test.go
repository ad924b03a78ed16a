package query

import (
	"slices"
	"strconv"

	"koine/kg"
)

// test reports whether a condition holds. A nil test always holds.
type test[T any] func(T) (bool, error)

// allOf holds if all tests hold.
func allOf[T any](tests ...test[T]) test[T] {
	tests = slices.DeleteFunc(tests, func(t test[T]) bool { return t == nil })
	switch len(tests) {
	case 0:
		return nil
	case 1:
		return tests[0]
	}
	return func(v T) (bool, error) {
		for _, t := range tests {
			if ok, err := t(v); !ok || err != nil {
				return false, err
			}
		}
		return true, nil
	}
}

// anyOf holds if one of the tests holds.
func anyOf[T any](tests ...test[T]) test[T] {
	if slices.ContainsFunc(tests, func(t test[T]) bool { return t == nil }) {
		return nil
	}
	return func(v T) (bool, error) {
		for _, t := range tests {
			if ok, err := t(v); ok || err != nil {
				return ok, err
			}
		}
		return false, nil
	}
}

func negate[T any](t test[T]) test[T] {
	return func(v T) (bool, error) {
		if t == nil {
			return false, nil
		}
		ok, err := t(v)
		return err == nil && !ok, err
	}
}

// part compiles a member of a filter.
type part[T any] struct {
	name    string
	compile func() (test[T], error)
}

// compileParts combines the members into one test.
func compileParts[T any](parts ...part[T]) (test[T], error) {
	var tests []test[T]
	for _, p := range parts {
		t, err := p.compile()
		if err != nil && p.name != "" {
			err = kg.AsError(err).At(p.name)
		}
		if err != nil {
			return nil, err
		}
		tests = append(tests, t)
	}
	return allOf(tests...), nil
}

// compileEach compiles the elements of a list.
func compileEach[F, T any](list []F, compile func(*F) (test[T], error)) ([]test[T], error) {
	tests := make([]test[T], len(list))
	for i := range list {
		var err error
		if tests[i], err = compile(&list[i]); err != nil {
			return nil, kg.AsError(err).At("[" + strconv.Itoa(i) + "]")
		}
	}
	return tests, nil
}

// compileLogic compiles the members and, or and not of a filter.
func compileLogic[F, T any](and, or []F, not *F, compile func(*F) (test[T], error)) (test[T], error) {
	if and == nil && or == nil && not == nil {
		return nil, nil
	}
	return compileParts(
		part[T]{"and", func() (test[T], error) {
			tests, err := compileEach(and, compile)
			return allOf(tests...), err
		}},
		part[T]{"or", func() (test[T], error) {
			tests, err := compileEach(or, compile)
			if or == nil || err != nil {
				return nil, err
			}
			return anyOf(tests...), nil
		}},
		part[T]{"not", func() (test[T], error) {
			if not == nil {
				return nil, nil
			}
			t, err := compile(not)
			return negate(t), err
		}},
	)
}
