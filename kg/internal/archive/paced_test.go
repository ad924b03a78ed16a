package archive

import "testing"

// unsynced counts the bytes of a file that were not synced, and the most of them.
type unsynced struct{ now, most int }

func (f *unsynced) Write(b []byte) (int, error) {
	f.now += len(b)
	f.most = max(f.most, f.now)
	return len(b), nil
}

func (f *unsynced) Sync() error {
	f.now = 0
	return nil
}

// A checkpoint of any size leaves little for the sync at its end.
func TestCheckpointsAreSyncedOnTheWay(t *testing.T) {
	t.Parallel()
	const piece = 1 << 20
	var f unsynced
	w := &pacedWriter{to: &f}
	for range 10 * syncEvery / piece {
		if _, err := w.Write(make([]byte, piece)); err != nil {
			t.Fatal(err)
		}
	}
	if f.most > syncEvery+piece {
		t.Errorf("%d bytes waited for a sync, want at most %d and a piece", f.most, syncEvery)
	}
}
