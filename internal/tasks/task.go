package tasks

import (
	"encoding/json"
	"time"

	"koine/kg"
)

// Task is a piece of work as it stands at Revision.
type Task struct {
	ID TaskID
	// Context groups tasks and messages that belong together.
	Context string
	// Creator asked for it, Handler does it.
	Creator, Handler kg.AgentID
	Status           Status
	// Messages counts all that were said, History are those that were asked for, the
	// oldest first. The message of the status is in neither until the next status
	// comes.
	Messages  int
	History   []Message
	Artifacts []Artifact // nil where they were not asked for
	Metadata  json.RawMessage
	// Parent is the task that this one is a part of, User for whom it is done; "" if
	// not said.
	Parent TaskID
	User   string
	// Failure says why it failed, was rejected or canceled, where somebody said so.
	Failure *Failure
	Created time.Time
	Updated time.Time
	// Version counts the changes: 1 when the task is made.
	Version  int64
	Revision kg.Revision
}

// Graph is where it is kept.
func (t *Task) Graph() kg.Term { return graphOf(t.Creator, t.Handler) }

// Status is a state with what was said about it.
type Status struct {
	State   State
	Message *Message // nil if nothing
	Time    time.Time
}

// Role is who speaks in a message.
type Role string

// The roles.
const (
	User  Role = "USER"  // the creator
	Agent Role = "AGENT" // the handler
)

// Message is something that was said about a task.
type Message struct {
	// ID is of who sent it; it need not be unique.
	ID         string
	Role       Role
	Author     kg.AgentID
	Parts      []Part
	Metadata   json.RawMessage
	Extensions []string
	References []TaskID // other tasks that it speaks of
	Time       time.Time
}

// Artifact is something that the handler made.
type Artifact struct {
	ID          string // unique within its task
	Name        string
	Description string
	Parts       []Part
	Metadata    json.RawMessage
	Extensions  []string
	// Complete tells that its handler said so.
	Complete bool
	number   int64 // among those of its task
}

// Part is a piece of content: exactly one of Text, Raw, URL and Data is set.
type Part struct {
	Text *string         `json:"text,omitempty"`
	Raw  *string         `json:"raw,omitempty"` // bytes in base64, as they were sent
	URL  *string         `json:"url,omitempty"`
	Data json.RawMessage `json:"data,omitempty"` // any JSON, null included
	// Type is a name that another protocol has for the kind of part; "" if it has none.
	Type      string          `json:"type,omitempty"`
	MediaType string          `json:"mediaType,omitempty"`
	Filename  string          `json:"filename,omitempty"`
	Metadata  json.RawMessage `json:"metadata,omitempty"`
}

// TextPart is a part with a text.
func TextPart(text string) Part { return Part{Text: &text} }

// DataPart is a part with JSON.
func DataPart(data json.RawMessage) Part { return Part{Data: data} }
