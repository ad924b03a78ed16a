package kg_test

import (
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"koine/internal/slowtest"
	"koine/kg"
)

// stopped is a data directory as it was at a moment of a load.
type stopped struct{ step, dir string }

// TestBulkLoadStoppedAnywhere copies the directory of a load, into a store with content,
// before each of its steps. Each copy opens with the part of the load that is in the log,
// is consistent, and reports the place of the load; the load resumes there and ends like
// one that was never stopped.
func TestBulkLoadStoppedAnywhere(t *testing.T) {
	slowtest.Long(t)
	t.Parallel()
	const n, session = 6000, "load of a test"
	dir := filepath.Join(t.TempDir(), "data")
	var moments []stopped
	seen := make(map[string]int)
	var faults kg.Faults
	faults.BulkFrom, faults.BulkChunk, faults.BulkTableBytes = 1, 400, 140<<10
	o := smallLog(faults)
	var mu sync.Mutex // a spill is beside the other steps
	faults.BulkStep = func(step string) {
		mu.Lock()
		defer mu.Unlock()
		if seen[step]++; step == "spill" || seen[step] > 3 {
			return
		}
		moments = append(moments, stopped{step, filepath.Join(t.TempDir(), "data")})
		copyTree(t, dir, moments[len(moments)-1].dir, nil)
	}
	s := openStore(t, dir, smallLog(faults))
	newWorker(1, "w").work(t, s, 5)
	held := s.Stats().Statements
	meta := kg.Meta{Principal: tester, SessionID: session}
	options := func(from uint64) kg.LoadOptions {
		return kg.LoadOptions{CommitQuads: 100, Place: func(loaded uint64) string { return strconv.FormatUint(from+loaded, 10) }}
	}
	report, err := s.Load(within(t), meta, manyQuads(n), options(0))
	if err != nil || !report.Bulk || report.Statements != n || report.Commits != n/100 {
		t.Fatalf("%+v, %v", report, err)
	}
	mustClose(t, s)
	if seen["round"] < 2 || seen["spill"] < 2 || seen["ingest"] < 2 || len(moments) < 10 {
		t.Errorf("the load had too few steps: %v", seen)
	}
	for i, m := range moments {
		t.Run(fmt.Sprint(i, " ", m.step), func(t *testing.T) {
			s := openStore(t, m.dir, o)
			mustCheck(t, s)
			place, at, err := s.LoadedUpTo(within(t), tester.ID, session)
			if err != nil || at != 0 && at != s.Head().Revision {
				t.Fatalf("LoadedUpTo: %q at %d of %d, %v", place, at, s.Head().Revision, err)
			}
			from, _ := strconv.ParseUint(place, 10, 64)
			if got := s.Stats().Statements; got != held+from {
				t.Errorf("%d statements, want %d and %d of the load", got, held, from)
			}
			report, err := s.Load(within(t), meta, rest(manyQuads(n), from), options(from))
			if err != nil || report.Statements != n-from || s.Stats().Statements != held+n {
				t.Errorf("the rest of %d: %+v, %v; %d statements", n-from, report, err, s.Stats().Statements)
			}
			mustCheck(t, s)
			if place, _, err := s.LoadedUpTo(within(t), tester.ID, session); place != strconv.Itoa(n) || err != nil {
				t.Errorf("at the end: %q, %v", place, err)
			}
		})
	}
}

// rest leaves the first n out.
func rest(quads iter.Seq2[kg.Quad, error], n uint64) iter.Seq2[kg.Quad, error] {
	return func(yield func(kg.Quad, error) bool) {
		left := n
		for q, err := range quads {
			if left > 0 {
				left--
			} else if !yield(q, err) {
				return
			}
		}
	}
}

// TestPlaceOfAFailedLoad proves that the place of a failed load is never behind the content
// of the store, in bulk and as updates, and belongs to its principal only.
func TestPlaceOfAFailedLoad(t *testing.T) {
	t.Parallel()
	for _, online := range []bool{false, true} {
		s := openStore(t, t.TempDir(), tinyLog())
		broken := errors.New("the source is broken")
		for _, row := range []struct {
			name string
			fail func(yield func(kg.Quad, error) bool)
		}{
			{"source", func(yield func(kg.Quad, error) bool) { yield(kg.Quad{}, broken) }},
			{"quad", func(yield func(kg.Quad, error) bool) {
				bad := integer(1)
				bad.Subject = kg.IRI("no iri")
				for q := range integers(300) { // more than a batch follows
					if !yield(bad, nil) || !yield(q, nil) {
						return
					}
				}
			}},
		} {
			const n = 500
			meta := kg.Meta{Principal: tester, SessionID: row.name + fmt.Sprint(online)}
			report, err := s.Load(within(t), meta, func(yield func(kg.Quad, error) bool) {
				for q := range manyQuads(n) {
					q.Graph = kg.IRI("urn:" + row.name)
					if !yield(q, nil) {
						return
					}
				}
				row.fail(yield)
			}, kg.LoadOptions{CommitQuads: 100, Online: online, Place: func(loaded uint64) string { return strconv.FormatUint(loaded, 10) }})
			place, at, placeErr := s.LoadedUpTo(within(t), tester.ID, meta.SessionID)
			if err == nil || placeErr != nil || place != strconv.Itoa(n) || at != report.Revision || report.Read != n {
				t.Errorf("%s: %+v, %v; the place is %q at %d, %v", meta.SessionID, report, err, place, at, placeErr)
			}
			for _, other := range []struct {
				principal kg.AgentID
				session   string
			}{{"agent://other", meta.SessionID}, {tester.ID, "another"}} {
				if place, _, err := s.LoadedUpTo(within(t), other.principal, other.session); place != "" || err != nil {
					t.Errorf("%v: the place is %q, %v", other, place, err)
				}
			}
		}
		mustCheck(t, s)
	}
}
