package tasks

import (
	"encoding/json"
	"time"

	"koine/internal/caller"
	"koine/internal/plainjson"
	"koine/internal/systemgraph"
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
	// Partial reports that History and Artifacts were left out, because they are too large.
	Partial  bool
	Metadata json.RawMessage
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
	// Hops counts the servers that forwarded the message; 0 if it came from its author.
	Hops int `json:",omitempty"`
	Time time.Time
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

// State is the state of a task (A2A 1.0, section 4.1.3).
type State string

// The states.
const (
	Submitted     State = "SUBMITTED"      // not claimed yet
	Working       State = "WORKING"        // the handler works on it
	InputRequired State = "INPUT_REQUIRED" // the handler waits for a message
	AuthRequired  State = "AUTH_REQUIRED"  // the handler waits for a credential
	Completed     State = "COMPLETED"
	Failed        State = "FAILED"
	Canceled      State = "CANCELED"
	Rejected      State = "REJECTED" // the handler refused it
)

// Ended reports whether the state is final.
func (s State) Ended() bool {
	switch s {
	case Completed, Failed, Canceled, Rejected:
		return true
	}
	return false
}

// Unsuccessful reports whether the state is final without a result. Such a state may have a
// Failure.
func (s State) Unsuccessful() bool { return s == Failed || s == Rejected || s == Canceled }

// AwaitsCreator reports whether the handler waits for the creator.
func (s State) AwaitsCreator() bool { return s == InputRequired || s == AuthRequired }

// Known reports whether s is a defined state.
func (s State) Known() bool {
	return s == Submitted || s == Working || s.AwaitsCreator() || s.Ended()
}

// Failure is the reason for which a task failed, or was rejected or canceled.
type Failure struct {
	Code    string          `json:"code"` // chosen by the handler, in UPPER_SNAKE
	Message string          `json:"message"`
	Details json.RawMessage `json:"details,omitempty"` // nil if none
}

// The codes of failures that koine itself reports. Clients may not use them.
const (
	FailureExpired     = "EXPIRED"     // the task was not claimed in time
	FailureLeft        = "AGENT_LEFT"  // the handler deregistered
	FailureInterrupted = "INTERRUPTED" // the server stopped while the task was running
	FailureInternal    = "INTERNAL"    // the handler panicked or failed internally

	// Failures of an agent that koine forwards to.
	FailureUnreachable = "AGENT_UNREACHABLE" // it did not answer for too long
	FailureRefused     = "AGENT_REFUSED"     // it answered with an error
	FailureAnswer      = "AGENT_ANSWER"      // its answer is malformed or too large
	FailureLoop        = "FORWARD_LOOP"      // too many servers forwarded the message
)

// checkCode checks a failure that a caller reports. A nil failure is valid.
func (f *Failure) checkCode(by caller.Caller) error {
	if f == nil {
		return nil
	}
	if len(f.Code)+len(f.Message)+len(f.Details) > MaxFailureBytes {
		return errTooMuch("error", "at most %d bytes", MaxFailureBytes)
	}
	switch f.Code {
	case FailureExpired, FailureLeft, FailureInterrupted, FailureInternal, FailureUnreachable, FailureRefused, FailureAnswer, FailureLoop:
		if !by.Principal.Trusted() {
			return kg.Errorf(kg.CodeInvalid, "the code %s is reserved for koine", f.Code).At("error.code")
		}
	}
	return nil
}

// setFailure records the failure of the task.
func (e *edit) setFailure(why *Failure) error {
	raw, err := plainjson.Encode(why)
	if err != nil {
		return err
	}
	e.record[propFailure] = systemgraph.JSON(raw)
	return nil
}
