package textindex

import (
	"path/filepath"

	"koine/internal/sealed"
)

// openFile opens the segment in a file, whose checksum is compared if checked is set.
func openFile(path string, checked bool) (*segment, error) {
	image, unmap, err := sealed.MapFile(path)
	if err != nil {
		return nil, err
	}
	if checked {
		_, err = sealed.OpenMapped(image)
	}
	var s *segment
	if err == nil {
		s, err = readSegment(image)
	}
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
	mapped, err := openFile(filepath.Join(x.dir, s.file.Name), false)
	if err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for i := range x.segments {
		if x.segments[i] == s {
			mapped.groups, mapped.removed, mapped.gone, mapped.withdrawn = s.groups, s.removed, s.gone, s.withdrawn
			mapped.changed, mapped.file = s.changed, s.file
			x.segments[i] = mapped
			return nil
		}
	}
	mapped.release() // it was merged meanwhile
	return nil
}
