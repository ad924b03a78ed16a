// Package wal is the append-only log of a data directory. A commit is durable once it
// is in the log, and every index can be rebuilt from it.
//
// The log stores opaque payloads under contiguous indexes 1, 2, 3 … It builds on
// github.com/hashicorp/raft-wal, which provides segments, one fsync per batch and head
// truncation, but trusts its disk. This package adds verification: each payload is
// stored in a frame (see frame.go) with a checksum, its own index, and the hash of the
// previous frame. All of them are checked on every read.
//
// Promises:
//
//   - Append returns nil only when the whole batch is on stable storage and all
//     bookkeeping for it is written. It costs one fsync (a full segment is changed in
//     the background).
//   - Read and Entries return the bytes that were appended under the index, or an
//     ErrDamaged. They never return unchecked bytes.
//   - After a failed append the Log refuses appends until it is opened again: the
//     entry may or may not be durable, and writing another one under the same index
//     could create two versions of one entry.
//   - Open refuses a log that has provably lost durable entries (tail.go describes the
//     proofs; the undetectable cases follow).
//
// A directory has the segments (*.wal, written by raft-wal), two copies of their
// metadata (meta.go), and a mark of the last durable entry (mark.go), which is
// written after each append without a sync of its own.
//
// Undetectable: after a power cut, the loss of the last batches if neither a legible
// frame behind them nor the mark records them. It looks like a write that the power
// cut tore. After a clean close, or a killed process on a machine that stayed up, the
// mark records them. Whole segments replaced by those of another log are detected
// only where they meet the original ones. A caller that knows a later index or a hash
// from elsewhere should compare it with Last and Hash.
//
// Only one process at a time may have the directory open. The package takes no lock;
// the owner of the data directory does.
package wal
