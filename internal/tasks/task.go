package tasks

import (
	"encoding/json"
	"time"

	"koine/kg"
)

// Task is a task as of Revision.
type Task struct {
	ID TaskID
	// Context groups related tasks and messages.
	Context string
	// Creator created the task, Handler does the work.
	Creator, Handler kg.AgentID
	Status           Status
	// Messages counts all messages; History has those that were requested, oldest
	// first. Neither includes the message of the status until the next status comes.
	Messages  int
	History   []Message
	Artifacts []Artifact // nil if not requested
	Metadata  json.RawMessage
	// Parent is the task that this one is a part of, User the user it is done for; ""
	// if not given.
	Parent TaskID
	User   string
	// Failure is the reason for which the task failed, was rejected or canceled, if
	// given.
	Failure *Failure
	Created time.Time
	Updated time.Time
	// Version counts the changes: it is 1 when the task is created.
	Version  int64
	Revision kg.Revision
}

// Graph returns the graph that stores the task.
func (t *Task) Graph() kg.Term { return graphOf(t.Creator, t.Handler) }

// Status is a state with its message.
type Status struct {
	State   State
	Message *Message // nil if nothing
	Time    time.Time
}

// Role is the role of the author of a message.
type Role string

// The roles.
const (
	User  Role = "USER"  // the creator
	Agent Role = "AGENT" // the handler
)

// Message is a message of a task.
type Message struct {
	// ID is chosen by the sender; it need not be unique.
	ID         string
	Role       Role
	Author     kg.AgentID
	Parts      []Part
	Metadata   json.RawMessage
	Extensions []string
	References []TaskID // other tasks that it refers to
	Time       time.Time
}

// Artifact is a result that the handler produced.
type Artifact struct {
	ID          string // unique within its task
	Name        string
	Description string
	Parts       []Part
	Metadata    json.RawMessage
	Extensions  []string
	// Complete reports that the handler marked the artifact as complete.
	Complete bool
	number   int64 // among those of its task
}

// Part is a piece of content: exactly one of Text, Raw, URL and Data is set.
type Part struct {
	Text *string         `json:"text,omitempty"`
	Raw  *string         `json:"raw,omitempty"` // bytes in base64, as they were sent
	URL  *string         `json:"url,omitempty"`
	Data json.RawMessage `json:"data,omitempty"` // any JSON, null included
	// Type is another protocol's name for the kind of part; "" if it has none.
	Type      string          `json:"type,omitempty"`
	MediaType string          `json:"mediaType,omitempty"`
	Filename  string          `json:"filename,omitempty"`
	Metadata  json.RawMessage `json:"metadata,omitempty"`
}

// TextPart returns a part with a text.
func TextPart(text string) Part { return Part{Text: &text} }

// DataPart returns a part with JSON.
func DataPart(data json.RawMessage) Part { return Part{Data: data} }
