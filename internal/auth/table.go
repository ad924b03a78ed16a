package auth

import (
	"context"
	"strings"
	"sync"
	"time"

	"koine/internal/records"
	"koine/kg"
)

// Table knows the keys in memory. It is empty until Load; Follow keeps it up
// with the store.
type Table struct {
	records *records.Table
	keys    sync.Map // name → *Key
	changed func()   // a key that was good may not be so any more
}

// NewTable makes an empty table.
func NewTable() *Table {
	t := &Table{changed: func() {}}
	t.records = records.NewTable(kg.SystemGraph, keySubject, t.set)
	return t
}

// Load reads the keys of the store, once.
func (t *Table) Load(ctx context.Context, store *kg.Store) error { return t.records.Load(ctx, store) }

// Follow takes a commit (kg.Options.OnSystemChange).
func (t *Table) Follow(c *kg.Commit) { t.records.Follow(c) }

func (t *Table) set(subject kg.Term, r records.Record) {
	name := strings.TrimPrefix(subject.Value(), keySubject)
	if key := keyOf(subject, r); key != nil {
		t.keys.Store(name, key)
	} else {
		t.keys.Delete(name)
	}
	t.changed()
}

// named is the key of this name as it is now, nil if there is none.
func (t *Table) named(name string) *Key {
	if key, ok := t.keys.Load(name); ok {
		return key.(*Key)
	}
	return nil
}

// HasAdmin tells whether a key that is good gives the role of an administrator.
func (t *Table) HasAdmin(now time.Time) bool {
	found := false
	t.keys.Range(func(_, value any) bool {
		key := value.(*Key)
		found = key.IsAdmin() && key.StateAt(now) == Active
		return !found
	})
	return found
}
