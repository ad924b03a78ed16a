package kg

import (
	"context"
	"sync"
	"testing"

	"github.com/dgraph-io/badger/v4"

	"koine/kg/base"
	"koine/kg/internal/index"
	"koine/kg/internal/keys"
)

// RawTwin does with Badger alone the work that packages on top of a store cause.
type RawTwin struct {
	b       *testing.B
	commits [][]pair
}

// Recording gives options with which each commit of a store is kept, to be written
// by Write.
func (r *RawTwin) Recording(b *testing.B, o Options) Options {
	r.b, r.commits = b, nil
	o.GroupCommits = 1 // so that each commit's keys are seen alone
	o.beforeApply = func(o *index.Overlay) { r.commits = append(r.commits, pairsOf(o)) }
	return o
}

// Write writes the last n commits that were recorded, each as one synced
// transaction, from so many goroutines. started is called when it begins.
func (r *RawTwin) Write(dir string, writers, n int, started func()) error {
	db := openRaw(r.b, dir, true)
	commits := r.commits[len(r.commits)-n:]
	var mu sync.Mutex
	var version uint64
	started()
	inParallel(writers, n, func(i int) {
		mu.Lock()
		version++
		at := version
		mu.Unlock()
		writeRaw(r.b, db, at, commits[i])
	})
	return db.Close()
}

// Settle writes the layers in memory to Badger.
func (s *Store) Settle() {
	done := make(chan struct{})
	s.exclusive <- func() { close(done) }
	<-done
}

// RawHistory reads the parts of a page of n messages from a number on: the run of the
// numbers, and for each subject its statements in the graph, keys and values.
type RawHistory struct {
	numbers, subjects *badger.Iterator
	graph             ID
	txn               *badger.Txn
}

// NewRawHistory begins to read a graph with numbered subjects.
func NewRawHistory(s *Store, graph Term) (*RawHistory, error) {
	p, err := s.pin(context.Background())
	if err != nil {
		return nil, err
	}
	defer s.unpin(p)
	id, _, err := index.Dictionary{KV: p.kv, Cache: s.cache}.ID(graph)
	if err != nil {
		return nil, err
	}
	txn := s.db.NewTransactionAt(uint64(s.Head().Revision), false)
	over := func(o keys.Order) *badger.Iterator {
		return txn.NewIterator(badger.IteratorOptions{Prefix: []byte{byte(o)}})
	}
	return &RawHistory{over(keys.GPOS), over(keys.SPOG), id, txn}, nil
}

// Close lets go of it.
func (r *RawHistory) Close() {
	r.numbers.Close()
	r.subjects.Close()
	r.txn.Discard()
}

// Page reads a page and returns its number of rows.
func (r *RawHistory) Page(from int64, n int) (rows int) {
	run, _ := keys.GPOS.AppendPrefix(nil, IDQuad{Graph: r.graph, Predicate: keys.Sequence})
	start := keys.GPOS.Append(nil, *base.OrderedSeek(IDPattern{Graph: r.graph, Predicate: keys.Sequence}, from, ID{}))
	for r.numbers.Seek(start); n > 0 && r.numbers.ValidForPrefix(run); r.numbers.Next() {
		n--
		q, _ := keys.GPOS.Parse(r.numbers.Item().Key())
		prefix, _ := keys.SPOG.AppendPrefix(nil, IDQuad{Subject: q.Subject})
		rows += 1 + rawPrefix(r.subjects, prefix, true)
	}
	return rows
}
