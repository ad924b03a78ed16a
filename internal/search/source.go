package search

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"time"

	"koine/internal/query/pattern"
	"koine/internal/textindex"
	"koine/kg"
)

const (
	// scanBatch is how many candidates are evaluated while no text is added.
	scanBatch = 1024
	// maxSingleTests is how many resources are tested one by one before all hits are read, unless
	// the estimate is larger than maxHeldHits.
	maxSingleTests = 500
	maxHeldHits    = 200_000
)

// source finds the hits of a query for patterns.
type source struct {
	service *Service
	text    string
	filter  Filter
	past    bool
	asSpelt bool
}

// Source returns a source of all hits of a query, for a graph pattern. past is Request.Past.
func (s *Service) Source(query string, filter Filter, past bool) (pattern.TextSource, error) {
	if _, err := textindex.ParseQuery(query); err != nil {
		return nil, err
	}
	return &source{service: s, text: query, filter: filter, past: past}, filter.check()
}

func (s *source) String() string { return strconv.Quote(s.text) }

// Find begins to find hits in a snapshot. The index has to know the snapshot's revision.
func (s *source) Find(ctx context.Context, snapshot *kg.Snapshot, u pattern.TextUse) (pattern.TextHits, error) {
	f, err := s.service.openFinder(ctx, snapshot, &Request{Query: s.text, Past: s.past, Filter: s.filter})
	if err != nil {
		return nil, err
	}
	if known, building := s.service.Revision(); building || known < snapshot.Revision() {
		return nil, errBehind("the index of texts is at revision %d and the match at %d", known, snapshot.Revision())
	}
	h := &hits{finder: f, source: s, scores: u.Scores, gone: s.service.departed.total()}
	if _, h.known = s.service.departed.after(snapshot.Revision()); !h.known && !s.past && !u.Resumed {
		return nil, errBehind("texts went while the match began")
	}
	f.request.AsSpelt = s.asSpelt
	h.finding = f.index.NewFinding(f.request)
	_, known := s.service.departed.after(snapshot.Revision())
	return h, cmp.Or(h.failed, h.checkKnown(known))
}

func errBehind(format string, args ...any) error {
	e := kg.Errorf(kg.CodeOverloaded, format, args...)
	e.RetryAfter = time.Second
	e.Hint = "Try again; search answers meanwhile, and tells how far it is."
	return e
}

// hits are the hits of a source in a snapshot.
type hits struct {
	*finder
	*source
	finding *textindex.Finding
	scores  bool
	gone    uint64 // texts that went before
	known   bool   // the texts that the snapshot shows are in the index, or their subjects are known

	tested int
	held   map[kg.ID]pattern.TextHit // all hits; nil until they are read
}

// Estimate returns at most how many hits there are, among how many texts.
func (h *hits) Estimate() (uint64, uint64) { return h.finding.Estimate() }

// checkKnown returns an error if it is no longer known which texts have gone since the snapshot.
func (h *hits) checkKnown(known bool) error {
	if h.known && !known {
		return errBehind("texts went during the match")
	}
	return nil
}

// State is equal for hits that are equal.
func (h *hits) State() uint64 {
	if h.known {
		return h.finding.State(h.scores)
	}
	return h.finding.State(h.scores) + 1 + h.gone
}

// Scan yields the hits in the order of subjects, from one on.
func (h *hits) Scan(from kg.ID) iter.Seq2[pattern.TextHit, error] {
	return func(yield func(pattern.TextHit, error) bool) {
		var at textindex.Subject
		if !from.IsZero() {
			var err error
			if at, err = h.subjectOf(from); err != nil {
				yield(pattern.TextHit{}, err)
				return
			}
		}
		for more := true; more; {
			var list []textindex.Hit
			var next textindex.Subject
			var err error
			if list, next, more, err = h.finding.Scan(h.ctx, at, scanBatch); err == nil {
				list, err = h.correct(list, at, next, more)
			}
			if err = cmp.Or(err, h.failed); err != nil {
				yield(pattern.TextHit{}, err)
				return
			}
			for i := range list {
				if !yield(pattern.TextHit{ID: list[i].Subject.ID, Score: list[i].Score}, nil) {
					return
				}
			}
			at = next
		}
	}
}

// correct decides anew about the subjects between two that have lost a text since the snapshot.
func (h *hits) correct(list []textindex.Hit, from, next textindex.Subject, more bool) ([]textindex.Hit, error) {
	gone, known := h.service.departed.after(h.snapshot.Revision())
	if err := h.checkKnown(known); err != nil {
		return nil, err
	}
	for _, subject := range gone {
		if subject.Compare(from) < 0 || more && subject.Compare(next) >= 0 {
			continue
		}
		fits, err := h.fits(subject)
		if err != nil {
			return nil, err
		}
		i, there := slices.BinarySearchFunc(list, subject, func(x textindex.Hit, s textindex.Subject) int { return x.Subject.Compare(s) })
		switch {
		case fits && !there:
			list = slices.Insert(list, i, textindex.Hit{Place: textindex.Place{Subject: subject}})
		case !fits && there:
			list = slices.Delete(list, i, i+1)
		}
	}
	return list, nil
}

// Hit returns the hit of a resource, and false if it is none.
func (h *hits) Hit(id kg.ID) (pattern.TextHit, bool, error) {
	if !id.IsResource() || kg.IsLocal(id) {
		return pattern.TextHit{}, false, nil
	}
	if h.tested++; h.tested == maxSingleTests {
		if err := h.hold(); err != nil {
			return pattern.TextHit{}, false, err
		}
	}
	if h.held != nil {
		hit, ok := h.held[id]
		return hit, ok, nil
	}
	subject, err := h.subjectOf(id)
	if err != nil {
		return pattern.TextHit{}, false, err
	}
	hit, err := h.finding.HitOf(h.ctx, subject)
	if err = cmp.Or(err, h.failed); err != nil {
		return pattern.TextHit{}, false, err
	}
	lost, known := h.service.departed.hasLost(subject, h.snapshot.Revision())
	if err := h.checkKnown(known); err != nil {
		return pattern.TextHit{}, false, err
	}
	is, out := hit != nil, pattern.TextHit{ID: id}
	if is {
		out.Score = hit.Score
	}
	if lost {
		is, err = h.fits(subject)
	}
	return out, is, err
}

// hold reads all hits, unless there may be too many.
func (h *hits) hold() error {
	if most, _ := h.finding.Estimate(); most > maxHeldHits {
		return nil
	}
	held := map[kg.ID]pattern.TextHit{}
	for hit, err := range h.Scan(kg.ID{}) {
		if err != nil {
			return err
		}
		held[hit.ID] = hit
	}
	h.held = held
	return nil
}

func (h *hits) subjectOf(id kg.ID) (textindex.Subject, error) {
	t, err := h.snapshot.Term(id)
	if err != nil {
		return textindex.Subject{}, fmt.Errorf("subject of texts: %w", err)
	}
	return subjectOf(t, id), nil
}

// fits reports whether a subject is a hit by the texts that the snapshot shows.
func (h *hits) fits(subject textindex.Subject) (bool, error) {
	texts, err := textsIn(h.ctx, h.snapshot, subject.ID)
	if err != nil {
		return false, err
	}
	return h.finding.Fits(subject.ID, texts)
}

// textsIn returns the texts of a subject that a snapshot shows.
func textsIn(ctx context.Context, snapshot *kg.Snapshot, subject kg.ID) (texts []textindex.Text, err error) {
	for row, err := range snapshot.MatchIDs(kg.IDPattern{Subject: subject}, nil) {
		if err != nil {
			return nil, err
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if row.Object.IsResource() {
			continue
		}
		q, err := snapshot.Quad(row)
		if err != nil {
			return nil, err
		}
		if t, ok := newText(&q); ok {
			identify(&t, q.Subject, row.IDQuad)
			texts = append(texts, t)
		}
	}
	return texts, nil
}
