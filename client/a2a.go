package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"
)

// A2A is the official client of A2A for the same agent, in the same name: for
// messages and tasks. Whoever asks for it ends it with Destroy.
//
// What only reads is sent again while there is no answer, as Retry says. So is
// SendMessage to koine and to agents behind its hub, which take the same message once.
// Its streams are not connected again.
func (c *Client) A2A(ctx context.Context) (*a2aclient.Client, error) {
	if err := c.requireCapability(BaseA2A); err != nil {
		return nil, err
	}
	again := *c.http
	again.Transport = &retryTransport{next: c.http.Transport, retry: c.retry, messages: c.deduplicates}
	endpoints := []*a2a.AgentInterface{a2a.NewAgentInterface(c.rpc, a2a.TransportProtocolJSONRPC)}
	return a2aclient.NewFromEndpoints(ctx, endpoints, a2aclient.WithJSONRPCTransport(&again))
}

// readMethods are the methods of A2A that change nothing.
var readMethods = []string{"GetTask", "ListTasks", "GetTaskPushNotificationConfig", "ListTaskPushNotificationConfigs", "GetExtendedAgentCard"}

// retryTransport sends calls that may be made again until an answer is there.
type retryTransport struct {
	next     http.RoundTripper
	retry    Retry
	messages bool // the agent takes the same message once
}

// RoundTrip gives what the last attempt gave.
func (s *retryTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if !s.isRepeatable(r) {
		return s.next.RoundTrip(r)
	}
	if r.Body != nil {
		defer r.Body.Close() // each attempt has one of its own
	}
	var response *http.Response
	err := s.retry.runAttempts(r.Context(), func() (err error) {
		response, err = s.roundTripOnce(r)
		return err
	})
	if response != nil { // also one that is a refusal
		return response, nil
	}
	return nil, err
}

// isRepeatable tells whether the call does no more if it is made twice.
func (s *retryTransport) isRepeatable(r *http.Request) bool {
	if r.GetBody == nil {
		return false
	}
	body, err := r.GetBody()
	if err != nil {
		return false
	}
	defer body.Close()
	var call struct {
		Method string
		Params struct{ Message struct{ MessageID string } }
	}
	if json.NewDecoder(body).Decode(&call) != nil {
		return false
	}
	return slices.Contains(readMethods, call.Method) || s.messages && call.Method == "SendMessage" && call.Params.Message.MessageID != ""
}

// roundTripOnce sends the request and reads the whole answer. A refusal is an answer and an error.
func (s *retryTransport) roundTripOnce(r *http.Request) (*http.Response, error) {
	body, err := r.GetBody()
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Body = body
	response, err := s.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, MaxResponseBytes))
	if err != nil {
		return nil, fmt.Errorf("client: the answer broke off: %w", err)
	}
	response.Body = io.NopCloser(bytes.NewReader(text))
	if response.StatusCode/100 == 2 {
		return response, nil
	}
	return response, responseError(response, text)
}
