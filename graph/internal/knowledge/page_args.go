package knowledge

import (
	"koine/graph/internal/fault"
	"koine/graph/internal/scalar"
	"koine/kg"
)

// PageArgs are the arguments that lists have.
type PageArgs struct {
	First  *int
	After  *scalar.Cursor
	Last   *int
	Before *scalar.Cursor
}

// PageDirection returns the size and the cursor of a page, and whether it goes
// backward.
func PageDirection(a PageArgs) (size *int, cursor *scalar.Cursor, backward bool, err error) {
	switch {
	case a.First != nil && a.Last != nil:
		return nil, nil, false, kg.Errorf(kg.CodeInvalid, "first and last are mutually exclusive").At("last")
	case a.After != nil && (a.Last != nil || a.Before != nil):
		e := kg.Errorf(kg.CodeInvalid, "after is for pages forward, last and before for pages backward").At("after")
		e.Hint = "Pass first and after, or last and before."
		return nil, nil, false, e
	case a.Before != nil && a.Last == nil:
		e := kg.Errorf(kg.CodeInvalid, "before requires last").At("before")
		e.Hint = "Pass last: the number of elements before the cursor."
		return nil, nil, false, e
	case a.Last != nil:
		return a.Last, a.Before, true, nil
	}
	return a.First, a.After, false, nil
}

// InDirection places an error about first or after in the arguments of a page
// backward.
func InDirection(err error, backward bool) error {
	if err == nil || !backward {
		return err
	}
	return fault.WithFieldNames(err, map[string]string{"first": "last", "after": "before"})
}
