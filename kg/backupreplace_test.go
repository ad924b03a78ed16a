package kg_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"koine/internal/slowtest"
	"koine/kg"
)

// Backups made before, during and after the replacement of a whole graph, full and
// incremental ones, and after a log that was cut in the middle of it, restore the store of
// their time: statements at every revision, commits, and the index. With the hidden commits
// and without the switch, the graph is unchanged, and nothing is left of them.
func TestBackupInReplacement(t *testing.T) {
	slowtest.Long(t)
	t.Parallel()
	for name, cut := range map[string]bool{"whole log": false, "cut log": true} {
		t.Run(name, func(t *testing.T) {
			o := smallOptions().WithFaults(kg.Faults{LogSegmentBytes: 1 << 10, WholeFrom: 20, WholeCommit: 12})
			s := openStore(t, t.TempDir(), o)
			newWorker(23, "w").work(t, s, 6)
			old, next := exchange{"old.replace/2/60", 2, 60}, exchange{"new.replace/4/60", 4, 60}
			if r, err := old.replace(within(t), s); err != nil || !r.Whole {
				t.Fatalf("%+v, %v", r, err)
			}
			before, from := backupOf(t, s, kg.BackupOptions{})
			early := recordOf(t, s)
			// moment is a backup at one time: in full, and incremental to the one before.
			type moment struct {
				full, more []byte
				info       kg.BackupInfo
			}
			var during []moment
			quads := next.quads()
			_, err := s.ReplaceGraph(within(t), next.meta(), next.graph(), func(yield func(kg.Quad, error) bool) {
				for i, q := range quads {
					if first := i == 35; first || i == len(quads)-1 {
						if cut && first {
							if err := s.Maintenance().CutLog(within(t), from.To+1); err != nil {
								t.Error(err)
							}
						}
						full, info := backupOf(t, s, kg.BackupOptions{})
						if (info.Checkpoint > 0) != cut || info.To < from.To || first && info.To == from.To {
							t.Errorf("the backup is %+v", info)
						}
						more, last := backupOf(t, s, kg.BackupOptions{Follows: &from})
						during, from = append(during, moment{full, more, info}), last
					}
					if !yield(q, nil) {
						return
					}
				}
			}, kg.ReplaceOptions{})
			if err != nil {
				t.Fatal(err)
			}
			newWorker(24, "late").work(t, s, 3)
			end, _ := backupOf(t, s, kg.BackupOptions{Follows: &from})
			full, _ := backupOf(t, s, kg.BackupOptions{})
			nothingStray(t, s)
			var after [][]byte
			for _, m := range during {
				more, _ := backupOf(t, s, kg.BackupOptions{Follows: &m.info})
				after = append(after, more)
			}
			want, rows := recordOf(t, s), imageOf(t, s, nil).rows
			mustClose(t, s)
			for r, text := range early.commits {
				want.commits[r] = text // also those that are cut off
			}
			t.Run("before it", func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "again")
				if _, err := restoreInto(t, dir, before); err != nil {
					t.Fatal(err)
				}
				r := openStore(t, dir, o)
				holdsExactly(t, r, old)
				want.agrees(t, r)
				mustCheck(t, r)
			})
			for i, part := range during {
				t.Run(fmt.Sprint("during it, ", i), func(t *testing.T) {
					interrupted(t, want, old, next, o, part.full)
				})
			}
			for what, row := range map[string][][]byte{
				"in full":                              {full},
				"what follows on the one before it":    {before, during[0].more, during[1].more, end},
				"what follows on the first during it":  {during[0].full, after[0]},
				"what follows on the second during it": {during[1].full, after[1]},
			} {
				t.Run(what, func(t *testing.T) {
					dir := filepath.Join(t.TempDir(), "again")
					if _, err := restoreInto(t, dir, row...); err != nil {
						t.Fatal(err)
					}
					r := openStore(t, dir, o)
					holdsExactly(t, r, next)
					nothingStray(t, r)
					equalLines(t, "the index", rows, imageOf(t, r, nil).rows)
					want.restored(t, r)
				})
			}
		})
	}
}

// interrupted restores a backup that was made during a replacement.
func interrupted(t *testing.T, want *record, old, next exchange, o kg.Options, parts ...[]byte) {
	dir := filepath.Join(t.TempDir(), "again")
	info, err := restoreInto(t, dir, parts...)
	if err != nil {
		t.Fatal(err)
	}
	s := openStore(t, dir, o)
	holdsExactly(t, s, old)
	nothingStray(t, s)
	mustCheck(t, s)
	for r := kg.Revision(1); r <= info.To; r++ {
		equalLines(t, fmt.Sprint("revision ", r), want.statements[r], statements(t, s, r))
	}
	for r := s.Oldest().Revision + 1; r <= info.To; r++ {
		if got := commitText(t, s, r); got != want.commits[r] {
			t.Errorf("commit %d is %s, was %s", r, got, want.commits[r])
		}
	}
	if r, err := next.replace(within(t), s); err != nil || r.Replayed || !r.Whole {
		t.Errorf("the replacement again: %+v, %v", r, err)
	}
	holdsExactly(t, s, next)
	mustCheck(t, s)
}
