package kg

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"hash/maphash"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"koine/internal/extsort"
	"koine/kg/base"
	"koine/kg/internal/datadir"
	"koine/kg/internal/index"
	"koine/kg/internal/keys"
)

// indexSums are the checksums of the files of an index that was closed cleanly, stored in the
// file CLEAN. Badger trusts its tables: a bad byte in one can lose rows silently, hang, or end
// the process. So all of them are read once: a small index before Badger opens it, a large one
// in the background, so that opening does not take longer for it.
type indexSums struct {
	Files map[string]fileSum `json:"files"`
}

type fileSum struct {
	Bytes  int64  `json:"bytes"`
	CRC32C uint32 `json:"crc32c"`
}

const (
	tableSuffix = ".sst"
	// uncheckedName is the name of CLEAN while files are still unread. They are then compared
	// even after the process was killed.
	uncheckedName = "UNCHECKED"
	// maxSummedBytes is the size up to which an index gets checksums. Check verifies an index
	// of any size.
	maxSummedBytes = 4 << 30
	// summedFirst is how many bytes of an index are read before it is opened.
	summedFirst = 64 << 20
)

// sumOf returns the sum of a file when the index was closed. Tables never change once written,
// so the sum of a table is good for its lifetime.
func (s indexSums) sumOf(name string, size int64) (fileSum, bool) {
	sum, ok := s.Files[name]
	return sum, ok && sum.Bytes == size && strings.HasSuffix(name, tableSuffix)
}

// sumIndex returns the sums of the files in an index directory without CLEAN, none if they are
// too large. It does not read known tables again.
func sumIndex(path string, known indexSums) (indexSums, error) {
	sums := indexSums{Files: make(map[string]fileSum)}
	sizes, err := sizesOf(path)
	if err != nil {
		return sums, err
	}
	total := int64(0)
	for _, f := range sizes {
		if total += f.bytes; total > maxSummedBytes {
			return indexSums{}, nil
		}
	}
	for _, f := range sizes {
		if sum, ok := known.sumOf(f.name, f.bytes); ok {
			sums.Files[f.name] = sum
			continue
		}
		file, err := os.Open(filepath.Join(path, f.name))
		if err != nil {
			return sums, err
		}
		if sums.Files[f.name], err = sumFile(file); err != nil {
			return sums, err
		}
	}
	return sums, nil
}

// sizedFile is a file of an index directory.
type sizedFile struct {
	name  string
	bytes int64
}

// sizesOf lists the files of an index without CLEAN and UNCHECKED, smallest first.
func sizesOf(path string) (list []sizedFile, err error) {
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if e.Name() == datadir.CleanName || e.Name() == uncheckedName {
			continue
		}
		st, err := e.Info()
		if err != nil {
			return nil, err
		}
		list = append(list, sizedFile{e.Name(), st.Size()})
	}
	slices.SortStableFunc(list, func(a, b sizedFile) int { return cmp.Compare(a.bytes, b.bytes) })
	return list, nil
}

const sumRoomBytes = 256 << 10

var sumRooms = sync.Pool{New: func() any { return new([sumRoomBytes]byte) }}

// sumFile reads a file and closes it.
func sumFile(f io.ReadCloser) (s fileSum, err error) {
	defer func() { err = errors.Join(err, f.Close()) }()
	sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	room := sumRooms.Get().(*[sumRoomBytes]byte)
	defer sumRooms.Put(room)
	s.Bytes, err = io.CopyBuffer(struct{ io.Writer }{sum}, struct{ io.Reader }{f}, room[:])
	s.CRC32C = sum.Sum32()
	return s, err
}

// writeClean writes CLEAN, which says that the index was closed cleanly.
func writeClean(path string, known indexSums) error {
	sums, err := sumIndex(path, known)
	if err != nil {
		return err
	}
	return writeSums(path, sums)
}

func writeSums(path string, sums indexSums) error {
	raw, err := json.Marshal(sums)
	if err != nil {
		return err
	}
	return datadir.WriteFile(filepath.Join(path, datadir.CleanName), raw)
}

var errIndexChanged = errors.New("its files changed while the store was closed")

// closedIndex is the state of an index that was closed cleanly.
type closedIndex struct {
	sums   indexSums
	unread []unreadFile // open, so that they can be read when compaction has removed them
}

type unreadFile struct {
	name string
	file *os.File
}

// compareClean compares the files of an index with CLEAN: names, sizes, and the contents of
// the smallest, up to budget bytes in all. The caller closes the unread ones.
func compareClean(path string, budget int64) (was closedIndex, err error) {
	if was.sums, err = readSums(filepath.Join(path, datadir.CleanName)); err != nil || was.sums.Files == nil {
		return was, err // too large for sums
	}
	sizes, err := sizesOf(path)
	if err != nil {
		return was, err
	}
	if len(sizes) != len(was.sums.Files) {
		return was, errIndexChanged
	}
	return was, was.compareSums(path, sizes, budget)
}

// compareUnchecked compares the unread tables of an index whose store ended before it had read
// all. If such a table is gone, a compaction may have copied its damage: the index is then not
// trusted.
func compareUnchecked(path string, budget int64) (was closedIndex, err error) {
	if was.sums, err = readSums(filepath.Join(path, uncheckedName)); err != nil {
		return was, err
	}
	var tables []sizedFile
	for name, sum := range was.sums.Files {
		if strings.HasSuffix(name, tableSuffix) {
			tables = append(tables, sizedFile{name, sum.Bytes})
		}
	}
	slices.SortFunc(tables, func(a, b sizedFile) int { return cmp.Or(cmp.Compare(a.bytes, b.bytes), cmp.Compare(a.name, b.name)) })
	err = was.compareSums(path, tables, budget)
	if errors.Is(err, fs.ErrNotExist) {
		err = errors.Join(err, errIndexChanged)
	}
	return was, err
}

func readSums(path string) (s indexSums, err error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return s, err
	}
	if json.Unmarshal(raw, &s) != nil {
		err = errIndexChanged
	}
	return s, err
}

// compareSums compares files with their sums, up to budget bytes of tables, and leaves the other
// tables open.
func (was *closedIndex) compareSums(path string, files []sizedFile, budget int64) (err error) {
	defer func() {
		if err != nil {
			was.close()
		}
	}()
	for _, f := range files {
		want, ok := was.sums.Files[f.name]
		if !ok || want.Bytes != f.bytes {
			return errIndexChanged
		}
		file, err := os.Open(filepath.Join(path, f.name))
		if err != nil {
			return err
		}
		if budget -= f.bytes; budget < 0 && strings.HasSuffix(f.name, tableSuffix) { // others change
			was.unread = append(was.unread, unreadFile{f.name, file})
			continue
		}
		if got, err := sumFile(file); err != nil || got != want {
			return errors.Join(err, errIndexChanged)
		}
	}
	return nil
}

// compareRemoved compares the unread tables that compaction has removed: what they held is in
// other tables now, and with it what damage they had.
func (was *closedIndex) compareRemoved(path string) error {
	for _, f := range was.unread {
		if datadir.Exists(filepath.Join(path, f.name)) {
			continue // compared by the next open
		}
		if err := was.compareUnread(f, f.file); err != nil {
			return err
		}
	}
	return nil
}

// compareUnread reads an unread file from its beginning, and compares it with its sum.
func (was *closedIndex) compareUnread(f unreadFile, reader io.Reader) error {
	if _, err := f.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	got, err := sumFile(io.NopCloser(reader))
	if err == nil && got != was.sums.Files[f.name] {
		err = fmt.Errorf("%w: %s", errIndexChanged, f.name)
	}
	return err
}

func (c *closedIndex) close() {
	for _, f := range c.unread {
		_ = f.file.Close() // opened for reading
	}
	c.unread = nil
}

// checkIndexFiles reads the files that opening left unread, until the store is closed. If one
// of them has changed, the store becomes read-only, and the next start rebuilds the index from
// the log.
func (s *Store) checkIndexFiles(ctx context.Context) error {
	c := &s.closedIndex
	if len(c.unread) == 0 || !s.waitForStart() {
		return nil
	}
	for len(c.unread) > 0 {
		f := c.unread[0]
		err := c.compareUnread(f, stoppableReader{f.file, s.stop})
		if ctx.Err() != nil || s.isClosed() {
			return nil // closeIndex closes those that are left
		}
		if err == nil {
			_ = f.file.Close() // opened for reading
			c.unread = c.unread[1:]
			continue
		}
		if !s.options.ReadOnly { // write sums that no index has
			err = errors.Join(err, writeSums(s.indexPath(), indexSums{Files: map[string]fileSum{}}))
		}
		s.setReadOnly(errReadOnly("the index was damaged while it was closed; reopening the store rebuilds it from the log", err))
		return nil
	}
	if !s.options.ReadOnly {
		if err := datadir.RemoveFile(filepath.Join(s.indexPath(), uncheckedName)); err != nil {
			s.log.Warn("the next start reads the index once more", "error", err)
		}
	}
	return nil
}

// stoppableReader is a reader that fails when the store is closed.
type stoppableReader struct {
	*os.File
	stop <-chan struct{}
}

func (u stoppableReader) Read(p []byte) (int, error) {
	select {
	case <-u.stop:
		return 0, base.ErrClosed()
	default:
		return u.File.Read(p)
	}
}

// keySum identifies a set of keys: their number and the sum of their hashes. Two different
// sets have equal sums with probability 2^-64.
type keySum struct{ n, sum uint64 }

func (k *keySum) add(seed maphash.Seed, key []byte) {
	k.n++
	k.sum += maphash.Bytes(seed, key)
}

// keySums are the sums of the keys of SPOG that each order must have, in the sequence of
// keys.Orders.
type keySums [len(keys.Orders)]keySum

func (k *keySums) add(seed maphash.Seed, q IDQuad, key []byte) {
	for i, o := range keys.Orders {
		if o.Holds(q) {
			k[i].add(seed, key)
		}
	}
}

// total returns the sum for orders that have every key.
func (k *keySums) total() keySum { return k[0] }

// spogKeyOf appends the key of SPOG, or of its past, for the same statement as a key of an order.
// ok is false for an invalid key.
func spogKeyOf(dst []byte, o keys.Order, key []byte) (twin []byte, q IDQuad, ok bool) {
	q, ok = o.Parse(key)
	if o != o.Past() {
		return keys.SPOG.Append(dst, q), q, ok
	}
	from, to, inOrder := keys.Interval(key)
	return keys.SPOG.AppendPast(dst, q, from, to), q, ok && inOrder
}

// appendNumbered appends a record of a graph and a number that sorts like the two.
func appendNumbered(dst []byte, graph ID, n int64) []byte {
	return binary.BigEndian.AppendUint64(append(dst, graph[:]...), uint64(n)^1<<63)
}

func parseNumbered(row []byte) (graph ID, n int64) {
	return ID(row[:keys.IDSize]), int64(binary.BigEndian.Uint64(row[keys.IDSize:]) ^ 1<<63)
}

// maxCounted bounds the keys that a check counts in memory.
const maxCounted = 1 << 16

// keyCounter counts keys. Beyond maxCounted keys it spills the counts to sorted records, which
// it adds up in the end.
type keyCounter struct {
	most   int
	counts index.SourceCounts
	sorter *extsort.Sorter
	record []byte
}

type keyCount struct {
	key string
	n   uint64
}

func newKeyCounter(s *extsort.Sorter, most int) *keyCounter {
	return &keyCounter{most: most, counts: make(index.SourceCounts), sorter: s}
}

func (c *keyCounter) countKey(key []byte) { c.counts[string(key)]++ }

// countSources counts the sources in a value of SPOG, as far as it can be parsed.
func (c *keyCounter) countSources(value []byte) { _ = c.counts.Add(value) }

// spillIfFull spills the counts if there are too many in memory.
func (c *keyCounter) spillIfFull() error {
	if len(c.counts) <= c.most {
		return nil
	}
	return c.spill()
}

func (c *keyCounter) spill() error {
	for key, n := range c.counts {
		c.record = binary.BigEndian.AppendUint64(append(c.record[:0], key...), n)
		if err := c.sorter.Add(c.record); err != nil {
			return err
		}
	}
	clear(c.counts)
	return nil
}

// sortedCounts yields each key once, in order, with its count. It ends the counting. Keys with
// the same first byte have the same length, so that records sort like keys.
func (c *keyCounter) sortedCounts() iter.Seq2[keyCount, error] {
	return func(yield func(keyCount, error) bool) {
		if err := c.spill(); err != nil {
			yield(keyCount{}, err)
			return
		}
		var at keyCount
		for row, err := range c.sorter.Sorted() {
			if err != nil {
				yield(keyCount{}, err)
				return
			}
			key, n := row[:len(row)-8], binary.BigEndian.Uint64(row[len(row)-8:])
			if string(key) == at.key {
				at.n += n
				continue
			}
			if at.n > 0 && !yield(at, nil) {
				return
			}
			at = keyCount{string(key), n}
		}
		if at.n > 0 {
			yield(at, nil)
		}
	}
}

func (c *keyCounter) close() error {
	c.counts = nil
	return c.sorter.Close()
}
