package agentapi

import (
	"encoding/json"
	"fmt"
	"strings"

	"koine/internal/plainjson"
	"koine/internal/tasks"
)

// artifact is an Artifact; id and name are extensions of koine.
type artifact struct {
	ID       string          `json:"id,omitempty"`
	Type     string          `json:"type"`
	Content  json.RawMessage `json:"content"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
	Name     string          `json:"name,omitempty"`
}

// piece is an artifact submitted by a handler, or a chunk of one.
type piece struct {
	artifact
	Append bool  `json:"append"`    // append the content to the existing one
	Offset *int  `json:"offset"`    // expected number of chunks before it
	Last   *bool `json:"lastChunk"` // whether it is complete; default: not append
}

const typeMessage = "message" // of an artifact with a list of parts as content

// statusArtifactID returns the id of the artifact that shows the message of a status, one for each
// message of a task. Handlers cannot submit artifacts with such an id.
func statusArtifactID(task tasks.TaskID, messageID string) string {
	return string(task) + ".message:" + messageID
}

// isStatusArtifact reports whether the id is one that words returns.
func isStatusArtifact(task tasks.TaskID, id string) bool {
	return strings.HasPrefix(id, statusArtifactID(task, ""))
}

// writeStatusArtifact encodes the message of a handler as an artifact.
func writeStatusArtifact(task tasks.TaskID, m *tasks.Message) (out artifact, err error) {
	parts, err := writeParts(m.Parts)
	if err != nil {
		return out, err
	}
	out = artifact{ID: statusArtifactID(task, m.ID), Type: typeMessage, Metadata: m.Metadata}
	out.Content, err = plainjson.Encode(parts)
	return out, err
}

// toChunk decodes a submitted artifact or chunk. Without an id it gets one from its index.
func (a *piece) toChunk(n int) (tasks.Chunk, error) {
	c := tasks.Chunk{Artifact: tasks.Artifact{ID: a.ID, Name: a.Name, Complete: !a.Append}, Append: a.Append, Offset: a.Offset}
	if a.Last != nil {
		c.Complete = *a.Last
	}
	if c.ID == "" {
		c.ID = fmt.Sprintf("artifact-%d", n+1)
	}
	if len(a.Metadata) > 0 && string(a.Metadata) != "null" {
		c.Metadata = a.Metadata
	}
	if a.Type == typeMessage {
		var list []part
		if json.Unmarshal(a.Content, &list) == nil && len(list) > 0 {
			parts, err := readParts(list)
			if err == nil {
				c.Parts = parts
				return c, nil
			}
		}
	}
	p, err := (&part{Type: a.Type, Content: a.Content}).toPart()
	if p.Data != nil && p.Type == "" {
		p.Type = typeData // keep the explicit type
	}
	c.Parts = []tasks.Part{p}
	return c, err
}

// writeArtifact encodes an artifact. One that came through this protocol is returned
// unchanged; of others, a single part becomes the content, and several a message.
func writeArtifact(a *tasks.Artifact) (out artifact, err error) {
	out = artifact{ID: a.ID, Name: a.Name, Metadata: a.Metadata}
	if len(a.Parts) == 1 && (a.Parts[0].Text == nil || a.Parts[0].Type != "") {
		p, err := writePart(&a.Parts[0])
		if err != nil {
			return out, err
		}
		out.Type, out.Content = p.Type, p.Content
		if a.Parts[0].Data != nil && a.Parts[0].Type == "" {
			out.Type = "result"
		}
		return out, nil
	}
	parts, err := writeParts(a.Parts)
	if err != nil {
		return out, err
	}
	out.Type = typeMessage
	out.Content, err = plainjson.Encode(parts)
	return out, err
}
