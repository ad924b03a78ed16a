package datadir

import (
	"encoding/hex"
	"encoding/json"
	"errors"

	"koine/kg/internal/base"
)

// The format of a data directory and of a backup is a number. It goes up with each
// change that an older koine would misread: a new kind of log entry, a new meaning
// of what is there, a small file that moves into the log.
//
//	1  prefixes in prefixes.json
//	2  prefixes and schemes in the log
//	3  generations of graphs in the log and the index (entry version 3)
const (
	FormatVersion = 3
	OldestFormat  = 1
	// FormatRequires is the oldest version that opens formatVersion. It is written
	// into the directory, so that an older koine can name it.
	FormatRequires = "v0.0.0-20261124"
)

// ContentFormat is the format by which the contents of the directory are to be read.
func (d *Directory) ContentFormat() int {
	if d.UpgradingFrom > 0 {
		return d.UpgradingFrom
	}
	return FormatVersion
}

// FormatFile is the content of koine.json.
type FormatFile struct {
	Format  string `json:"format"`
	Version int    `json:"version"` // formatVersion
	Epoch   string `json:"epoch"`
	// Checksum is the CRC-32C of the epoch and the secret, in hexadecimal. The
	// first directories have none.
	Checksum string `json:"checksum,omitempty"`
	// Requires is the oldest version of koine that opens the directory; format 1
	// lacks it.
	Requires string `json:"requires,omitempty"`
	// UpgradingFrom is the older format that an upgrade began at, 0 once it is done.
	UpgradingFrom int `json:"upgradingFrom,omitempty"`
}

// ReadFormat checks the content of koine.json.
func ReadFormat(raw []byte) (f FormatFile, err error) {
	if err := json.Unmarshal(raw, &f); err != nil {
		e := base.Errorf(base.CodeFormatUnknown, "%s is damaged: %v", FormatName, err)
		e.Hint = smallFilesHint
		return f, e
	}
	if f.Format != "koine" {
		return f, base.Errorf(base.CodeFormatUnknown, "%s is of another program, so its directory is %w", FormatName, ErrNoStore)
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

// ErrNewerFormat refuses what a newer koine wrote, and names the version that reads it.
func ErrNewerFormat(subject string, version int, requires string) *base.Error {
	e := base.Errorf(base.CodeFormatUnknown, "the %s has format %d, and this koine reads formats %d to %d", subject, version, OldestFormat, FormatVersion)
	e.Hint = "use the koine that wrote it, or a newer one"
	if requires != "" {
		e.Hint = "use koine " + requires + " or newer"
	}
	return e
}

// WriteFormat replaces koine.json, which makes a store of a directory.
// upgradingFrom is 0 unless steps of an upgrade are left to do.
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
