package textindex

import (
	"os"
	"path/filepath"
	"syscall"
)

// mapFile returns the content of a file, which the system reads as it is needed and may
// forget again. unmap releases it.
func mapFile(path string) (content []byte, unmap func(), err error) {
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
	return content, func() { _ = syscall.Munmap(content) }, nil
}

// openFile opens the segment in a file.
func openFile(path string) (*segment, error) {
	image, unmap, err := mapFile(path)
	if err != nil {
		return nil, err
	}
	s, err := openSegment(image)
	if err != nil {
		unmap()
		return nil, err
	}
	s.unmap = unmap
	return s, nil
}

// release frees the file of a segment that no search uses any more.
func (s *segment) release() {
	if s.unmap != nil {
		s.unmap()
	}
}

// moveToFile replaces a segment in memory by the same one in its file.
func (x *Index) moveToFile(s *segment) error {
	mapped, err := openFile(filepath.Join(x.dir, s.file.Name))
	if err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for i := range x.segments {
		if x.segments[i] == s {
			mapped.groups, mapped.removed, mapped.withdrawn = s.groups, s.removed, s.withdrawn
			mapped.changed, mapped.file = s.changed, s.file
			x.segments[i] = mapped
			return nil
		}
	}
	mapped.release() // it was merged meanwhile
	return nil
}
