// Package limit bounds one operation: Limits are the operator's, Allowance is the
// caller's budget. A document is checked before anything is read: its shape (Limits.CheckShape) and its estimated
// cost (Limits.CheckCost). A Pace makes heavy queries take turns.
//
// An exceeded limit is an *Error, which names the limit and has a hint.
package limit

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"koine/internal/changefeed"
	"koine/internal/query/livematch"
	"koine/internal/query/path"
	"koine/internal/query/pattern"
	"koine/kg"
)

// Limits are the limits of one operation. A zero member means its default.
type Limits struct {
	Tokens        int // in the query's text
	Depth         int // of nested fields
	Fields        int // in the operation, with fragments expanded where they are used
	Aliases       int // fields with an alias
	Repeats       int // of one response name in one selection set
	RootFields    int // of the operation
	Complexity    int // estimated cost of the operation, given its page sizes
	PageSize      int // of a connection
	Groups        int // of a list, before `having` and `first`; each computed value counts as one more
	GroupedValues int // distinct keys and values of all groups of a list
	// Rows bounds the rows that the joins of a pattern make, intermediate ones
	// included. KeptRows bounds those held in memory for `distinct` and an
	// order. Reads bounds the statements read for one pattern, field `follow`,
	// neighborhood or path search. PathNodes bounds the nodes that one path
	// holds.
	Rows, KeptRows   int
	Reads, PathNodes int
	Commits          int // of the log, read for a page of changes
	// WatchedEntities bounds the entities that entityChanged watches, up to
	// changefeed.MaxEntities. WatchedReads bounds the statements read to find
	// them.
	WatchedEntities int
	WatchedReads    int
	// Live bounds matchChanged. SnapshotRows bounds the rows in one event of
	// its snapshot.
	Live          livematch.Limits
	SnapshotRows  int
	VariableBytes int           // of all variables, as JSON
	ResultBytes   int           // of the answer's data
	Duration      time.Duration // of a query or mutation
	Wait          time.Duration // part of Duration spent waiting for a view's minimal revision
	AskTime       time.Duration // spent by a mutation waiting for responses, in addition to Duration
}

// The defaults of Limits and of page sizes.
const (
	DefaultTokens          = 10_000
	DefaultDepth           = 40
	DefaultFields          = 2_000
	DefaultRepeats         = 50
	DefaultAliases         = 500
	DefaultRootFields      = 50
	DefaultComplexity      = 1_000_000
	DefaultMaxPageSize     = 1_000
	DefaultGroups          = 1_000_000
	DefaultGroupedValues   = 1_000_000
	DefaultRows            = pattern.DefaultRows
	DefaultKeptRows        = pattern.DefaultBufferedRows
	DefaultReads           = pattern.DefaultStatements
	DefaultPathNodes       = path.DefaultNodes
	DefaultCommits         = kg.DefaultLogCommits
	DefaultWatchedEntities = changefeed.DefaultEntities
	DefaultSnapshotRows    = 500
	DefaultWatchedReads    = changefeed.DefaultReads
	DefaultVariableBytes   = 8 << 20
	DefaultResultBytes     = 16 << 20
	DefaultDuration        = 10 * time.Second
	DefaultWait            = 5 * time.Second
	DefaultAskTime         = time.Minute

	// MaxVariableDepth bounds the nesting of lists and objects in variables:
	// the cost of checking them grows with the square of the depth.
	MaxVariableDepth = 500

	DefaultPageSize = 25
	// MaxCountedPages bounds the pages that a domain reads to count a list.
	MaxCountedPages = 20
	DefaultListSize = 100 // of lists that are short as a rule: members, classes, …
)

// Bounds of the statements and of the entities of a neighborhood.
const (
	DefaultNeighborhood = 1_000  // without a budget
	MaxNeighborhood     = 10_000 // with any budget
)

// WithDefaults returns the limits with defaults in the place of zeros.
func (l Limits) WithDefaults() Limits {
	for _, m := range []struct {
		to    *int
		value int
	}{
		{&l.Tokens, DefaultTokens}, {&l.Depth, DefaultDepth}, {&l.Fields, DefaultFields}, {&l.Repeats, DefaultRepeats},
		{&l.Aliases, DefaultAliases}, {&l.RootFields, DefaultRootFields}, {&l.Complexity, DefaultComplexity},
		{&l.PageSize, DefaultMaxPageSize}, {&l.Commits, DefaultCommits}, {&l.Groups, DefaultGroups}, {&l.GroupedValues, DefaultGroupedValues},
		{&l.Rows, DefaultRows}, {&l.KeptRows, DefaultKeptRows}, {&l.Reads, DefaultReads}, {&l.PathNodes, DefaultPathNodes},
		{&l.WatchedEntities, DefaultWatchedEntities}, {&l.WatchedReads, DefaultWatchedReads}, {&l.SnapshotRows, DefaultSnapshotRows},
		{&l.VariableBytes, DefaultVariableBytes}, {&l.ResultBytes, DefaultResultBytes},
	} {
		if *m.to <= 0 {
			*m.to = m.value
		}
	}
	l.WatchedEntities = min(l.WatchedEntities, changefeed.MaxEntities)
	if l.Duration <= 0 {
		l.Duration = DefaultDuration
	}
	if l.Wait <= 0 {
		l.Wait = DefaultWait
	}
	if l.AskTime <= 0 {
		l.AskTime = DefaultAskTime
	}
	return l
}

// PatternLimits returns the limits for evaluating a pattern.
func (l Limits) PatternLimits() pattern.Limits {
	return pattern.Limits{Rows: int64(l.Rows), BufferedRows: l.KeptRows, Statements: int64(l.Reads), Nodes: l.PathNodes}
}

// Error reports an exceeded limit. Its code is CodeLimitExceeded, or
// CodeTimeout for the duration.
type Error struct {
	Limit   string
	Message string
	Hint    string
}

func (e *Error) Error() string { return e.Message }

// Exceeded returns the error of an exceeded limit.
func Exceeded(limit, format string, args ...any) *Error {
	return &Error{Limit: limit, Message: fmt.Sprintf(format, args...)}
}

// WithHint sets the hint.
func (e *Error) WithHint(text string) *Error {
	e.Hint = text
	return e
}

// GroupLimit converts an exceeded limit on groups to a LimitError.
func GroupLimit(err error) error {
	if known := (*kg.Error)(nil); errors.As(err, &known) && strings.HasPrefix(known.Limit, "group") {
		return &Error{Limit: known.Limit, Message: known.Message, Hint: known.Hint}
	}
	return err
}

// TooSlow is the error of an operation that has no time left.
func (l Limits) TooSlow() *Error {
	return Exceeded("duration", "the operation took longer than %v", l.Duration).
		WithHint("Request a smaller page, use a narrower filter, or leave totalCount out.")
}

// ResultTooLarge is the error of an answer that exceeds ResultBytes.
func (l Limits) ResultTooLarge() error {
	return Exceeded("resultBytes", "the answer is larger than %d bytes", l.ResultBytes).
		WithHint("Select fewer fields or request a smaller page (first).")
}

// CheckFirst returns the page size requested with first.
func (l Limits) CheckFirst(first *int, unasked int) (int, error) {
	switch {
	case first == nil:
		return min(unasked, l.PageSize), nil
	case *first < 0:
		return 0, kg.Errorf(kg.CodeInvalid, "first must not be negative").At("first")
	case *first > l.PageSize:
		return 0, Exceeded("pageSize", "first is %d; at most %d is allowed", *first, l.PageSize).
			WithHint("Request smaller pages and continue with after: pageInfo.endCursor.")
	}
	return *first, nil
}

// CheckVariables bounds the size and the nesting of variables.
func (l Limits) CheckVariables(variables map[string]any) error {
	if n := sizeOf(variables, l.VariableBytes); n > l.VariableBytes {
		return Exceeded("variableBytes", "the variables are larger than %d bytes", l.VariableBytes).
			WithHint("Send them in several operations.")
	}
	if nestedDeeper(variables, MaxVariableDepth) {
		return Exceeded("variableDepth", "the variables are nested deeper than %d", MaxVariableDepth).
			WithHint("Nest conditions less deeply.")
	}
	return nil
}

// nestedDeeper reports whether a value nests lists and objects deeper than most.
func nestedDeeper(v any, most int) bool {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			if most == 0 || nestedDeeper(e, most-1) {
				return true
			}
		}
	case map[string]any:
		for _, e := range v {
			if most == 0 || nestedDeeper(e, most-1) {
				return true
			}
		}
	}
	return false
}

// sizeOf estimates the size of a value as JSON. It stops counting beyond max.
func sizeOf(v any, max int) int {
	n := 4
	switch v := v.(type) {
	case string:
		n += len(v)
	case json.Number:
		n += len(v)
	case []any:
		for _, e := range v {
			if n += sizeOf(e, max-n); n > max {
				return n
			}
		}
	case map[string]any:
		for k, e := range v {
			if n += len(k) + sizeOf(e, max-n); n > max {
				return n
			}
		}
	}
	return n
}

// PathEdges returns the edges that the arguments `predicates` and `direction` give.
func (l Limits) PathEdges(predicates []kg.Term, direction path.Direction) path.Edges {
	return path.Edges{Statements: l.Reads, Direction: direction, Predicates: predicates}
}
