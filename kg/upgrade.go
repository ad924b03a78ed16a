package kg

import (
	"errors"

	"golang.org/x/sys/unix"

	"koine/kg/internal/datadir"
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

// upgradeFormat brings a directory of an older format up to formatVersion. A store that
// takes no updates, for want of space or because its volume is read-only, keeps the
// format that it has and is read by it.
func (s *Store) upgradeFormat() error {
	from := s.dir.UpgradingFrom
	if from == 0 && s.dir.Prefixes != nil {
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
	s.log.Info("upgraded the data directory", "from", from, "to", datadir.FormatVersion)
	return nil
}

// upgradeFrom raises the number before the first step, so that an older koine never
// sees half of an upgrade, and keeps the format that the steps begin at until the
// last one is done.
func (s *Store) upgradeFrom(from int) error {
	if err := s.dir.WriteFormat(from); err != nil {
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
	if err := s.dir.WriteFormat(0); err != nil {
		return err
	}
	s.dir.UpgradingFrom = 0
	return nil
}

// lacksWriting reports whether an error says that the volume takes no writes.
func lacksWriting(err error) bool {
	return CodeOf(err) == CodeDiskFull || errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) || errors.Is(err, unix.EROFS)
}
