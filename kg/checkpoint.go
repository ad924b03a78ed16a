package kg

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"

	"koine/kg/base"
	"koine/kg/internal/archive"
	"koine/kg/internal/codec"
	"koine/kg/internal/datadir"
	"koine/kg/internal/index"
	"koine/kg/internal/keys"
)

const ( // keptCheckpoints is how many are kept: one more than is needed
	keptCheckpoints = 2
)

// Checkpoint writes a checkpoint of the newest revision and returns that revision. The index
// can be rebuilt from it and the log after it. Checkpoint runs beside other operations.
func (m Maintenance) Checkpoint(ctx context.Context) (Revision, error) {
	s := m.s
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
	marker := s.markerOf(p.head)
	if marker.Revision == 0 {
		return 0, nil // there is no content yet
	}
	dir := s.dir.Join(datadir.CheckpointName)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return 0, err
	}
	path := archive.CheckpointPath(dir, marker.Revision)
	if err := writeCheckpoint(ctx, path, p.kv, marker); err != nil {
		return 0, errors.Join(fmt.Errorf("checkpoint of revision %d: %w", marker.Revision, err), datadir.RemoveFile(path+".tmp"))
	}
	return marker.Revision, s.dropCheckpoints()
}

// CutLog writes a checkpoint and then removes the log before the revision, except for entries
// that a backup in progress reads. Log readers positioned before it must start again. Reads of
// older revisions still work.
func (m Maintenance) CutLog(ctx context.Context, before Revision) error {
	s := m.s
	if head := s.head.Load().revision; before > head {
		return Errorf(CodeInvalid, "the log cannot be cut before revision %d: the newest is %d", before, head)
	}
	if e := s.refusedFor(); e != nil {
		return e
	}
	if _, err := s.Maintenance().Checkpoint(ctx); err != nil {
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

func writeCheckpoint(ctx context.Context, path string, kv index.KV, m index.Marker) error {
	return archive.WriteSummed(path, func(out io.Writer) (err error) {
		head := append([]byte(archive.CheckpointMagic), archive.CheckpointVersion)
		if _, err := out.Write(codec.AppendBytes(head, m.EncodeHead())); err != nil {
			return err
		}
		w := &archive.CheckpointWriter{Ctx: ctx}
		if w.Out, err = zstd.NewWriter(out, zstd.WithEncoderConcurrency(1)); err != nil {
			return err
		}
		return errors.Join(w.WriteAll(kv), w.Out.Close())
	})
}

// listCheckpoints lists the files, newest first.
func (s *Store) listCheckpoints() ([]string, error) {
	entries, err := os.ReadDir(s.dir.Join(datadir.CheckpointName))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var paths []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), archive.CheckpointSuffix) {
			paths = append(paths, filepath.Join(s.dir.Join(datadir.CheckpointName), e.Name()))
		}
	}
	slices.Sort(paths)
	slices.Reverse(paths)
	return paths, err
}

// dropCheckpoints removes all but the newest checkpoints, and files of interrupted writes.
func (s *Store) dropCheckpoints() error { return s.dropCheckpointsBut(keptCheckpoints) }

// dropCheckpointsBut keeps the given number of the newest.
func (s *Store) dropCheckpointsBut(kept int) error {
	remains, err := filepath.Glob(s.dir.Join(filepath.Join(datadir.CheckpointName, "*.tmp")))
	if err != nil {
		return err
	}
	paths, err := s.listCheckpoints()
	if err != nil {
		return err
	}
	for _, p := range append(remains, paths[min(kept, len(paths)):]...) {
		if err := datadir.RemoveFile(p); err != nil {
			return err
		}
	}
	return nil
}

// newestCheckpoint returns the newest intact checkpoint and its marker. Without any, path is
// "" and the marker is that of an empty store.
func (s *Store) newestCheckpoint() (path string, m index.Marker, err error) {
	paths, err := s.listCheckpoints()
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
	return "", index.Marker{Epoch: s.dir.Epoch, NextNumber: 1}, nil
}

// verifyCheckpoint reads the whole file and returns its marker.
func (s *Store) verifyCheckpoint(path string) (m index.Marker, err error) {
	f, err := os.Open(path)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	size, err := archive.VerifySum(f)
	if err != nil {
		return m, err
	}
	if m, err = archive.ReadCheckpointHead(bufio.NewReader(io.NewSectionReader(f, 0, size))); err != nil {
		return m, err
	}
	if m.Epoch != s.dir.Epoch {
		return m, Errorf(CodeFormatUnknown, "a checkpoint of another log")
	}
	return m, nil
}

// loadCheckpoint fills the empty index from a verified checkpoint.
func (s *Store) loadCheckpoint(path string) (err error) {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	r := bufio.NewReaderSize(f, 1<<20)
	m, err := archive.ReadCheckpointHead(r)
	if err != nil {
		return err
	}
	w := &indexTxn{db: s.db, at: uint64(m.Revision), floor: uint64(s.oldestReadable())}
	if err := archive.ReadRecords(r, w.restoreRecord); err != nil {
		return errors.Join(err, w.err)
	}
	if err := w.commit(); err != nil {
		return err
	}
	kv := s.newKV(math.MaxUint64)
	defer kv.Close()
	if err := w.recordUses(kv); err != nil {
		return err
	}
	return w.writeMarker(m, w.counted)
}

// restoreRecord writes all keys that a checkpoint record implies.
func (w *indexTxn) restoreRecord(kind byte, key, value []byte) bool {
	if kind == 'P' {
		if _, to, ok := keys.Interval(append([]byte{byte(keys.SPOG.Past())}, key...)); ok && to <= w.floor {
			return true // no longer kept
		}
	}
	for _, sec := range archive.Sections {
		if sec.Kind == kind && !w.setKey(append(slices.Clone(sec.Prefix), key...), value) {
			return false
		}
	}
	switch kind {
	case archive.SourceCountRecord:
		w.counted = true
	case 'T':
		n, ok := keys.ParseNumber(append(keys.NumberPrefix(), key...))
		if !ok {
			return false
		}
		termKey, _ := keys.Term(value, base.Hash16)
		if _, err := w.setRank(value, n); err != nil {
			return false
		}
		return w.setKey(termKey, binary.AppendUvarint(nil, n))
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
		if !w.setKey(key(o), []byte{}) {
			return false
		}
	}
	return true
}
