package wal

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/raft-wal/fs"
	"github.com/hashicorp/raft-wal/types"

	"koine/kg/internal/wal/waltest"
)

// The first write goes to the file that is older or not legible, so that a torn
// write never hits the only good one.
func TestMetaIsNeverWrittenOverItsOnlyGoodCopy(t *testing.T) {
	for name, tc := range map[string]struct {
		spoil func(dir string, older []byte) error
		next  int
	}{
		"a not legible": {func(dir string, _ []byte) error { return waltest.Flip(filepath.Join(dir, "meta-a"), 20, 1) }, 0},
		"b not legible": {func(dir string, _ []byte) error { return waltest.Flip(filepath.Join(dir, "meta-b"), 20, 1) }, 1},
		"a older":       {func(dir string, older []byte) error { return overwrite(dir, "meta-a", older) }, 0},
		"b older":       {func(dir string, older []byte) error { return overwrite(dir, "meta-b", older) }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			m, err := openMeta(fs.New(), dir, false)
			if err != nil {
				t.Fatal(err)
			}
			older, err := encodeMeta(metaBody{Version: metaVersion, Sequence: 1})
			if err != nil {
				t.Fatal(err)
			}
			for next := uint64(1); next <= 3; next++ {
				if err := m.CommitState(types.PersistentState{NextSegmentID: next}); err != nil {
					t.Fatal(err)
				}
			}
			if err := tc.spoil(dir, older); err != nil {
				t.Fatal(err)
			}
			m, err = openMeta(fs.New(), dir, false)
			if err != nil {
				t.Fatal(err)
			}
			if m.body.State.NextSegmentID != 3 || m.next != tc.next || !m.uneven {
				t.Errorf("state %d, writes file %d first, uneven %v; want 3, %d, true",
					m.body.State.NextSegmentID, m.next, m.uneven, tc.next)
			}
		})
	}
}

func overwrite(dir, name string, b []byte) error {
	f, err := fs.New().OpenWriter(dir, name)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(b, 0)
	return errors.Join(err, f.Close())
}

func TestCheckSegments(t *testing.T) {
	now := time.Unix(1, 0)
	good := func() types.PersistentState {
		return types.PersistentState{NextSegmentID: 2, Segments: []types.SegmentInfo{
			{ID: 0, BaseIndex: 1, MinIndex: 1, MaxIndex: 9, IndexStart: 100, SealTime: now},
			{ID: 1, BaseIndex: 10, MinIndex: 10},
		}}
	}
	if err := checkSegments(good()); err != nil {
		t.Fatalf("good metadata: %v", err)
	}
	for name, spoil := range map[string]func(*types.PersistentState){
		"gap between segments":   func(s *types.PersistentState) { s.Segments[1].BaseIndex++ },
		"last segment sealed":    func(s *types.PersistentState) { s.Segments[1].SealTime = now },
		"earlier segment open":   func(s *types.PersistentState) { s.Segments[0].SealTime = time.Time{} },
		"id not handed out":      func(s *types.PersistentState) { s.NextSegmentID = 1 },
		"index 0":                func(s *types.PersistentState) { s.Segments[0].BaseIndex = 0 },
		"begins before its base": func(s *types.PersistentState) { s.Segments[1].MinIndex = 9 },
		"ends before it begins":  func(s *types.PersistentState) { s.Segments[0].MinIndex = 10 },
		"index out of the file":  func(s *types.PersistentState) { s.Segments[0].IndexStart = 1 << 32 },
	} {
		s := good()
		spoil(&s)
		if err := checkSegments(s); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v, want ErrDamaged", name, err)
		}
		dir := t.TempDir()
		m, err := openMeta(fs.New(), dir, false)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.CommitState(s); err != nil {
			t.Fatal(err)
		}
		if _, err := openMeta(fs.New(), dir, false); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: opened with %v, want ErrDamaged", name, err)
		}
	}
}
