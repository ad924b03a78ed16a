package archive

import (
	"io/fs"
	"strings"
	"time"

	"koine/kg/base"
	"koine/kg/internal/datadir"
	"koine/kg/internal/wal"
)

// A backup is one stream, the same over a connection as in a file:
//
//	magic, format(1), header (length, JSON: BackupInfo)
//	records: kind(1), length, bytes
//	  P  the prefixes of a directory of format 1, as JSON
//	  C  a piece of a checkpoint, in a full backup of a trimmed log
//	  F  a log entry, as stored
//	  A  in a full backup, after the log: the path of a file that is kept beside the store
//	  D  a piece of the file of the last A
//	  E  the end: number of records before it
//	SHA-256 of all before it but the bytes of the log entries
//
// The hash of the last entry, which is in the header, covers the bytes of all entries: each of
// them carries the hash of the one before it. Up to format 5 the checksum includes them. Lengths
// are unsigned varints. A full backup has the complete log, or a
// checkpoint and the log after it. An incremental backup has the log after the last
// revision of another backup. The entries carry the hash chain of the log, which a
// restore keeps: it joins backups of one log and rejects those of another. The format
// number is that of the data directory, datadir.FormatVersion.
const (
	BackupMagic = "koine backup\n"
	// maxBackupHeader bounds the header, and maxBackupRecord a record, in bytes.
	maxBackupHeader = 64 << 10
	maxBackupRecord = wal.MaxEntryBytes
)

// Kinds of records.
const (
	BackupPrefixes   = 'P'
	BackupCheckpoint = 'C'
	BackupEntry      = 'F'
	BackupAttachment = 'A'
	BackupPiece      = 'D'
	BackupEnd        = 'E'
)

// CheckAttachment returns an error unless path, which has slashes, is that of a file in a
// folder of the data directory that is none of the store's own.
func CheckAttachment(path string) error {
	folder, _, found := strings.Cut(path, "/")
	if !found || !fs.ValidPath(path) || strings.ContainsAny(path, "\\\x00") || datadir.IsOwnName(folder) {
		return base.Errorf(base.CodeInvalid, "%q cannot be attached to a backup: it must be a file in a folder beside the store", path)
	}
	return nil
}

// BackupInfo is the header of a backup.
type BackupInfo struct {
	Epoch string `json:"epoch"` // of the backed-up log
	// From is the last revision before the backup, 0 for a full backup. To is its last
	// revision. The hashes are those of the log entries From and To.
	From     base.Revision `json:"from"`
	To       base.Revision `json:"to"`
	FromHash string        `json:"fromHash"`
	ToHash   string        `json:"toHash"`
	// First is the oldest log entry in the backup.
	First base.Revision `json:"first"`
	// Checkpoint is the revision of the checkpoint in the backup, 0 for none.
	Checkpoint base.Revision `json:"checkpoint,omitempty"`
	// Floor is the oldest readable revision, 0 when all are.
	Floor base.Revision `json:"floor,omitempty"`
	Time  time.Time     `json:"time"` // of the newest commit
	// Requires is the oldest version of koine that restores the backup; format 1 lacks it.
	Requires string `json:"requires,omitempty"`

	Format int // of the contents; written before the header
}

// SumsEntries reports whether the checksum of the backup includes its log entries.
func (i BackupInfo) SumsEntries() bool { return i.Format < datadir.ChainedFormat }

// upgradingFrom returns the format from which a restored directory must be upgraded, or 0.
func (i BackupInfo) upgradingFrom() int {
	if i.Format == datadir.FormatVersion {
		return 0
	}
	return i.Format
}

// Full reports whether the backup can be restored without another one.
func (i BackupInfo) Full() bool { return i.From == 0 }

// Entries returns the number of log entries in the backup.
func (i BackupInfo) Entries() uint64 { return uint64(i.To + 1 - i.First) }

// ProgressInterval is the number of entries between two progress reports.
const ProgressInterval = 1024
