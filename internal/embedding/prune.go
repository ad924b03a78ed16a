package embedding

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"koine/internal/vectorindex"
	"koine/kg"
)

// Prune removes the vectors of texts that are not in the store any more, also from the files. No
// Maker may use the directory. After a crash the vectors are as they were, or gone: then they are
// made again.
func Prune(ctx context.Context, store *kg.Store, dir string, textOf func(q *kg.Quad) (string, bool)) error {
	path := filepath.Join(dir, vectorsDirectory)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	made, place, unusable, err := vectorindex.Open(path)
	if err != nil {
		return err
	}
	defer made.Clear()
	if unusable != nil {
		return os.RemoveAll(path)
	}
	used, err := usedKeys(ctx, store, textOf)
	if err != nil {
		return err
	}
	made.RemoveIf(func(k *vectorindex.Key) bool { return !used[*k] })
	// The position is one of before. What is made is known by its key.
	var s state
	_ = json.Unmarshal([]byte(place), &s)
	s.Position = ""
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	next := path + ".new"
	if err := os.RemoveAll(next); err != nil {
		return err
	}
	if err := made.CopyTo(next, string(text)); err != nil {
		return err
	}
	if err := os.RemoveAll(path); err != nil {
		return err
	}
	return os.Rename(next, path)
}

// usedKeys returns the keys of all texts in a store.
func usedKeys(ctx context.Context, store *kg.Store, textOf func(q *kg.Quad) (string, bool)) (map[vectorindex.Key]bool, error) {
	snapshot, err := store.View(ctx, systemView)
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	used := map[vectorindex.Key]bool{}
	for row, err := range snapshot.MatchIDs(kg.IDPattern{}, nil) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, err
		}
		q, err := snapshot.Quad(row)
		if err != nil {
			return nil, err
		}
		if text, ok := textOf(&q); ok {
			used[keyOf(q.Graph, clipText(text))] = true
		}
	}
	return used, nil
}
