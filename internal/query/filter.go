package query

import (
	"encoding/json"
	"time"

	"koine/kg/base"
)

// The filters are conditions as clients write them. All given members must
// hold; a nil member always holds. Code generated from a schema fills them in,
// and names types of the store by the types behind the aliases of kg.

// Ordered is a condition on a value of an ordered type.
type Ordered[T any] struct {
	Exists                   *bool
	Eq, Ne, Lt, Lte, Gt, Gte *T
	In, Nin                  []T
}

// Conditions on numbers, times and revisions.
type (
	FloatFilter    Ordered[float64]
	LongFilter     Ordered[int64]
	DateTimeFilter Ordered[time.Time]
	RevisionFilter Ordered[base.Revision]
)

// Substring is a condition on the characters of a text.
type Substring struct{ Contains, StartsWith, EndsWith, Regex *string }

// StringFilter is a condition on a text.
type StringFilter struct {
	Ordered[string]
	Substring
}

// IRIFilter is a condition on an IRI.
type IRIFilter struct {
	Exists  *bool
	Eq, Ne  *base.Term
	In, Nin []base.Term
	Substring
}

// GraphFilter is a condition on the graph of a statement. In lists, nil is the
// default graph.
type GraphFilter struct {
	Eq, Ne  *base.Term
	In, Nin []*base.Term
	Default *bool
	Substring
}

// Comparisons compare a value with operands in JSON (see operand).
type Comparisons struct {
	Eq, Ne, Lt, Lte, Gt, Gte json.RawMessage
	In, Nin                  []json.RawMessage
}

// ValueFilter is a condition on the object of a statement.
type ValueFilter struct {
	Comparisons
	Substring
	IRI      *IRIFilter
	Language *StringFilter
	Datatype *IRIFilter
}

// AssertionFilter is a condition on the assertions of a statement.
type AssertionFilter struct {
	Certainty  *FloatFilter
	AssertedBy *StringFilter
	RecordedAt *DateTimeFilter
	AgeSeconds *LongFilter
	Revision   *RevisionFilter
}

// StatementFilter is a condition on statements.
type StatementFilter struct {
	Subject, Predicate *IRIFilter
	Object             *ValueFilter
	Graph              *GraphFilter
	AssertionFilter
	And, Or []StatementFilter
	Not     *StatementFilter
}

// PropertyFilter is a condition on the values of a property: one value must
// meet all of it, together with its statement.
type PropertyFilter struct {
	Predicate base.Term
	Exists    *bool
	ValueFilter
	AssertionFilter
	Graph *GraphFilter
}

// PathFilter is a condition on the ends of a path. If neither Quantifier nor
// Count is given, one end must fit.
type PathFilter struct {
	Path       string
	Quantifier *Quantifier
	Where      *EntityFilter
	Value      *ValueFilter
	Count      *LongFilter
}

// Quantifier is a quantifier over the ends of a path.
type Quantifier string

// The quantifiers.
const (
	Some   Quantifier = "SOME"
	Every  Quantifier = "EVERY" // also if there is no end
	None   Quantifier = "NONE"
	Single Quantifier = "SINGLE"
)

// EntityFilter is a condition on entities.
type EntityFilter struct {
	IRI, Type *IRIFilter
	Label     *StringFilter
	Property  []PropertyFilter
	Path      []PathFilter
	And, Or   []EntityFilter
	Not       *EntityFilter
}
