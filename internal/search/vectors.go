package search

import (
	"context"
	"encoding/binary"
	"hash/fnv"
	"path/filepath"

	"koine/internal/textindex"
	"koine/internal/vectorindex"
	"koine/kg"
)

// openVectors opens the index of vectors, whose directory is in that of the index of texts.
func openVectors(dir string) (x *vectorindex.Index, place string, unusable, err error) {
	return vectorindex.Open(filepath.Join(dir, "vectors"))
}

// olderPlace returns the older of the two places that the indexes were saved at, and none if
// one of them is not known: then both are built anew.
func olderPlace(store *kg.Store, a, b string) string {
	p, errA := store.ParsePosition(a)
	q, errB := store.ParsePosition(b)
	switch {
	case errA != nil || errB != nil:
		return ""
	case p.Compare(q) < 0:
		return a
	}
	return b
}

// ownerOf returns the Owner of the vector of an assertion. It depends on names alone.
func ownerOf(q *kg.Quad, source kg.AgentID) uint64 {
	h := fnv.New64a()
	for _, part := range []string{q.Predicate.String(), q.Object.String(), q.Graph.String(), string(source)} {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(part)))
		_, _ = h.Write(n[:])
		_, _ = h.Write([]byte(part))
	}
	return h.Sum64()
}

// vectorKey returns the key of the vector of an assertion.
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
