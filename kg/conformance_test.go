package kg_test

import (
	"testing"
	"time"

	"koine/kg"
	"koine/kg/kgtest"
)

func TestStoreConformance(t *testing.T) { kgtest.Run(t, disk) }

// disk makes stores in which graphs of more than a few statements are replaced as a whole,
// in several commits. At the end of a test, the index and the registered names are compared
// with those that are rebuilt from the log, and the calls of an observer with the log. Memory
// and files are small, and with -short an index of few rows is not compared: the opening of
// many small stores costs more than their content.
func disk(t testing.TB, o kg.Options) *kgtest.Store {
	const fewRows = 100
	if o.MemTableBytes == 0 {
		o.MemTableBytes = kg.MinMemTableBytes
	}
	t.TempDir() // removed after the comparison
	var s *kgtest.Store
	var dir string
	var was []string
	t.Cleanup(func() {
		if t.Failed() || was == nil || testing.Short() && len(was) < fewRows {
			return
		}
		o := o
		o.Rebuild = true
		again := openStore(t, dir, o)
		equalLines(t, "the rebuilt index", was, settledRows(t, again))
	})
	s = kgtest.Disk(t, o.WithFaults(kg.Faults{WholeFrom: 4, WholeCommit: 3, LogSegmentBytes: 8 << 20}))
	dir = s.DataDir()
	t.Cleanup(func() {
		if !t.Failed() && s.Store != nil {
			was = settledRows(t, s.Store)
		}
	})
	return s
}

// settledRows lists the index once no content of a replaced graph is left to be removed.
func settledRows(t testing.TB, s *kg.Store) []string {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		stray, writing, err := s.StrayRows()
		if err != nil {
			t.Fatal(err)
		}
		if stray == 0 && writing == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d rows of replaced graphs and %d graphs being written are left", stray, writing)
		}
	}
	rows, err := s.IndexRows()
	if err != nil {
		t.Fatal(err)
	}
	return rows
}
