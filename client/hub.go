package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strings"

	"koine/internal/backoff"
	"koine/internal/sse"
)

// Letter is what an agent behind the hub is asked.
type Letter struct {
	From string `json:"from"` // who asks
	Task struct {
		ID        string `json:"id"`
		ContextID string `json:"contextId"`
		Status    struct {
			State string `json:"state"`
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
	State     string           `json:"state,omitempty"` // TASK_STATE_WORKING, TASK_STATE_COMPLETED, TASK_STATE_FAILED, …
	Message   *ReportMessage   `json:"message,omitempty"`
	Artifacts []ReportArtifact `json:"artifacts,omitempty"`
}

// ReportMessage is what is said with a state.
type ReportMessage struct {
	Parts []any `json:"parts"` // of A2A 1.0: {"text": …}, {"data": …}
}

// ReportArtifact is what came of the task.
type ReportArtifact struct {
	ID     string `json:"artifactId"`
	Name   string `json:"name,omitempty"`
	Parts  []any  `json:"parts"`
	Append bool   `json:"append,omitempty"` // puts the parts behind those that are there
	Last   bool   `json:"lastChunk,omitempty"`
}

// OpenAgent opens an agent behind the hub, whose card is its own, with the same
// options.
func OpenAgent(ctx context.Context, hub, id string, o Options) (*Client, error) {
	return Open(ctx, strings.TrimRight(hub, "/")+"/agents/"+url.PathEscape(id), o)
}

// RegisterAgent puts an agent on the hub, so that it can be asked, or says anew what it
// is. The card is a JSON object with name, description, version, capabilities, skills
// and whatever else (docs/protocol.md, section 10).
func (c *Client) RegisterAgent(ctx context.Context, id string, card any) error {
	return c.hub(ctx, http.MethodPut, "/agents/"+url.PathEscape(id), card)
}

// DeregisterAgent takes an agent off the hub.
func (c *Client) DeregisterAgent(ctx context.Context, id string) error {
	return c.hub(ctx, http.MethodDelete, "/agents/"+url.PathEscape(id), nil)
}

// Report says what became of a task in the agent's mailbox.
func (c *Client) Report(ctx context.Context, id, task string, r Report) error {
	return c.hub(ctx, http.MethodPost, "/agents/"+url.PathEscape(id)+"/mailbox/"+url.PathEscape(task), r)
}

// Mailbox tells what the agent is asked, what waits first, until the caller stops, the
// context ends, or there is an error, which is the last thing told. It connects again
// by itself. A letter is told again, on a new connection, while no state of its task was
// reported: who works on it for long reports TASK_STATE_WORKING first.
func (c *Client) Mailbox(ctx context.Context, id string) iter.Seq2[*Letter, error] {
	return func(yield func(*Letter, error) bool) {
		options := sse.ClientOptions{
			Request: sse.NewRequest(http.MethodGet, c.origin+"/agents/"+url.PathEscape(id)+"/mailbox", nil, nil),
			HTTP:    c.http, Refused: hubRefusal,
			MinWait: c.retry.MinWait, MaxWait: c.retry.MaxWait, MaxAttempts: c.retry.Attempts, Retrying: c.retry.Retrying,
		}
		for e, err := range sse.Subscribe(ctx, options) {
			if err != nil {
				yield(nil, plain(err))
				return
			}
			switch e.Name {
			case "letter":
				letter := &Letter{Raw: e.Data}
				if err := unmarshal(e.Data, letter); err != nil {
					yield(nil, err)
					return
				}
				if !yield(letter, nil) {
					return
				}
			case "error":
				if last := hubError(http.StatusOK, e.Data); !last.goesOn() {
					yield(nil, last)
					return
				}
			}
		}
	}
}

// goesOn tells which last words of a mailbox are no reason to stop.
func (e *Error) goesOn() bool {
	return e.Reason == resync || e.Reason == closed || e.Reason == serverShutdown || e.Reason == Timeout
}

func (c *Client) hub(ctx context.Context, method, path string, said any) error {
	body, err := json.Marshal(said)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, method, c.origin+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	response, err := c.http.Do(r)
	if err != nil {
		return fmt.Errorf("client: %w", err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, MaxAnswerBytes))
	if err != nil {
		return fmt.Errorf("client: the answer broke off: %w", err)
	}
	if response.StatusCode/100 != 2 {
		return hubRefusal(response, text)
	}
	return nil
}

func hubRefusal(response *http.Response, body []byte) error {
	e := hubError(response.StatusCode, body)
	if e.Message == "" {
		return refusal(response, body)
	}
	e.RetryAfter = backoff.Hint(response.Header)
	return e
}

// hubError is an error as the hub writes it.
func hubError(status int, body []byte) *Error {
	var answer struct {
		Error struct {
			Code    Reason
			Message string
			Details struct{ Field, Hint string }
		}
	}
	// Of what is written otherwise the caller makes what can be made.
	_ = json.Unmarshal(body, &answer)
	e := &Error{Reason: answer.Error.Code, Message: answer.Error.Message, Field: answer.Error.Details.Field, Hint: answer.Error.Details.Hint, Data: body}
	if status != http.StatusOK {
		e.Status = status
	}
	return e
}
