package wal

import (
	"bytes"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"
)

// codecID identifies our frames in raft-wal's metadata and segment headers ("koine").
const codecID = 0x6b6f696e65

// codec makes raft-wal store the frame alone, without the fields of raft.Log (index, term,
// type, time): the frame has its own index, and the others are unused.
type codec struct{}

func (codec) ID() uint64 { return codecID }

// Encode passes the frame without a copy: raft-wal uses a new buffer for each entry and only
// reads its bytes.
func (codec) Encode(l *raft.Log, w io.Writer) error {
	if b, ok := w.(*bytes.Buffer); ok && b.Len() == 0 {
		*b = *bytes.NewBuffer(l.Data)
		return nil
	}
	_, err := w.Write(l.Data)
	return err
}

// Decode copies b, which raft-wal reuses, into the capacity of l.Data.
func (codec) Decode(b []byte, l *raft.Log) error {
	if cap(l.Data) < len(b) {
		l.Data = slices.Clone(b)
		return nil
	}
	l.Data = append(l.Data[:0], b...)
	return nil
}

// filer wraps raft-wal's filer to set the codec: raft-wal 0.4.2 writes the id of its built-in
// codec into each new segment and then refuses to open the segment, because the id is not
// that of the codec in use. metaStore does the same for the metadata.
type filer struct{ *segment.Filer }

func (f filer) Create(info types.SegmentInfo) (types.SegmentWriter, error) {
	info.Codec = codecID
	w, err := f.Filer.Create(info)
	return f.newSegmentWriter(info, w, err)
}

func (f filer) RecoverTail(info types.SegmentInfo) (types.SegmentWriter, error) {
	w, err := f.Filer.RecoverTail(info)
	return f.newSegmentWriter(info, w, err)
}

func isSegmentName(name string) bool { return strings.HasSuffix(name, ".wal") }

// newHCLogger forwards raft-wal's log, which has only failures of its background work, to a
// slog.Logger.
func newHCLogger(to *slog.Logger) hclog.Logger {
	return hclog.New(&hclog.LoggerOptions{
		Name:        "wal",
		Level:       hclog.Warn,
		Output:      lineWriter{to},
		DisableTime: true,
	})
}

type lineWriter struct{ to *slog.Logger }

func (w lineWriter) Write(line []byte) (int, error) {
	w.to.Warn("write-ahead log", "report", string(bytes.TrimSpace(line)))
	return len(line), nil
}
