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
	records  *records.Table
	keys     sync.Map // name → *Key
	onChange func()   // a key that was good may not be so any more
}

// NewTable makes an empty table.
func NewTable() *Table {
	t := &Table{onChange: func() {}}
	t.records = records.NewTable(kg.SystemGraph, keySubject, t.applyRecord)
	return t
}

// Load reads the keys of the store, once.
func (t *Table) Load(ctx context.Context, store *kg.Store) error { return t.records.Load(ctx, store) }

// Follow takes a commit (kg.Options.OnSystemChange).
func (t *Table) Follow(c *kg.Commit) { t.records.Follow(c) }

func (t *Table) applyRecord(subject kg.Term, r records.Record) {
	name := strings.TrimPrefix(subject.Value(), keySubject)
	if key := keyOf(subject, r); key != nil {
		t.keys.Store(name, key)
	} else {
		t.keys.Delete(name)
	}
	t.onChange()
}

// keyByName is the key of this name as it is now, nil if there is none.
func (t *Table) keyByName(name string) *Key {
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
