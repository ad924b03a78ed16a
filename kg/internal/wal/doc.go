// Package wal is the append-only log of a data directory: the place where a
// commit becomes durable, and the truth that every index is built from.
//
// It stores payload bytes under contiguous indexes 1, 2, 3 … and knows nothing
// of what is in them. Underneath is github.com/hashicorp/raft-wal, which gives
// segments, one fsync for a batch and head truncation, and which trusts its
// disk. What this package adds is distrust: each payload travels in a frame
// (see frame.go) with a checksum, its own index, and the hash of the frame
// before it, and all of that is compared on every read.
//
// Promises:
//
//   - Append returns nil only when the whole batch is on stable storage and
//     everything else that belongs to it was written, and it costs one fsync (a
//     segment that fills up is changed in the background).
//   - What Read and Entries return is what was appended under that index, or an
//     error that is ErrDamaged. Bytes are never returned unchecked.
//   - After a failed append the Log takes no more appends until it is opened
//     again: the entry may or may not be there then, and writing another one
//     under the same index could make two different entries of one index real.
//   - Open refuses a log that has lost entries that it can prove were durable
//     (see tail.go for the proofs, and below for what has none).
//
// A directory holds the segments (*.wal, raft-wal's), their metadata twice
// (meta.go), and a mark of the last durable entry (mark.go), which is written
// after each append without a sync of its own.
//
// What cannot be noticed: after a power cut, the loss of last batches that no
// legible frame behind them and no mark tells of. It looks exactly like a write
// that the power cut tore. After a clean close, or a killed process on a machine
// that stayed up, the mark tells. And entries of another log, put in place of
// these as whole segments, are only noticed where they meet the own ones.
// Whoever knows a later index or a hash from elsewhere should compare it with
// Last and Hash.
//
// One process at a time may have the directory open. The package takes no lock:
// the owner of the data directory does.
package wal
