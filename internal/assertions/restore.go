package assertions

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"iter"
	"math"
	"time"

	"koine/internal/backoff"
	"koine/internal/extsort"
	"koine/kg"
)

// Store is the part of kg.Store that Restore uses.
type Store interface {
	Update(context.Context, kg.Meta, func(*kg.Tx) error) (kg.Receipt, error)
}

// RestoreOptions configures Restore. The zero value has the defaults.
type RestoreOptions struct {
	// Dir is the directory for temporary files; "" means the system's.
	Dir string
	// SortBytes bounds the memory for sorting; 0 means extsort.DefaultBytes.
	SortBytes int
	// Progress, if set, is called after each commit with the number of assertions
	// written so far.
	Progress func(assertions uint64)
	// MaxWait bounds the retries of one commit that the store rejects with
	// kg.CodeOverloaded or kg.CodeRateLimited; 0 means five minutes.
	MaxWait time.Duration
}

// Limits of one commit of Restore: other updates wait for it.
const (
	commitPatches = 1_000
	commitBytes   = 2 << 20
)

// RestoreReport is the progress of Restore, also after a failure.
type RestoreReport struct {
	Statements uint64 // written
	Assertions uint64 // written, including those for statements without any in the document
	Changed    uint64 // new or changed assertions
	Commits    uint64
	Revision   kg.Revision // of the last commit; 0 for none
}

// Restore writes statements with their assertions into a store. Each assertion keeps its
// source, certainty, times, provenance and justification and gets a new revision. Assertions
// are written in the order of their old revisions; consecutive ones with the same
// justification share a commit, because a commit has one justification. Statements without
// assertions come last and are asserted by the Meta's actor. Only administrators may call
// it. After a failure, the commits made so far stay.
func Restore(ctx context.Context, store Store, m kg.Meta, statements iter.Seq2[Statement, error], o RestoreOptions) (report RestoreReport, err error) {
	if !m.Principal.IsAdmin() {
		return report, kg.Errorf(kg.CodePermissionDenied, "only an administrator can load assertions of other agents")
	}
	sorter := extsort.New(ctx, extsort.Options{Dir: o.Dir, Bytes: o.SortBytes})
	defer func() { err = errors.Join(err, sorter.Close()) }()
	var buf []byte
	for st, err := range statements {
		if err != nil {
			return report, err
		}
		report.Statements++
		if len(st.Assertions) == 0 {
			buf = appendRestored(buf[:0], &st.Quad, nil, m.Justification)
			err = sorter.Add(buf)
		}
		for i := range st.Assertions {
			a := &st.Assertions[i]
			buf = appendRestored(buf[:0], &st.Quad, a, a.Justification)
			err = errors.Join(err, sorter.Add(buf))
		}
		if err != nil {
			return report, err
		}
	}
	r := restorer{ctx: ctx, store: store, meta: m, options: o, report: &report}
	for row, err := range sorter.Sorted() {
		if err == nil {
			err = r.addRow(row)
		}
		if err != nil {
			return report, err
		}
	}
	return report, r.commit()
}

// appendRestored encodes an assertion so that assertions of one commit are adjacent. A nil
// assertion is one by the actor of Restore.
func appendRestored(dst []byte, q *kg.Quad, a *Assertion, why string) []byte {
	last := uint64(math.MaxUint64)
	if a != nil {
		last = uint64(a.Revision)
	}
	dst = appendText(binary.BigEndian.AppendUint64(dst, last), why)
	dst = appendTerm(appendTriple(dst, q), q.Graph)
	if a == nil {
		return append(dst, 0)
	}
	return appendAssertion(append(dst, 1), a)
}

// restorer collects the assertions of a commit.
type restorer struct {
	ctx     context.Context
	store   Store
	meta    kg.Meta
	options RestoreOptions
	report  *RestoreReport

	why     string
	patches []kg.Patch
	bytes   int
}

func (r *restorer) addRow(row []byte) error {
	if len(row) < 8 {
		return errRecord
	}
	in := record{rest: row[8:]}
	why := in.readText()
	p := kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: in.readTerm(), Predicate: in.readTerm(), Object: in.readTerm(), Graph: in.readTerm()}}
	if in.readByte() == 1 {
		a := in.readAssertion()
		p.Source, p.Certainty, p.HasCertainty, p.Validity, p.Provenance, p.Embedding, p.Time = a.Source, a.Certainty, a.HasCertainty, a.Validity, a.Provenance, a.Embedding, a.Time
	}
	if in.err != nil {
		return in.err
	}
	if why != r.why || len(r.patches) == commitPatches || r.bytes+len(row) > commitBytes {
		if err := r.commit(); err != nil {
			return err
		}
	}
	r.why = why
	r.patches = append(r.patches, p)
	r.bytes += len(row)
	return nil
}

// commit writes the collected assertions.
func (r *restorer) commit() error {
	if len(r.patches) == 0 {
		return nil
	}
	m := r.meta
	m.Justification = r.why
	receipt, err := r.updateWithRetry(m)
	if err != nil {
		return err
	}
	if v := receipt.Verdict; v.Outcome != kg.Accepted {
		return kg.Errorf(kg.CodeConstraintViolation, "%s: %s", v.Reason, v.Details)
	}
	r.report.Assertions += uint64(len(r.patches))
	r.report.Changed += uint64(receipt.Affected)
	r.report.Revision = receipt.Revision
	if receipt.Committed {
		r.report.Commits++
	}
	r.patches, r.bytes = r.patches[:0], 0
	if r.options.Progress != nil {
		r.options.Progress(r.report.Assertions)
	}
	return nil
}

// retryQueue is the delay before a retry if the store does not state one; maxWait is the
// default limit on all retries of one commit.
const (
	retryQueue = 100 * time.Millisecond
	maxWait    = 5 * time.Minute
)

// updateWithRetry commits the patches. It retries if the store is overloaded or the caller exceeds
// its rate, because giving up would leave a partial restore.
func (r *restorer) updateWithRetry(m kg.Meta) (kg.Receipt, error) {
	for waited := time.Duration(0); ; {
		receipt, err := r.store.Update(r.ctx, m, func(tx *kg.Tx) error {
			for _, p := range r.patches {
				if err := tx.Apply(p); err != nil {
					return withStatement(&p.Quad, err)
				}
			}
			return nil
		})
		if code := kg.CodeOf(err); code != kg.CodeOverloaded && code != kg.CodeRateLimited {
			return receipt, err
		}
		pause := max(kg.AsError(err).RetryAfter, retryQueue)
		if waited += pause; waited > cmp.Or(r.options.MaxWait, maxWait) {
			return receipt, err
		}
		if err := backoff.Sleep(r.ctx, pause); err != nil {
			return receipt, kg.Errorf(kg.CodeTimeout, "the load was cancelled: %w", err)
		}
	}
}

func withStatement(q *kg.Quad, err error) error {
	e := *kg.AsError(err)
	e.Message = clippedTriple(q) + ": " + e.Message
	return &e
}
