package modelcontext

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"koine/internal/caller"
	"koine/internal/operation"
)

// Path is the path of the protocol over HTTP.
const Path = "/mcp"

// MaxBodyBytes bounds a request.
const MaxBodyBytes = 1 << 20

// Executor executes GraphQL operations.
type Executor interface {
	Execute(context.Context, operation.Request) operation.Result
}

// NewHandler returns a handler of the protocol's streamable HTTP for the caller of each
// request (caller.From). It keeps no sessions: any server may answer any request, also after
// a restart.
func NewHandler(e Executor, o Options) http.Handler {
	// One server for all requests, since to make one costs several times a call. A session has
	// the values of its request's context, and without sessions each request has its own.
	s := NewServer(&executing{e}, o)
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{
		Stateless: true, JSONResponse: true, Logger: o.Logger, MaxRequestBodyBytes: MaxBodyBytes,
		DisableLocalhostProtection: true, // package httpd checks Host and Origin
	})
}

// executing runs operations for the caller in their context.
type executing struct{ executor Executor }

// GraphQL runs an operation and decodes its data.
func (x *executing) GraphQL(ctx context.Context, query string, variables map[string]any, into any) error {
	by := caller.From(ctx)
	request := operation.Request{Query: query, Principal: by.Principal, Actor: by.Actor, Method: "mcp"}
	if variables != nil {
		raw, err := json.Marshal(variables)
		if err != nil {
			return err
		}
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		if err := d.Decode(&request.Variables); err != nil {
			return err
		}
	}
	result := x.executor.Execute(ctx, request)
	if len(result.Errors) > 0 {
		e := result.Errors[0]
		text := e.Message
		if code, ok := e.Extensions["code"].(string); ok {
			text += " (" + code + ")"
		}
		if hint, ok := e.Extensions["hint"].(string); ok {
			text += ". " + hint
		}
		return errors.New(text)
	}
	if err := json.Unmarshal(result.Data, into); err != nil {
		return fmt.Errorf("answer is not readable: %w", err)
	}
	return nil
}
