package textindex

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"koine/internal/sealed"
)

// manifestVersion changes with the meaning of the files.
const manifestVersion = 3

// Open opens the index in a directory, which it creates, and returns the place that the
// last Save named. A directory that is empty, or that has files that are damaged or of
// another version, gives an empty index and no place; the second error says why.
func Open(dir string) (x *Index, place string, unusable, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, "", nil, err
	}
	x = New()
	x.dir = dir
	place, unusable = x.loadSegments()
	if unusable != nil {
		x.Clear()
		place = ""
	}
	if errors.Is(unusable, fs.ErrNotExist) && sealed.IsEmpty(dir) {
		unusable = nil
	}
	return x, place, unusable, nil
}

func (x *Index) loadSegments() (place string, err error) {
	image, err := os.ReadFile(filepath.Join(x.dir, sealed.ManifestName))
	if err != nil {
		return "", err
	}
	m, err := sealed.ParseManifest(image, manifestVersion)
	if err != nil {
		return "", err
	}
	for _, f := range m.Files {
		s, err := openFile(filepath.Join(x.dir, filepath.Base(f.Name)), true)
		if err != nil {
			return "", fmt.Errorf("%s: %w", f.Name, err)
		}
		if f.Removed != "" {
			if err := s.loadRemoved(filepath.Join(x.dir, filepath.Base(f.Removed))); err != nil {
				s.release()
				return "", fmt.Errorf("%s: %w", f.Removed, err)
			}
		}
		s.file = f
		x.segments = append(x.segments, s)
	}
	return m.Place, nil
}

// Save writes the changes since the last Save, and the place in the log that the index
// stands for. After a crash Open finds the state of the last Save that returned.
func (x *Index) Save(place string) (err error) {
	x.saving.Lock()
	defer x.saving.Unlock()
	x.mu.Lock()
	x.flushPending()
	list := slices.Clone(x.segments)
	removed := make([][]byte, len(list))
	for i, s := range list {
		if s.changed {
			removed[i], s.changed = s.removedImage(), false
		}
	}
	x.mu.Unlock()
	defer func() {
		if err != nil { // the next Save writes the removals again
			x.mu.Lock()
			for i, s := range list {
				s.changed = s.changed || removed[i] != nil
			}
			x.mu.Unlock()
		}
	}()

	m := sealed.Manifest{Version: manifestVersion, Place: place}
	used := map[string]bool{sealed.ManifestName: true}
	var written []*segment
	for i, s := range list {
		if s.file.Name == "" {
			name := x.names.reserveName(x.dir, "segment")
			if err := x.writeFile(name, s.image); err != nil {
				x.names.freeName(name)
				return err
			}
			x.mu.Lock()
			s.file.Name = name
			x.mu.Unlock()
			written = append(written, s)
		}
		if removed[i] != nil {
			s.file.Removed = x.names.reserveName(x.dir, "removed")
			if err := x.writeFile(s.file.Removed, removed[i]); err != nil {
				x.names.freeName(s.file.Removed)
				return err
			}
		}
		used[s.file.Name], used[s.file.Removed] = true, true
		m.Files = append(m.Files, s.file)
	}
	image, err := m.Seal()
	if err != nil {
		return err
	}
	if err := x.writeFile(sealed.ManifestName, image); err != nil {
		return err
	}
	for _, s := range written {
		if err := x.moveToFile(s); err != nil {
			return err
		}
	}
	return x.names.removeUnused(x.dir, used)
}

func (x *Index) writeFile(name string, content []byte) error {
	err := sealed.WriteFile(filepath.Join(x.dir, name), content)
	if err == nil && x.wrote != nil {
		err = x.wrote(name)
	}
	return err
}

// mergeInFile merges segments in a file.
func (x *Index) mergeInFile(list []*segment) (*segment, error) {
	name := x.names.reserveName(x.dir, "segment")
	path := filepath.Join(x.dir, name)
	err := sealed.WriteFileFrom(path, func(to io.Writer) error {
		sp, err := x.names.newSpool(x.dir)
		if err != nil {
			return err
		}
		defer sp.file.Close() // after a panic; otherwise it is closed below
		out := bufio.NewWriterSize(to, 1<<20)
		w := newSegmentWriter(&imageWriter{out: out})
		mergeInto(w, list, sp)
		return errors.Join(w.finishSegment(), sp.close(), out.Flush())
	})
	var s *segment
	if err == nil {
		s, err = openFile(path, false)
	}
	if err != nil {
		x.names.freeName(name)
		return nil, err
	}
	s.file.Name = name
	return s, nil
}

// names gives names to files, and knows those that no manifest names yet. Its methods are safe
// for concurrent use.
type names struct {
	mu     sync.Mutex
	number int // of the last file
	taken  map[string]bool
}

// reserveName returns the name of a file that is not there. The file is not removed until a
// manifest has named it, or freeName.
func (n *names) reserveName(dir, kind string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	for {
		n.number++
		name := fmt.Sprintf("%s-%08d", kind, n.number)
		if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
			if n.taken == nil {
				n.taken = map[string]bool{}
			}
			n.taken[name] = true
			return name
		}
	}
}

// newSpool makes a spool. removeUnused does not see its file.
func (n *names) newSpool(dir string) (*spool, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return newSpool(dir)
}

// freeName notes that a file is not needed.
func (n *names) freeName(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.taken, name)
}

// removeUnused removes the files that neither the manifest names nor anybody makes.
func (n *names) removeUnused(dir string, inManifest map[string]bool) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	used := maps.Clone(inManifest)
	for name := range n.taken {
		if inManifest[name] {
			delete(n.taken, name)
		}
		used[name], used[name+".new"] = true, true
	}
	return sealed.RemoveUnused(dir, used)
}

// removedImage returns the removed texts of a segment in the form that loadRemoved reads.
func (s *segment) removedImage() []byte {
	return imageOf(func(w *imageWriter) {
		var column column
		for _, bits := range s.removed {
			column.appendValue(bits)
		}
		w.putColumn(column)
		w.putNumber(uint64(len(s.withdrawn)))
		for k, n := range s.withdrawn {
			w.putNumber(uint64(k.term))
			w.putNumber(uint64(k.group))
			w.putNumber(uint64(n))
		}
	})
}

func (s *segment) loadRemoved(path string) error {
	image, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	r, err := openImage(image)
	if err != nil {
		return err
	}
	removed := r.readColumn()
	if r.bad || removed.countValues() != len(s.removed) {
		return sealed.ErrDamaged
	}
	for i := range s.removed {
		s.removed[i] = removed.valueAt(uint32(i))
	}
	for range r.readNumber() {
		k := groupTerm{uint32(r.readNumber()), uint32(r.readNumber())}
		if s.withdrawn[k] = uint32(r.readNumber()); r.bad {
			return sealed.ErrDamaged
		}
	}
	for doc := range s.textCount() {
		if s.isRemoved(doc) {
			g := &s.groups[s.groupOf(doc)]
			g.texts--
			g.words -= s.length.valueAt(doc)
			s.gone++
		}
	}
	return nil
}
