package records

import (
	"context"
	"iter"
	"strings"
	"sync"

	"koine/kg"
)

// Table holds the records of one graph whose subjects begin alike. It is safe
// for concurrent use.
type Table struct {
	prefix   string
	patterns []kg.Pattern
	changed  func(kg.Term, Record)
	mirror   Mirror

	mu      sync.Mutex // guards records
	records map[kg.Term]Record
}

// NewTable makes an empty table of the subjects in the graph that begin with
// prefix, with the named properties only, or with all of them. changed is called
// with each record that has changed, in order, and with nil for one that has
// gone; it must not block and not call the table.
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

// Len is the number of records.
func (t *Table) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.records)
}

// Load reads what stands in the store, once: see Mirror.
func (t *Table) Load(ctx context.Context, store *kg.Store) error {
	return t.mirror.Load(ctx, store, t.take, t.patterns...)
}

// Follow takes a commit (kg.Options.OnSystemChange).
func (t *Table) Follow(c *kg.Commit) { t.mirror.Follow(c, t.take, t.patterns...) }

// take tells of each subject once.
func (t *Table) take(_ kg.Revision, facts []Fact) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var touched []kg.Term
	told := map[kg.Term]bool{}
	for _, f := range facts {
		name := nameOf(f.Predicate)
		if name == "" || !strings.HasPrefix(f.Subject.Value(), t.prefix) {
			continue
		}
		t.records[f.Subject] = t.records[f.Subject].with(name, f.Object, f.Stands)
		if !told[f.Subject] {
			told[f.Subject] = true
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

// Matcher reads statements (kg.Snapshot; kg.Tx by its MatchOwn).
type Matcher func(kg.Pattern) iter.Seq2[kg.Statement, error]

// Read gives the record of one subject as it stands; nil if there is none.
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

// Subjects lists those of a class in the order of the index.
func Subjects(match Matcher, graph kg.Term, class string) ([]kg.Term, error) {
	var out []kg.Term
	for st, err := range match(kg.Pattern{Predicate: kg.IRI(kg.RDFType), Object: Property(class), Graph: graph}) {
		if err != nil {
			return nil, err
		}
		out = append(out, st.Subject)
	}
	return out, nil
}
