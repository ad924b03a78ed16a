package kg

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"

	"koine/kg/internal/codec"
	"koine/kg/internal/keys"
)

// A checkpoint is the meaning of the log up to a revision, in a form that does
// not depend on the layout of the index:
//
//	magic, version(1), marker (length, bytes), zstd stream of records, SHA-256
//
// over all before it. A record is a kind and one or two byte strings:
//
//	T  number, term record           a term of the dictionary
//	S  four ids, state               a statement
//	P  four ids, from, to, state     an interval of the past
//	L  two ids, revision             last change of a subject in a graph
//	C  catalogue key, tally          a count
//	B  number of an agent, tally     how many statements it backs
//	G  language tag                  of some literal
//	H  datatype                      of some literal
//	I  hash, row                     a remembered answer
//	N  revision, record              a generation of a graph
//	E  number of records             the end
const (
	checkpointMagic   = "koine checkpoint\n"
	checkpointVersion = 1
	checkpointSuffix  = ".checkpoint"
	// keptCheckpoints is how many are kept: one more than is needed.
	keptCheckpoints = 2
)

// maxRecordBytes bounds what reading a checkpoint allocates for the key or the value of
// one record.
const maxRecordBytes = maxIndexValueBytes

// maxCheckpointWindow bounds what decompressing a checkpoint allocates; writing
// one uses less.
const maxCheckpointWindow = 32 << 20

// Checkpoint writes a checkpoint of the newest revision, from which and the log
// behind it the index can be rebuilt, and gives that revision. It may run beside
// everything else.
func (s *Store) Checkpoint(ctx context.Context) (Revision, error) {
	if s.options.ReadOnly {
		return 0, errOpenedReadOnly()
	}
	s.checkpointing.Lock()
	defer s.checkpointing.Unlock()
	p, err := s.pin(ctx)
	if err != nil {
		return 0, err
	}
	defer s.unpin(p)
	m := s.marker(p.head)
	if m.revision == 0 {
		return 0, nil // nothing to keep
	}
	dir := s.dir.join(checkpointName)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return 0, err
	}
	path := checkpointPath(dir, m.revision)
	if err := writeCheckpoint(ctx, path, p.kv, m); err != nil {
		return 0, errors.Join(fmt.Errorf("checkpoint of revision %d: %w", m.revision, err), removeFile(path+".tmp"))
	}
	return m.revision, s.dropCheckpoints()
}

// CutLog writes a checkpoint and then removes the log before the revision, or
// before what a backup under way still reads. Readers of the log who stand before
// it must start again; reads of older revisions go on.
func (s *Store) CutLog(ctx context.Context, before Revision) error {
	if head := s.head.Load().revision; before > head {
		return Errorf(CodeInvalid, "the log cannot be cut before revision %d: the newest is %d", before, head)
	}
	if e := s.refusedFor(); e != nil {
		return e
	}
	if _, err := s.Checkpoint(ctx); err != nil {
		return err
	}
	s.checkpointing.Lock() // no backup begins meanwhile
	defer s.checkpointing.Unlock()
	s.mu.Lock()
	if held, _, ok := s.holds.Min(); ok {
		before = min(before, held)
	}
	s.mu.Unlock()
	return s.wal.TruncateFront(uint64(before))
}

func writeCheckpoint(ctx context.Context, path string, kv kv, m marker) error {
	return writeSummed(path, func(out io.Writer) (err error) {
		head := append([]byte(checkpointMagic), checkpointVersion)
		if _, err := out.Write(codec.AppendBytes(head, m.encode())); err != nil {
			return err
		}
		w := &checkpointWriter{ctx: ctx}
		if w.z, err = zstd.NewWriter(out, zstd.WithEncoderConcurrency(1)); err != nil {
			return err
		}
		return errors.Join(w.all(kv), w.z.Close())
	})
}

// writeSummed writes a file with its SHA-256 at the end. It appears under its
// name when it is whole and on stable storage.
func writeSummed(path string, write func(io.Writer) error) (err error) {
	f, err := os.OpenFile(path+".tmp", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	sum := sha256.New()
	buffered := bufio.NewWriterSize(io.MultiWriter(f, sum), 1<<20)
	if err := errors.Join(write(buffered), buffered.Flush()); err != nil {
		return err
	}
	if _, err := f.Write(sum.Sum(nil)); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := os.Rename(path+".tmp", path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

type checkpointWriter struct {
	ctx     context.Context
	z       *zstd.Encoder
	records uint64
	buf     []byte
}

// backedRecord is that of the count of a source. Where there is none they are
// counted when the checkpoint is read: it may be of an earlier form, whose counts
// ('B') did not have what the entries of journals say.
const backedRecord = 'Q'

// section is a part of the index that a checkpoint keeps.
type section struct {
	kind   byte
	prefix []byte
}

// sections are the parts of the index that a checkpoint keeps, each with the
// prefix of its keys. Keys are written as they are but for the prefix: their
// parts are fixed in width and mean the same in any layout.
var sections = []section{
	{'T', keys.NumberPrefix()},
	{'S', []byte{byte(keys.SPOG)}},
	{'P', []byte{byte(keys.SPOG.Past())}},
	{'L', keys.LastPrefix()},
	{'C', []byte{keys.PrefixPredicate}},
	{'D', []byte{keys.PrefixClass}},
	{backedRecord, []byte{keys.PrefixSource}},
	{'G', keys.LanguagePrefix()},
	{'H', keys.DatatypePrefix()},
	{'I', keys.IdempotencyPrefix()},
	{'N', keys.GenerationPrefix()},
}

func (w *checkpointWriter) all(kv kv) error {
	for _, sec := range sections {
		if err := w.section(kv, sec.kind, sec.prefix); err != nil {
			return err
		}
	}
	return w.record('E', binary.AppendUvarint(nil, w.records), nil)
}

func (w *checkpointWriter) section(kv kv, kind byte, prefix []byte) error {
	c := kv.scan(prefix)
	defer c.close()
	for ; c.valid(); c.next() {
		err := c.value(func(v []byte) error { return w.record(kind, c.key()[1:], v) })
		if err != nil {
			return err
		}
		if w.records++; w.records%checkEvery == 0 && w.ctx.Err() != nil {
			return w.ctx.Err()
		}
	}
	return nil
}

func (w *checkpointWriter) record(kind byte, key, value []byte) error {
	w.buf = append(w.buf[:0], kind)
	w.buf = codec.AppendBytes(w.buf, key)
	w.buf = codec.AppendBytes(w.buf, value)
	_, err := w.z.Write(w.buf)
	return err
}

func checkpointPath(dir string, r Revision) string {
	return filepath.Join(dir, fmt.Sprintf("%020d%s", r, checkpointSuffix))
}

// checkpoints lists the files, the newest first.
func (s *Store) checkpoints() ([]string, error) {
	entries, err := os.ReadDir(s.dir.join(checkpointName))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var paths []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), checkpointSuffix) {
			paths = append(paths, filepath.Join(s.dir.join(checkpointName), e.Name()))
		}
	}
	slices.Sort(paths)
	slices.Reverse(paths)
	return paths, err
}

// dropCheckpoints removes those that are not kept, and what a stop in the middle
// of writing one left behind.
func (s *Store) dropCheckpoints() error { return s.dropCheckpointsBut(keptCheckpoints) }

// dropCheckpointsBut keeps so many of the newest.
func (s *Store) dropCheckpointsBut(kept int) error {
	remains, err := filepath.Glob(s.dir.join(filepath.Join(checkpointName, "*.tmp")))
	if err != nil {
		return err
	}
	paths, err := s.checkpoints()
	if err != nil {
		return err
	}
	for _, p := range append(remains, paths[min(kept, len(paths)):]...) {
		if err := removeFile(p); err != nil {
			return err
		}
	}
	return nil
}

// newestCheckpoint finds the newest checkpoint that is whole, and gives its
// marker. Without any the path is "", and the marker that of an empty store.
func (s *Store) newestCheckpoint() (path string, m marker, err error) {
	paths, err := s.checkpoints()
	if err != nil {
		return "", m, err
	}
	for _, path := range paths {
		m, err := s.verifyCheckpoint(path)
		if err == nil {
			return path, m, nil
		}
		s.log.Warn("a checkpoint cannot be used", "file", filepath.Base(path), "error", err)
	}
	return "", marker{epoch: s.dir.epoch, nextNumber: 1}, nil
}

// verifyCheckpoint reads the whole file and gives its marker.
func (s *Store) verifyCheckpoint(path string) (m marker, err error) {
	f, err := os.Open(path)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	size, err := verifySum(f)
	if err != nil {
		return m, err
	}
	if m, err = readCheckpointHead(bufio.NewReader(io.NewSectionReader(f, 0, size))); err != nil {
		return m, err
	}
	if m.epoch != s.dir.epoch {
		return m, Errorf(CodeFormatUnknown, "a checkpoint of another log")
	}
	return m, nil
}

// loadCheckpoint fills the empty index from a checkpoint that was verified.
func (s *Store) loadCheckpoint(path string) (err error) {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	r := bufio.NewReaderSize(f, 1<<20)
	m, err := readCheckpointHead(r)
	if err != nil {
		return err
	}
	w := &indexTxn{db: s.db, at: uint64(m.revision), floor: uint64(s.floor())}
	if err := readRecords(r, w.restore); err != nil {
		return errors.Join(err, w.err)
	}
	return w.mark(m, w.counted)
}

func readCheckpointHead(r *bufio.Reader) (m marker, err error) {
	head := make([]byte, len(checkpointMagic)+1)
	if _, err := io.ReadFull(r, head); err != nil {
		return m, err
	}
	if string(head) != checkpointMagic+string(rune(checkpointVersion)) {
		return m, Errorf(CodeFormatUnknown, "not a checkpoint of this version")
	}
	raw, err := readBytes(r)
	if err != nil {
		return m, err
	}
	return parseMarker(raw)
}

func verifySum(f *os.File) (size int64, err error) {
	st, err := f.Stat()
	if err != nil {
		return 0, err
	}
	size = st.Size() - sha256.Size
	if size < 0 {
		return 0, codec.ErrMalformed
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, io.LimitReader(f, size)); err != nil {
		return 0, err
	}
	want := make([]byte, sha256.Size)
	if _, err := io.ReadFull(f, want); err != nil {
		return 0, err
	}
	if !bytes.Equal(sum.Sum(nil), want) {
		return 0, fmt.Errorf("its checksum does not fit: %w", codec.ErrMalformed)
	}
	return size, nil
}

// readRecords reads the records of a checkpoint, which follow its head, and
// calls restore for each until one is refused.
func readRecords(r io.Reader, restore func(kind byte, key, value []byte) bool) error {
	z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxCheckpointWindow))
	if err != nil {
		return err
	}
	defer z.Close()
	in := bufio.NewReaderSize(z, 1<<20)
	for n := uint64(0); ; n++ {
		kind, err := in.ReadByte()
		if err != nil {
			return err
		}
		key, err := readBytes(in)
		if err != nil {
			return err
		}
		value, err := readBytes(in)
		if err != nil {
			return err
		}
		if kind == 'E' {
			if want, _ := binary.Uvarint(key); want != n {
				return fmt.Errorf("%d records of %d: %w", n, want, codec.ErrMalformed)
			}
			return nil
		}
		if !restore(kind, key, value) {
			return fmt.Errorf("record %q: %w", kind, codec.ErrMalformed)
		}
	}
}

// restore writes all keys that a record stands for.
func (w *indexTxn) restore(kind byte, key, value []byte) bool {
	if kind == 'P' {
		if _, to, ok := keys.Interval(append([]byte{byte(keys.SPOG.Past())}, key...)); ok && to <= w.floor {
			return true // is not kept any more
		}
	}
	for _, sec := range sections {
		if sec.kind == kind && !w.set(append(slices.Clone(sec.prefix), key...), value) {
			return false
		}
	}
	switch kind {
	case backedRecord:
		w.counted = true
	case 'T':
		n, ok := keys.ParseNumber(append(keys.NumberPrefix(), key...))
		if !ok {
			return false
		}
		termKey, _ := keys.Term(value, hash16)
		return w.set(termKey, binary.AppendUvarint(nil, n))
	case 'S':
		q, ok := keys.SPOG.Parse(append([]byte{byte(keys.SPOG)}, key...))
		return ok && w.otherOrders(q, func(o keys.Order) []byte { return o.Append(nil, q) })
	case 'P':
		whole := append([]byte{byte(keys.SPOG.Past())}, key...)
		q, ok := keys.SPOG.Past().Parse(whole)
		from, to, inOrder := keys.Interval(whole)
		return ok && inOrder && w.otherOrders(q, func(o keys.Order) []byte { return o.AppendPast(nil, q, from, to) })
	}
	return true
}

func (w *indexTxn) otherOrders(q keys.Quad, key func(keys.Order) []byte) bool {
	for _, o := range keys.Orders {
		if o == keys.SPOG || !o.Holds(q) {
			continue
		}
		if !w.set(key(o), []byte{}) {
			return false
		}
	}
	return true
}

func readBytes(r *bufio.Reader) ([]byte, error) {
	n, err := binary.ReadUvarint(r)
	if err != nil {
		return nil, err
	}
	if n > maxRecordBytes {
		return nil, codec.ErrMalformed
	}
	b := make([]byte, n)
	_, err = io.ReadFull(r, b)
	return b, err
}
