package kg

import (
	"errors"

	"golang.org/x/sys/unix"

	"koine/kg/internal/datadir"
)

// upgradeSteps upgrade a directory of an older format to formatVersion. They run with the
// committer, before Open returns. A step is repeated if the process ends before the upgrade
// does, so that it must be idempotent.
var upgradeSteps = []struct {
	from int // the newest format that needs it
	run  func(*Store) error
}{
	{1, (*Store).upgradeNames},
}

// upgradeFormat upgrades a directory of an older format to formatVersion. A store that accepts
// no updates, for lack of space or on a read-only volume, keeps its format and is read as
// such.
func (s *Store) upgradeFormat() error {
	from := s.dir.UpgradingFrom
	if from == 0 && s.dir.Prefixes != nil {
		from = 1 // it contains a file of format 1
	}
	if from == 0 {
		return nil
	}
	err := s.Ready()
	if err == nil {
		if err = s.upgradeFrom(from); err != nil && !isUnwritable(err) {
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

// upgradeFrom raises the format number before the first step, so that an older koine never
// opens half an upgrade, and records the format of the steps until the last one is done.
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

// isUnwritable reports whether the error means that the volume accepts no writes.
func isUnwritable(err error) bool {
	return CodeOf(err) == CodeDiskFull || errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) || errors.Is(err, unix.EROFS)
}
