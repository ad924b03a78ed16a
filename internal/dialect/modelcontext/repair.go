package modelcontext

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"koine/internal/suggest"
)

// containPanics turns a panic of a handler into an error of its request: the SDK runs handlers
// in goroutines of its own, where a panic ends the process.
func containPanics(log *slog.Logger) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, r mcp.Request) (result mcp.Result, err error) {
			defer func() {
				if p := recover(); p != nil {
					log.Error("panic", "method", method, "panic", p, "stack", string(debug.Stack()))
					result, err = nil, errors.New("internal error; the server's log has the cause")
				}
			}()
			return next(ctx, method, r)
		}
	}
}

// repairCalls returns the middleware that answers wrong calls with their repair.
func repairCalls(rows []row) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
			call, ok := r.(*mcp.CallToolRequest)
			if !ok {
				return next(ctx, method, r)
			}
			at := slices.IndexFunc(rows, func(o row) bool { return o.tool.Name == call.Params.Name })
			if at < 0 {
				return failedResult(unknownTool(call.Params.Name, rows)), nil
			}
			if err := checkArguments(call.Params.Arguments, &rows[at]); err != nil {
				return failedResult(err), nil
			}
			return next(ctx, method, r)
		}
	}
}

func failedResult(err error) *mcp.CallToolResult {
	var r mcp.CallToolResult
	r.SetError(err)
	return &r
}

func unknownTool(name string, rows []row) error {
	var names []string
	for _, r := range rows {
		names = append(names, r.tool.Name)
	}
	if near := suggest.Name(name, names); near != "" {
		return fmt.Errorf("there is no tool %q; did you mean %q?", name, near)
	}
	return fmt.Errorf("there is no tool %q; the tools are %s", name, strings.Join(names, ", "))
}

// checkArguments returns an error that names an argument that is unknown, is missing or has
// another type, with the known ones and an example.
func checkArguments(raw json.RawMessage, r *row) error {
	given := map[string]any{}
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &given); err != nil {
			return fmt.Errorf("the arguments are no object: %w. Example: %s", err, r.example)
		}
	}
	known := slices.Sorted(maps.Keys(r.input.Properties))
	for _, name := range slices.Sorted(maps.Keys(given)) {
		property := r.input.Properties[name]
		if property == nil {
			meant := "the arguments are: " + strings.Join(known, ", ")
			if near := suggest.Name(name, known); near != "" {
				meant = fmt.Sprintf("did you mean %q?", near)
			} else if len(known) == 0 {
				meant = "the tool has no arguments"
			}
			return fmt.Errorf("there is no argument %q; %s. Example: %s", name, meant, r.example)
		}
		resolved, err := property.Resolve(nil)
		if err != nil {
			return err
		}
		if err := resolved.Validate(given[name]); err != nil {
			text, _ := json.Marshal(given[name]) // decoded from JSON
			return fmt.Errorf("%s is %.100s; it must be %s. Example: %s", name, text, expectedForm(property), r.example)
		}
	}
	for _, name := range r.input.Required {
		if _, ok := given[name]; !ok {
			return fmt.Errorf("the argument %q is missing: %s. Example: %s", name, expectedForm(r.input.Properties[name]), r.example)
		}
	}
	return nil
}

// FormatHint returns a hint as text, with the nearest names unless it has them.
func FormatHint(message string, nearest []string) string {
	for _, name := range nearest {
		if !strings.Contains(message, name) {
			message += "; nearest: " + name
		}
	}
	return message
}

// withHints puts hints below a text, as comments.
func withHints(text string, hints []string) string {
	for _, h := range hints {
		text = strings.TrimSuffix(text, "\n") + "\n# " + h
	}
	return text
}

// expectedForm describes the values of a property.
func expectedForm(p *jsonschema.Schema) string {
	form := p.Type
	if form == "" {
		form = strings.Join(slices.DeleteFunc(slices.Clone(p.Types), func(name string) bool { return name == "null" }), " or ")
	}
	if p.Description != "" {
		form += " (" + p.Description + ")"
	}
	return form
}

// progressInterval is the time between two reports of a call's progress.
const progressInterval = time.Second

// reportProgress reports the seconds that a call has taken, if its client wants to know,
// until the function that it returns is called.
func reportProgress(ctx context.Context, r *mcp.CallToolRequest) (stop func()) {
	token := r.Params.GetProgressToken()
	if token == nil {
		return func() {}
	}
	ended, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(progressInterval)
		defer tick.Stop()
		for seconds := 1; ; seconds++ {
			select {
			case <-ended:
				return
			case <-ctx.Done():
				return
			case <-tick.C:
				p := &mcp.ProgressNotificationParams{ProgressToken: token, Progress: float64(seconds), Message: fmt.Sprintf("%s: %d s", r.Params.Name, seconds)}
				if r.Session.NotifyProgress(ctx, p) != nil {
					return
				}
			}
		}
	}()
	return func() { close(ended); <-done }
}
