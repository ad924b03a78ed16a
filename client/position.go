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

// PositionSaveInterval is the minimum time between two writes of a PositionFile, except
// those of Save and Close.
const PositionSaveInterval = time.Second

// PositionFile stores the position of a subscription in a file, so that a program resumes
// after the last change that it handled, also after a crash.
//
// Changes are delivered at least once: after a crash, the changes of the last
// PositionSaveInterval may be repeated, with the same Change.ID. A PositionFile is safe
// for concurrent use.
type PositionFile struct {
	path string

	mu      sync.Mutex // guards the fields below
	current string
	saved   string
	savedAt time.Time // of the last write
	saveErr error     // of the last write
}

// OpenPositionFile reads the position in a file. The file need not exist, but its
// directory must.
func OpenPositionFile(path string) (*PositionFile, error) {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	position := strings.TrimSpace(string(text))
	return &PositionFile{path: path, current: position, saved: position}, nil
}

// Position returns the position to resume from, or "" if there is none yet.
func (f *PositionFile) Position() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.current
}

// Resume returns the subscription with From set to the position, if there is one, and
// with an OnPosition that stores positions and then calls that of s.
func (f *PositionFile) Resume(s Subscription) Subscription {
	if p := f.Position(); p != "" {
		s.From = p
	}
	next := s.OnPosition
	s.OnPosition = func(from string) {
		f.setPosition(from)
		if next != nil {
			next(from)
		}
	}
	return s
}

// setPosition records a position, and writes it if PositionSaveInterval has passed since the last
// write. Save and Close return the error.
func (f *PositionFile) setPosition(position string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.current = position
	if time.Since(f.savedAt) >= PositionSaveInterval {
		f.saveErr = f.saveLocked()
	}
}

// Save writes the position if the file does not hold it yet.
func (f *PositionFile) Save() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.saveErr = f.saveLocked()
	return f.saveErr
}

// Close calls Save. The PositionFile stays usable.
func (f *PositionFile) Close() error { return f.Save() }

// saveLocked replaces the file atomically, so that after a crash it holds the old position or the
// new one. The caller holds mu.
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
