/*
 * SPDX-FileCopyrightText: © 2017-2025 Istari Digital, Inc.
 * SPDX-License-Identifier: Apache-2.0
 */

package badger

import (
	"encoding/binary"
	"errors"
	"math"
	"time"

	"github.com/dgraph-io/badger/v4/table"
	"github.com/dgraph-io/badger/v4/y"
)

// SortedWriter writes keys as one table of level 0, without a memtable. All of them
// become readable in one step, which survives a crash or not at all. They must be newer
// than what the database holds of them, and no value may be written meanwhile. Only for a
// database with Options.TablesOnly.
type SortedWriter struct {
	db      *DB
	builder *table.Builder
	key     []byte
}

// NewSortedWriter begins a table. size is about that of its keys and values.
func (db *DB) NewSortedWriter(size int) *SortedWriter {
	opts := buildTableOptions(db)
	opts.TableSize, opts.AllocPool = uint64(max(size, 1<<20)), db.flushPool
	return &SortedWriter{db: db, builder: table.NewTableBuilder(opts)}
}

// Add adds a key with a value, or its deletion. Keys come in their order. It keeps neither
// key nor value.
func (w *SortedWriter) Add(key string, value []byte, deleted bool, version uint64) {
	v := y.ValueStruct{Value: value}
	if deleted {
		v = y.ValueStruct{Meta: bitDelete}
	}
	w.key = binary.BigEndian.AppendUint64(append(w.key[:0], key...), math.MaxUint64-version) // y.KeyWithTs
	w.builder.Add(w.key, v, 0)
}

// Commit writes the table, and adds it to level 0. Memtables are written before it: of two
// versions of a key, the older one is in the older table. After an error nothing was
// added.
func (w *SortedWriter) Commit() error {
	db := w.db
	defer w.builder.Close()
	if err := errors.Join(db.flushMemory(), db.awaitLevel0()); err != nil || w.builder.Empty() {
		w.builder.Done() // its goroutines write into the memory that Close gives away
		return err
	}
	tbl, err := table.CreateTable(table.NewFilename(db.lc.reserveFileID(), db.opt.Dir), w.builder)
	if err != nil {
		return y.Wrap(err, "error while creating table")
	}
	defer func() { _ = tbl.DecrRef() }()           // the level has a reference of its own; without it the file goes
	if err := db.syncDir(db.opt.Dir); err != nil { // the file is there before it is in the manifest
		return err
	}
	return db.lc.addLevel0Table(tbl)
}

// awaitLevel0 waits until level 0 has room for another table. It gives up while compactions
// fail.
func (db *DB) awaitLevel0() error {
	db.lock.Lock()
	defer db.lock.Unlock()
	for db.lc.levels[0].numTables() >= db.opt.NumLevelZeroTablesStall {
		if err := db.stuck(); err != nil {
			return err
		}
		db.flushCond.Wait()
	}
	return nil
}

// wakeWriters wakes those that wait for room in level 0.
func (db *DB) wakeWriters() {
	db.lock.Lock() // none of them is between its look at the level and its wait
	defer db.lock.Unlock()
	db.flushCond.Broadcast()
}

// busyFor is the age of the newest table up to which level 0 counts as busy.
const busyFor = 10 * time.Second

// levelZeroTables is the number of tables at which level 0 is compacted. While tables follow
// each other it is Options.BusyLevelZeroTables: a compaction of level 0 merges what comes with
// all that it overlaps below, so that twice the tables write half as much.
func (s *levelsController) levelZeroTables() int {
	l0 := s.levels[0]
	l0.RLock()
	defer l0.RUnlock()
	if n := len(l0.tables); n > 0 && time.Since(l0.tables[n-1].CreatedAt) < busyFor {
		return max(s.kv.opt.NumLevelZeroTables, s.kv.opt.BusyLevelZeroTables)
	}
	return s.kv.opt.NumLevelZeroTables
}
