package records

import (
	"context"
	"iter"
	"slices"
	"strings"
	"sync"

	"koine/kg"
)

// Table holds the records of one graph whose subjects begin alike. It is safe
// for concurrent use.
type Table struct {
	graph   kg.Term
	prefix  string
	names   []string
	changed func(kg.Term, Record)

	// mu guards what follows.
	mu       sync.Mutex
	records  map[kg.Term]Record
	followed kg.Revision // the newest commit that was followed
}

// NewTable makes an empty table of the subjects in the graph that begin with
// prefix, with the named properties only, or with all of them. changed is called with each record that has changed, in order, and with
// nil for one that has gone; it must not block and not call the table.
func NewTable(graph kg.Term, prefix string, changed func(subject kg.Term, now Record), names ...string) *Table {
	return &Table{graph: graph, prefix: prefix, names: names, changed: changed, records: map[kg.Term]Record{}}
}

// Len is the number of records.
func (t *Table) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.records)
}

// Load reads what stands in the store. It is called once, after the store was
// opened with Follow as one of its callbacks.
func (t *Table) Load(ctx context.Context, store *kg.Store) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := store.WaitFor(ctx, t.followed); err != nil {
		return err
	}
	s, err := store.View(ctx, kg.View{Principal: kg.SystemPrincipal(), Graphs: []kg.Term{t.graph}})
	if err != nil {
		return err
	}
	defer s.Close()
	t.followed = s.Revision()
	for st, err := range s.Match(kg.Pattern{Graph: t.graph}) {
		if err != nil {
			return err
		}
		if name := t.keeps(st.Quad); name != "" {
			t.records[st.Subject] = t.records[st.Subject].with(name, st.Object, true)
		}
	}
	for subject, record := range t.records {
		t.changed(subject, record)
	}
	return nil
}

// Follow takes a commit. It is called in the order of the revisions.
func (t *Table) Follow(c *kg.Commit) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.Revision <= t.followed {
		return
	}
	t.followed = c.Revision
	var touched []kg.Term
	for i := range c.Changes {
		ch := &c.Changes[i]
		name := t.keeps(ch.Quad)
		if name == "" {
			continue
		}
		before := t.records[ch.Quad.Subject]
		t.records[ch.Quad.Subject] = before.with(name, ch.Quad.Object, len(ch.After) > 0)
		touched = append(touched, ch.Quad.Subject)
	}
	told := map[kg.Term]bool{}
	for _, subject := range touched {
		if told[subject] {
			continue
		}
		told[subject] = true
		record := t.records[subject]
		if len(record) == 0 {
			delete(t.records, subject)
			record = nil
		}
		t.changed(subject, record)
	}
}

// keeps is the name of the property that the statement is about, "" if the table
// does not keep it.
func (t *Table) keeps(q kg.Quad) string {
	name := nameOf(q.Predicate)
	if q.Graph != t.graph || !strings.HasPrefix(q.Subject.Value(), t.prefix) || t.names != nil && !slices.Contains(t.names, name) {
		return ""
	}
	return name
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
			r = r.with(name, st.Object, true)
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
