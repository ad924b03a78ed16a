package index

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dgraph-io/badger/v4"

	"koine/kg/base"
)

// openSmall opens Badger with memtables so small that keys are in several of its layers, of
// which the versions up to from are in a lower level.
func openSmall(t *testing.T, r *rand.Rand, from uint64) *badger.DB {
	t.Helper()
	options := badger.DefaultOptions(t.TempDir()).WithLoggingLevel(badger.ERROR).WithNumVersionsToKeep(1).WithDetectConflicts(false).
		WithMemTableSize(64 << 10).WithBaseTableSize(32 << 10).WithBaseLevelSize(128 << 10).WithTablesOnly(true).
		WithMaxEntrySize(1 << 20).WithValueThreshold(1 << 10).WithCompactL0OnClose(true)
	db, err := badger.OpenManaged(options)
	if err != nil {
		t.Fatal(err)
	}
	fillRandomly(t, db, r, 1, from)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if db, err = badger.OpenManaged(options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	if !slices.ContainsFunc(db.Tables(), func(table badger.TableInfo) bool { return table.Level > 0 }) {
		t.Fatal("there is no table below level 0")
	}
	return db
}

// fillRandomly writes and deletes keys at the versions 1 to n. The newest versions stay.
func fillRandomly(t *testing.T, db *badger.DB, r *rand.Rand, from, to uint64) {
	t.Helper()
	for version := from; version <= to; version++ {
		txn := db.NewTransactionAt(version, true)
		for range 20 {
			key := fmt.Appendf(nil, "%c%03d", "ab"[r.IntN(2)], r.IntN(500))
			var err error
			if r.IntN(4) == 0 {
				err = txn.Delete(key)
			} else {
				err = txn.Set(key, fmt.Appendf(nil, "%d %s", version, bytes.Repeat([]byte{'x'}, r.IntN(200))))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := txn.CommitAt(version, nil); err != nil {
			t.Fatal(err)
		}
	}
}

// iterated lists the keys with a prefix from a key on, with their values, as an Iterator
// gives them.
func iterated(t *testing.T, db *badger.DB, at uint64, prefix, from string) (out []string) {
	t.Helper()
	txn := db.NewTransactionAt(at, false)
	defer txn.Discard()
	it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte(prefix[:1])})
	defer it.Close()
	for it.Seek([]byte(from)); it.ValidForPrefix([]byte(prefix)); it.Next() {
		if err := it.Item().Value(func(v []byte) error { out = append(out, fmt.Sprintf("%s=%s", it.Item().Key(), v)); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// scanned is iterated by a Cursor.
func scanned(t *testing.T, c Cursor) (out []string) {
	t.Helper()
	for ; c.Valid(); c.Next() {
		if err := c.Value(func(v []byte) error { out = append(out, fmt.Sprintf("%s=%s", c.Key(), v)); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// A cursor gives the keys of Badger's iterator: over memtables and tables of several levels,
// with deletions and with versions newer than its own, which come while it is kept.
func TestCursorIsIterator(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	version := uint64(100)
	db := openSmall(t, r, version)
	for range 4 {
		fillRandomly(t, db, r, version+1, version+60)
		version += 60
		db.SetDiscardTs(version)
		kv := NewBadgerKV(db, base.Revision(version), nil)
		fillRandomly(t, db, r, version+1, version+20) // not visible
		for range 60 {
			prefix := fmt.Sprintf("%c%d", "ab"[r.IntN(2)], r.IntN(5))[:1+r.IntN(2)]
			c := kv.Scan([]byte(prefix))
			if got, want := scanned(t, c), iterated(t, db, version, prefix, prefix); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("prefix %s at %d:\n%.300v\nwant\n%.300v", prefix, version, got, want)
			}
			from := fmt.Sprintf("%c%03d", prefix[0], r.IntN(500))
			if len(prefix) > 1 {
				from = prefix + from[2:]
			}
			c.Seek([]byte(from))
			if got, want := scanned(t, c), iterated(t, db, version, prefix, from); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("from %s at %d:\n%.300v\nwant\n%.300v", from, version, got, want)
			}
			c.Close()
		}
		kv.Close()
		version += 20
	}
}

// Cursors that were closed are used again, at most MaxIdleCursors are kept, and those that
// nobody uses are closed.
func TestIdleCursors(t *testing.T) {
	db := openSmall(t, rand.New(rand.NewPCG(1, 1)), 3)
	kv := NewLastingKV(db, 3, nil)
	if !kv.Hold() {
		t.Fatal("it is closed")
	}
	first := kv.Scan([]byte("a")).(*badgerCursor)
	cursor := first.Cursor
	first.Close()
	first.Close() // harmless
	var open []Cursor
	for i := range MaxIdleCursors + 1 {
		c := kv.Scan([]byte("a"))
		if i == 0 && c.(*badgerCursor).Cursor != cursor {
			t.Error("the idle cursor is not used again")
		}
		open = append(open, c)
	}
	for _, c := range open {
		c.Close()
	}
	if n := len(kv.idle); n != MaxIdleCursors {
		t.Errorf("%d idle cursors, want %d", n, MaxIdleCursors)
	}
	kv.dropIdle() // those of this round stay
	kv.Scan([]byte("a")).Close()
	kv.dropIdle()
	if n := len(kv.idle); n != 1 {
		t.Errorf("%d idle cursors, want the one that was used meanwhile", n)
	}
	kv.Close()
	if c := kv.Scan([]byte("b")); !c.Valid() {
		t.Error("one of two holders has closed it, and it does not read")
	} else {
		c.Close()
	}
	kv.Close()
	if kv.Hold() || kv.idle != nil {
		t.Error("both have closed it, and it is open")
	}
	kv.dropIdle() // of a timer that had begun
}
