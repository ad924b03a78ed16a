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

// A2A returns the official A2A client for the same agent and with the same
// credentials, for messages and tasks. The caller must call Destroy on it.
//
// Read-only methods are retried within the bounds of Retry. So is SendMessage to koine
// and to agents behind its hub, because these deduplicate messages by id. Streams do not
// reconnect.
func (c *Client) A2A(ctx context.Context) (*a2aclient.Client, error) {
	if err := c.requireCapability(BaseA2A); err != nil {
		return nil, err
	}
	httpClient := *c.http
	httpClient.Transport = &retryTransport{next: c.http.Transport, retry: c.retry, messages: c.deduplicates}
	endpoints := []*a2a.AgentInterface{a2a.NewAgentInterface(c.rpc, a2a.TransportProtocolJSONRPC)}
	return a2aclient.NewFromEndpoints(ctx, endpoints, a2aclient.WithJSONRPCTransport(&httpClient))
}

// readMethods lists the read-only methods of A2A.
var readMethods = []string{"GetTask", "ListTasks", "GetTaskPushNotificationConfig", "ListTaskPushNotificationConfigs", "GetExtendedAgentCard"}

// retryTransport retries the calls that are safe to repeat.
type retryTransport struct {
	next     http.RoundTripper
	retry    Retry
	messages bool // the agent deduplicates messages by id
}

// RoundTrip returns the response or the error of the last attempt.
func (s *retryTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if !s.isRepeatable(r) {
		return s.next.RoundTrip(r)
	}
	if r.Body != nil {
		defer r.Body.Close() // each attempt sends its own copy
	}
	var response *http.Response
	err := s.retry.runAttempts(r.Context(), func() (err error) {
		response, err = s.roundTripOnce(r)
		return err
	})
	if response != nil { // also with an error status
		return response, nil
	}
	return nil, err
}

// isRepeatable reports whether repeating the call has no further effect.
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

// roundTripOnce sends the request and reads the whole response. With an error status it returns
// both the response and an error.
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
		return nil, fmt.Errorf("client: reading the response: %w", err)
	}
	response.Body = io.NopCloser(bytes.NewReader(text))
	if response.StatusCode/100 == 2 {
		return response, nil
	}
	return response, responseError(response, text)
}
