package systemgraph

import (
	"context"
	"iter"
	"strings"
	"sync"

	"koine/kg"
)

// Table holds the records of one graph whose subjects share a prefix. It is safe for
// concurrent use.
type Table struct {
	prefix   string
	patterns []kg.Pattern
	changed  func(kg.Term, Record)
	mirror   Mirror

	mu      sync.Mutex // guards records
	records map[kg.Term]Record
}

// NewTable returns an empty table of the subjects in the graph that begin with prefix,
// with the named properties only, or with all if names is empty. The table calls
// changed with each changed record, in order, and with nil for a removed one; changed
// must not block and must not call the table.
func NewTable(graph kg.Term, prefix string, changed func(subject kg.Term, now Record), names ...string) *Table {
	t := &Table{prefix: prefix, changed: changed, records: map[kg.Term]Record{}}
	for _, name := range names {
		t.patterns = append(t.patterns, kg.Pattern{Predicate: Property(name), Graph: graph})
	}
	if len(names) == 0 {
		t.patterns = []kg.Pattern{{Graph: graph}}
	}
	return t
}

// Len returns the number of records.
func (t *Table) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.records)
}

// Load reads the records of the store, once: see Mirror.
func (t *Table) Load(ctx context.Context, store *kg.Store) error {
	return t.mirror.Load(ctx, store, t.applyFacts, t.patterns...)
}

// Follow applies a commit (kg.Governor.OnSystemChange).
func (t *Table) Follow(c *kg.Commit) { t.mirror.Follow(c, t.applyFacts, t.patterns...) }

// applyFacts applies facts and calls changed once for each subject.
func (t *Table) applyFacts(_ kg.Revision, facts []Fact) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var touched []kg.Term
	seen := map[kg.Term]bool{}
	for _, f := range facts {
		name := nameOf(f.Predicate)
		if name == "" || !strings.HasPrefix(f.Subject.Value(), t.prefix) {
			continue
		}
		t.records[f.Subject] = t.records[f.Subject].withObject(name, f.Object, f.Exists)
		if !seen[f.Subject] {
			seen[f.Subject] = true
			touched = append(touched, f.Subject)
		}
	}
	for _, subject := range touched {
		record := t.records[subject]
		if len(record) == 0 {
			delete(t.records, subject)
			record = nil
		}
		t.changed(subject, record)
	}
}

// Matcher reads statements: kg.Snapshot.Match or kg.Tx.MatchOwn.
type Matcher func(kg.Pattern) iter.Seq2[kg.Statement, error]

// Read returns the record of one subject, nil if there is none.
func Read(match Matcher, graph, subject kg.Term) (Record, error) {
	var r Record
	for st, err := range match(kg.Pattern{Subject: subject, Graph: graph}) {
		if err != nil {
			return nil, err
		}
		if name := nameOf(st.Predicate); name != "" {
			if r == nil {
				r = Record{}
			}
			r[name] = append(r[name], st.Object)
		}
	}
	return r, nil
}

// First returns the first statement that matches; found is false if none does.
func First(match Matcher, p kg.Pattern) (st kg.Statement, found bool, err error) {
	for st, err = range match(p) {
		return st, err == nil, err
	}
	return st, false, nil
}

// Quads lists the statements that match, in index order.
func Quads(match Matcher, p kg.Pattern) (list []kg.Quad, err error) {
	for st, err := range match(p) {
		if err != nil {
			return nil, err
		}
		list = append(list, st.Quad)
	}
	return list, nil
}

// Subjects lists the subjects of the statements that match, in index order.
func Subjects(match Matcher, p kg.Pattern) (out []kg.Term, err error) {
	quads, err := Quads(match, p)
	for i := range quads {
		out = append(out, quads[i].Subject)
	}
	return out, err
}

// Instances lists the instances of a class in index order.
func Instances(match Matcher, graph kg.Term, class string) ([]kg.Term, error) {
	return Subjects(match, kg.Pattern{Predicate: kg.IRI(kg.RDFType), Object: Property(class), Graph: graph})
}
