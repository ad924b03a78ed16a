package wal

import (
	"errors"
	"fmt"
)

var (
	// ErrTooLarge means that a payload, its frame or a batch is over its limit
	// (MaxPayloadBytes, MaxEntryBytes, MaxBatchBytes). Nothing was written.
	ErrTooLarge = errors.New("wal: entry too large")
	// ErrGap means that an append did not start at Last()+1. Nothing was written.
	ErrGap = errors.New("wal: append does not follow the last entry")
	// ErrNotFound means that an index is below First or above Last.
	ErrNotFound = errors.New("wal: no such entry")
	// ErrClosed means that the Log was closed.
	ErrClosed = errors.New("wal: closed")
	// ErrReadOnly means that the Log was opened with Options.ReadOnly.
	ErrReadOnly = errors.New("wal: opened read-only")
	// ErrNoSpace means that the volume is full. Nothing was written.
	ErrNoSpace = errors.New("wal: no space left on the volume")
	// ErrVersion means that an intact frame was written in a format that this
	// program does not know.
	ErrVersion = errors.New("wal: unknown frame version")
	// ErrDamaged means that stored bytes have changed or are missing.
	// The error is always a *DamageError, which says where.
	ErrDamaged = errors.New("wal: log damaged")
)

// DamageError is an ErrDamaged with its location: the index of the damaged entry (0 if
// the damage is not in an entry) and a description.
type DamageError struct {
	Index  uint64
	Detail string
	Err    error // the cause; nil if a comparison failed
}

func (e *DamageError) Error() string {
	s := "wal: log damaged"
	if e.Index != 0 {
		s = fmt.Sprintf("%s at entry %d", s, e.Index)
	}
	s += ": " + e.Detail
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Is makes errors.Is(err, ErrDamaged) true for every DamageError.
func (e *DamageError) Is(target error) bool { return target == ErrDamaged }

func (e *DamageError) Unwrap() error { return e.Err }

func damageErrorf(index uint64, cause error, format string, args ...any) error {
	return &DamageError{Index: index, Detail: fmt.Sprintf(format, args...), Err: cause}
}
