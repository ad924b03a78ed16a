package search

import (
	"context"
	"slices"
	"strings"

	"koine/internal/query"
	"koine/internal/query/pattern"
	"koine/kg"
)

// maxSingleMatches is how many entities are tested one by one before all solutions of the
// pattern are read, and maxSolutions how many entities these may have. Beyond, entities are
// tested one by one, or the search is refused if the pattern has texts: entities are tested
// within a search, which must not wait for another.
const (
	maxSingleMatches = 500
	maxSolutions     = 200_000
)

// compiledMatch is a MatchFilter for one snapshot.
type compiledMatch struct {
	ctx      context.Context
	snapshot *kg.Snapshot
	name     string
	pattern  *pattern.Pattern
	tested   int
	solved   idSet // of all solutions; nil until they are read
	any      bool  // a solution leaves the variable open
}

func (m *MatchFilter) compile(ctx context.Context, snapshot *kg.Snapshot) (*compiledMatch, error) {
	compiler := m.Compiler
	compiler.Ctx = ctx
	group, err := compiler.Pattern(m.Pattern, snapshot)
	if err != nil {
		return nil, kg.AsError(err).At("match")
	}
	limits := m.Limits
	limits.BufferedRows = maxSolutions
	compiled, err := pattern.Compile(group, limits)
	if err != nil {
		return nil, kg.AsError(err).At("match.pattern")
	}
	name := strings.TrimPrefix(m.Var, "?")
	if known := query.Variables(compiled); !slices.Contains(known, name) {
		return nil, query.UnknownVariable(name, known).At("match.var")
	}
	c := &compiledMatch{ctx: ctx, snapshot: snapshot, name: name, pattern: compiled}
	if compiled.HasTexts() {
		if err := c.solve(); err != nil {
			return nil, kg.AsError(err).At("match.pattern")
		}
	}
	return c, nil
}

// admitsSubject reports whether an entity is the value of the variable in a solution. A nil match
// admits all subjects.
func (c *compiledMatch) admitsSubject(subject kg.ID) (bool, error) {
	if c == nil {
		return true, nil
	}
	if c.tested++; c.tested == maxSingleMatches+1 && c.solved == nil {
		if err := c.solve(); err != nil && kg.CodeOf(err) != kg.CodeLimitExceeded {
			return false, err
		}
	}
	if c.solved != nil {
		return c.any || c.solved.has(subject), nil
	}
	found, err := c.pattern.Evaluate(c.ctx, c.snapshot, pattern.Query{Bound: map[string]kg.ID{c.name: subject}, First: 1})
	if err != nil {
		return false, err
	}
	for _, err := range found.Rows() {
		return err == nil, err
	}
	return false, nil
}

// solve reads all solutions.
func (c *compiledMatch) solve() error {
	all, err := c.pattern.Evaluate(c.ctx, c.snapshot, pattern.Query{Select: []string{c.name}, Distinct: true})
	if err != nil {
		return err
	}
	column, solved := c.pattern.Column(c.name), idSet{}
	for row, err := range all.Rows() {
		if err != nil {
			return err
		}
		solved[row[column]] = struct{}{}
		c.any = c.any || row[column].IsZero()
	}
	c.solved = solved
	return nil
}
