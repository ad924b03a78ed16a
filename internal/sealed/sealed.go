// Package sealed reads and writes the files of derived data: each is written as a whole, ends
// with a checksum, and is never changed. A manifest, written last, names the files in use.
package sealed

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// ErrDamaged means that a file does not have the content that was written.
var ErrDamaged = errors.New("file is damaged")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Size is the size of the checksum behind a content.
const Size = crc32.Size

// Checksum returns the checksum of a content that continues one with a checksum, 0 for none.
func Checksum(sum uint32, content []byte) uint32 { return crc32.Update(sum, castagnoli, content) }

// Seal appends the checksum of a content to it.
func Seal(content []byte) []byte {
	return binary.BigEndian.AppendUint32(content, crc32.Checksum(content, castagnoli))
}

// Open returns the content that was sealed, in the same memory, or ErrDamaged.
func Open(image []byte) ([]byte, error) {
	n := len(image) - crc32.Size
	if n < 0 || crc32.Checksum(image[:n], castagnoli) != binary.BigEndian.Uint32(image[n:]) {
		return nil, ErrDamaged
	}
	return image[:n:n], nil
}

// checkWindow is how much of a mapped file is in memory while its checksum is compared.
const checkWindow = 4 << 20

// OpenMapped is Open for the content of MapFile. It releases each window after reading it, so that at
// most checkWindow bytes are resident.
func OpenMapped(image []byte) ([]byte, error) {
	n := len(image) - crc32.Size
	if n < 0 {
		return nil, ErrDamaged
	}
	sum := uint32(0)
	for at := 0; at < n; at += checkWindow { // a multiple of the size of a page
		window := image[at:min(at+checkWindow, n)]
		sum = Checksum(sum, window)
		_ = unix.Madvise(window, unix.MADV_DONTNEED)
	}
	if sum != binary.BigEndian.Uint32(image[n:]) {
		return nil, ErrDamaged
	}
	return image[:n:n], nil
}

// WriteFile writes a file that is there as a whole or, after a crash, not at all.
func WriteFile(path string, content []byte) error {
	return WriteFileFrom(path, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}

// WriteFileFrom is WriteFile for a content that a function writes by parts.
func WriteFileFrom(path string, write func(io.Writer) error) error {
	f, err := os.OpenFile(path+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err = write(f); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(f.Name())) // it may fill the volume
	}
	if err := os.Rename(path+".new", path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// MapFile returns the content of a file, which the system reads as it is needed and may
// forget again. unmap releases it.
func MapFile(path string) (content []byte, unmap func(), err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if info.Size() == 0 {
		return nil, func() {}, nil
	}
	content, err = syscall.Mmap(int(f.Fd()), 0, int(info.Size()), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil, nil, os.NewSyscallError("mmap", err)
	}
	return content, mapped.add(content), nil
}

// mapped is the content of all files that MapFile has mapped. There is one list for the process,
// to which the pages belong.
var mapped = mappings{contents: make(map[*byte][]byte)}

type mappings struct {
	mu       sync.Mutex // also held while a file is unmapped
	contents map[*byte][]byte
}

func (m *mappings) add(content []byte) (unmap func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.contents[&content[0]] = content
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.contents, &content[0])
		_ = syscall.Munmap(content)
	}
}

// ReleasePages gives the pages of all mapped files back to the system. They stay in its page
// cache, and come back when they are read.
func ReleasePages() {
	mapped.mu.Lock()
	defer mapped.mu.Unlock()
	for _, content := range mapped.contents {
		_ = unix.Madvise(content, unix.MADV_DONTNEED)
	}
}

// RemoveUnused removes the files of a directory that are not in use, and leaves directories.
func RemoveUnused(dir string, used map[string]bool) error {
	files, err := listFiles(dir)
	for _, name := range files {
		if !used[name] {
			err = errors.Join(err, os.Remove(filepath.Join(dir, name)))
		}
	}
	return err
}

// IsEmpty reports whether a directory has no files.
func IsEmpty(dir string) bool {
	files, err := listFiles(dir)
	return err == nil && len(files) == 0
}

func listFiles(dir string) (names []string, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if !e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, err
}
