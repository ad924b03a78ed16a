package kg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/pb"
	"github.com/dgraph-io/ristretto/v2/z"

	"koine/kg/internal/datadir"
	"koine/kg/internal/index"
)

// BenchmarkBulkLoad loads the film graph into an empty store, log included,
// beside StreamWriter alone with the same keys. Aim: ratio at least 0.5.
func BenchmarkBulkLoad(b *testing.B) {
	quads := needMovies(b)
	var pairs []pair
	koine := func(int) (int, time.Duration) {
		dir := b.TempDir()
		s := openBench(b, dir, Options{})
		n, d := timed(len(quads), func() { loadAll(b, s, quads, LoadOptions{}) })
		if pairs == nil {
			pairs = allPairs(b, s.db)
		}
		reportDisk(b, s, dir, len(quads))
		closeBench(b, s)
		return n, d
	}
	twin := func(int) (int, time.Duration) {
		db := openRaw(b, b.TempDir(), false)
		n, d := timed(len(quads), func() {
			sw := db.NewStreamWriter()
			if err := sw.Prepare(); err != nil {
				b.Fatal(err)
			}
			if err := errors.Join(stream(sw, pairs), sw.Flush()); err != nil {
				b.Fatal(err)
			}
		})
		if err := db.Close(); err != nil {
			b.Fatal(err)
		}
		return n, d
	}
	compare(b, "quads", koine, twin)
}

// stream hands pairs to a StreamWriter, each prefix as a stream of its own.
func stream(sw *badger.StreamWriter, pairs []pair) error {
	const chunk = 4 << 20
	buf := z.NewBuffer(chunk, "twin")
	defer func() { _ = buf.Release() }()
	for i, p := range pairs {
		badger.KVToBuffer(&pb.KV{Key: p.key, Value: p.value, Version: 1, StreamId: uint32(p.key[0]) + 1}, buf)
		if buf.LenNoPadding() >= chunk || i == len(pairs)-1 {
			if err := sw.Write(buf); err != nil {
				return err
			}
			buf.Reset()
		}
	}
	return nil
}

// reportDisk reports the size of a statement in the log and in the index.
func reportDisk(b *testing.B, s *Store, dir string, quads int) {
	b.Helper()
	var index int64
	entries, err := os.ReadDir(dir + "/" + datadir.IndexName)
	if err != nil {
		b.Fatal(err)
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && strings.HasSuffix(e.Name(), ".sst") {
			index += info.Size()
		}
	}
	b.ReportMetric(float64(index)/float64(quads), "index-B/quad")
	b.ReportMetric(float64(s.wal.UsedBytes())/float64(quads), "log-B/quad")
}

func loadAll(b *testing.B, s *Store, quads []Quad, o LoadOptions) {
	b.Helper()
	_, err := s.Load(context.Background(), Meta{}, func(yield func(Quad, error) bool) {
		for _, q := range quads {
			if !yield(q, nil) {
				return
			}
		}
	}, o)
	if err != nil {
		b.Fatal(err)
	}
}

// BenchmarkOnlineLoad commits 1,000 statements at a time, durably, beside the
// same keys in unsynced batches of managed Badger. Aim: ratio at least 0.6.
func BenchmarkOnlineLoad(b *testing.B) {
	const size = 1000
	quads := needMovies(b)[:100*size]
	var batches [][]pair
	koine := func(round int) (int, time.Duration) {
		o := Options{}
		if round == 0 {
			o.GroupCommits = 1
			o.beforeApply = func(o *index.Overlay) { batches = append(batches, pairsOf(o)) }
		}
		s := openBench(b, b.TempDir(), o)
		n, d := timed(len(quads), func() {
			loadAll(b, s, quads, LoadOptions{Online: true, CommitQuads: size})
		})
		closeBench(b, s)
		return n, d
	}
	twin := func(int) (int, time.Duration) {
		db := openRaw(b, b.TempDir(), false)
		n, d := timed(len(quads), func() {
			for i, batch := range batches {
				writeRaw(b, db, uint64(i+1), batch)
			}
		})
		if err := db.Close(); err != nil {
			b.Fatal(err)
		}
		return n, d
	}
	compare(b, "quads", koine, twin)
}

func addAll(b *testing.B, s *Store, quads []Quad) {
	_, err := s.Update(context.Background(), Meta{}, func(tx *Tx) error {
		for _, q := range quads {
			if err := tx.Apply(Patch{Op: Add, Quad: q}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Error(err)
	}
}

// BenchmarkUpdates makes durable updates of 10 statements, by one and by 128
// writers, beside one synced Badger transaction for each with the same keys. Aim
// with 128 writers: ratio at least 2.5.
func BenchmarkUpdates(b *testing.B) {
	for _, writers := range []int{1, 16, 128} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			benchUpdates(b, writers)
		})
	}
}

func benchUpdates(b *testing.B, writers int) {
	const each = 10
	updates := 4000
	if writers == 1 {
		updates = 1000
	}
	var mu sync.Mutex
	var commits [][]pair
	koine := func(round int) (int, time.Duration) {
		o := Options{}
		if round == 0 {
			o.GroupCommits = 1 // so that each commit's keys are seen alone
			o.beforeApply = func(o *index.Overlay) { commits = append(commits, pairsOf(o)) }
			s := openBench(b, b.TempDir(), o)
			for i := range updates {
				addAll(b, s, tenQuads(i, each))
			}
			closeBench(b, s)
		}
		s := openBench(b, b.TempDir(), Options{})
		n, d := timed(updates, func() {
			inParallel(writers, updates, func(i int) { addAll(b, s, tenQuads(i, each)) })
		})
		closeBench(b, s)
		return n, d
	}
	twin := func(int) (int, time.Duration) {
		db := openRaw(b, b.TempDir(), true)
		var version uint64
		n, d := timed(updates, func() {
			inParallel(writers, updates, func(i int) {
				mu.Lock()
				version++
				at := version
				mu.Unlock()
				writeRaw(b, db, at, commits[i])
			})
		})
		if err := db.Close(); err != nil {
			b.Fatal(err)
		}
		return n, d
	}
	compare(b, "updates", koine, twin)
}

// tenQuads are about one new subject, with values of several kinds.
func tenQuads(i, n int) []Quad {
	subject := IRI(fmt.Sprintf("https://bench.example/thing/%d", i))
	quads := make([]Quad, n)
	for j := range quads {
		object := Integer(int64(i * j))
		switch j % 3 {
		case 1:
			object = IRI(fmt.Sprintf("https://bench.example/thing/%d", (i*7+j)%(i+1)))
		case 2:
			object = String(fmt.Sprintf("the text of value %d of thing %d", j, i%100))
		}
		quads[j] = Quad{Subject: subject, Predicate: IRI(fmt.Sprintf("https://bench.example/p%d", j)), Object: object, Graph: DefaultGraph}
	}
	return quads
}

// inParallel calls work for 0 … n-1, each once, from so many goroutines.
func inParallel(goroutines, n int, work func(i int)) {
	next := make(chan int)
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for i := range next {
				work(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
}
