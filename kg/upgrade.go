package kg

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"math"

	"golang.org/x/sys/unix"

	"koine/kg/base"
	"koine/kg/internal/datadir"
	"koine/kg/internal/index"
	"koine/kg/internal/keys"
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
		level := slog.LevelWarn
		if s.options.ReadOnly { // as asked for
			level = slog.LevelInfo
		}
		s.log.Log(context.Background(), level, "the data directory keeps its older format until updates are possible", "format", from, "error", err)
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

// upgradeLayout upgrades the index of an older layout, as far as it can be written.
func (s *Store) upgradeLayout(m *index.Marker) error {
	from := *m
	terms, err := s.orderTerms(m)
	if err != nil {
		return err
	}
	values, err := s.rankTerms(m)
	if err == nil && *m != from {
		s.log.Info("upgraded the dictionary of the index", "terms", terms, "values", values)
	}
	return err
}

// orderTerms upgrades an index that may have long terms under their hash alone (index.Marker): it
// writes the keys that are in the order of the terms, and then removes the others. The marker
// comes first, so that an older koine rebuilds half an upgrade from the log, and the next start
// repeats it. Without space the index is read and written as it is. The caller is opening the
// store.
func (s *Store) orderTerms(m *index.Marker) (n uint64, err error) {
	if s.hashedTerms = m.HashedTerms; !s.hashedTerms || s.readsInPlace() {
		return 0, nil
	}
	n, err = s.moveHashedTerms(*m)
	if datadir.IsNoSpace(err) {
		s.log.Warn("the dictionary keeps its older order until there is space on the volume", "error", err)
		return 0, nil
	}
	if err == nil {
		s.hashedTerms, m.HashedTerms = false, false
	}
	return n, err
}

// moveHashedTerms does the work of orderTerms and returns the number of long terms.
func (s *Store) moveHashedTerms(m index.Marker) (n uint64, err error) {
	kv := s.newKV(math.MaxUint64)
	defer kv.Close()
	w := &indexTxn{db: s.db, at: uint64(m.Revision)}
	if err := w.writeMarker(m, false); err != nil {
		return 0, err
	}
	w = &indexTxn{db: s.db, at: uint64(m.Revision)}
	progress, done := s.newProgress("ordering the dictionary", m.NextNumber), uint64(0)
	records := kv.Scan(keys.NumberPrefix())
	defer records.Close()
	for ; records.Valid(); records.Next() {
		number, ok := keys.ParseNumber(records.Key())
		if !ok || number >= m.NextNumber {
			break // left by an interrupted flush: the replay of the log writes it again
		}
		err := records.Value(func(record []byte) error {
			if key, hashed := keys.Term(record, base.Hash16); hashed {
				n++
				w.setKey(key, binary.AppendUvarint(nil, number))
			}
			return w.err
		})
		if err != nil {
			return 0, err
		}
		if done++; done%index.PaceInterval == 0 {
			progress.report(done)
		}
	}
	if err := errors.Join(s.options.upgradeStep("written"), w.commit()); err != nil {
		return 0, err
	}
	w = &indexTxn{db: s.db, at: max(uint64(m.Revision), s.db.MaxVersion())} // hides what an interrupted flush left, too
	hashed := kv.Scan(keys.HashedPrefix())
	defer hashed.Close()
	for ; hashed.Valid() && w.setKey(bytes.Clone(hashed.Key()), nil); hashed.Next() {
	}
	if err := errors.Join(s.options.upgradeStep("removed"), w.commit()); err != nil {
		return 0, err
	}
	m.HashedTerms = false
	w = &indexTxn{db: s.db, at: uint64(m.Revision)}
	progress.reportEnd(done)
	return n, w.writeMarker(m, false)
}

// rankTerms upgrades an index that may lack the keys of values (index.Marker): it adds one for each
// term that is a number or a moment, and those that tell which kinds of literals a predicate has.
// The marker comes last: an older koine does not read these keys, and the next start writes again
// those of an interrupted upgrade. Without space the index is read and written as it is. The caller
// is opening the store.
func (s *Store) rankTerms(m *index.Marker) (n uint64, err error) {
	if s.unranked = m.Unranked; !s.unranked || s.hashedTerms || s.readsInPlace() {
		return 0, nil
	}
	n, err = s.writeRanks(*m)
	if datadir.IsNoSpace(err) {
		s.log.Warn("the values of the dictionary have no order until there is space on the volume", "error", err)
		return 0, nil
	}
	if err == nil {
		s.unranked, m.Unranked = false, false
	}
	return n, err
}

// writeRanks does the work of rankTerms and returns the number of values.
func (s *Store) writeRanks(m index.Marker) (n uint64, err error) {
	kv := s.newKV(math.MaxUint64)
	defer kv.Close()
	w := &indexTxn{db: s.db, at: uint64(m.Revision)}
	progress, done := s.newProgress("ordering the values", m.NextNumber), uint64(0)
	records := kv.Scan(keys.NumberPrefix())
	defer records.Close()
	for ; records.Valid(); records.Next() {
		number, ok := keys.ParseNumber(records.Key())
		if !ok || number >= m.NextNumber {
			break // left by an interrupted flush: the replay of the log writes it again
		}
		err := records.Value(func(record []byte) error {
			ranked, err := w.setRank(record, number)
			if ranked {
				n++
			}
			return err
		})
		if err != nil {
			return 0, err
		}
		if done++; done%index.PaceInterval == 0 {
			progress.report(done)
		}
	}
	if err := w.recordUses(kv); err != nil {
		return 0, err
	}
	if err := errors.Join(s.options.upgradeStep("ranked"), w.commit()); err != nil {
		return 0, err
	}
	m.Unranked = false
	w = &indexTxn{db: s.db, at: uint64(m.Revision)}
	progress.reportEnd(done)
	return n, w.writeMarker(m, false)
}

// recordUses writes the keys of the uses that the statements of kv make of their objects.
func (w *indexTxn) recordUses(kv index.KV) error {
	return w.ranked.EachUse(kv, func(use index.LiteralUse) (bool, error) {
		return w.setKey(use.Key(), []byte{}), w.err
	})
}

// setRank writes the key of a term with this record in the order of the values, if it is a number or
// a moment.
func (w *indexTxn) setRank(record []byte, number uint64) (ranked bool, err error) {
	key, err := index.RankKeyOf(record, number)
	if err != nil || key == nil {
		return false, err
	}
	w.ranked.Add(key)
	w.setKey(key, []byte{})
	return true, w.err
}

// isUnwritable reports whether the error means that the volume accepts no writes.
func isUnwritable(err error) bool {
	return CodeOf(err) == CodeDiskFull || errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) || errors.Is(err, unix.EROFS)
}
