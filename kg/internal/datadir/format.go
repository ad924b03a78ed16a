package datadir

import (
	"encoding/hex"
	"encoding/json"
	"errors"

	"koine/kg/base"
)

// The format of a data directory and of a backup is a number. It is incremented with each
// change that an older koine would misread: a new kind of log entry, a new meaning of
// existing bytes, a small file that moves into the log.
//
//	1  prefixes in prefixes.json
//	2  prefixes and schemes in the log
//	3  generations of graphs in the log and the index (entry version 3)
//	4  audit copies of messages, which retraction and erasure take; grants with levels
//	5  embeddings of assertions (entry version 4); files that are attached to backups
//	6  the checksum of a backup does not include its log entries
const (
	FormatVersion = 6
	OldestFormat  = 1
	// AttachmentsFormat is the oldest format of a backup with attached files.
	AttachmentsFormat = 5
	// ChainedFormat is the oldest format of a backup whose log entries are covered by the hash
	// of the last one alone.
	ChainedFormat = 6
	// FormatRequires is the oldest version that opens FormatVersion. It is written into
	// the directory, so that the error of an older koine can name it.
	FormatRequires = "v0.0.0-20261129"
)

// ContentFormat returns the format of the contents of the directory.
func (d *Directory) ContentFormat() int {
	if d.UpgradingFrom > 0 {
		return d.UpgradingFrom
	}
	return FormatVersion
}

// FormatFile is the content of koine.json.
type FormatFile struct {
	Format  string `json:"format"`
	Version int    `json:"version"` // FormatVersion
	Epoch   string `json:"epoch"`
	// Checksum is the CRC-32C of the epoch and the secret, in hexadecimal. The
	// first directories have none.
	Checksum string `json:"checksum,omitempty"`
	// Requires is the oldest version of koine that opens the directory; format 1
	// lacks it.
	Requires string `json:"requires,omitempty"`
	// UpgradingFrom is the older format during an upgrade, otherwise 0.
	UpgradingFrom int `json:"upgradingFrom,omitempty"`
}

// ReadFormat parses and checks the content of koine.json. It returns CodeFormatUnknown if
// it is damaged, foreign or newer.
func ReadFormat(raw []byte) (f FormatFile, err error) {
	if err := json.Unmarshal(raw, &f); err != nil {
		e := base.Errorf(base.CodeFormatUnknown, "%s is damaged: %v", FormatName, err)
		e.Hint = smallFilesHint
		return f, e
	}
	if f.Format != "koine" {
		return f, base.Errorf(base.CodeFormatUnknown, "%s belongs to another program: its directory is %w", FormatName, ErrNoStore)
	}
	if f.Version > FormatVersion {
		return f, ErrNewerFormat("data directory", f.Version, f.Requires)
	}
	if f.Version < OldestFormat || f.UpgradingFrom < 0 || f.UpgradingFrom > f.Version {
		e := base.Errorf(base.CodeFormatUnknown, "%s is damaged: it names format %d", FormatName, f.Version)
		e.Hint = smallFilesHint
		return f, e
	}
	if f.Version < FormatVersion && f.UpgradingFrom == 0 {
		f.UpgradingFrom = f.Version
	}
	return f, nil
}

// ErrNewerFormat returns the error about data of a newer koine, with the version that
// reads it.
func ErrNewerFormat(subject string, version int, requires string) *base.Error {
	e := base.Errorf(base.CodeFormatUnknown, "the %s has format %d, and this koine reads formats %d to %d", subject, version, OldestFormat, FormatVersion)
	e.Hint = "use the koine that wrote it, or a newer one"
	if requires != "" {
		e.Hint = "use koine " + requires + " or newer"
	}
	return e
}

// WriteFormat replaces koine.json, which makes a directory a store. upgradingFrom is 0
// unless an upgrade is unfinished.
func WriteFormat(path string, epoch base.Epoch, secret []byte, upgradingFrom int) error {
	raw, err := json.Marshal(FormatFile{
		Format: "koine", Version: FormatVersion, Epoch: hex.EncodeToString(epoch[:]), Checksum: formatSum(epoch, secret),
		Requires: FormatRequires, UpgradingFrom: upgradingFrom,
	})
	if err != nil {
		return err
	}
	return WriteFile(path, append(raw, '\n'))
}

// WriteFormat replaces the koine.json of the directory.
func (d *Directory) WriteFormat(upgradingFrom int) error {
	return WriteFormat(d.Join(FormatName), d.Epoch, d.Secret, upgradingFrom)
}

// readEpoch reads the epoch of koine.json.
func (f *FormatFile) readEpoch(epoch *base.Epoch) error {
	n, err := hex.Decode(epoch[:], []byte(f.Epoch))
	if err == nil && n != len(epoch) {
		err = errors.New("wrong length")
	}
	if err != nil {
		return base.Errorf(base.CodeFormatUnknown, "the epoch in %s cannot be read", FormatName)
	}
	return nil
}
