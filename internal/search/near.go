package search

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"koine/internal/textindex"
	"koine/internal/vectorindex"
	"koine/kg"
)

// Metric is how vectors are compared.
type Metric = vectorindex.Metric

// The metrics.
const (
	Cosine = vectorindex.Cosine
	Dot    = vectorindex.Dot
)

// Near asks for entities and messages with vectors near to a given one, or to that of a text.
type Near struct {
	// Model of the vectors; "" is the model of the embeddings endpoint.
	Model string
	// Vector, or that of the text Like if it is nil.
	Vector []float32
	Like   string
	Metric Metric
}

// Embedder makes vectors of texts.
type Embedder interface {
	// Model is the name of its model, and Identity changes if another one, or another policy
	// which texts have vectors, would give others.
	Model() string
	Identity() string
	// Vector returns the vector of a statement's text, nil if there is none yet.
	Vector(q *kg.Quad) []float32
	EmbedQuery(ctx context.Context, text string) ([]float32, error)
}

// The constants of reciprocal rank fusion: a hit that is the nth of one list adds
// 1/(RankConstant+n) to its score. Of each list the first FusedHits count.
const (
	RankConstant = 60
	FusedHits    = 200
)

// maxNamedModels bounds the models that an error names.
const maxNamedModels = 10

// resolveNear returns the model and the vector that are asked for.
func (s *Service) resolveNear(ctx context.Context, n Near) (Near, error) {
	embedder := s.options.Embedder
	switch {
	case (n.Vector == nil) == (n.Like == ""):
		return n, kg.Errorf(kg.CodeInvalid, "near has a vector, or like").At("near")
	case embedder == nil && n.Like != "":
		e := kg.Errorf(kg.CodeInvalid, "this server makes no vectors of texts: give a vector").At("like").At("near")
		e.Hint = "koine serve --embeddings-url configures an endpoint that makes them."
		return n, e
	case embedder != nil && n.Model == "":
		n.Model = embedder.Model()
	case n.Like != "" && n.Model != embedder.Model():
		return n, kg.Errorf(kg.CodeInvalid, "this server makes vectors of model %s: give a vector for another one", embedder.Model()).At("model").At("near")
	}
	if n.Like != "" {
		var err error
		if n.Vector, err = embedder.EmbedQuery(ctx, n.Like); err != nil {
			return n, kg.AsError(err).At("like").At("near")
		}
	}
	if err := (&kg.Embedding{Model: n.Model, Vector: n.Vector}).Valid(); err != nil {
		return n, kg.AsError(err).At("near")
	}
	return n, nil
}

// checkNear returns an error if a request with Near has something else that it may not have.
func checkNear(r *Request, query *textindex.Query) error {
	switch {
	case r.Order == ByTime:
		return kg.Errorf(kg.CodeInvalid, "hits by nearness are ordered by their score").At("order")
	case query.HasUnwanted():
		return kg.Errorf(kg.CodeInvalid, "a query beside near has no -words: a vector does not tell which words a text has").At("query")
	}
	return nil
}

// findNear returns the hits that have vectors near to one, or of those and of the hits by words
// the best of both.
func (f *finder) findNear(vectors *vectorindex.Index, r *Request, near *Near) ([]Hit, error) {
	n := &nearSearch{finder: f, vectors: vectors, subjects: map[kg.ID]bool{}}
	var list []fused
	if strings.TrimSpace(r.Query) == "" {
		found, err := n.findNearest(near, r.First, f.request.After)
		if err != nil {
			return nil, err
		}
		for i := range found {
			list = append(list, fused{Place: found[i].Place, vector: &found[i]})
		}
	} else {
		request := f.request
		request.First, request.After = FusedHits, nil
		texts, err := f.index.Search(f.ctx, &request)
		if err = cmp.Or(err, f.failed); err != nil {
			return nil, err
		}
		found, err := n.findNearest(near, FusedHits, nil)
		if err != nil {
			return nil, err
		}
		list = fuseHits(texts, found)
		if after := f.request.After; after != nil {
			list = slices.DeleteFunc(list, func(h fused) bool { return !after.ComesBefore(h.Place) })
		}
	}
	list = list[:min(len(list), r.First)]
	hits := make([]Hit, len(list))
	for i := range list {
		var err error
		if hits[i], err = f.readFused(&list[i]); err != nil {
			return nil, err
		}
	}
	return hits, nil
}

// readFused reads the terms of a hit. Its matches are the texts with words of the query, and
// the statement of the vector.
func (f *finder) readFused(from *fused) (Hit, error) {
	h := textindex.Hit{Place: from.Place}
	if from.text != nil {
		h.Texts = slices.Clone(from.text.Texts)
	}
	if from.vector != nil && !slices.ContainsFunc(h.Texts, func(m textindex.Match) bool { return m.Ref == from.vector.Key.Ref }) {
		h.Texts = append(h.Texts, textindex.Match{Ref: from.vector.Key.Ref})
	}
	at, err := f.timeOf(&h)
	if err != nil {
		return Hit{}, err
	}
	hit, err := f.readHit(&h, at)
	if from.text != nil {
		hit.WordScore = &from.text.Score
	}
	if from.vector != nil {
		hit.Similarity = &from.vector.Score
	}
	return hit, err
}

// nearSearch finds vectors that a snapshot shows and that a filter admits.
type nearSearch struct {
	*finder
	vectors  *vectorindex.Index
	subjects map[kg.ID]bool // whether the filter admits a subject
	admitted int            // how many of them
	read     bool           // members was read
	members  idSet          // of the filter's classes; nil if it was not read, or has too many
}

// A class is rare if of the first rareAfter subjects and later at most one in rareShare has it. Then
// its members are read at once, up to maxMembers.
const (
	rareAfter  = 50
	rareShare  = 10
	maxMembers = 20_000
)

// readMembers reads the members of the filter's classes.
func (n *nearSearch) readMembers() error {
	set := idSet{}
	for class := range n.filter.classes {
		for row, err := range n.snapshot.MatchIDs(kg.IDPattern{Predicate: n.filter.typeID, Object: class}, nil) {
			if err != nil {
				return err
			}
			if set[row.Subject] = struct{}{}; len(set) > maxMembers {
				return nil
			}
		}
	}
	n.members = set
	return nil
}

// admitsSubject reports whether the filter admits a subject.
func (n *nearSearch) admitsSubject(id kg.ID) (bool, error) {
	fits, known := n.subjects[id]
	if known || n.members != nil && !n.members.has(id) {
		return fits, nil
	}
	fits, err := n.filter.admitsSubject(id)
	if err != nil {
		return false, err
	}
	if n.subjects[id] = fits; fits {
		n.admitted++
	}
	if !n.read && n.filter.classes != nil && !n.filter.typeID.IsZero() && len(n.subjects) >= rareAfter && n.admitted*rareShare <= len(n.subjects) {
		n.read = true
		return fits, n.readMembers()
	}
	return fits, nil
}

// findNearest returns the first hits behind a place.
func (n *nearSearch) findNearest(near *Near, first int, after *textindex.Place) ([]vectorindex.Hit, error) {
	hits, err := n.vectors.Search(n.ctx, &vectorindex.Request{
		Model: near.Model, Vector: near.Vector, Metric: near.Metric, First: first, After: after,
		Rights: vectorindex.Rights{
			Readable: func(graph, predicate kg.ID) bool {
				if !n.request.Readable(graph, predicate) {
					return false
				}
				fits, err := n.filter.admitsGroup(graph, predicate)
				n.failed = cmp.Or(n.failed, err)
				return fits && err == nil
			},
			Shown: n.isHit,
		},
	})
	if err = cmp.Or(err, n.failed); err != nil {
		return nil, err
	}
	if len(hits) == 0 && after == nil {
		return nil, n.checkModel(near)
	}
	return hits, nil
}

// isHit reports whether a vector is shown, and admitted by the filter.
func (n *nearSearch) isHit(k *vectorindex.Key) (bool, error) {
	if fits, err := n.admitsSubject(k.Subject.ID); err != nil || !fits {
		return false, err
	}
	return n.isShown(k, n.filter.AssertionFilter.admitsAssertion)
}

// isShown reports whether the snapshot shows the assertion that a vector belongs to, and it meets
// a condition. A made vector belongs to all assertions of its text.
func (n *nearSearch) isShown(k *vectorindex.Key, admits func(a *kg.Assertion) bool) (bool, error) {
	row := rowOf(k.Subject.ID, k.Ref)
	for shown, err := range n.snapshot.MatchAsserted(kg.IDPattern(row), nil) {
		if err != nil {
			return false, err
		}
		list, err := n.snapshot.Assertions(shown)
		if err != nil {
			return false, err
		}
		if k.Owner&1 == madeVector {
			return slices.ContainsFunc(list, func(a kg.Assertion) bool { return admits(&a) }), nil
		}
		q, err := n.snapshot.Quad(kg.Row{IDQuad: row})
		if err != nil {
			return false, err
		}
		for i := range list {
			if a := &list[i]; a.Embedding != nil && ownerOf(&q, a.Source) == k.Owner {
				return admits(a), nil
			}
		}
	}
	return false, nil
}

// checkModel returns an error if the caller sees no vector that could be a hit without a filter.
func (n *nearSearch) checkModel(near *Near) error {
	list, err := n.vectors.Models(vectorindex.Rights{
		Readable: n.request.Readable,
		Shown: func(k *vectorindex.Key) (bool, error) {
			return n.isShown(k, func(*kg.Assertion) bool { return true })
		},
	})
	if err = cmp.Or(err, n.failed); err != nil {
		return err
	}
	want := vectorindex.Model{Name: near.Model, Dimension: len(near.Vector)}
	if slices.Contains(list, want) {
		return nil
	}
	if i := slices.IndexFunc(list, func(m vectorindex.Model) bool { return m.Name == near.Model }); i >= 0 {
		return kg.Errorf(kg.CodeInvalid, "the vectors of model %s have %d numbers, and not %d", near.Model, list[i].Dimension, len(near.Vector)).At("vector").At("near")
	}
	e := kg.Errorf(kg.CodeInvalid, "no vector that you may read is of model %s", near.Model).At("model").At("near")
	var names []string
	for _, m := range list[:min(len(list), maxNamedModels)] {
		names = append(names, fmt.Sprintf("%s (%d numbers)", m.Name, m.Dimension))
	}
	e.Hint = "Embeddings are given with patches and messages."
	if names != nil {
		e.Hint = "Models: " + strings.Join(names, ", ") + "."
	}
	return e
}

// fused is a hit of a list of words, or of vectors, or both.
type fused struct {
	textindex.Place
	text   *textindex.Hit
	vector *vectorindex.Hit
}

// fuseHits orders the hits of two lists by reciprocal rank fusion.
func fuseHits(texts []textindex.Hit, vectors []vectorindex.Hit) []fused {
	at := map[textindex.Subject]int{}
	var out []fused
	add := func(subject textindex.Subject, rank int) *fused {
		i, ok := at[subject]
		if !ok {
			i = len(out)
			at[subject] = i
			out = append(out, fused{Place: textindex.Place{Subject: subject}})
		}
		out[i].Score += 1 / float64(RankConstant+rank+1)
		return &out[i]
	}
	for i := range texts {
		add(texts[i].Subject, i).text = &texts[i]
	}
	for i := range vectors {
		add(vectors[i].Subject, i).vector = &vectors[i]
	}
	slices.SortFunc(out, func(a, b fused) int {
		if a.ComesBefore(b.Place) {
			return -1
		}
		return 1
	})
	return out
}
