package kg

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"testing"

	"koine/kg/internal/wal"
)

// TestBulkCommitsFitIntoTheLog loads statements that stand with long assertions, more of
// them in one batch than an entry of the log may have.
func TestBulkCommitsFitIntoTheLog(t *testing.T) {
	t.Parallel()
	const n = 4000 // of 4 KB: 16 MB
	s := openTest(t, Options{bulkFrom: 1})
	long := []byte(`"` + strings.Repeat("x", MaxProvenanceBytes-2) + `"`)
	for i := 0; i < n; i += n / 4 {
		_, err := s.Update(context.Background(), Meta{Actor: "agent://ann"}, func(tx *Tx) error {
			for j := range n / 4 {
				if err := tx.Apply(Patch{Op: Add, Quad: numbered(i + j), Provenance: long}); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	before := s.head.Load().revision
	source := func(yield func(Quad, error) bool) {
		for i := range n {
			if !yield(numbered(i), nil) {
				return
			}
		}
	}
	m := Meta{Actor: "agent://bob", SessionID: "a load"}
	report := mustLoad(t, s, m, iter.Seq2[Quad, error](source), LoadOptions{Place: func(n uint64) string { return strconv.FormatUint(n, 10) }})
	if !report.Bulk || report.Read != n || report.Statements != n || report.Commits != uint64(report.Revision-before) {
		t.Errorf("got %+v", report)
	}
	loaded := 0
	for r := before + 1; r <= report.Revision; r++ {
		c, err := s.readCommit(r)
		if err != nil {
			t.Fatal(err)
		}
		if size := len(appendEntry(nil, c)); size > MaxCommitBytes {
			t.Errorf("commit %d has %d bytes", r, size)
		}
		if loaded += len(c.Changes); c.MessageID != strconv.Itoa(loaded) {
			t.Errorf("commit %d says that %s quads are loaded, want %d", r, c.MessageID, loaded)
		}
	}
	if check, err := s.Check(context.Background(), CheckOptions{}); err != nil || !check.Clean() {
		t.Errorf("Check: %+v, %v", check, err)
	}
}

// TestBulkEntryThatTheLogRefuses shows that an entry of which the log has written nothing
// fails the load, and not the store.
func TestBulkEntryThatTheLogRefuses(t *testing.T) {
	t.Parallel()
	s := openTest(t, Options{})
	var loaded error
	ended := make(chan struct{})
	s.exclusive <- func() {
		defer close(ended)
		b := newBulk(s, Meta{Actor: "agent://ann"}, LoadOptions{})
		refused := make(chan preparedEntry, 1)
		refused <- preparedEntry{err: fmt.Errorf("%w: of a test", wal.ErrTooLarge)}
		b.pending = append(b.pending, refused)
		b.revision++
		loaded = b.finish(&load{}, nil)
	}
	<-ended
	if CodeOf(loaded) != CodeLimitExceeded {
		t.Errorf("the load ends with %v", loaded)
	}
	commitOf(t, s, numbered(1))
}
