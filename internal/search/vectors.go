package search

import (
	"context"
	"encoding/binary"
	"hash/fnv"
	"path/filepath"
	"strings"

	"koine/internal/query"
	"koine/internal/textindex"
	"koine/internal/vectorindex"
	"koine/kg"
)

// openVectors opens the index of vectors, in a directory in that of the index of texts.
func openVectors(dir string) (x *vectorindex.Index, place string, unusable, err error) {
	return vectorindex.Open(filepath.Join(dir, "vectors"))
}

// olderPlace returns the older of the places that the indexes of texts and of vectors were saved
// at, and none if one of them is not known, or the vectors were made by another embedder: then
// both are built anew.
func (s *Service) olderPlace(texts, vectors string) string {
	vectors, embedder, _ := strings.Cut(vectors, "\n")
	p, errP := s.store.ParsePosition(texts)
	q, errQ := s.store.ParsePosition(vectors)
	switch {
	case errP != nil || errQ != nil || embedder != s.identity():
		return ""
	case p.Compare(q) < 0:
		return texts
	}
	return vectors
}

// identity names the embedder in the place of the vectors.
func (s *Service) identity() string {
	if s.options.Embedder == nil {
		return ""
	}
	return s.options.Embedder.Identity()
}

// The lowest bit of an Owner tells the maker of the vector: the source of an assertion, or the
// embedder.
const (
	givenVector = 0
	madeVector  = 1
)

// ownerOf returns the Owner of the vector of an assertion, or of the embedder if source is "". It
// depends on names alone.
func ownerOf(q *kg.Quad, source kg.AgentID) uint64 {
	h := fnv.New64a()
	for _, part := range []string{q.Predicate.String(), q.Object.String(), q.Graph.String(), string(source)} {
		_, _ = h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		_, _ = h.Write([]byte(part))
	}
	if source == "" {
		return h.Sum64()<<1 | madeVector
	}
	return h.Sum64()<<1 | givenVector
}

// vectorKey returns the key of the vector of an assertion, or of the embedder.
func vectorKey(q *kg.Quad, ids kg.IDQuad, source kg.AgentID) vectorindex.Key {
	return vectorindex.Key{
		Subject: subjectOf(q.Subject, ids.Subject), Owner: ownerOf(q, source),
		Ref: textindex.Ref{Graph: ids.Graph, Predicate: ids.Predicate, Object: ids.Object},
	}
}

// addVectors adds the embeddings of the statements that match.
func (s *Service) addVectors(ctx context.Context, snapshot *kg.Snapshot, p kg.IDPattern) error {
	for e, err := range kg.Embeddings(snapshot, p, nil) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		q, err := snapshot.Quad(kg.Row{IDQuad: e.IDQuad})
		if err != nil {
			return err
		}
		s.putVector(&q, e.IDQuad, &e.Assertion)
	}
	return nil
}

// putVector adds the embedding of an assertion.
func (s *Service) putVector(q *kg.Quad, ids kg.IDQuad, a *kg.Assertion) {
	s.vectors.Put(vectorKey(q, ids, a.Source), a.Embedding.Model, a.Embedding.Vector)
}

// changeVectors adds or removes the embeddings of assertions of a statement.
func (s *Service) changeVectors(q *kg.Quad, ids kg.IDQuad, list []kg.Assertion, add bool) {
	for i := range list {
		switch a := &list[i]; {
		case a.Embedding == nil:
		case add:
			s.putVector(q, ids, a)
		default:
			s.vectors.Remove(vectorKey(q, ids, a.Source))
		}
	}
}

// putMade adds the vector that the embedder has made of a statement's text.
func (s *Service) putMade(q *kg.Quad, ids kg.IDQuad) {
	if s.options.Embedder == nil {
		return
	}
	if v := s.options.Embedder.Vector(q); v != nil {
		s.vectors.Put(vectorKey(q, ids, ""), s.options.Embedder.Model(), v)
	}
}

func (s *Service) removeMade(q *kg.Quad, ids kg.IDQuad) {
	if s.options.Embedder != nil {
		s.vectors.Remove(vectorKey(q, ids, ""))
	}
}

// AddMade adds the vectors that the embedder has made of statements that are still there.
func (s *Service) AddMade(ctx context.Context, list []kg.Quad) error {
	// A removal after this snapshot is indexed after this.
	s.changing.Lock()
	defer s.changing.Unlock()
	snapshot, err := s.store.View(ctx, systemView)
	if err != nil {
		return err
	}
	defer snapshot.Close()
	for i := range list {
		q := &list[i]
		ids, known, err := snapshot.PatternIDs(kg.Pattern{Subject: q.Subject, Predicate: q.Predicate, Object: q.Object, Graph: q.Graph})
		if err != nil {
			return err
		}
		if !known {
			continue
		}
		shown, err := query.Shows(snapshot, ids)
		if err != nil {
			return err
		}
		if shown {
			s.putMade(q, kg.IDQuad(ids))
		}
	}
	return nil
}
