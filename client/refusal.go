package client

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"koine/internal/backoff"
)

const (
	// maxErrorBytes is the largest error response that is read.
	maxErrorBytes = 1 << 20
	// maxQuoted is the number of bytes of a response that an error quotes.
	maxQuoted = 500
)

// wireError is the JSON form of an error. The code is a number in JSON-RPC. Other HTTP
// responses have none, or the reason in its place.
type wireError struct {
	Code    json.RawMessage `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data"`
	Details json.RawMessage `json:"details"` // an alternative name of data
}

func (w *wireError) toError() *Error {
	e := &Error{Message: w.Message, Data: w.Data}
	if w.Data == nil {
		e.Data = w.Details
	}
	var data struct {
		Reason         Reason
		Field          string
		Detail         string
		Hint           string
		RetryAfterMs   int64
		Position       string
		OldestPosition string
		OldestSequence int64
		ProposalID     string
		Errors         []GraphQLError
	}
	// Data of another shape, such as the list of base A2A, has none of these members.
	if json.Unmarshal(e.Data, &data) == nil {
		e.Reason, e.Field, e.Detail, e.Hint = data.Reason, data.Field, data.Detail, data.Hint
		e.RetryAfter = time.Duration(data.RetryAfterMs) * time.Millisecond
		e.Position, e.OldestPosition, e.OldestSequence, e.ProposalID, e.Errors = data.Position, data.OldestPosition, data.OldestSequence, data.ProposalID, data.Errors
	}
	if json.Unmarshal(w.Code, &e.Code) != nil {
		// A code that is neither a number nor a string is ignored.
		_ = json.Unmarshal(w.Code, &e.Reason)
	}
	return e
}

// graphqlError returns the error of a response with GraphQL errors. errs must not be empty.
func graphqlError(errs []GraphQLError) *Error {
	first := &errs[0]
	e := &Error{Reason: first.Reason(), Message: first.Message, Field: first.extensionText("field"), Hint: first.extensionText("hint"), Errors: errs}
	if ms, ok := first.Extensions["retryAfterMs"].(float64); ok {
		e.RetryAfter = time.Duration(ms) * time.Millisecond
	}
	return e
}

// responseError returns the error of a response with a status other than 2xx.
func responseError(response *http.Response, body []byte) error {
	var answer struct {
		Error  *wireError     `json:"error"`
		Errors []GraphQLError `json:"errors"`
	}
	var e *Error
	switch err := json.Unmarshal(body, &answer); {
	case err == nil && answer.Error != nil && answer.Error.Message != "":
		e = answer.Error.toError()
	case err == nil && len(answer.Errors) > 0 && answer.Errors[0].Message != "":
		e = graphqlError(answer.Errors)
	default:
		e = &Error{Message: strings.TrimSuffix(fmt.Sprintf("the server answered %s: %s", response.Status, strings.TrimSpace(string(body[:min(len(body), maxQuoted)]))), ": ")}
		if to := response.Header.Get("Location"); to != "" && response.StatusCode/100 == 3 {
			e.Hint = "It has moved: use the address " + to + "."
		}
	}
	e.Status = response.StatusCode
	if e.RetryAfter == 0 {
		e.RetryAfter = backoff.Hint(response.Header)
	}
	return e
}
