package kg

import (
	"encoding/hex"
	"encoding/json"
	"errors"

	"golang.org/x/sys/unix"
)

// The format of a data directory and of a backup is a number. It goes up with each
// change that an older koine would misread: a new kind of log entry, a new meaning
// of what is there, a small file that moves into the log.
//
//	1  prefixes in prefixes.json
//	2  prefixes and schemes in the log
//	3  generations of graphs in the log and the index (entry version 3)
const (
	formatVersion = 3
	oldestFormat  = 1
	// formatRequires is the oldest version that opens formatVersion. It is written
	// into the directory, so that an older koine can name it.
	formatRequires = "v0.0.0-20261124"
)

// upgradeSteps turn a directory of an older format into one of formatVersion. Each
// runs with the committer, before Open returns. A step is repeated if the process
// ends before the upgrade does, so it must do nothing the second time.
var upgradeSteps = []struct {
	from int // the newest format that needs it
	run  func(*Store) error
}{
	{1, (*Store).upgradeNames},
}

// upgrade brings a directory of an older format up to formatVersion. A store that
// takes no updates, for want of space or because its volume is read-only, keeps the
// format that it has and is read by it.
func (s *Store) upgrade() error {
	from := s.dir.upgradingFrom
	if from == 0 && s.dir.prefixes != nil {
		from = 1 // it was given a file that only format 1 has
	}
	if from == 0 {
		return nil
	}
	err := s.Ready()
	if err == nil {
		if err = s.upgradeFrom(from); err != nil && !lacksWriting(err) {
			return err
		}
	}
	if err != nil {
		s.log.Warn("the data directory keeps its older format until updates are possible", "format", from, "error", err)
		return nil
	}
	s.log.Info("upgraded the data directory", "from", from, "to", formatVersion)
	return nil
}

// upgradeFrom raises the number before the first step, so that an older koine never
// sees half of an upgrade, and keeps the format that the steps begin at until the
// last one is done.
func (s *Store) upgradeFrom(from int) error {
	if err := s.dir.writeFormat(from); err != nil {
		return err
	}
	for _, step := range upgradeSteps {
		if step.from < from {
			continue
		}
		if err := step.run(s); err != nil {
			return err
		}
	}
	if err := s.dir.writeFormat(0); err != nil {
		return err
	}
	s.dir.upgradingFrom = 0
	return nil
}

// lacksWriting reports whether an error says that the volume takes no writes.
func lacksWriting(err error) bool {
	return CodeOf(err) == CodeDiskFull || errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) || errors.Is(err, unix.EROFS)
}

// meaning is the format by which the contents of the directory are to be read.
func (d *directory) meaning() int {
	if d.upgradingFrom > 0 {
		return d.upgradingFrom
	}
	return formatVersion
}

// formatFile is the content of koine.json.
type formatFile struct {
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

// readFormat checks the content of koine.json.
func readFormat(raw []byte) (f formatFile, err error) {
	if err := json.Unmarshal(raw, &f); err != nil {
		e := Errorf(CodeFormatUnknown, "%s is damaged: %v", formatName, err)
		e.Hint = smallFilesHint
		return f, e
	}
	if f.Format != "koine" {
		return f, Errorf(CodeFormatUnknown, "%s is of another program, so its directory is %w", formatName, ErrNoStore)
	}
	if f.Version > formatVersion {
		return f, errNewerFormat("data directory", f.Version, f.Requires)
	}
	if f.Version < oldestFormat || f.UpgradingFrom < 0 || f.UpgradingFrom > f.Version {
		e := Errorf(CodeFormatUnknown, "%s is damaged: it names format %d", formatName, f.Version)
		e.Hint = smallFilesHint
		return f, e
	}
	if f.Version < formatVersion && f.UpgradingFrom == 0 {
		f.UpgradingFrom = f.Version
	}
	return f, nil
}

// errNewerFormat refuses what a newer koine wrote, and names the version that reads it.
func errNewerFormat(subject string, version int, requires string) *Error {
	e := Errorf(CodeFormatUnknown, "the %s has format %d, and this koine reads formats %d to %d", subject, version, oldestFormat, formatVersion)
	e.Hint = "use the koine that wrote it, or a newer one"
	if requires != "" {
		e.Hint = "use koine " + requires + " or newer"
	}
	return e
}

// writeFormat replaces koine.json, which makes a store of a directory.
// upgradingFrom is 0 unless steps of an upgrade are left to do.
func writeFormat(path string, epoch Epoch, secret []byte, upgradingFrom int) error {
	raw, err := json.Marshal(formatFile{
		Format: "koine", Version: formatVersion, Epoch: hex.EncodeToString(epoch[:]), Checksum: formatSum(epoch, secret),
		Requires: formatRequires, UpgradingFrom: upgradingFrom,
	})
	if err != nil {
		return err
	}
	return writeFile(path, append(raw, '\n'))
}

func (d *directory) writeFormat(upgradingFrom int) error {
	return writeFormat(d.join(formatName), d.epoch, d.secret, upgradingFrom)
}

// readEpoch reads the epoch of koine.json.
func (f *formatFile) readEpoch(epoch *Epoch) error {
	n, err := hex.Decode(epoch[:], []byte(f.Epoch))
	if err == nil && n != len(epoch) {
		err = errors.New("wrong length")
	}
	if err != nil {
		return Errorf(CodeFormatUnknown, "the epoch in %s cannot be read", formatName)
	}
	return nil
}
