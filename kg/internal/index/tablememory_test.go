package index

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
)

// A table is made in little more memory than its keys have: of its blocks only the compressed ones stay
// until it is written.
func TestTableIsMadeInLittleMemory(t *testing.T) {
	db, err := badger.OpenManaged(badger.DefaultOptions(t.TempDir()).WithLoggingLevel(badger.ERROR).WithTablesOnly(true).
		WithMaxEntrySize(1 << 20).WithCompression(options.Snappy).WithNumCompactors(0))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	const n = 250_000
	keys, size := make([]string, n), 0
	for i := range keys {
		keys[i] = fmt.Sprintf("%060d", i)
		size += len(keys[i])
	}
	value := make([]byte, 20)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	w := db.NewSortedWriter(size)
	for _, key := range keys {
		w.Add(key, value, false, 1)
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if made := int(after.TotalAlloc - before.TotalAlloc); made > 2*size {
		t.Errorf("%d bytes are allocated for a table of keys of %d", made, size)
	} else {
		t.Logf("%d bytes are allocated for a table of keys of %d", made, size)
	}
}
