package archive

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"

	"koine/kg/base"
	"koine/kg/internal/datadir"
	"koine/kg/internal/wal"
)

// backupSink receives the contents of a backup, in the order of the stream. A nil function
// ignores its part.
type backupSink struct {
	begin      func(BackupInfo) error
	prefixes   func(map[string]string) error
	checkpoint func(piece []byte) error
	entry      func(wal.Frame) error
	attachment func(path string) error
	piece      func([]byte) error // of the last attachment
}

// VerifyBackup reads a whole backup and returns its header. It returns CodeFormatUnknown
// if the stream is not a backup or was made by a newer koine, and CodeLogDamaged if it is
// damaged or truncated. progress, if not nil, is called from time to time with the number
// of entries read.
func VerifyBackup(ctx context.Context, r io.Reader, progress func(done, total uint64)) (BackupInfo, error) {
	return readBackup(ctx, r, backupSink{}, progress)
}

// readBackup verifies a backup and passes its contents to sink.
func readBackup(ctx context.Context, r io.Reader, sink backupSink, progress func(done, total uint64)) (info BackupInfo, err error) {
	in := newBackupReader(r)
	in.keepsEntries = sink.entry != nil
	if info, err = in.readHeader(); err != nil {
		return info, err
	}
	if sink.begin != nil {
		if err := sink.begin(info); err != nil {
			return info, err
		}
	}
	c := &backupChain{info: info, next: uint64(info.First)}
	for {
		if err := ctx.Err(); err != nil {
			return info, err
		}
		kind, content, err := in.readRecord()
		if err != nil {
			return info, err
		}
		if kind == BackupEnd {
			return info, errors.Join(in.readEnd(content), c.checkEnd())
		}
		if err := c.handleRecord(kind, content, sink); err != nil {
			return info, err
		}
		if kind == BackupEntry && progress != nil && (c.entries%ProgressInterval == 0 || c.entries == info.Entries()) {
			progress(c.entries, info.Entries())
		}
	}
}

func errBackupDamaged(format string, args ...any) *base.Error {
	e := base.Errorf(base.CodeLogDamaged, "the backup is damaged: "+format, args...)
	e.Hint = "use another copy of the backup, or an earlier backup"
	return e
}

// backupChain verifies the order of the records and the hash chain of the entries.
type backupChain struct {
	info     BackupInfo
	next     uint64 // index of the next entry
	entries  uint64
	pieces   int
	attached bool     // an attachment has begun
	hash     [32]byte // of the last entry
}

func (c *backupChain) handleRecord(kind byte, content []byte, sink backupSink) error {
	switch kind {
	case BackupPrefixes:
		var prefixes map[string]string
		if err := json.Unmarshal(content, &prefixes); err != nil {
			return errBackupDamaged("its prefixes cannot be read: %w", err)
		}
		if sink.prefixes != nil {
			return sink.prefixes(prefixes)
		}
	case BackupCheckpoint:
		c.pieces++
		if c.info.Checkpoint == 0 || c.entries > 0 {
			return errBackupDamaged("it has an unexpected checkpoint")
		}
		if sink.checkpoint != nil {
			return sink.checkpoint(content)
		}
	case BackupEntry:
		return c.checkEntry(content, sink)
	case BackupAttachment:
		return c.checkAttachment(string(content), sink)
	case BackupPiece:
		if !c.attached {
			return errBackupDamaged("it has a piece of no file")
		}
		if sink.piece != nil {
			return sink.piece(content)
		}
	default:
		return errBackupDamaged("it has a record of the unknown kind %q", kind)
	}
	return nil
}

func (c *backupChain) checkEntry(raw []byte, sink backupSink) error {
	f, err := wal.ParseFrame(raw)
	if errors.Is(err, wal.ErrVersion) {
		return base.Errorf(base.CodeFormatUnknown, "the backup was made by a newer koine: %w", err)
	}
	if err != nil {
		return errBackupDamaged("%w", err)
	}
	if f.Index != c.next {
		return errBackupDamaged("it has entry %d instead of %d", f.Index, c.next)
	}
	switch {
	case c.entries > 0 && f.Prev != c.hash:
		return errBackupDamaged("entry %d does not follow the one before it", f.Index)
	case c.entries == 0 && c.info.Checkpoint == 0 && hex.EncodeToString(f.Prev[:]) != c.info.FromHash:
		return errBackupDamaged("its first entry does not follow revision %d", c.info.From)
	}
	if sink.entry != nil {
		if err := sink.entry(f); err != nil {
			return err
		}
	}
	c.entries, c.next, c.hash = c.entries+1, c.next+1, f.Hash
	return nil
}

func (c *backupChain) checkAttachment(path string, sink backupSink) error {
	c.attached = true
	if !c.info.Full() || c.entries != c.info.Entries() {
		return errBackupDamaged("it has an unexpected file")
	}
	if err := CheckAttachment(path); err != nil {
		return errBackupDamaged("%w", err)
	}
	if sink.attachment != nil {
		return sink.attachment(path)
	}
	return nil
}

// checkEnd compares the contents with the header.
func (c *backupChain) checkEnd() error {
	switch {
	case c.entries != c.info.Entries():
		return errBackupDamaged("it has %d entries of %d", c.entries, c.info.Entries())
	case c.entries > 0 && hex.EncodeToString(c.hash[:]) != c.info.ToHash:
		return errBackupDamaged("its last entry does not match its header")
	case c.info.Checkpoint > 0 && c.pieces == 0:
		return errBackupDamaged("its checkpoint is missing")
	}
	return nil
}

// backupReader splits the stream into header and records.
type backupReader struct {
	in           *bufio.Reader
	sum          hash.Hash
	records      uint64
	buf          []byte
	sumsEntries  bool
	keepsEntries bool // the sink may retain them
}

func newBackupReader(r io.Reader) *backupReader {
	return &backupReader{in: bufio.NewReaderSize(r, 1<<20), sum: sha256.New()}
}

func (r *backupReader) readHeader() (info BackupInfo, err error) {
	magic := make([]byte, len(BackupMagic)+1)
	if err := r.readFull(magic); err != nil && base.CodeOf(err) != base.CodeLogDamaged {
		return info, err // of the reader
	} else if err != nil || string(magic[:len(BackupMagic)]) != BackupMagic {
		return info, base.Errorf(base.CodeFormatUnknown, "the stream is not a backup of a koine store")
	}
	format := int(magic[len(BackupMagic)])
	text, err := r.readPart(maxBackupHeader, true)
	failed := json.Unmarshal(text, &info)
	if format < datadir.OldestFormat || format > datadir.FormatVersion {
		return info, datadir.ErrNewerFormat("backup", format, info.Requires)
	}
	if err != nil {
		return info, err
	}
	if failed != nil {
		return info, errBackupDamaged("its header cannot be read: %w", failed)
	}
	info.Format = format
	if info.To < info.From || info.First == 0 && info.To > 0 || info.First > info.To+1 || info.Full() && info.First > 1 && info.Checkpoint+1 < info.First {
		return info, errBackupDamaged("its header is inconsistent")
	}
	info.First = max(info.First, 1)
	r.sumsEntries = info.SumsEntries()
	return info, nil
}

// readRecord reads a record. The content is valid until the next call, except that of an
// entry that the sink may retain.
func (r *backupReader) readRecord() (kind byte, content []byte, err error) {
	var k [1]byte
	if err := r.readFull(k[:]); err != nil {
		return 0, nil, err
	}
	content, err = r.readPart(maxBackupRecord, k[0] != BackupEntry || r.sumsEntries)
	r.records++
	if err == nil && k[0] == BackupEntry && r.keepsEntries {
		content = bytes.Clone(content)
	}
	return k[0], content, err
}

// readEnd verifies the checksum and that nothing follows it.
func (r *backupReader) readEnd(content []byte) error {
	if n, k := binary.Uvarint(content); k <= 0 || n != r.records-1 { // the count excludes the end record
		return errBackupDamaged("it has %d records of %d", r.records-1, n)
	}
	want := r.sum.Sum(nil)
	got := make([]byte, len(want))
	if _, err := io.ReadFull(r.in, got); err != nil {
		return readError(err)
	}
	if !bytes.Equal(got, want) {
		return errBackupDamaged("its checksum does not match")
	}
	switch _, err := r.in.ReadByte(); err {
	case io.EOF:
		return nil
	case nil:
		return errBackupDamaged("data follows its end")
	default:
		return readError(err)
	}
}

// readPart reads a length and that many bytes, which are part of the checksum if summed is true.
func (r *backupReader) readPart(most int, summed bool) ([]byte, error) {
	size := summedBytes{r: r}
	n, err := binary.ReadUvarint(&size)
	if err != nil && size.err == nil {
		return nil, errBackupDamaged("the size of a part is malformed")
	}
	if err != nil {
		return nil, readError(err)
	}
	if n > uint64(most) {
		return nil, errBackupDamaged("it has a part of %d bytes, and at most %d are allowed", n, most)
	}
	if uint64(cap(r.buf)) < n {
		r.buf = make([]byte, n)
	}
	r.buf = r.buf[:n]
	if summed {
		return r.buf, r.readFull(r.buf)
	}
	_, err = io.ReadFull(r.in, r.buf)
	return r.buf, readError(err)
}

// readFull reads bytes that are part of the checksum.
func (r *backupReader) readFull(b []byte) error {
	_, err := io.ReadFull(r.in, b)
	r.sum.Write(b)
	return readError(err)
}

// readError returns CodeLogDamaged for a truncated stream, and wraps other errors of
// reading.
func readError(err error) error {
	if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
		return errBackupDamaged("it is truncated")
	}
	if err != nil {
		return fmt.Errorf("reading the backup: %w", err)
	}
	return nil
}

// summedBytes reads single bytes and adds them to the checksum.
type summedBytes struct {
	r   *backupReader
	err error // of reading
}

func (s *summedBytes) ReadByte() (b byte, err error) {
	if b, err = s.r.in.ReadByte(); err == nil {
		s.r.sum.Write([]byte{b})
	}
	s.err = err
	return b, err
}
