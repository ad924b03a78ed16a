package index

import (
	"fmt"
	"testing"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
)

// The indexes of tables are in memory up to a bound, and found wherever they are: beyond the bound,
// after they were given back, and when their tables are gone.
func TestIndexMemory(t *testing.T) {
	const room, tables, each = 200 << 10, 8, 20_000
	db, err := badger.OpenManaged(badger.DefaultOptions(t.TempDir()).WithLoggingLevel(badger.ERROR).WithTablesOnly(true).
		WithMaxEntrySize(1 << 20).WithCompression(options.Snappy).WithNumCompactors(0).WithIndexMemory(room))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	for table := range tables {
		w := db.NewSortedWriter(each * 20)
		for i := range each {
			w.Add(fmt.Sprintf("%02d%08d", table, i), []byte{byte(table)}, false, 1)
		}
		if err := w.Commit(); err != nil {
			t.Fatal(err)
		}
		if left := db.IndexMemoryLeft(); left < 0 || left > room {
			t.Fatalf("%d of %d bytes are left", left, room)
		}
	}
	if left := db.IndexMemoryLeft(); left > room/2 {
		t.Errorf("%d of %d bytes are left, want less than half", left, room)
	}
	find := func() {
		t.Helper()
		txn := db.NewTransactionAt(1, false)
		defer txn.Discard()
		for table := range tables {
			for i := 0; i < each; i += 997 {
				if _, err := txn.Get(fmt.Appendf(nil, "%02d%08d", table, i)); err != nil {
					t.Fatal(table, i, err)
				}
			}
			if _, err := txn.Get(fmt.Appendf(nil, "%02d%08dx", table, 5)); err != badger.ErrKeyNotFound {
				t.Fatal(err)
			}
		}
	}
	find()
	db.ReleaseIndexes()
	if left := db.IndexMemoryLeft(); left != room {
		t.Errorf("%d of %d bytes are left after the release", left, room)
	}
	find()
	if err := db.DropAll(); err != nil {
		t.Fatal(err)
	}
	if left := db.IndexMemoryLeft(); left != room {
		t.Errorf("%d of %d bytes are left without tables", left, room)
	}
}
