/*
 * SPDX-FileCopyrightText: © 2017-2025 Istari Digital, Inc.
 * SPDX-License-Identifier: Apache-2.0
 */

package badger

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"sync"

	"github.com/dgraph-io/badger/v4/pb"
	"github.com/dgraph-io/badger/v4/table"
	"github.com/dgraph-io/badger/v4/y"
)

// Ingest writes keys as whole tables and adds these to a database in one step. Reads go
// on meanwhile, at versions below those that are ingested; writes must not be made while
// Commit runs. Only for a database with Options.TablesOnly.
type Ingest struct {
	db       *DB
	opts     table.Options
	throttle *y.Throttle

	mu     sync.Mutex
	tables []*table.Table
	failed error
}

// NewIngest begins an ingestion, which must be ended by Commit or Cancel.
func (db *DB) NewIngest() *Ingest {
	opts := buildTableOptions(db)
	for i := 4; i < db.opt.MaxLevels; i++ { // smaller than on the last level: they are made in memory
		opts.TableSize *= uint64(db.opt.TableSizeMultiplier)
	}
	return &Ingest{db: db, opts: opts, throttle: y.NewThrottle(2)}
}

// IngestWriter takes keys in their order. It belongs to one goroutine.
type IngestWriter struct {
	in      *Ingest
	builder *table.Builder
	last    []byte
	key     []byte
}

// NewWriter makes a writer. The keys of one writer must not lie between those of another.
func (in *Ingest) NewWriter() *IngestWriter { return &IngestWriter{in: in} }

// Add adds a key, which must be greater than the one before. It keeps neither key nor
// value.
func (w *IngestWriter) Add(key, value []byte, version uint64) error {
	if w.last != nil && string(key) <= string(w.last) {
		return fmt.Errorf("keys to ingest are out of order: %s after %s", hex.EncodeToString(key), hex.EncodeToString(w.last))
	}
	w.last = append(w.last[:0], key...)
	if w.builder != nil && w.builder.ReachedCapacity() {
		if err := w.Flush(); err != nil {
			return err
		}
	}
	if w.builder == nil {
		w.builder = table.NewTableBuilder(w.in.opts)
	}
	w.key = binary.BigEndian.AppendUint64(append(w.key[:0], key...), math.MaxUint64-version) // y.KeyWithTs
	w.builder.Add(w.key, y.ValueStruct{Value: value}, 0)
	return nil
}

// Flush hands what was added to the disk. It is called after the last key.
func (w *IngestWriter) Flush() error {
	b := w.builder
	if b == nil {
		return nil
	}
	w.builder = nil
	if err := w.in.throttle.Do(); err != nil {
		w.in.fail(err)
		b.Done() // its goroutines write into the memory that Close gives away
		b.Close()
		return err
	}
	go func() { w.in.throttle.Done(w.in.create(b)) }()
	return nil
}

// Abandon lets go what was not flushed.
func (w *IngestWriter) Abandon() {
	if w.builder != nil {
		w.builder.Done()
		w.builder.Close()
		w.builder = nil
	}
}

func (in *Ingest) fail(err error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.failed == nil {
		in.failed = err
	}
}

func (in *Ingest) create(b *table.Builder) error {
	defer b.Close()
	tbl, err := table.CreateTable(table.NewFilename(in.db.lc.reserveFileID(), in.db.opt.Dir), b)
	if err != nil {
		in.fail(err)
		return err
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.tables = append(in.tables, tbl)
	return nil
}

// Cancel removes what was written. The writers must be flushed or abandoned.
func (in *Ingest) Cancel() {
	_ = in.throttle.Finish()
	_ = decrRefs(in.tables) // the files go with the last reference
	in.tables = nil
}

// Commit adds the tables, each to the deepest level at which nothing overlaps it. It has
// all in the database written to tables before: of two keys in tables, the older one
// never gets lost while the newer one stays. After an error nothing was added, unless it
// is that of the validation behind all else: then the tables are there.
//
// A table may so lie below one that has older versions of its keys. Reads compare
// versions, and compactions take what is newest; only a deletion must never be older
// than what it lies above, and there are none among what is ingested.
func (in *Ingest) Commit() error {
	db := in.db
	err := in.throttle.Finish()
	if in.failed != nil {
		err = in.failed
	}
	if err == nil {
		err = db.flushMemory()
	}
	if err == nil {
		err = db.syncDir(db.opt.Dir) // the files are there before they are in the manifest
	}
	if err != nil {
		in.Cancel()
		return err
	}
	db.stopCompactions() // nothing else changes levels from here on
	defer db.startCompactions()
	levels := make([][]*table.Table, len(db.lc.levels))
	var changes []*pb.ManifestChange
	for _, t := range in.tables {
		l := db.lc.freeLevel(t)
		levels[l] = append(levels[l], t)
		changes = append(changes, &pb.ManifestChange{
			Id: t.ID(), KeyId: t.KeyID(), Op: pb.ManifestChange_CREATE, Level: uint32(l), Compression: uint32(t.CompressionType()),
		})
	}
	if err := db.manifest.addChanges(changes, db.opt); err != nil {
		in.Cancel()
		return err
	}
	for l, tables := range levels {
		db.lc.levels[l].ingest(tables)
	}
	_ = decrRefs(in.tables) // the levels have references of their own
	in.tables = nil
	return db.lc.validate()
}

// freeLevel is the deepest level at which nothing overlaps the table.
func (s *levelsController) freeLevel(t *table.Table) int {
	kr := getKeyRange(t)
	for l := len(s.levels) - 1; l > 0; l-- {
		h := s.levels[l]
		h.RLock()
		left, right := h.overlappingTables(levelHandlerRLocked{}, kr)
		h.RUnlock()
		if left >= right {
			return l
		}
	}
	return 0
}

func (s *levelHandler) ingest(tables []*table.Table) {
	switch {
	case len(tables) == 0:
	case s.level > 0:
		_ = s.replaceTables(nil, tables)
	default:
		s.Lock()
		defer s.Unlock()
		for _, t := range tables {
			s.addLevel0TableLocked(t)
		}
	}
}

// flushMemory has all memtables written to tables.
func (db *DB) flushMemory() error {
	db.lock.Lock()
	defer db.lock.Unlock()
	for !db.mt.sl.Empty() || len(db.imm) > 0 {
		if !db.mt.sl.Empty() {
			select {
			case db.flushChan <- db.mt:
				db.imm = append(db.imm, db.mt)
				mt, err := db.newMemTable()
				if err != nil {
					return y.Wrapf(err, "cannot create new mem table")
				}
				db.mt = mt
			default:
			}
		}
		if err := db.stuck(); err != nil {
			return err
		}
		db.flushCond.Wait()
	}
	return nil
}
