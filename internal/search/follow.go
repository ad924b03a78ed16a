package search

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"time"

	"koine/internal/query"
	"koine/internal/query/pattern"
	"koine/internal/textindex"
	"koine/kg"
)

// Follower tells which entities and messages come to be hits of a query, commit by commit. The
// query is taken as it is spelt: the meaning of misspelt words depends on all texts.
type Follower struct {
	service *Service
	text    string
	query   *textindex.Query
	filter  Filter
}

// NewFollower returns a follower. The filter cannot have a pattern, because its solutions depend on
// other entities.
func (s *Service) NewFollower(text string, filter Filter) (*Follower, error) {
	if filter.Match != nil {
		return nil, kg.Errorf(kg.CodeInvalid, "match depends on other entities and cannot be followed; follow it with matchChanged").At("filter.match")
	}
	parsed, err := textindex.ParseQuery(text)
	if err != nil {
		return nil, kg.AsError(err).At("query")
	}
	return &Follower{s, text, parsed, filter}, filter.check()
}

// MayMakeHits reports whether a commit may make hits, without reading anything.
func (f *Follower) MayMakeHits(commit *kg.Commit) bool {
	return slices.ContainsFunc(commit.Changes, func(c kg.Change) bool { return f.dependsOn(&c.Quad) })
}

// Hits yields the hits in a snapshot of the present, in the order of subjects.
func (f *Follower) Hits(ctx context.Context, snapshot *kg.Snapshot) iter.Seq2[Hit, error] {
	return func(yield func(Hit, error) bool) {
		if err := f.eachHit(ctx, snapshot, func(h *Hit) bool { return yield(*h, nil) }); err != nil {
			yield(Hit{}, err)
		}
	}
}

func (f *Follower) eachHit(ctx context.Context, snapshot *kg.Snapshot, yield func(*Hit) bool) error {
	s := &source{service: f.service, text: f.text, filter: f.filter, asSpelt: true}
	found, err := s.Find(ctx, snapshot, pattern.TextUse{})
	if err != nil {
		return err
	}
	if found.(*hits).finding.Overflows() {
		return kg.Errorf(kg.CodeLimitExceeded, "a beginning in the query stands for more than %d words", textindex.MaxBeginnings).At("query")
	}
	j, err := f.judge(ctx, snapshot)
	if err != nil {
		return err
	}
	for candidate, err := range found.Scan(kg.ID{}) {
		if err != nil {
			return err
		}
		hit, err := j.hitOf(candidate.ID)
		if err != nil {
			return err
		}
		if hit != nil && !yield(hit) {
			return nil
		}
	}
	return nil
}

// NewHits returns the hits of a snapshot that were none in the one before, which is nil at the
// first commit. The commit is the one between the two.
func (f *Follower) NewHits(ctx context.Context, before, after *kg.Snapshot, commit *kg.Commit) (list []Hit, err error) {
	is, err := f.judge(ctx, after)
	if err != nil {
		return nil, err
	}
	var was *judge
	if before != nil {
		if was, err = f.judge(ctx, before); err != nil {
			return nil, err
		}
	}
	judged := map[kg.Term]bool{}
	for i := range commit.Changes {
		q := &commit.Changes[i].Quad
		if judged[q.Subject] || !f.dependsOn(q) {
			continue
		}
		judged[q.Subject] = true
		id, known, err := after.ID(q.Subject)
		if err != nil {
			return nil, err
		}
		if !known {
			continue
		}
		hit, err := is.hitOf(id)
		if err == nil && hit != nil && was != nil {
			var had *Hit
			if had, err = was.hitOf(id); had != nil {
				hit = nil
			}
		}
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return nil, err
		}
		if hit != nil {
			list = append(list, *hit)
		}
	}
	return list, nil
}

// dependsOn reports whether a change of a statement may make its subject a hit.
func (f *Follower) dependsOn(q *kg.Quad) bool {
	if f.filter.Classes != nil && q.Predicate == query.RDFType {
		return true
	}
	t, ok := newText(q)
	return ok && f.query.Concerns(&t)
}

// judge decides which subjects are hits in one snapshot.
type judge struct {
	finder
	texts textindex.Filter
}

func (f *Follower) judge(ctx context.Context, snapshot *kg.Snapshot) (*judge, error) {
	filter, err := f.filter.compile(ctx, snapshot)
	if err != nil {
		return nil, err
	}
	j := &judge{finder: finder{ctx: ctx, snapshot: snapshot, filter: filter, request: textindex.Request{Query: f.query}}}
	j.texts = filter.ofTexts(&j.failed)
	return j, nil
}

// hitOf returns a subject with its texts if it is a hit, nil otherwise.
func (j *judge) hitOf(id kg.ID) (*Hit, error) {
	texts, err := textsIn(j.ctx, j.snapshot, id)
	if err != nil {
		return nil, err
	}
	with, err := j.request.Query.Fit(id, texts, &j.texts)
	if err = cmp.Or(err, j.failed); err != nil || len(with) == 0 {
		return nil, err
	}
	found := textindex.Hit{Place: textindex.Place{Subject: texts[0].Subject}}
	for _, ref := range with {
		found.Texts = append(found.Texts, textindex.Match{Ref: ref})
	}
	hit, err := j.readHit(&found, time.Time{})
	return &hit, err
}
