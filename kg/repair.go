package kg

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"koine/kg/internal/datadir"
)

// RepairReport is the result of a repair, with the check after it.
type RepairReport struct {
	Done  []string // empty if nothing was wrong
	Check *CheckReport
}

// Repair rebuilds derived data that is wrong: the index with its counts, and checkpoints. It
// does not touch the log, the secret, the prefixes, or other data that cannot be derived, and
// it does not discard an index that cannot be rebuilt. A damaged log is CodeLogDamaged:
// restore a backup.
func Repair(ctx context.Context, dir string, o Options, c CheckOptions) (r RepairReport, err error) {
	c.Checkpoints = false // checked below
	o.MustExist = true
	s, err := Open(dir, o)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if s.rebuilt != "" {
		r.Done = append(r.Done, "the index was built again: "+s.rebuilt)
	}
	if err := s.Maintenance().Sound(); err != nil {
		return r, err
	}
	if r.Check, err = s.Maintenance().Check(ctx, c); err != nil {
		return r, err
	}
	if err := s.Maintenance().Sound(); err != nil { // the check may have found damage in the log
		return r, err
	}
	if !r.Check.Clean() {
		faults := r.Check.Total
		if err := s.Close(); err != nil {
			s.log.Warn("closing the unfinished index", "error", err)
		}
		o.Rebuild = true
		again, err := Open(dir, o)
		if err != nil {
			return r, err
		}
		s = again
		r.Done = append(r.Done, fmt.Sprintf("the index was built again: it had %d faults", faults))
		if r.Check, err = s.Maintenance().Check(ctx, c); err != nil || !r.Check.Clean() {
			return r, err
		}
	}
	done, err := s.repairCheckpoints(ctx)
	r.Done = append(r.Done, done...)
	return r, err
}

// repairCheckpoints removes damaged checkpoints, and writes one if the log needs it.
func (s *Store) repairCheckpoints(ctx context.Context) (done []string, err error) {
	bad, reaches, err := s.verifyCheckpoints()
	if err != nil {
		return nil, err
	}
	for _, b := range bad {
		if err := datadir.RemoveFile(b.path); err != nil {
			return done, err
		}
		done = append(done, fmt.Sprintf("the checkpoint %s was removed: %v", filepath.Base(b.path), b.err))
	}
	if !reaches { // last: it may get the name of a removed one
		r, err := s.Maintenance().Checkpoint(ctx)
		if err != nil {
			return done, err
		}
		done = append(done, fmt.Sprintf("a checkpoint of revision %d was written: none led on to the log", r))
	}
	return done, nil
}

type badCheckpoint struct {
	path string
	err  error
}

// verifyCheckpoints verifies all checkpoints. reaches means that the log is complete, or that
// an intact checkpoint leads to its first entry.
func (s *Store) verifyCheckpoints() (bad []badCheckpoint, reaches bool, err error) {
	s.checkpointing.Lock()
	defer s.checkpointing.Unlock()
	first := Revision(s.wal.First())
	reaches = first <= 1
	paths, err := s.listCheckpoints()
	for _, path := range paths {
		m, err := s.verifyCheckpoint(path)
		if err != nil {
			bad = append(bad, badCheckpoint{path, err})
		} else if m.Revision+1 >= first {
			reaches = true
		}
	}
	return bad, reaches, err
}

// checkCheckpoints verifies the checkpoint files.
func (c *checker) checkCheckpoints() error {
	if !c.options.Checkpoints {
		return nil
	}
	bad, reaches, err := c.s.verifyCheckpoints()
	for _, b := range bad {
		c.addProblem("checkpoint %s: %v", filepath.Base(b.path), b.err)
	}
	if !reaches {
		c.addProblem("checkpoints: none leads on to the log, which begins at %d", c.s.wal.First())
	}
	return err
}
