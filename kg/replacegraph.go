package kg

import (
	"context"
	"errors"
	"iter"
)

// ReplaceOptions configures Store.ReplaceGraph.
type ReplaceOptions struct {
	// Progress is called now and then with how many statements have been written.
	// It must be fast and not call the store. May be nil.
	Progress func(written uint64)
}

// ReplaceReport says what ReplaceGraph did.
type ReplaceReport struct {
	Read uint64 // quads that were taken in
	// Added counts the statements that came or got the caller's assertion, Removed
	// those that went. A statement that stays as it is counts for neither.
	Added, Removed uint64
	// Created tells that no statement stood in the graph before, as far as the
	// caller sees.
	Created bool
	// Whole tells that the content was exchanged as a whole: single changes are not
	// in the log, and who follows the graph is told to read it again.
	Whole bool
	// Commits is how many were made; 0 when nothing changed.
	Commits  uint64
	Revision Revision // from which on the graph is as it was asked for
	Position Position // behind it
	// Verdict is Held where the replacement waits for review as ProposalID.
	Verdict    Verdict
	ProposalID string
	Replayed   bool // an earlier call with the idempotency key made it
}

// ReplaceGraph makes a graph hold exactly the quads, all of which must be of that
// graph; an empty sequence empties it. A statement that stays keeps its assertions
// and its history. Readers see all of it at once. An error of the sequence ends the
// replacement and leaves the graph as it was.
//
// Where the graph holds at most MaxPatches statements before and after, and what comes
// and goes has at most maxReplaceBytes of text, it is an ordinary update. Beyond that the
// content is written in commits that nobody sees, and one commit makes it count: see
// Commit.Replaced. Until then the graph takes no other changes; they fail with
// CodeOverloaded. Such a replacement cannot be held for review nor be a dry run.
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

// maxReplaceBytes is how much text a replacement that is an ordinary update may add and
// remove. It leaves room for all else that is in a commit of MaxCommitBytes.
const maxReplaceBytes = 8 << 20

// replacement is a graph that is replaced in one ordinary commit.
type replacement struct {
	s     *Store
	meta  Meta
	graph Term

	read   uint64
	wanted map[Quad]bool
	order  []Quad // of wanted, each once
	bytes  int    // of the text of order
}

// addQuad takes in one quad of the new content.
func (r *replacement) addQuad(q Quad) error {
	if err := ofGraph(&q, r.graph); err != nil {
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

// ofGraph refuses a quad of another graph.
func ofGraph(q *Quad, graph Term) error {
	if q.Graph.IsZero() {
		q.Graph = DefaultGraph
	}
	if q.Graph != graph {
		return Errorf(CodeInvalid, "there are statements in the graph %s, and %s is replaced", q.Graph, graph).At("graph")
	}
	return nil
}

// errManyUnwanted tells that the graph holds too much for one ordinary commit. It never
// leaves the store.
var errManyUnwanted = Errorf(CodeInternal, "too many statements to remove")

// commitDifference removes what is not wanted and adds what is.
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
	if done := receipt.Replaced; done != nil { // the key is that of an exchange of the whole
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

// unwantedQuads are the graph's statements that are not wanted; stood tells whether there
// was any statement.
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
