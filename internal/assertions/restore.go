package assertions

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"iter"
	"math"
	"time"

	"koine/internal/extsort"
	"koine/kg"
)

// Store is what Restore writes to: kg.Store.
type Store interface {
	Update(context.Context, kg.Meta, func(*kg.Tx) error) (kg.Receipt, error)
}

// RestoreOptions configures Restore. The zero RestoreOptions work.
type RestoreOptions struct {
	// Dir is where temporary files are made; "" means the system's.
	Dir string
	// SortBytes is how much memory sorting may take; extsort.DefaultBytes when 0.
	SortBytes int
	// Progress is called after each commit with how many assertions were taken in.
	// May be nil.
	Progress func(assertions uint64)
	// MaxWait bounds how long one commit is tried while the store takes none of this
	// caller (kg.CodeOverloaded, kg.CodeRateLimited); five minutes when 0.
	MaxWait time.Duration
}

func (o *RestoreOptions) maxWait() time.Duration { return cmp.Or(o.MaxWait, maxWait) }

// Bounds of a commit of Restore: others wait behind it.
const (
	commitPatches = 1_000
	commitBytes   = 2 << 20
)

// RestoreReport says what Restore did, also one that failed on the way.
type RestoreReport struct {
	Statements uint64 // that were taken in
	Assertions uint64 // of them, with those of statements that have none in the document
	Changed    uint64 // assertions that were new or changed something
	Commits    uint64
	Revision   kg.Revision // of the last commit; 0 for none
}

// Restore writes statements with their assertions into a store. Each assertion keeps
// source, certainty, times, provenance and justification; its revision is one of this
// store. They are written in the order of their old revisions, and those of one
// justification that follow each other together, because a commit has one. Statements
// without assertions come last and are those of the Meta's actor, for its reason.
// Only administrators may. A failure leaves the commits before it in place.
func Restore(ctx context.Context, store Store, m kg.Meta, statements iter.Seq2[Statement, error], o RestoreOptions) (report RestoreReport, err error) {
	if !m.Principal.IsAdmin() {
		return report, kg.Errorf(kg.CodePermissionDenied, "only an administrator loads other agents' assertions")
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
	r := restoring{ctx: ctx, store: store, meta: m, options: o, report: &report}
	for row, err := range sorter.Sorted() {
		if err == nil {
			err = r.take(row)
		}
		if err != nil {
			return report, err
		}
	}
	return report, r.commit()
}

// appendRestored encodes an assertion so that those of one commit come together; a nil
// one is that of whoever restores.
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

// restoring gathers the assertions of a commit.
type restoring struct {
	ctx     context.Context
	store   Store
	meta    kg.Meta
	options RestoreOptions
	report  *RestoreReport

	why     string
	patches []kg.Patch
	bytes   int
}

func (r *restoring) take(row []byte) error {
	if len(row) < 8 {
		return errRecord
	}
	in := record{rest: row[8:]}
	why := in.text()
	p := kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: in.term(), Predicate: in.term(), Object: in.term(), Graph: in.term()}}
	if in.byte() == 1 {
		a := in.assertion()
		p.Source, p.Certainty, p.HasCertainty, p.Validity, p.Provenance, p.Time = a.Source, a.Certainty, a.HasCertainty, a.Validity, a.Provenance, a.Time
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

// commit writes what was gathered.
func (r *restoring) commit() error {
	if len(r.patches) == 0 {
		return nil
	}
	m := r.meta
	m.Justification = r.why
	receipt, err := r.update(m)
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

// retryQueue is how long it waits for room in a full queue of updates, or for its share
// of them, where the store does not say how long; maxWait is how long for one commit
// altogether.
const (
	retryQueue = 100 * time.Millisecond
	maxWait    = 5 * time.Minute
)

// update commits the patches. That others are many, or the commits themselves more than
// the caller's share at a time, is no reason to give up half way.
func (r *restoring) update(m kg.Meta) (kg.Receipt, error) {
	for waited := time.Duration(0); ; {
		receipt, err := r.store.Update(r.ctx, m, func(tx *kg.Tx) error {
			for _, p := range r.patches {
				if err := tx.Apply(p); err != nil {
					return about(&p.Quad, err)
				}
			}
			return nil
		})
		if code := kg.CodeOf(err); code != kg.CodeOverloaded && code != kg.CodeRateLimited {
			return receipt, err
		}
		pause := max(kg.AsError(err).RetryAfter, retryQueue)
		if waited += pause; waited > r.options.maxWait() {
			return receipt, err
		}
		wait := time.NewTimer(pause)
		select {
		case <-wait.C:
		case <-r.ctx.Done():
			wait.Stop()
			return receipt, kg.Errorf(kg.CodeTimeout, "the load was given up before its end: %w", r.ctx.Err())
		}
	}
}

// about says which statement an error is about.
func about(q *kg.Quad, err error) error {
	e := *kg.AsError(err)
	e.Message = told(q) + ": " + e.Message
	return &e
}
