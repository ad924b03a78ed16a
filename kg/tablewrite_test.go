package kg

import (
	"fmt"
	"testing"

	"github.com/dgraph-io/badger/v4"

	"koine/kg/internal/index"
)

// TestTablesOfLargeTrees proves that a tree which is written as a table of its own hides older
// keys, also those in a memtable before it, and after compactions and another start. Its
// deletions are forgotten by compactions, and must not let an older value return.
func TestTablesOfLargeTrees(t *testing.T) {
	dir := t.TempDir()
	s := &Store{options: Options{}.withDefaults()}
	s.log = s.options.Logger
	open := func() *badger.DB {
		db, err := badger.OpenManaged(s.badgerOptions(dir))
		if err != nil {
			t.Fatal(err)
		}
		return db
	}
	db := open()
	write := func(r Revision, put map[string]string, filler int) {
		tree := new(index.MemTree)
		for k, v := range put {
			e := &index.MemValue{Value: []byte(v)}
			if v == "" {
				e = index.DeletedKey
			}
			tree.Set(k, e)
		}
		for i := range filler {
			tree.Set(fmt.Sprintf("\x10filler %07d", i), index.PlainKey)
		}
		if err := writeIndex(db, tree, index.Marker{Revision: r}, true); err != nil {
			t.Fatal(err)
		}
	}
	tables := func() int { return len(db.Tables()) }
	value := func(key string) (value string) {
		txn := db.NewTransactionAt(10, false)
		defer txn.Discard()
		item, err := txn.Get([]byte(key))
		if err == badger.ErrKeyNotFound {
			return ""
		}
		if err == nil {
			err = item.Value(func(v []byte) error { value = string(v); return nil })
		}
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
	check := func(when string) {
		t.Helper()
		if gone, changed, kept := value("\x10gone"), value("\x11changed"), value("\x12kept"); gone != "" || changed != "new" || kept != "old" {
			t.Errorf("%s: %q, %q and %q, want nothing, new and old", when, gone, changed, kept)
		}
		var m index.Marker
		txn := db.NewTransactionAt(10, false)
		defer txn.Discard()
		item, err := txn.Get(index.MarkerKey)
		if err == nil {
			err = item.Value(func(v []byte) (err error) { m, err = index.ParseMarker(v); return err })
		}
		if err != nil || m.Revision != 2 {
			t.Errorf("%s: the marker is of revision %d, %v", when, m.Revision, err)
		}
	}
	write(1, map[string]string{"\x10gone": "old", "\x11changed": "old", "\x12kept": "old"}, tableKeys-4)
	if n := tables(); n != 0 {
		t.Fatalf("a tree below the bound is in %d tables", n)
	}
	write(2, map[string]string{"\x10gone": "", "\x11changed": "new"}, tableKeys-2)
	if n := tables(); n != 2 {
		t.Fatalf("%d tables, want the memtable and the tree", n)
	}
	check("written")
	db.SetDiscardTs(10)
	if err := db.Flatten(1); err != nil {
		t.Fatal(err)
	}
	check("compacted")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = open()
	defer db.Close()
	check("opened again")
}
