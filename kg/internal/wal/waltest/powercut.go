package waltest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// PowerCut writes a possible state of dir after a power cut to the directory to, which must be
// empty or absent: everything synced, and the first keep unsynced bytes of segment files in
// write order. With keep 0 no other file keeps unsynced bytes either, and a file that was never
// synced is missing; otherwise both are kept. The log in dir may be open and busy.
func (f *Files) PowerCut(dir, to string, keep int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := Copy(dir, to); err != nil {
		return err
	}
	none := keep == 0
	if none {
		for path := range f.unlinked {
			if filepath.Dir(path) == filepath.Clean(dir) {
				if err := os.Remove(filepath.Join(to, filepath.Base(path))); err != nil {
					return err
				}
			}
		}
	}
	// Forward to distribute the kept bytes, backward to undo the rest.
	var undo []change
	for _, c := range f.changes {
		if filepath.Dir(c.path) != filepath.Clean(dir) || none && f.unlinked[c.path] {
			continue
		}
		if !isSegment(c.path) {
			if none {
				undo = append(undo, c)
			}
			continue
		}
		stay := min(keep, c.written)
		keep -= stay
		c.off, c.written, c.old = c.off+int64(stay), c.written-stay, c.old[min(stay, len(c.old)):]
		undo = append(undo, c)
	}
	for _, c := range slices.Backward(undo) {
		if err := c.undo(filepath.Join(to, filepath.Base(c.path))); err != nil {
			return err
		}
	}
	return nil
}

// undo restores the previous bytes, zeros behind the former end of the file.
func (c change) undo(path string) error {
	return editFile(path, func(w *os.File) error {
		_, err := w.WriteAt(append(bytes.Clone(c.old), make([]byte, c.written-len(c.old))...), c.off)
		return err
	})
}

// Copy copies the files of dir, without subdirectories, to the directory to, and creates it.
// Zero blocks become holes.
func Copy(dir, to string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Type().IsRegular() {
			if err := copyFile(filepath.Join(dir, e.Name()), filepath.Join(to, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

func copyFile(from, to string) error {
	r, err := os.Open(from)
	if err != nil {
		return err
	}
	defer r.Close()
	w, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	return errors.Join(copySparse(w, r), w.Close())
}

func copySparse(w, r *os.File) error {
	block, zeros := make([]byte, 64<<10), make([]byte, 64<<10)
	for at := int64(0); ; {
		n, err := io.ReadFull(r, block)
		if n > 0 && !bytes.Equal(block[:n], zeros[:n]) {
			if _, err := w.WriteAt(block[:n], at); err != nil {
				return err
			}
		}
		at += int64(n)
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return w.Truncate(at)
		}
		if err != nil {
			return err
		}
	}
}

// Segments returns the paths of the segment files in dir, oldest first.
func Segments(dir string) ([]string, error) {
	return filepath.Glob(filepath.Join(dir, "*.wal"))
}

// Written returns the offset behind the last non-zero byte of a file.
func Written(path string) (int64, error) {
	b, err := os.ReadFile(path)
	return int64(len(bytes.TrimRight(b, "\x00"))), err
}

// Flip changes the bits of mask in the byte at offset off of a file.
func Flip(path string, off int64, mask byte) error {
	return editFile(path, func(w *os.File) error {
		var b [1]byte
		if _, err := w.ReadAt(b[:], off); err != nil {
			return fmt.Errorf("flip byte %d: %w", off, err)
		}
		b[0] ^= mask
		_, err := w.WriteAt(b[:], off)
		return err
	})
}

func editFile(path string, change func(*os.File) error) error {
	w, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(change(w), w.Close())
}
