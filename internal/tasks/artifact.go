package tasks

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"koine/internal/plainjson"
	"koine/internal/systemgraph"
	"koine/kg"
)

// Chunk is an artifact, or a piece of one, as its handler submits it.
type Chunk struct {
	Artifact
	// Append adds the parts to the existing artifact. Without it the parts, name,
	// description and metadata replace those of the artifact, which is created if it
	// does not exist.
	Append bool
	// Offset is the expected number of chunks before an appended one; nil for any.
	Offset *int
	// Replaced are the parts that a chunk without Append replaced, if known. It is set
	// in events only.
	Replaced []Part `json:"-"`
}

type storedChunk struct {
	Number int  `json:"number"` // in its artifact, from 1
	Append bool `json:"append,omitempty"`
	Last   bool `json:"last,omitempty"`
	// Version is the version of the task. It makes chunks with equal content distinct
	// statements.
	Version int64  `json:"version"`
	Parts   []Part `json:"parts"`
	// The description sent with the chunk, for streams of the task.
	Name        string          `json:"name,omitempty"`
	Description string          `json:"description,omitempty"`
	Metadata    json.RawMessage `json:"metadata,omitempty"`
	Extensions  []string        `json:"extensions,omitempty"`
}

// chunkOf decodes a stored chunk.
func chunkOf(artifact, object kg.Term) (*Chunk, error) {
	var c storedChunk
	if err := json.Unmarshal([]byte(object.Value()), &c); err != nil {
		return nil, err
	}
	return &Chunk{Append: c.Append, Artifact: Artifact{
		ID: keyOf(artifact), Name: c.Name, Description: c.Description, Parts: c.Parts, Metadata: c.Metadata, Extensions: c.Extensions, Complete: c.Last,
	}}, nil
}

func (c *Chunk) validate() error {
	if c.ID == "" {
		return kg.Errorf(kg.CodeInvalid, "the id of an artifact is required").At("artifactId")
	}
	if err := checkKey("artifactId", c.ID); err != nil {
		return err
	}
	for _, f := range []struct{ field, text string }{{"name", c.Name}, {"description", c.Description}} {
		if err := checkText(f.field, f.text, MaxTextBytes); err != nil {
			return err
		}
	}
	if c.Offset != nil && !c.Append {
		return kg.Errorf(kg.CodeInvalid, "offset requires append").At("offset")
	}
	if err := checkMetadata("metadata", c.Metadata); err != nil {
		return err
	}
	if err := checkExtensions(c.Extensions); err != nil {
		return err
	}
	return checkParts("parts", c.Parts)
}

// chunkCost is the size of a chunk as counted for Options.MaxArtifactBytes.
func chunkCost(parts []Part) int { return SizeOf(parts) + ChunkOverhead }

// addChunk adds a chunk to the task. The artifact may have at most limit bytes afterwards.
func (e *edit) addChunk(c *Chunk, limit int) error {
	subject := e.task.ID.ArtifactEntity(c.ID)
	// The size is stored beside the chunks, so that they are not read again for each
	// new one.
	size, err := readSize(e.tx.MatchOwn, e.graph, subject)
	if err != nil {
		return err
	}
	if c.Offset != nil && *c.Offset != size.chunks {
		return kg.Errorf(kg.CodeVersionConflict, "the artifact has %d chunks, not %d", size.chunks, *c.Offset).At("offset")
	}
	found, more := size.exists, c.Append && size.exists
	if !more {
		size = artifactSize{}
	}
	size.chunks++
	if size.bytes += chunkCost(c.Parts); size.bytes > limit {
		return errTooMuch("parts", "an artifact has at most %d bytes, with %d for each chunk", limit, ChunkOverhead)
	}
	stored := storedChunk{
		Number: size.chunks, Append: more, Last: c.Complete, Version: e.task.Version + 1, Parts: c.Parts,
		Name: c.Name, Description: c.Description, Metadata: c.Metadata, Extensions: c.Extensions,
	}
	r := systemgraph.Record{propChunks: {kg.Integer(int64(size.chunks))}, propBytes: {kg.Integer(int64(size.bytes))}}
	if !more {
		if err := e.writeArtifact(subject, c, !found, r); err != nil {
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
	if err := systemgraph.Write(e.tx, e.graph, subject, r); err != nil {
		return err
	}
	return e.applyStatement(kg.Add, subject, systemgraph.Property(propChunk), jsonText(raw))
}

type artifactSize struct {
	chunks, bytes int
	exists        bool
}

func readSize(match systemgraph.Matcher, graph, artifact kg.Term) (size artifactSize, err error) {
	count := func(property string, into *int) (found bool, err error) {
		st, found, err := systemgraph.First(match, kg.Pattern{Subject: artifact, Predicate: systemgraph.Property(property), Graph: graph})
		if found {
			*into, err = strconv.Atoi(st.Object.Value())
		}
		return found, err
	}
	if size.exists, err = count(propChunks, &size.chunks); err != nil || !size.exists {
		return size, err
	}
	if counted, err := count(propBytes, &size.bytes); err != nil || counted {
		return size, err
	}
	// Artifacts of older builds have no size: count their chunks once.
	for st, err := range match(kg.Pattern{Subject: artifact, Predicate: systemgraph.Property(propChunk), Graph: graph}) {
		if err != nil {
			return size, err
		}
		var c storedChunk
		if err := json.Unmarshal([]byte(st.Object.Value()), &c); err != nil {
			return size, err
		}
		size.bytes += chunkCost(c.Parts)
	}
	return size, nil
}

// writeArtifact replaces everything of an artifact but its content.
func (e *edit) writeArtifact(subject kg.Term, c *Chunk, new bool, r systemgraph.Record) error {
	if new {
		n, err := e.countArtifacts()
		if err != nil {
			return err
		}
		if n == MaxArtifacts {
			return errTooMuch("artifact", "a task has at most %d artifacts", MaxArtifacts)
		}
		r[systemgraph.Type], r[propTask], r[propKey] = systemgraph.Class(artifactClass), []kg.Term{e.task.ID.Entity()}, systemgraph.Values(c.ID)
		r[propNumber] = []kg.Term{kg.Integer(int64(n) + 1)}
	}
	r[propName], r[propText], r[propMetadata], r[propChunk] = systemgraph.Text(c.Name), systemgraph.Text(c.Description), systemgraph.JSON(c.Metadata), nil
	r[propExtensions] = nil
	if len(c.Extensions) > 0 {
		raw, err := plainjson.Encode(c.Extensions)
		if err != nil {
			return err
		}
		r[propExtensions] = systemgraph.JSON(raw)
	}
	return nil
}

func (e *edit) countArtifacts() (n int, err error) {
	parts, err := systemgraph.Subjects(e.tx.MatchOwn, kg.Pattern{Predicate: systemgraph.Property(propTask), Object: e.task.ID.Entity(), Graph: e.graph})
	for _, part := range parts {
		if strings.HasPrefix(part.Value(), artifactPrefix) {
			n++
		}
	}
	return n, err
}

// artifactOf assembles an artifact from its chunks.
func artifactOf(r systemgraph.Record, m *meter) (*Artifact, error) {
	a := &Artifact{
		ID: r.Text(propKey), Name: r.Text(propName), Description: r.Text(propText), Metadata: r.JSON(propMetadata),
		Complete: r[propComplete] != nil, number: r.Integer(propNumber),
	}
	if raw := r.JSON(propExtensions); raw != nil {
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
		if err := m.countParts(len(c.Parts)); err != nil {
			return nil, err
		}
		chunks = append(chunks, c)
	}
	a.Parts = partsOf(chunks)
	return a, nil
}

// partsOf lists the parts of an artifact. The chunks come in any order.
func partsOf(chunks []storedChunk) (parts []Part) {
	slices.SortFunc(chunks, func(a, b storedChunk) int { return cmp.Compare(a.Number, b.Number) })
	for _, c := range chunks {
		parts = append(parts, c.Parts...)
	}
	return parts
}
