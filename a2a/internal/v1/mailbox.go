package v1

import (
	"encoding/json"
	"strconv"
	"strings"

	"koine/a2a/internal/base"
	"koine/internal/tasks"
	"koine/kg"
)

// letter is a letter in a mailbox of the hub, with objects of A2A.
type letter struct {
	ID       string   `json:"id"`
	From     string   `json:"from"`
	Version  int64    `json:"version"`
	Canceled bool     `json:"canceled,omitempty"`
	Task     *task    `json:"task"`
	Message  *message `json:"message"`
}

// Letter encodes a letter: its id, its sender, the present task with its version, and
// the message. The cancellation of a task is marked as such.
func Letter(l *tasks.Letter) any {
	return &letter{l.ID(), string(l.Task.Creator), l.Task.Version, l.Canceled(), form.Task(l.Task), form.Message(&l.Message, base.Of(l.Task))}
}

// ReadReport decodes the report of an agent: an object with a state, a message,
// artifacts, an error, metadata, the letters that it acknowledges and the expected
// version of the task, all optional. An artifact has append and lastChunk, as in an
// artifact update, and the offset of an appended chunk.
func ReadReport(raw []byte) (*tasks.Report, error) {
	var p struct {
		State     string   `json:"state"`
		Message   *message `json:"message"`
		Artifacts []struct {
			artifact
			Append bool `json:"append"`
			Offset *int `json:"offset"`
			Last   bool `json:"lastChunk"`
		} `json:"artifacts"`
		Letters  []string        `json:"letters"`
		Version  int64           `json:"version"`
		Error    *tasks.Failure  `json:"error"`
		Metadata json.RawMessage `json:"metadata"`
	}
	if trimmed := strings.TrimSpace(string(raw)); !strings.HasPrefix(trimmed, "{") {
		return nil, kg.Errorf(kg.CodeInvalid, "the report must be a JSON object")
	}
	if err := base.Decode(raw, &p); err != nil {
		return nil, err
	}
	out := &tasks.Report{Failure: p.Error, Metadata: base.NonNull(p.Metadata), Letters: p.Letters, Version: p.Version}
	if p.Version < 0 {
		return nil, kg.Errorf(kg.CodeInvalid, "version must be at least 1").At("version")
	}
	var err error
	if out.State, err = readState(p.State); err != nil {
		return nil, kg.AsError(err).At("state")
	}
	if m := p.Message; m != nil {
		if m.Role != "" && m.Role != form.Roles[tasks.Agent] {
			return nil, kg.Errorf(kg.CodeInvalid, "the role of a report must be %s", form.Roles[tasks.Agent]).At("message.role")
		}
		decoded, err := form.ReadMessage(m)
		if err != nil {
			return nil, err
		}
		out.Message = &decoded
	}
	for i := range p.Artifacts {
		a := &p.Artifacts[i]
		at := "artifacts[" + strconv.Itoa(i) + "]"
		if a.ID == "" {
			return nil, base.Required(at + ".artifactId")
		}
		parts, err := form.ReadParts(at+".parts", a.Parts)
		if err != nil {
			return nil, err
		}
		out.Artifacts = append(out.Artifacts, tasks.Chunk{Append: a.Append, Offset: a.Offset, Artifact: tasks.Artifact{
			ID: a.ID, Name: a.Name, Description: a.Description, Parts: parts, Metadata: base.NonNull(a.Metadata), Extensions: a.Extensions, Complete: a.Last,
		}})
	}
	if out.State == "" && len(out.Artifacts) == 0 && out.Metadata == nil && len(out.Letters) == 0 {
		return nil, kg.Errorf(kg.CodeInvalid, "the report is empty: set state, artifacts, metadata or letters").At("state")
	}
	return out, nil
}
