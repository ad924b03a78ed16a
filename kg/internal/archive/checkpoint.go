package archive

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
	"runtime"

	"github.com/klauspost/compress/zstd"

	"koine/kg/base"
	"koine/kg/internal/codec"
	"koine/kg/internal/datadir"
	"koine/kg/internal/index"
	"koine/kg/internal/keys"
)

// A checkpoint is the state of the store at a revision, in a form that does not depend on
// the layout of the index:
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
//	B  number of an agent, tally     its statement count, without journals (old)
//	G  language tag                  in use
//	H  datatype                      in use
//	I  hash, row                     an idempotency key
//	N  revision, record              a generation of a graph
//	E  number of records             the end
const (
	CheckpointMagic   = "koine checkpoint\n"
	CheckpointVersion = 1
	CheckpointSuffix  = ".checkpoint"
)

// MaxRecordBytes bounds the allocation for the key or the value of one record.
const MaxRecordBytes = index.MaxIndexValueBytes

// maxCheckpointWindow bounds the allocation of the decompressor. The compressor uses a
// smaller window.
const maxCheckpointWindow = 32 << 20

// WriteSummed writes a file with its SHA-256 at the end. The file appears under its name
// once it is complete and on stable storage.
func WriteSummed(path string, write func(io.Writer) error) (err error) {
	f, err := os.OpenFile(path+".tmp", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	sum := sha256.New()
	buffered := bufio.NewWriterSize(io.MultiWriter(&pacedWriter{to: f}, sum), 1<<20)
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
	return datadir.SyncDir(filepath.Dir(path))
}

// syncEvery is how much of a checkpoint waits to reach the volume. With a gigabyte of it, the next
// sync of the log would wait for all: file systems order them.
const syncEvery = 8 << 20

// syncedFile is a file, as far as a pacedWriter uses it.
type syncedFile interface {
	io.Writer
	Sync() error
}

// pacedWriter writes to a file and syncs it after each syncEvery bytes.
type pacedWriter struct {
	to      syncedFile
	pending int
}

func (w *pacedWriter) Write(b []byte) (int, error) {
	n, err := w.to.Write(b)
	if w.pending += n; err == nil && w.pending >= syncEvery {
		w.pending, err = 0, w.to.Sync()
	}
	return n, err
}

// CheckpointWriter writes the records of a checkpoint to Out.
type CheckpointWriter struct {
	Ctx     context.Context
	Out     *zstd.Encoder
	Records uint64
	buf     []byte
}

// SourceCountRecord is the kind of the count of a source. If a checkpoint has none, the
// counts are computed when it is read: older checkpoints have counts without journals
// ('B'), which are ignored.
const SourceCountRecord = 'Q'

// section is a part of the index that a checkpoint includes.
type section struct {
	Kind   byte
	Prefix []byte
}

// Sections are the parts of the index that a checkpoint includes, by the prefix of their
// keys. Keys are written without the prefix: their parts have a fixed width and mean the
// same in any layout.
var Sections = []section{
	{'T', keys.NumberPrefix()},
	{'S', []byte{byte(keys.SPOG)}},
	{'P', []byte{byte(keys.SPOG.Past())}},
	{'L', keys.LastPrefix()},
	{'C', []byte{keys.PrefixPredicate}},
	{'D', []byte{keys.PrefixClass}},
	{SourceCountRecord, []byte{keys.PrefixSource}},
	{'G', keys.LanguagePrefix()},
	{'H', keys.DatatypePrefix()},
	{'I', keys.IdempotencyPrefix()},
	{'N', keys.GenerationPrefix()},
}

// WriteAll writes all sections and the end record. It returns the error of Ctx if that is
// done.
func (w *CheckpointWriter) WriteAll(kv index.KV) error {
	for _, sec := range Sections {
		if err := w.writeSection(kv, sec.Kind, sec.Prefix); err != nil {
			return err
		}
	}
	return w.WriteRecord('E', binary.AppendUvarint(nil, w.Records), nil)
}

func (w *CheckpointWriter) writeSection(kv index.KV, kind byte, prefix []byte) error {
	c := kv.Scan(prefix)
	defer c.Close()
	for ; c.Valid(); c.Next() {
		err := c.Value(func(v []byte) error { return w.WriteRecord(kind, c.Key()[1:], v) })
		if err != nil {
			return err
		}
		if w.Records++; w.Records%index.PaceInterval == 0 {
			if err := w.Ctx.Err(); err != nil {
				return err
			}
			runtime.Gosched() // requests do not wait for a processor meanwhile
		}
	}
	return nil
}

// WriteRecord writes one record. It does not count it.
func (w *CheckpointWriter) WriteRecord(kind byte, key, value []byte) error {
	w.buf = append(w.buf[:0], kind)
	w.buf = codec.AppendBytes(w.buf, key)
	w.buf = codec.AppendBytes(w.buf, value)
	_, err := w.Out.Write(w.buf)
	return err
}

// CheckpointPath returns the path of the checkpoint of a revision.
func CheckpointPath(dir string, r base.Revision) string {
	return filepath.Join(dir, fmt.Sprintf("%020d%s", r, CheckpointSuffix))
}

// ReadCheckpointHead reads the head of a checkpoint and returns its marker. It returns
// CodeFormatUnknown if r is not a checkpoint of this version.
func ReadCheckpointHead(r *bufio.Reader) (m index.Marker, err error) {
	head := make([]byte, len(CheckpointMagic)+1)
	if _, err := io.ReadFull(r, head); err != nil {
		return m, err
	}
	if string(head) != CheckpointMagic+string(rune(CheckpointVersion)) {
		return m, base.Errorf(base.CodeFormatUnknown, "not a checkpoint of this version")
	}
	raw, err := readBytes(r)
	if err != nil {
		return m, err
	}
	m, err = index.ParseMarker(raw)
	m.HashedTerms, m.Unranked = false, false // of the index that it was made from, if any
	return m, err
}

// VerifySum verifies the SHA-256 at the end of a file and returns the size before it.
func VerifySum(f *os.File) (size int64, err error) {
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
		return 0, fmt.Errorf("its checksum does not match: %w", codec.ErrMalformed)
	}
	return size, nil
}

// ReadRecords reads the records after the head of a checkpoint and calls restore for each.
// It stops with codec.ErrMalformed if restore returns false.
func ReadRecords(r io.Reader, restore func(kind byte, key, value []byte) bool) error {
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

func readBytes(r *bufio.Reader) ([]byte, error) {
	n, err := binary.ReadUvarint(r)
	if err != nil {
		return nil, err
	}
	if n > MaxRecordBytes {
		return nil, codec.ErrMalformed
	}
	b := make([]byte, n)
	_, err = io.ReadFull(r, b)
	return b, err
}
