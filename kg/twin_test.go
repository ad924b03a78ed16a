package kg

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"errors"
	"io/fs"
	"math"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dgraph-io/badger/v4"

	"koine/kg/internal/index"
)

// The benchmarks here measure koine and a twin, which does only the minimum work of
// hardware and Badger for the same task, in turns within one run. The ratio counts; the
// rates depend on the machine and its load. Run them with -benchtime=10x, so that there are
// ten rounds.

// side is one side of a comparison: it does a round's work and returns the number of units
// and the duration, without the preparation.
type side func(round int) (units int, took time.Duration)

// compare runs both sides b.N times in turns and reports their rates and the
// ratio of koine's to the twin's.
func compare(b *testing.B, unit string, koine, twin side) {
	b.Helper()
	var units [2]float64
	var took [2]time.Duration
	for round := range b.N {
		for i, s := range [...]side{koine, twin} {
			n, d := s(round)
			units[i] += float64(n)
			took[i] += d
		}
	}
	rate := func(i int) float64 { return units[i] / took[i].Seconds() }
	b.ReportMetric(0, "ns/op") // a round is no unit
	b.ReportMetric(rate(0), unit+"/s")
	b.ReportMetric(rate(1), "twin-"+unit+"/s")
	b.ReportMetric(rate(0)/rate(1), "ratio")
}

// timed is a side that does n units of work.
func timed(n int, work func()) (int, time.Duration) {
	start := time.Now()
	work()
	return n, time.Since(start)
}

// movies reads the film graph that KOINE_FILMS names, or that lies beside the repository.
var movies = sync.OnceValues(func() ([]Quad, error) {
	f, err := os.Open(cmp.Or(os.Getenv("KOINE_FILMS"), "../../shared/data/movies.nq.gz"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	var quads []Quad
	lines := bufio.NewScanner(z)
	for lines.Scan() {
		parts := strings.SplitN(strings.TrimSuffix(lines.Text(), " ."), " ", 3)
		quads = append(quads, Quad{Subject: plainTerm(parts[0]), Predicate: plainTerm(parts[1]), Object: plainTerm(parts[2]), Graph: DefaultGraph})
	}
	return quads, lines.Err()
})

// plainTerm reads the N-Quads terms of the film graph, which has no datatypes.
func plainTerm(s string) Term {
	switch s[0] {
	case '<':
		return IRI(s[1 : len(s)-1])
	case '_':
		return Blank(s[2:])
	}
	end := strings.LastIndexByte(s, '"')
	text := strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(s[1:end])
	if lang, ok := strings.CutPrefix(s[end+1:], "@"); ok {
		return LangString(text, lang)
	}
	return String(text)
}

func needMovies(b *testing.B) []Quad {
	b.Helper()
	quads, err := movies()
	if errors.Is(err, fs.ErrNotExist) {
		b.Skip("KOINE_FILMS names no film graph (docs/benchmarks.md)")
	}
	if err != nil {
		b.Fatal(err)
	}
	return quads
}

func openBench(b *testing.B, dir string, o Options) *Store {
	b.Helper()
	s, err := Open(dir, o)
	if err != nil {
		b.Fatal(err)
	}
	return s
}

func closeBench(b *testing.B, s *Store) {
	b.Helper()
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
}

// openRaw opens a Badger as the store configures its own.
func openRaw(b *testing.B, dir string, sync bool) *badger.DB {
	b.Helper()
	s := &Store{options: Options{}.withDefaults()}
	s.log = s.options.Logger
	db, err := badger.OpenManaged(s.badgerOptions(dir).WithSyncWrites(sync))
	if err != nil {
		b.Fatal(err)
	}
	return db
}

// pair is a key with its value; a nil value deletes.
type pair struct{ key, value []byte }

func pairsOf(o *index.Overlay) []pair {
	var out []pair
	o.Tree().Scan(func(k string, v *index.MemValue) bool {
		out = append(out, pair{[]byte(k), v.Value})
		return true
	})
	return out
}

// writeRaw writes pairs to Badger as one version.
func writeRaw(b *testing.B, db *badger.DB, version uint64, pairs []pair) {
	b.Helper()
	w := &indexTxn{db: db, at: version}
	for _, p := range pairs {
		w.setKey(p.key, p.value)
	}
	if err := w.commit(); err != nil {
		b.Fatal(err)
	}
}

// allPairs dumps an index.
func allPairs(b *testing.B, db *badger.DB) []pair {
	b.Helper()
	kv := index.NewBadgerKV(db, math.MaxUint64, nil)
	defer kv.Close()
	var out []pair
	for prefix := range 256 {
		c := kv.Scan([]byte{byte(prefix)})
		for ; c.Valid(); c.Next() {
			p := pair{key: append([]byte(nil), c.Key()...)}
			if err := c.Value(func(v []byte) error { p.value = append([]byte{}, v...); return nil }); err != nil {
				b.Fatal(err)
			}
			out = append(out, p)
		}
		c.Close()
	}
	return out
}
