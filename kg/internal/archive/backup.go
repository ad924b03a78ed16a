package archive

import (
	"time"

	"koine/kg/internal/base"
	"koine/kg/internal/datadir"
	"koine/kg/internal/wal"
)

// A backup is one stream, the same over a connection as in a file:
//
//	magic, format(1), header (length, JSON: BackupInfo)
//	records: kind(1), length, bytes
//	  P  the prefixes that a directory of format 1 keeps beside its log, as JSON
//	  C  a piece of a checkpoint: of a full backup whose log has lost its head
//	  F  an entry of the log, as the log stores it
//	  E  the end: number of records before it
//	SHA-256 of all before it
//
// Lengths are unsigned varints. A full backup has the log from its beginning on,
// or a checkpoint and the log behind it; an incremental one the log behind the
// revision that another backup ends with. The entries carry their own chain of
// hashes, which a restore keeps: so backups of one log fit together, and those of
// another are recognised. The format is that of the data directory, formatVersion.
const (
	BackupMagic = "koine backup\n"
	// maxBackupHeader bounds the header, maxBackupRecord a record.
	maxBackupHeader = 64 << 10
	maxBackupRecord = wal.MaxEntryBytes
)

// Kinds of records.
const (
	BackupPrefixes   = 'P'
	BackupCheckpoint = 'C'
	BackupEntry      = 'F'
	BackupEnd        = 'E'
)

// BackupInfo says what a backup holds: it is its header.
type BackupInfo struct {
	Epoch string `json:"epoch"` // of the log that it is of
	// From is the revision that it follows on, 0 for a full backup; To is the one
	// that it ends with. The hashes are those of their log entries.
	From     base.Revision `json:"from"`
	To       base.Revision `json:"to"`
	FromHash string        `json:"fromHash"`
	ToHash   string        `json:"toHash"`
	// First is the oldest log entry in it.
	First base.Revision `json:"first"`
	// Checkpoint is the revision of its checkpoint, 0 without one.
	Checkpoint base.Revision `json:"checkpoint,omitempty"`
	// Floor is the oldest readable revision, 0 when all are.
	Floor base.Revision `json:"floor,omitempty"`
	Time  time.Time     `json:"time"` // of the newest commit
	// Requires is the oldest version of koine that restores it; format 1 lacks it.
	Requires string `json:"requires,omitempty"`

	Format int // of what is in it; written before the header
}

// upgradingFrom is the format that a restored directory is upgraded from, or 0.
func (i BackupInfo) upgradingFrom() int {
	if i.Format == datadir.FormatVersion {
		return 0
	}
	return i.Format
}

// Full tells whether the backup can be restored by itself.
func (i BackupInfo) Full() bool { return i.From == 0 }

// Entries is how many log entries it holds.
func (i BackupInfo) Entries() uint64 { return uint64(i.To + 1 - i.First) }

// ProgressInterval is after how many entries progress is told.
const ProgressInterval = 1024
