package auth

import (
	"context"
	"strings"
	"sync"
	"time"

	"koine/internal/systemgraph"
	"koine/kg"
)

// Table holds the keys in memory. It is empty until Load; Follow applies later changes.
type Table struct {
	records  *systemgraph.Table
	keys     sync.Map // name → *Key
	onChange func()   // called when a key may have become invalid
}

// NewTable returns an empty table.
func NewTable() *Table {
	t := &Table{onChange: func() {}}
	t.records = systemgraph.NewTable(kg.SystemGraph, keySubject, t.applyRecord)
	return t
}

// Load reads the keys from the store. It must be called once.
func (t *Table) Load(ctx context.Context, store *kg.Store) error { return t.records.Load(ctx, store) }

// Follow applies a commit (kg.Governor.OnSystemChange).
func (t *Table) Follow(c *kg.Commit) { t.records.Follow(c) }

func (t *Table) applyRecord(subject kg.Term, r systemgraph.Record) {
	name := strings.TrimPrefix(subject.Value(), keySubject)
	if key := keyOf(subject, r); key != nil {
		t.keys.Store(name, key)
	} else {
		t.keys.Delete(name)
	}
	t.onChange()
}

// keyByName returns the key with this name, or nil.
func (t *Table) keyByName(name string) *Key {
	if key, ok := t.keys.Load(name); ok {
		return key.(*Key)
	}
	return nil
}

// HasAdmin reports whether an active key grants the administrator role.
func (t *Table) HasAdmin(now time.Time) bool {
	found := false
	t.keys.Range(func(_, value any) bool {
		key := value.(*Key)
		found = key.IsAdmin() && key.StateAt(now) == Active
		return !found
	})
	return found
}
