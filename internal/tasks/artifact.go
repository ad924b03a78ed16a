package tasks

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"koine/internal/plainjson"
	"koine/internal/records"
	"koine/kg"
)

// Chunk is an artifact, or a piece of one, as its handler hands it over.
type Chunk struct {
	Artifact
	// Append puts the parts behind those that are there; otherwise they and all else
	// about the artifact are in place of what there was.
	Append bool
}

// storedChunk is a chunk as it is written down.
type storedChunk struct {
	Number int  `json:"number"` // in its artifact, from 1
	Append bool `json:"append,omitempty"`
	Last   bool `json:"last,omitempty"`
	// Version is that of the task: two that say the same differ in it.
	Version int64  `json:"version"`
	Parts   []Part `json:"parts"`
	// What came with it is for who follows the task.
	Name        string          `json:"name,omitempty"`
	Description string          `json:"description,omitempty"`
	Metadata    json.RawMessage `json:"metadata,omitempty"`
	Extensions  []string        `json:"extensions,omitempty"`
}

// chunkOf is a chunk as it came.
func chunkOf(artifact, object kg.Term) (*Chunk, error) {
	var c storedChunk
	if err := json.Unmarshal([]byte(object.Value()), &c); err != nil {
		return nil, err
	}
	return &Chunk{Append: c.Append, Artifact: Artifact{
		ID: keyOf(artifact), Name: c.Name, Description: c.Description, Parts: c.Parts, Metadata: c.Metadata, Extensions: c.Extensions, Complete: c.Last,
	}}, nil
}

func (c *Chunk) check() error {
	if c.ID == "" {
		return kg.Errorf(kg.CodeInvalid, "an artifact has an id").At("artifactId")
	}
	if err := checkKey("artifactId", c.ID); err != nil {
		return err
	}
	for _, f := range []struct{ field, text string }{{"name", c.Name}, {"description", c.Description}} {
		if err := checkText(f.field, f.text); err != nil {
			return err
		}
	}
	if err := checkMetadata("metadata", c.Metadata); err != nil {
		return err
	}
	if err := checkExtensions(c.Extensions); err != nil {
		return err
	}
	return checkParts("parts", c.Parts)
}

// hand puts a chunk into the task.
func (e *edit) hand(c *Chunk) error {
	subject := e.task.ID.ArtifactEntity(c.ID)
	// How many there are is counted beside them: what is there is not read for each
	// that comes.
	chunks, there, err := e.chunksOf(subject)
	if err != nil {
		return err
	}
	switch {
	case c.Append && !there:
		return kg.Errorf(kg.CodeInvalid, "there is no artifact %q to append to", c.ID).At("append")
	case !c.Append:
		chunks = 0
	case chunks == MaxChunks:
		return errTooMuch("parts", "an artifact has at most %d chunks", MaxChunks)
	}
	stored := storedChunk{
		Number: chunks + 1, Append: c.Append, Last: c.Complete, Version: e.task.Version + 1, Parts: c.Parts,
		Name: c.Name, Description: c.Description, Metadata: c.Metadata, Extensions: c.Extensions,
	}
	r := records.Record{propChunks: {kg.Integer(int64(stored.Number))}}
	if !c.Append {
		if err := e.describe(subject, c, !there, r); err != nil {
			return err
		}
	}
	raw, err := plainjson.Encode(stored)
	if err != nil {
		return err
	}
	r[propComplete] = nil
	if c.Complete {
		r[propComplete] = []kg.Term{kg.Boolean(true)}
	}
	write := records.Write
	if !there {
		write = func(tx *kg.Tx, graph, subject kg.Term, r records.Record) error {
			return records.WriteOver(tx, graph, subject, nil, r)
		}
	}
	if err := write(e.tx, e.graph, subject, r); err != nil {
		return err
	}
	return e.state(kg.Add, subject, records.Property(propChunk), jsonText(raw))
}

// chunksOf counts the chunks of an artifact.
func (e *edit) chunksOf(artifact kg.Term) (n int, there bool, err error) {
	for st, err := range e.tx.MatchOwn(kg.Pattern{Subject: artifact, Predicate: records.Property(propChunks), Graph: e.graph}) {
		if err != nil {
			return 0, false, err
		}
		n, err = strconv.Atoi(st.Object.Value())
		return n, true, err
	}
	return 0, false, nil
}

// describe says all of an artifact but its content, in place of what there was.
func (e *edit) describe(subject kg.Term, c *Chunk, new bool, r records.Record) error {
	if new {
		n, err := e.countArtifacts()
		if err != nil {
			return err
		}
		if n == MaxArtifacts {
			return errTooMuch("artifact", "a task has at most %d artifacts", MaxArtifacts)
		}
		class, of := records.Class(artifactClass)
		r[class], r[propTask], r[propKey] = of, []kg.Term{e.task.ID.Entity()}, records.Values(c.ID)
		r[propNumber] = []kg.Term{kg.Integer(int64(n) + 1)}
	}
	r[propName], r[propText], r[propMetadata], r[propChunk] = someText(c.Name), someText(c.Description), someJSON(c.Metadata), nil
	r[propExtensions] = nil
	if len(c.Extensions) > 0 {
		raw, err := plainjson.Encode(c.Extensions)
		if err != nil {
			return err
		}
		r[propExtensions] = []kg.Term{jsonText(raw)}
	}
	return nil
}

func (e *edit) countArtifacts() (n int, err error) {
	for st, err := range e.tx.MatchOwn(kg.Pattern{Predicate: records.Property(propTask), Object: e.task.ID.Entity(), Graph: e.graph}) {
		if err != nil {
			return 0, err
		}
		if strings.HasPrefix(st.Subject.Value(), artifactPrefix) {
			n++
		}
	}
	return n, nil
}

// artifactOf puts an artifact together from its chunks.
func artifactOf(r records.Record) (*Artifact, error) {
	a := &Artifact{
		ID: r.Text(propKey), Name: r.Text(propName), Description: r.Text(propText), Metadata: rawOf(r, propMetadata),
		Complete: r[propComplete] != nil, number: integer(r, propNumber),
	}
	if raw := rawOf(r, propExtensions); raw != nil {
		if err := json.Unmarshal(raw, &a.Extensions); err != nil {
			return nil, err
		}
	}
	var chunks []storedChunk
	for _, object := range r[propChunk] {
		var c storedChunk
		if err := json.Unmarshal([]byte(object.Value()), &c); err != nil {
			return nil, err
		}
		chunks = append(chunks, c)
	}
	slices.SortFunc(chunks, func(a, b storedChunk) int { return cmp.Compare(a.Number, b.Number) })
	for _, c := range chunks {
		a.Parts = append(a.Parts, c.Parts...)
	}
	return a, nil
}
