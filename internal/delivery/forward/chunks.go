package forward

import (
	"bytes"
	"crypto/sha256"

	"github.com/google/uuid"

	"koine/internal/plainjson"
	"koine/internal/tasks"
	"koine/kg"
)

// contextAt returns the id of a task's context for upstreams that have given none: always
// the same, and another one for each creator, who must not see the contexts of others.
func contextAt(t *tasks.Task) string {
	sum := sha256.Sum256(plainjson.MustEncode([]any{"context", t.Creator, t.Handler, t.Context}))
	return uuid.NewHash(sha256.New(), uuid.NameSpaceURL, sum[:], 8).String()
}

// chunksOf returns the chunks to report for an answer. Those of a snapshot are the parts that
// the task does not have yet.
func (t *turn) chunksOf(a *Answer, ended bool) (out []tasks.Chunk, err error) {
	for i := range a.Chunks {
		c := a.Chunks[i]
		if a.Whole {
			c.Complete = ended
			have, err := t.service.tasks.Artifact(t.upstream.ctx, systemCaller, t.item.Task, c.ID)
			switch code := kg.CodeOf(err); {
			case code == kg.CodeTaskNotFound || code == kg.CodeLimitExceeded: // not there, or larger than any answer
			case err != nil:
				return nil, err
			case !trimToMissing(&c, have):
				continue
			}
		}
		out = append(out, split(c)...)
	}
	return out, nil
}

// trimToMissing reduces an artifact to the parts that the task does not have yet, and reports whether
// there are any.
func trimToMissing(c *tasks.Chunk, have *tasks.Artifact) bool {
	n := len(have.Parts)
	if have.Name != c.Name || have.Description != c.Description || n > len(c.Parts) || !bytes.Equal(plainjson.MustEncode(have.Parts), plainjson.MustEncode(c.Parts[:n])) {
		return true // it was replaced
	}
	c.Append, c.Parts = true, c.Parts[n:]
	return len(c.Parts) > 0
}

// split divides a chunk by the bounds of one.
func split(c tasks.Chunk) (out []tasks.Chunk) {
	for len(c.Parts) > 1 {
		n := fitting(c.Parts)
		if n == len(c.Parts) {
			break
		}
		head := c
		head.Parts, head.Complete = c.Parts[:n], false
		out = append(out, head)
		c.Parts, c.Append = c.Parts[n:], true
	}
	return append(out, c)
}

// fitting returns how many of the parts fit in one chunk, at least 1.
func fitting(parts []tasks.Part) int {
	size := 0
	for i := range parts {
		if size += tasks.SizeOf(parts[i : i+1]); i > 0 && (size > tasks.MaxMessageBytes || i == tasks.MaxParts) {
			return i
		}
	}
	return len(parts)
}
