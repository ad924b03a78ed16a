package wal_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	raftwal "github.com/hashicorp/raft-wal"

	"koine/kg/internal/wal"
)

const benchEntryBytes = 900

// BenchmarkAppend compares the log with raft-wal bare, its twin, in one run.
// Both are durable: one sync for a batch.
func BenchmarkAppend(b *testing.B) {
	for _, batch := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("batch=%d/twin", batch), func(b *testing.B) {
			w, err := raftwal.Open(b.TempDir(), raftwal.WithLogger(hclog.NewNullLogger()))
			if err != nil {
				b.Fatal(err)
			}
			defer w.Close()
			data := noise(benchEntryBytes)
			next := uint64(1)
			entriesPerSecond(b, batch, func() error {
				logs := make([]*raft.Log, batch)
				for i := range logs {
					logs[i] = &raft.Log{Index: next, Data: data}
					next++
				}
				return w.StoreLogs(logs)
			})
		})
		b.Run(fmt.Sprintf("batch=%d/koine", batch), func(b *testing.B) {
			l := open(b, b.TempDir(), wal.Options{SegmentBytes: wal.DefaultSegmentBytes})
			payloads := make([][]byte, batch)
			for i := range payloads {
				payloads[i] = noise(benchEntryBytes)
			}
			entriesPerSecond(b, batch, func() error { return l.Append(l.Last()+1, payloads) })
		})
	}
}

func entriesPerSecond(b *testing.B, batch int, appendBatch func() error) {
	b.Helper()
	for b.Loop() {
		if err := appendBatch(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(batch)*float64(b.N)/b.Elapsed().Seconds(), "entries/s")
}

// BenchmarkRead compares reading in order, from a log that was just opened.
func BenchmarkRead(b *testing.B) {
	const entries = 50_000
	b.Run("twin", func(b *testing.B) {
		w, err := raftwal.Open(b.TempDir(), raftwal.WithLogger(hclog.NewNullLogger()))
		if err != nil {
			b.Fatal(err)
		}
		defer w.Close()
		logs := make([]*raft.Log, entries)
		data := noise(benchEntryBytes)
		for i := range logs {
			logs[i] = &raft.Log{Index: uint64(i + 1), Data: data}
		}
		if err := w.StoreLogs(logs); err != nil {
			b.Fatal(err)
		}
		for n := 0; b.Loop(); n++ {
			var log raft.Log
			if err := w.GetLog(uint64(n%entries)+1, &log); err != nil {
				b.Fatal(err)
			}
		}
	})
	dir := b.TempDir()
	l := open(b, dir, wal.Options{SegmentBytes: wal.DefaultSegmentBytes})
	payloads := make([][]byte, entries)
	for i := range payloads {
		payloads[i] = noise(benchEntryBytes)
	}
	if err := l.Append(1, payloads); err != nil {
		b.Fatal(err)
	}
	if err := l.Close(); err != nil {
		b.Fatal(err)
	}
	for name, stride := range map[string]int{"koine in order": 1, "koine at random": 7919} {
		b.Run(name, func(b *testing.B) {
			l := open(b, dir, wal.Options{SegmentBytes: wal.DefaultSegmentBytes})
			for n := 0; b.Loop(); n++ {
				if _, err := l.Read(uint64(n*stride%entries) + 1); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("koine opened", func(b *testing.B) {
		for b.Loop() {
			l, err := wal.Open(dir, wal.Options{})
			if err != nil {
				b.Fatal(err)
			}
			l.Close()
		}
	})
}

// BenchmarkFrames compares the entries of a log for a backup, checked and hashed, with reading its
// files.
func BenchmarkFrames(b *testing.B) {
	const entries = 200_000
	dir := b.TempDir()
	l := open(b, dir, wal.Options{})
	payloads := make([][]byte, entries/100)
	for i := range payloads {
		payloads[i] = noise(benchEntryBytes)
	}
	for l.Last() < entries {
		if err := l.Append(l.Last()+1, payloads); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("twin", func(b *testing.B) {
		b.SetBytes(l.UsedBytes())
		room := make([]byte, 256<<10)
		for b.Loop() {
			names, err := filepath.Glob(filepath.Join(dir, "*.wal"))
			if err != nil || len(names) == 0 {
				b.Fatal(names, err)
			}
			for _, name := range names {
				f, err := os.Open(name)
				if err != nil {
					b.Fatal(err)
				}
				_, err = io.CopyBuffer(struct{ io.Writer }{io.Discard}, f, room)
				if err = errors.Join(err, f.Close()); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	b.Run("koine", func(b *testing.B) {
		b.SetBytes(l.UsedBytes())
		for b.Loop() {
			for _, err := range l.Frames(1, entries) {
				if err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}
