package livematch

import (
	"context"
	"encoding/binary"
	"iter"
	"slices"

	"koine/internal/query/pattern"
	"koine/kg"
)

// Row is a solution: the id of each column's variable, zero for an unbound one.
type Row []kg.ID

// Match is a compiled live pattern. It is immutable and safe for concurrent use.
type Match struct {
	group    pattern.Group
	pattern  *pattern.Pattern
	columns  []string
	at       []int // columns in the pattern's rows
	triggers []trigger
	certain  []string
	limits   Limits
}

// New compiles the pattern. The columns are the variables that rows show; nil means
// all.
func New(group pattern.Group, columns []string, limits Limits) (*Match, error) {
	limits = limits.withDefaults()
	p, err := pattern.Compile(group, pattern.Limits{
		Triples: limits.Triples, Statements: int64(limits.Statements), BufferedRows: limits.SnapshotRows,
	})
	if err != nil {
		return nil, err
	}
	m := &Match{group: group, pattern: p, columns: columns, certain: group.Certain(), limits: limits}
	if columns == nil {
		m.columns = p.Names()
	}
	for _, name := range m.columns {
		i := p.Column(name)
		if i < 0 {
			return nil, kg.Errorf(kg.CodeInvalid, "the pattern does not bind the variable %s", name).At("select")
		}
		m.at = append(m.at, i)
	}
	m.triggers = triggersOf(&m.group, m.certain)
	return m, nil
}

// Columns returns the variables that rows show.
func (m *Match) Columns() []string { return m.columns }

// Patterns returns the patterns of the statements on which the solutions depend.
func (m *Match) Patterns() (list []kg.Pattern) {
	for i := range m.triggers {
		for _, p := range m.triggers[i].patterns {
			if !slices.Contains(list, p) {
				list = append(list, p)
			}
		}
	}
	return list
}

// Rows yields the rows of a snapshot, each once. It fails with CodeLimitExceeded if
// the pattern's limits are exceeded.
func (m *Match) Rows(ctx context.Context, s *kg.Snapshot) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		e, err := m.pattern.Evaluate(ctx, s, pattern.Query{Distinct: true, Select: m.columns})
		if err != nil {
			yield(nil, err)
			return
		}
		for row, err := range e.Rows() {
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(m.projectRow(row), nil) {
				return
			}
		}
	}
}

// projectRow projects a solution to the columns.
func (m *Match) projectRow(solution pattern.Row) Row {
	row := make(Row, len(m.at))
	for i, at := range m.at {
		row[i] = solution[at]
	}
	return row
}

// rows is a set of rows by key.
type rows map[string]Row

func (r Row) key() string {
	b := make([]byte, 0, len(r)*9)
	for _, id := range r {
		b = append(b, id[:]...)
	}
	return string(b)
}

// binding maps variables to ids.
type binding map[string]kg.ID

// key returns a key that is equal for equal bindings.
func (b binding) key() string {
	names := make([]string, 0, len(b))
	for name := range b {
		names = append(names, name)
	}
	slices.Sort(names)
	var key []byte
	for _, name := range names {
		id := b[name]
		key = append(binary.AppendUvarint(key, uint64(len(name))), name...)
		key = append(key, id[:]...)
	}
	return string(key)
}

// isCoveredBy reports whether general covers b: its variables have the same ids in b.
func (b binding) isCoveredBy(general binding) bool {
	for name, id := range general {
		if b[name] != id {
			return false
		}
	}
	return true
}
