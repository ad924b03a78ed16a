package vectorindex

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/bits"
	"os"
	"path/filepath"
	"slices"

	"koine/internal/sealed"
)

// manifestVersion changes with the meaning of the files.
const manifestVersion = 2

// Open opens the index in a directory, which it creates, and returns the place that the last
// Save named. A directory that is empty, or that has files that are damaged or of another
// version, gives an empty index and no place; the second error says why.
func Open(dir string) (x *Index, place string, unusable, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, "", nil, err
	}
	x = New()
	x.dir = dir
	if sealed.IsEmpty(dir) {
		return x, "", nil, nil
	}
	place, unusable = x.loadChunks()
	if unusable != nil {
		x.Clear()
		place = ""
	}
	return x, place, unusable, nil
}

func (x *Index) loadChunks() (place string, err error) {
	image, err := os.ReadFile(filepath.Join(x.dir, sealed.ManifestName))
	if err != nil {
		return "", err
	}
	m, err := sealed.ParseManifest(image, manifestVersion)
	if err != nil {
		return "", err
	}
	for _, f := range m.Files {
		c, err := openFile(filepath.Join(x.dir, filepath.Base(f.Name)))
		if err != nil {
			return "", fmt.Errorf("%s: %w", f.Name, err)
		}
		x.chunks[c.dimension] = append(x.chunks[c.dimension], c)
		if c.file, c.savedRows = f, c.countRows(); f.Removed != "" {
			if err := c.loadRemoved(filepath.Join(x.dir, filepath.Base(f.Removed))); err != nil {
				return "", fmt.Errorf("%s: %w", f.Removed, err)
			}
		}
	}
	return m.Place, nil
}

// maxOpenTries bounds how often OpenFiles begins anew because an index was saved meanwhile.
const maxOpenTries = 10

// OpenFiles opens the files of the last save in a directory, none if it has no vectors. An Index
// may save there meanwhile. The caller closes the files.
func OpenFiles(dir string) (list []*os.File, err error) {
	for range maxOpenTries {
		if list, err = openSaved(dir); !errors.Is(err, fs.ErrNotExist) {
			return list, err
		}
	}
	return nil, err
}

// openSaved is OpenFiles, and fails with fs.ErrNotExist if a save has replaced a file.
func openSaved(dir string) (list []*os.File, err error) {
	defer func() {
		if err != nil {
			closeAll(list)
			list = nil
		}
	}()
	f, err := os.Open(filepath.Join(dir, sealed.ManifestName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	list = append(list, f)
	image, err := io.ReadAll(f)
	if err != nil {
		return list, err
	}
	m, err := sealed.ParseManifest(image, manifestVersion)
	if err == nil && len(m.Files) == 0 {
		return nil, f.Close()
	}
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	for _, c := range m.Files {
		for _, name := range []string{c.Name, c.Removed} {
			if name == "" || err != nil {
				continue
			}
			if f, err = os.Open(filepath.Join(dir, filepath.Base(name))); err == nil {
				list = append(list, f)
			}
		}
	}
	return list, err
}

func closeAll(list []*os.File) {
	for _, f := range list {
		_ = f.Close() // opened for reading
	}
}

// openFile opens the chunk in a file.
func openFile(path string) (*chunk, error) {
	image, unmap, err := sealed.MapFile(path)
	if err != nil {
		return nil, err
	}
	c, err := openChunk(image)
	if err != nil {
		unmap()
		return nil, err
	}
	if c.rows != nil { // it has copied the image
		unmap()
	} else {
		c.unmap = unmap
	}
	return c, nil
}

func (c *chunk) loadRemoved(path string) error {
	image, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	content, err := sealed.Open(image)
	if err != nil {
		return err
	}
	if len(content) != 8*len(c.removed) {
		return sealed.ErrDamaged
	}
	for i := range c.removed {
		c.removed[i] = binary.LittleEndian.Uint64(content[8*i:])
		c.gone += bits.OnesCount64(c.removed[i])
	}
	for row := range c.countRows() {
		if !c.isRemoved(row) || c.rows == nil {
			continue
		}
		if k := c.keyAt(row); c.rows[k] == uint32(row) {
			delete(c.rows, k)
		}
	}
	return nil
}

// saving is the state of a chunk while x.mu is held, and the parts of it to be written.
type saving struct {
	chunk   *chunk
	copy    chunk // the arrays only grow behind its rows
	whole   bool
	removed []byte
}

// Save writes the changes since the last Save, and the place in the log that the index stands
// for. After a crash Open finds the state of the last Save that returned.
func (x *Index) Save(place string) error {
	x.saving.Lock()
	defer x.saving.Unlock()
	x.mu.Lock()
	list := x.beginSave()
	x.mu.Unlock()

	m, used := sealed.Manifest{Version: manifestVersion, Place: place}, map[string]bool{sealed.ManifestName: true}
	err := func() error {
		for i := range list {
			f, err := x.writeChunk(&list[i])
			if err != nil {
				return err
			}
			used[f.Name], used[f.Removed] = true, true
			m.Files = append(m.Files, f)
		}
		image, err := m.Seal()
		if err != nil {
			return err
		}
		return sealed.WriteFile(filepath.Join(x.dir, sealed.ManifestName), image)
	}()
	x.mu.Lock()
	if err != nil {
		for _, s := range list {
			s.chunk.changed = s.chunk.changed || s.removed != nil
		}
	} else {
		for i, s := range list {
			s.chunk.file, s.chunk.savedRows = m.Files[i], s.copy.countRows()
		}
	}
	x.mu.Unlock()
	if err != nil {
		return err
	}
	for i := range list {
		if s := &list[i]; s.whole && s.copy.hashes != nil {
			if err := x.moveToFile(s.chunk); err != nil {
				return err
			}
		}
	}
	return sealed.RemoveUnused(x.dir, used)
}

// CopyTo writes the vectors into a new directory, without those that were removed.
func (x *Index) CopyTo(dir, place string) error {
	to, _, unusable, err := Open(dir)
	if err = cmp.Or(err, unusable); err != nil {
		return err
	}
	defer to.Clear()
	x.mu.RLock()
	for _, list := range x.chunks {
		for _, c := range list {
			for row := range c.countRows() {
				if !c.isRemoved(row) {
					to.addVector(c.keyAt(row), c.modelAt(row), c.readVector(row))
				}
			}
		}
	}
	x.mu.RUnlock()
	return to.Save(place)
}

// beginSave returns the state of the chunks. x.mu is held.
func (x *Index) beginSave() (list []saving) {
	for _, chunks := range x.chunks {
		for _, c := range chunks {
			s := saving{chunk: c, copy: *c, whole: c.unmap == nil}
			if c.rows != nil && c.file.Name != "" {
				s.whole = c.countRows() > c.savedRows
			}
			s.copy.groups = slices.Clone(c.groups)
			if s.whole {
				s.copy.file = sealed.File{}
			}
			if c.gone > 0 && (c.changed || s.whole) {
				for _, bits := range c.removed {
					s.removed = binary.LittleEndian.AppendUint64(s.removed, bits)
				}
				c.changed = false
			}
			list = append(list, s)
		}
	}
	return list
}

// writeChunk writes the changed parts of a chunk, and returns its files.
func (x *Index) writeChunk(s *saving) (sealed.File, error) {
	f := s.copy.file
	if s.whole {
		f.Name = x.newName("chunk")
		if err := sealed.WriteFile(filepath.Join(x.dir, f.Name), imageOf(&s.copy)); err != nil {
			return f, err
		}
	}
	if s.removed != nil {
		f.Removed = x.newName("removed")
		if err := sealed.WriteFile(filepath.Join(x.dir, f.Removed), sealed.Seal(s.removed)); err != nil {
			return f, err
		}
	}
	return f, nil
}

// moveToFile replaces a full chunk in memory by the same one in its file.
func (x *Index) moveToFile(c *chunk) error {
	mapped, err := openFile(filepath.Join(x.dir, c.file.Name))
	if err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	list := x.chunks[c.dimension]
	i := slices.Index(list, c)
	if i < 0 { // it was given up meanwhile
		mapped.release()
		return nil
	}
	mapped.removed, mapped.gone, mapped.changed, mapped.file = c.removed, c.gone, c.changed, c.file
	list = slices.Clone(list)
	list[i], x.chunks[c.dimension] = mapped, list
	return nil
}

// newName returns the name of a file that is not there.
func (x *Index) newName(kind string) string {
	for {
		x.number++
		name := fmt.Sprintf("%s-%08d", kind, x.number)
		if _, err := os.Lstat(filepath.Join(x.dir, name)); err != nil {
			return name
		}
	}
}
