package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/uuid"

	"koine/internal/sse"
)

// TaskState is where a task stands, as A2A 1.0 writes it.
type TaskState string

// The states that agents report. The last three end a task.
const (
	TaskWorking       TaskState = "TASK_STATE_WORKING"
	TaskInputRequired TaskState = "TASK_STATE_INPUT_REQUIRED" // the asker is to say more
	TaskCompleted     TaskState = "TASK_STATE_COMPLETED"
	TaskFailed        TaskState = "TASK_STATE_FAILED"
	TaskRejected      TaskState = "TASK_STATE_REJECTED"
)

// Letter is what an agent behind the hub is asked.
type Letter struct {
	ID       string `json:"id"`       // the same whenever it is told
	From     string `json:"from"`     // who asks
	Version  int64  `json:"version"`  // of the task
	Canceled bool   `json:"canceled"` // the task was, and nothing is asked for
	Task     struct {
		ID        string `json:"id"`
		ContextID string `json:"contextId"`
		Status    struct {
			State TaskState `json:"state"`
		} `json:"status"`
	} `json:"task"`
	Message struct {
		ID    string            `json:"messageId"`
		Parts []json.RawMessage `json:"parts"`
	} `json:"message"`
	// Raw is the letter as A2A 1.0 has it.
	Raw json.RawMessage `json:"-"`
}

// Text is what stands in the message's parts that are texts, a line for each.
func (l *Letter) Text() string { return (&Message{Parts: l.Message.Parts}).Text() }

// Report says what became of a task. Zero fields say nothing.
type Report struct {
	State     TaskState        `json:"state,omitempty"`
	Message   *ReportMessage   `json:"message,omitempty"`
	Artifacts []ReportArtifact `json:"artifacts,omitempty"`
	// Letters are the ids of those that it is about: they leave the mailbox. A report that
	// names none is about all letters of the task that the agent was told of.
	Letters []string `json:"letters,omitzero"`
	// Version is what the task's is to be before; 0 is any.
	Version int64 `json:"version,omitempty"`
	// Key makes the report repeatable by another process: the same report with the same key
	// is made once. Client.Report makes one where none is said.
	Key string `json:"-"`
}

// ReportMessage is what is said with a state.
type ReportMessage struct {
	Parts []any `json:"parts"` // that TextPart and DataPart make, or others of A2A 1.0
}

// ReportArtifact is what came of the task.
type ReportArtifact struct {
	ID     string `json:"artifactId"`
	Name   string `json:"name,omitempty"`
	Parts  []any  `json:"parts"`            // as those of a message
	Append bool   `json:"append,omitempty"` // puts the parts behind those that are there
	Offset *int   `json:"offset,omitempty"` // how many chunks are to be there before one that is appended
	Last   bool   `json:"lastChunk,omitempty"`
}

// OpenAgent opens an agent behind the hub, whose card is its own, with the same
// options.
func OpenAgent(ctx context.Context, hub, id string, o Options) (*Client, error) {
	c, err := Open(ctx, strings.TrimRight(hub, "/")+"/agents/"+url.PathEscape(id), o)
	if err != nil {
		return nil, err
	}
	c.deduplicates = true
	return c, nil
}

// RegisterAgent puts an agent on the hub, so that it can be asked, or says anew what it
// is. The card is a JSON object with name, description, version, capabilities, skills
// and whatever else (docs/reference/hub.md).
func (c *Client) RegisterAgent(ctx context.Context, id string, card any) error {
	return c.callHub(ctx, http.MethodPut, "/agents/"+url.PathEscape(id), card)
}

// DeregisterAgent takes an agent off the hub.
func (c *Client) DeregisterAgent(ctx context.Context, id string) error {
	return c.callHub(ctx, http.MethodDelete, "/agents/"+url.PathEscape(id), nil)
}

// Report says what became of a task in the agent's mailbox. It is made once, however often
// it has to be sent.
func (c *Client) Report(ctx context.Context, id, task string, r Report) error {
	if r.Key == "" {
		r.Key = uuid.NewString()
	}
	body, err := json.Marshal(r)
	if err != nil {
		return err
	}
	header := http.Header{"Idempotency-Key": {r.Key}, "Prefer": {"return=minimal"}}
	return c.retry.runAttempts(ctx, func() error {
		_, err := c.exchangeJSON(ctx, http.MethodPost, c.hubURL()+"/agents/"+url.PathEscape(id)+"/mailbox/"+url.PathEscape(task), body, header)
		return err
	})
}

// Acknowledge takes a letter out of the agent's mailbox without saying anything of its task.
func (c *Client) Acknowledge(ctx context.Context, id, letter string) error {
	return c.callHub(ctx, http.MethodDelete, "/agents/"+url.PathEscape(id)+"/mailbox/"+url.PathEscape(letter), nil)
}

// Mailbox tells what the agent is asked, what waits first, until the caller stops, the
// context ends, or there is an error, which is the last thing told. It connects again
// by itself. A letter is told again, on a new connection, until a report names it or it is
// acknowledged: who works on it for long reports TaskWorking first. An agent that is not
// registered, or deregisters, has none: AGENT_NOT_FOUND.
func (c *Client) Mailbox(ctx context.Context, id string) iter.Seq2[*Letter, error] {
	return func(yield func(*Letter, error) bool) {
		connect := sse.NewRequest(http.MethodGet, c.hubURL()+"/agents/"+url.PathEscape(id)+"/mailbox", nil, nil)
		for e, err := range c.streamEvents(ctx, connect, decodeLetter, false, resync, closed, serverShutdown, Timeout) {
			if err != nil {
				yield(nil, err)
				return
			}
			if e.result == nil {
				continue
			}
			letter := &Letter{Raw: e.result}
			if err := decodeAnswer(e.result, letter); err != nil {
				yield(nil, err)
				return
			}
			if !yield(letter, nil) {
				return
			}
		}
	}
}

// decodeLetter is the letter in an event of a mailbox, or the last words. Other events are
// of a newer server.
func decodeLetter(e sse.Event) (json.RawMessage, error) {
	switch e.Name {
	case "letter":
		return e.Data, nil
	case "error":
		var last struct{ Error wireError }
		if err := decodeAnswer(e.Data, &last); err != nil {
			return nil, err
		}
		return nil, last.Error.toError()
	}
	return nil, nil
}

// hubURL is the address of the server, also where an agent behind it was opened.
func (c *Client) hubURL() string {
	if at := strings.LastIndex(c.base, "/agents/"); at >= 0 && !strings.Contains(c.base[at+len("/agents/"):], "/") {
		return c.base[:at]
	}
	return c.base
}

func (c *Client) callHub(ctx context.Context, method, path string, said any) error {
	body, err := json.Marshal(said)
	if err != nil {
		return err
	}
	send := func() error {
		_, err := c.exchangeJSON(ctx, method, c.hubURL()+path, body, nil)
		return err
	}
	if method == http.MethodPut || strings.Contains(path, "/mailbox/") { // what is there, or gone, already may be so again
		return c.retry.runAttempts(ctx, send)
	}
	return send()
}
