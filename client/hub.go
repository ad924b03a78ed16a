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

// TaskState is the state of a task, as A2A 1.0 spells it.
type TaskState string

// The states that agents report. The last three end a task.
const (
	TaskWorking       TaskState = "TASK_STATE_WORKING"
	TaskInputRequired TaskState = "TASK_STATE_INPUT_REQUIRED" // the caller must send more input
	TaskCompleted     TaskState = "TASK_STATE_COMPLETED"
	TaskFailed        TaskState = "TASK_STATE_FAILED"
	TaskRejected      TaskState = "TASK_STATE_REJECTED"
)

// Letter is an entry of a mailbox: a message to an agent behind the hub, or the
// cancellation of a task.
type Letter struct {
	ID       string `json:"id"`       // stable across deliveries
	From     string `json:"from"`     // the agent that sent the message
	Version  int64  `json:"version"`  // of the task
	Canceled bool   `json:"canceled"` // the task was canceled; no work is requested
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
	// Raw is the letter as the server sent it, in the form of A2A 1.0.
	Raw json.RawMessage `json:"-"`
}

// Text returns the text parts of the message, one per line.
func (l *Letter) Text() string { return (&Message{Parts: l.Message.Parts}).Text() }

// Report describes the progress or the result of a task. Zero fields change nothing.
type Report struct {
	State     TaskState        `json:"state,omitempty"`
	Message   *ReportMessage   `json:"message,omitempty"`
	Artifacts []ReportArtifact `json:"artifacts,omitempty"`
	// Letters are the ids of the letters that the report handles. They are removed from
	// the mailbox. An empty list handles all delivered letters of the task.
	Letters []string `json:"letters,omitzero"`
	// Version is the expected version of the task. 0 matches any.
	Version int64 `json:"version,omitempty"`
	// Key is an idempotency key, with which another process can safely repeat the report.
	// If it is "", Client.Report generates one.
	Key string `json:"-"`
}

// ReportMessage is the message that accompanies a state.
type ReportMessage struct {
	Parts []any `json:"parts"` // made by TextPart and DataPart, or other parts of A2A 1.0
}

// ReportArtifact is an output of the task.
type ReportArtifact struct {
	ID     string `json:"artifactId"`
	Name   string `json:"name,omitempty"`
	Parts  []any  `json:"parts"`            // as in ReportMessage
	Append bool   `json:"append,omitempty"` // appends the parts to the artifact
	Offset *int   `json:"offset,omitempty"` // the expected number of chunks before an append
	Last   bool   `json:"lastChunk,omitempty"`
}

// OpenAgent opens the agent with the given id behind the hub of a server, like Open.
func OpenAgent(ctx context.Context, hub, id string, o Options) (*Client, error) {
	c, err := Open(ctx, strings.TrimRight(hub, "/")+"/agents/"+url.PathEscape(id), o)
	if err != nil {
		return nil, err
	}
	c.deduplicates = true
	return c, nil
}

// RegisterAgent registers an agent with the hub, so that others can reach it, or replaces
// its card. The card is a JSON object with name, description, version, capabilities,
// skills and other members (docs/reference/hub.md).
func (c *Client) RegisterAgent(ctx context.Context, id string, card any) error {
	return c.callHub(ctx, http.MethodPut, "/agents/"+url.PathEscape(id), card)
}

// DeregisterAgent removes an agent from the hub.
func (c *Client) DeregisterAgent(ctx context.Context, id string) error {
	return c.callHub(ctx, http.MethodDelete, "/agents/"+url.PathEscape(id), nil)
}

// Report reports on a task in the agent's mailbox. It retries with the same idempotency
// key, so that the report is applied once.
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

// Acknowledge removes a letter from the agent's mailbox without a report on its task.
func (c *Client) Acknowledge(ctx context.Context, id, letter string) error {
	return c.callHub(ctx, http.MethodDelete, "/agents/"+url.PathEscape(id)+"/mailbox/"+url.PathEscape(letter), nil)
}

// Mailbox returns the letters of an agent: first those that are waiting, then new ones as
// they arrive. It ends with an error, or when the caller stops or the context is done. It
// reconnects by itself. Each new connection delivers a letter again until a report names
// it or it is acknowledged, so report TaskWorking before long work. Mailbox fails with
// AGENT_NOT_FOUND if the agent is not registered, also if it deregisters meanwhile.
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

// decodeLetter returns the letter in an event of a mailbox, or the error that ends the
// stream. It ignores other events, which come from a newer server.
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

// hubURL returns the address of the server, also if the client opened an agent behind its
// hub.
func (c *Client) hubURL() string {
	if at := strings.LastIndex(c.base, "/agents/"); at >= 0 && !strings.Contains(c.base[at+len("/agents/"):], "/") {
		return c.base[:at]
	}
	return c.base
}

func (c *Client) callHub(ctx context.Context, method, path string, content any) error {
	body, err := json.Marshal(content)
	if err != nil {
		return err
	}
	send := func() error {
		_, err := c.exchangeJSON(ctx, method, c.hubURL()+path, body, nil)
		return err
	}
	if method == http.MethodPut || strings.Contains(path, "/mailbox/") { // repeating these has no further effect
		return c.retry.runAttempts(ctx, send)
	}
	return send()
}
