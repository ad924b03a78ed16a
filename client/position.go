package client

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// PositionSaveInterval is how often a PositionFile is written at most, unless Close or
// Save asks for it.
const PositionSaveInterval = time.Second

// PositionFile keeps the position of a subscription in a file, so that a program
// that ends, however it ends, goes on behind what it handled.
//
// Each change is handled at least once: after a crash, changes of the last
// PositionSaveInterval may come again, with the same Change.ID. It is safe for concurrent use.
type PositionFile struct {
	path string

	mu      sync.Mutex // guards the fields below
	current string
	saved   string
	savedAt time.Time // of the last write
	saveErr error     // of the last write
}

// OpenPositionFile reads the position in a file. A file that does not exist holds
// none yet; its directory must exist.
func OpenPositionFile(path string) (*PositionFile, error) {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	position := strings.TrimSpace(string(text))
	return &PositionFile{path: path, current: position, saved: position}, nil
}

// Position is the position to go on from, "" for none.
func (f *PositionFile) Position() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.current
}

// Resume returns the subscription with From set to the position, if there is one, and
// with Moved set to keep it. A Moved of the caller's own is called as well.
func (f *PositionFile) Resume(s Subscription) Subscription {
	if p := f.Position(); p != "" {
		s.From = p
	}
	own := s.OnPosition
	s.OnPosition = func(from string) {
		f.setPosition(from)
		if own != nil {
			own(from)
		}
	}
	return s
}

// setPosition notes a position, and writes it if the last write is old enough. An error is
// kept for Save and Close.
func (f *PositionFile) setPosition(position string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.current = position
	if time.Since(f.savedAt) >= PositionSaveInterval {
		f.saveErr = f.saveLocked()
	}
}

// Save writes the position, and returns the error of that or of an earlier write whose
// position is still not in the file.
func (f *PositionFile) Save() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.saveErr = f.saveLocked()
	return f.saveErr
}

// Close is Save; the file may be used again.
func (f *PositionFile) Close() error { return f.Save() }

// saveLocked replaces the file, so that after a crash it holds the old position or the new.
func (f *PositionFile) saveLocked() error {
	if f.current == f.saved {
		return nil
	}
	f.savedAt = time.Now()
	tmp, err := os.CreateTemp(filepath.Dir(f.path), filepath.Base(f.path)+".*.tmp")
	if err != nil {
		return err
	}
	_, err = tmp.WriteString(f.current + "\n")
	err = errors.Join(err, tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), f.path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(tmp.Name()))
	}
	f.saved = f.current
	return nil
}
