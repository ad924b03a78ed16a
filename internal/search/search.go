package search

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"koine/internal/query"
	"koine/internal/textindex"
	"koine/kg"
)

// MaxFirst bounds the hits of one page.
const MaxFirst = 1000

// Order is an order of hits.
type Order uint8

// The orders of hits. Equal hits are in an order that follows from their names.
const (
	ByScore Order = iota // the best first
	ByTime               // the newest first
)

// DefaultMaxOrdered is Options.MaxOrdered if it is zero.
const DefaultMaxOrdered = 100_000

// Place is the place of a hit in the order of a search. The next page goes on there without a
// gap and without a duplicate, as long as the texts of the hits do not change.
type Place struct {
	textindex.Place
	// Time is that of the newest assertion of a text of the hit that the filter admits: a
	// message was sent then.
	Time       time.Time
	Statistics *textindex.Statistics
}

// Request is a search.
type Request struct {
	// Query has words, "phrases", beginnings* and -unwanted words: see textindex.ParseQuery. It
	// may be empty with Near.
	Query string
	// Near asks for hits by vectors, instead of words or beside them; nil for words alone.
	Near *Near
	// Filter chooses among the hits.
	Filter Filter
	Order  Order
	// First is how many hits are wanted, 1 to MaxFirst and one more, which tells whether there is
	// a next page.
	First int
	// After is the place of the last hit of the page before, nil for the first page.
	After *Place
	// MinRevision is a revision that the index must know; the search waits for it.
	MinRevision kg.Revision
	// Past means that the view is one of the past: it finds the texts of the present that it
	// shows, and with Options.History those that went since.
	Past bool
}

// Page is a part of the hits of a search.
type Page struct {
	Hits []Hit
	// Revision is the newest that the index knows. Later texts may be missing.
	Revision kg.Revision
	// Building means that the index is being built, and that hits may be missing.
	Building bool
	// History means that texts that went since were searched too.
	History bool
}

// Hit is an entity or a message with words of the query, or with a near vector.
type Hit struct {
	Place
	Subject kg.Term
	// WordScore is the score by words, nil if it has none of the query or Near was not given;
	// Similarity is that of the nearest vector, nil if there is none.
	WordScore, Similarity *float64
	Matches               []Match // the best first, at most MaxMatches
}

// MaxMatches bounds the matches of a hit.
const MaxMatches = 10

// Match is a statement with words of the query in its text.
type Match struct {
	Graph, Predicate kg.Term
	// Removed means that the statement went after the view's revision.
	Removed bool
	// Pieces make up the part of the text with the first words of the query, at most
	// MaxExcerptBytes. Every second piece, from the second on, is a word of the query; the
	// others may be empty.
	Pieces []string
}

// Text is the text of the pieces.
func (m *Match) Text() string { return strings.Join(m.Pieces, "") }

// MaxCatchUp bounds the time that a search waits for an index that is behind the snapshot, and
// MaxWait the time that it waits for Request.MinRevision. An index of a store with more than
// MaxAwaited statements takes longer to build: no search waits for that.
const (
	MaxCatchUp = time.Second
	MaxWait    = 5 * time.Second
	MaxAwaited = 10_000
)

// Search returns hits that the snapshot shows. Messages are among them if its view has
// AllGraphs. It waits a short time for the index, so that a caller finds its own
// writes; Page.Revision tells if that was not enough.
//
// Errors: CodeInvalid for a request that is not valid, CodeLimitExceeded for one beyond a
// bound and for more than Options.MaxOrdered hits in the order of time, CodeTimeout if the index does
// not reach MinRevision.
func (s *Service) Search(ctx context.Context, snapshot *kg.Snapshot, r Request) (page Page, err error) {
	if r.First < 1 || r.First > MaxFirst+1 {
		return Page{}, kg.Errorf(kg.CodeInvalid, "first is %d; it must be from 1 to %d", r.First, MaxFirst+1)
	}
	f, err := s.openFinder(ctx, snapshot, &r)
	if err != nil {
		return Page{}, err
	}
	page.Revision, page.Building = s.Revision()
	if r.Past {
		has, reading := s.hasHistory()
		page.History, page.Building = has, page.Building || reading
	}
	switch {
	case r.Near != nil:
		var near Near
		if near, err = s.resolveNear(ctx, *r.Near); err == nil {
			page.Hits, err = f.findNear(s.vectors, &r, &near)
		}
	case r.Order == ByTime:
		page.Hits, err = f.findNewest(&r, s.options.MaxOrdered)
	default:
		page.Hits, err = f.findBest()
	}
	return page, err
}

// Subjects returns the subjects of all hits of a request, in no order that matters. First,
// After and Order have no effect.
//
// Errors: those of Search; CodeLimitExceeded for more than Options.MaxOrdered hits.
func (s *Service) Subjects(ctx context.Context, snapshot *kg.Snapshot, r Request) (subjects []kg.Term, err error) {
	r.After = nil
	f, err := s.openFinder(ctx, snapshot, &r)
	if err != nil {
		return nil, err
	}
	err = f.visitHits(func(h *textindex.Hit) error {
		if len(subjects) == s.options.MaxOrdered {
			return tooMany("list", len(subjects))
		}
		t, err := snapshot.Term(h.Place.Subject.ID)
		subjects = append(subjects, t)
		return err
	})
	return subjects, err
}

// tooMany is the error of a query with too many hits to do something.
func tooMany(do string, most int) error {
	e := kg.Errorf(kg.CodeLimitExceeded, "query has more than %d hits, too many to %s", most, do)
	e.Hint = "Add words or a filter, or order by score."
	return e
}

// finder finds hits for one request.
type finder struct {
	ctx      context.Context
	snapshot *kg.Snapshot
	index    *textindex.Index
	// isRemoved reports whether a text is not in the present; nil in views of it.
	isRemoved func(*kg.Snapshot, *kg.Quad) (bool, error)
	filter    *compiledFilter
	request   textindex.Request
	failed    error // of a decision about a group
}

// openFinder checks a request, and waits for the index.
func (s *Service) openFinder(ctx context.Context, snapshot *kg.Snapshot, r *Request) (*finder, error) {
	parsed, err := &textindex.Query{}, error(nil)
	if r.Near == nil || strings.TrimSpace(r.Query) != "" {
		if parsed, err = textindex.ParseQuery(r.Query); err != nil {
			return nil, err
		}
	}
	if r.Near != nil {
		if err := checkNear(r, parsed); err != nil {
			return nil, err
		}
	}
	filter, err := r.Filter.compile(ctx, snapshot)
	if err != nil {
		return nil, kg.AsError(err).At("filter")
	}
	should := snapshot.Revision()
	if r.Past {
		should = s.store.Head().Revision // the texts of the present are searched
	}
	if err := s.awaitIndex(ctx, should, r.MinRevision); err != nil {
		return nil, err
	}
	f := &finder{ctx: ctx, snapshot: snapshot, index: s.indexFor(r.Past), filter: filter}
	if r.Past {
		f.isRemoved = s.isRemoved
	}
	admitted := kg.Admitted(snapshot)
	f.request = textindex.Request{
		Query: parsed, First: r.First, Statistics: &textindex.Statistics{},
		Readable: func(graph, predicate kg.ID) bool {
			may, err := admitted(predicate, graph)
			f.failed = cmp.Or(f.failed, err)
			return may
		},
		Shown: func(subject kg.ID, text textindex.Ref) (bool, error) {
			return query.Shows(snapshot, kg.IDPattern(rowOf(subject, text)))
		},
		Filter: filter.ofTexts(&f.failed),
	}
	if r.After != nil {
		f.request.After = &r.After.Place
		if r.After.Statistics != nil {
			f.request.Statistics = r.After.Statistics
		}
	}
	return f, nil
}

// awaitIndex waits for a revision that the index must know, and a short time for one that it
// should know.
func (s *Service) awaitIndex(ctx context.Context, should, must kg.Revision) error {
	if must > 0 {
		wait, cancel := context.WithTimeout(ctx, MaxWait)
		defer cancel()
		if err := s.WaitFor(wait, must); err != nil {
			known, _ := s.Revision()
			e := kg.Errorf(kg.CodeTimeout, "the index of texts knows revision %d, and not yet revision %d: %w", known, must, err)
			e.Hint = "Search again later, or without minRevision."
			return e
		}
	}
	if !s.comesSoon() {
		return nil
	}
	wait, cancel := context.WithTimeout(ctx, MaxCatchUp)
	defer cancel()
	if err := s.WaitFor(wait, should); err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return nil
}

// comesSoon reports whether the index may know all commits of now within MaxCatchUp.
func (s *Service) comesSoon() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.follows.Load() && (!s.building || s.total <= MaxAwaited)
}

// findBest returns the hits with the best scores.
func (f *finder) findBest() ([]Hit, error) {
	found, err := f.index.Search(f.ctx, &f.request)
	if err = cmp.Or(err, f.failed); err != nil {
		return nil, err
	}
	hits := make([]Hit, len(found))
	for i := range found {
		at, err := f.timeOf(&found[i])
		if err != nil {
			return nil, err
		}
		if hits[i], err = f.readHit(&found[i], at); err != nil {
			return nil, err
		}
	}
	return hits, nil
}

// findNewest returns the newest of at most most hits.
func (f *finder) findNewest(r *Request, most int) ([]Hit, error) {
	type timed struct {
		textindex.Hit
		time time.Time
	}
	compare := func(a time.Time, of textindex.Subject, b time.Time, than textindex.Subject) int {
		return cmp.Or(b.Compare(a), cmp.Compare(of.Order, than.Order), of.ID.Compare(than.ID))
	}
	var list []timed
	seen := 0
	err := f.visitHits(func(h *textindex.Hit) error {
		if seen++; seen > most {
			return tooMany("order by time", most)
		}
		at, err := f.timeOf(h)
		if err != nil {
			return err
		}
		if r.After == nil || compare(r.After.Time, r.After.Place.Subject, at, h.Subject) < 0 {
			list = append(list, timed{*h, at})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list, func(a, b timed) int { return compare(a.time, a.Subject, b.time, b.Subject) })
	list = list[:min(len(list), r.First)]
	hits := make([]Hit, len(list))
	for i := range list {
		if hits[i], err = f.readHit(&list[i].Hit, list[i].time); err != nil {
			return nil, err
		}
	}
	return hits, nil
}

// visitedAtOnce is how many candidates are tested between two moments at which texts may change.
const visitedAtOnce = 2048

// visitHits calls visit with all hits in the order of their subjects, until visit returns an
// error.
func (f *finder) visitHits(visit func(*textindex.Hit) error) error {
	finding := f.index.NewFinding(f.request)
	var from textindex.Subject
	for more := true; more; {
		var hits []textindex.Hit
		var err error
		hits, from, more, err = finding.Scan(f.ctx, from, visitedAtOnce)
		if err = cmp.Or(err, f.failed, f.ctx.Err()); err != nil {
			return err
		}
		for i := range hits {
			if err := visit(&hits[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// timeOf returns the time of the newest assertion of a hit's texts that the filter admits.
func (f *finder) timeOf(h *textindex.Hit) (newest time.Time, err error) {
	for _, m := range h.Texts {
		list, err := f.filter.assertionsOf(rowOf(h.Place.Subject.ID, m.Ref))
		if err != nil {
			return newest, err
		}
		for i := range list {
			if list[i].Time.After(newest) {
				newest = list[i].Time
			}
		}
	}
	return newest, nil
}

// readHit reads the terms of a hit.
func (f *finder) readHit(h *textindex.Hit, at time.Time) (hit Hit, err error) {
	hit.Place = Place{Place: h.Place, Time: at, Statistics: f.request.Statistics}
	if hit.Subject, err = f.snapshot.Term(h.Place.Subject.ID); err != nil {
		return hit, err
	}
	quads, err := bestTexts(f.snapshot, h)
	if err != nil {
		return hit, err
	}
	for i := range quads {
		q := &quads[i]
		removed := false
		if f.isRemoved != nil {
			if removed, err = f.isRemoved(f.snapshot, q); err != nil {
				return hit, err
			}
		}
		text, language, _ := textOf(q)
		hit.Matches = append(hit.Matches, Match{q.Graph, q.Predicate, removed, excerptOf(text, language, f.request.Query, f.request.Statistics)})
	}
	return hit, nil
}

// bestTexts returns the statements of the best texts of a hit, at most MaxMatches. Those with
// the same score are in the order of their terms: that of ids would tell of other statements,
// which had terms first.
func bestTexts(snapshot *kg.Snapshot, f *textindex.Hit) ([]kg.Quad, error) {
	n := len(f.Texts)
	if n > MaxMatches {
		for n = MaxMatches; n < len(f.Texts) && f.Texts[n].Score == f.Texts[n-1].Score; {
			n++
		}
	}
	type scored struct {
		kg.Quad
		score float64
	}
	list := make([]scored, n)
	for i, m := range f.Texts[:n] {
		q, err := snapshot.Quad(kg.Row{IDQuad: rowOf(f.Place.Subject.ID, m.Ref)})
		if err != nil {
			return nil, err
		}
		list[i] = scored{q, m.Score}
	}
	slices.SortFunc(list, func(a, b scored) int {
		return cmp.Or(cmp.Compare(b.score, a.score), a.Predicate.Compare(b.Predicate), a.Object.Compare(b.Object), a.Graph.Compare(b.Graph))
	})
	out := make([]kg.Quad, min(n, MaxMatches))
	for i := range out {
		out[i] = list[i].Quad
	}
	return out, nil
}

func rowOf(subject kg.ID, text textindex.Ref) kg.IDQuad {
	return kg.IDQuad{Subject: subject, Predicate: text.Predicate, Object: text.Object, Graph: text.Graph}
}
