package kg

import (
	"context"
	"errors"
	"iter"
)

// ReplaceOptions configures Store.ReplaceGraph. The zero value works.
type ReplaceOptions struct {
	// Progress is called from time to time with the number of statements written. It must be
	// fast and must not call the store. May be nil.
	Progress func(written uint64)
}

// ReplaceReport is the result of ReplaceGraph.
type ReplaceReport struct {
	Read uint64 // quads read
	// Added is the number of statements that are new or got the caller's assertion, Removed
	// the number of those removed. Unchanged statements count for neither.
	Added, Removed uint64
	// Created means that the caller saw no statement in the graph before.
	Created bool
	// Whole means that the content was replaced as a whole: the log has no single changes, and
	// watchers of the graph get CodeResync.
	Whole bool
	// Commits is the number of commits; 0 if nothing changed.
	Commits  uint64
	Revision Revision // revision in which the graph has the new content
	Position Position // position behind it
	// Verdict is Held if the replacement waits for review as ProposalID.
	Verdict    Verdict
	ProposalID string
	Replayed   bool // an earlier call with the idempotency key did the work
}

// ReplaceGraph makes the graph contain exactly the quads, which must all belong to it; an
// empty sequence empties it. Statements in both keep their assertions and history. Readers see
// the new content at once. An error of the sequence ends the replacement and leaves the graph
// unchanged.
//
// A graph of at most MaxPatches statements before and after, with at most maxReplaceBytes of
// text to add and remove, is replaced by one ordinary update. A larger content is written as a
// generation in commits without visible effect, and one commit makes it current: see
// Commit.Replaced. Meanwhile other changes of the graph fail with CodeOverloaded. Such a
// replacement cannot be held for review or be a dry run.
func (s *Store) ReplaceGraph(ctx context.Context, m Meta, graph Term, quads iter.Seq2[Quad, error], o ReplaceOptions) (report ReplaceReport, err error) {
	if graph.IsZero() {
		graph = DefaultGraph
	}
	if s.options.Span != nil {
		var end func(error)
		ctx, end = s.options.Span(ctx, "kg replace graph")
		defer func() { end(err) }()
	}
	next, stop := iter.Pull2(quads)
	defer stop()
	r := &replacement{s: s, meta: m, graph: graph, wanted: make(map[Quad]bool)}
	for {
		q, err, more := next()
		if !more {
			break
		}
		if err == nil {
			err = r.addQuad(q)
		}
		if err != nil {
			return ReplaceReport{}, err
		}
		if len(r.order) > s.options.wholeFrom || r.bytes > maxReplaceBytes {
			return s.replaceWhole(ctx, m, graph, r, next, o)
		}
	}
	report, err = r.commitDifference(ctx)
	if err != errManyUnwanted && !errors.Is(err, errTooLarge) {
		return report, err
	}
	return s.replaceWhole(ctx, m, graph, r, next, o)
}

// maxReplaceBytes bounds the text that a replacement by one ordinary update adds and removes.
// It leaves room in a commit of MaxCommitBytes for everything else.
const maxReplaceBytes = 8 << 20

// replacement is the replacement of a graph by one ordinary commit.
type replacement struct {
	s     *Store
	meta  Meta
	graph Term

	read   uint64
	wanted map[Quad]bool
	order  []Quad // the keys of wanted in order
	bytes  int    // text of order
}

// addQuad adds a quad of the new content.
func (r *replacement) addQuad(q Quad) error {
	if err := checkQuadGraph(&q, r.graph); err != nil {
		return err
	}
	r.read++
	if !r.wanted[q] {
		r.wanted[q] = true
		r.order = append(r.order, q)
		r.bytes += q.TextBytes()
	}
	return nil
}

// checkQuadGraph refuses a quad of another graph.
func checkQuadGraph(q *Quad, graph Term) error {
	if q.Graph.IsZero() {
		q.Graph = DefaultGraph
	}
	if q.Graph != graph {
		return Errorf(CodeInvalid, "the quad is in the graph %s, not in %s", q.Graph, graph).At("graph")
	}
	return nil
}

// errManyUnwanted means that the graph is too large for one ordinary commit. It never leaves
// the store.
var errManyUnwanted = Errorf(CodeInternal, "too many statements to remove")

// commitDifference removes unwanted statements and adds missing ones.
func (r *replacement) commitDifference(ctx context.Context) (ReplaceReport, error) {
	report := ReplaceReport{Read: r.read}
	receipt, err := r.s.Update(ctx, r.meta, func(tx *Tx) error {
		report.Removed = 0
		gone, stood, err := r.unwantedQuads(tx)
		if err != nil {
			return err
		}
		report.Created = !stood
		for _, q := range gone {
			if err := tx.Apply(Patch{Op: Remove, Quad: q}); err != nil {
				return err
			}
			report.Removed++
		}
		for _, q := range r.order {
			if err := tx.Apply(Patch{Op: Add, Quad: q}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return ReplaceReport{}, err
	}
	report.Revision, report.Position, report.Replayed = receipt.Revision, receipt.Position, receipt.Replayed
	report.Verdict, report.ProposalID = receipt.Verdict, receipt.ProposalID
	if done := receipt.Replaced; done != nil { // the key belongs to a replacement as a whole
		report.Added, report.Removed, report.Whole = done.Added, done.Removed, true
		return report, nil
	}
	switch {
	case receipt.Verdict.Outcome != Accepted:
		report.Removed = 0
		if receipt.ProposalID == "" {
			return ReplaceReport{}, errRejected(receipt.Verdict)
		}
	default:
		report.Added = uint64(receipt.Affected) - min(report.Removed, uint64(receipt.Affected))
		if receipt.Committed {
			report.Commits = 1
		}
	}
	return report, nil
}

// unwantedQuads lists the graph's statements that are not in the new content; stood reports
// whether the graph had any statement.
func (r *replacement) unwantedQuads(tx *Tx) (gone []Quad, stood bool, err error) {
	bytes := r.bytes
	for s, err := range tx.Match(Pattern{Graph: r.graph}) {
		if err != nil {
			return nil, false, err
		}
		stood = true
		if r.wanted[s.Quad] {
			continue
		}
		if bytes += s.Quad.TextBytes(); len(gone) == r.s.options.wholeFrom || bytes > maxReplaceBytes {
			return nil, false, errManyUnwanted
		}
		gone = append(gone, s.Quad)
	}
	return gone, stood, nil
}
