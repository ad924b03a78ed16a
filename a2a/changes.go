package a2a

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"koine/internal/caller"
	"koine/internal/changefeed"
	"koine/internal/operation"
	"koine/internal/sse"
	"koine/kg"
)

// Changes serves the plain feed of changes, for EventSource and curl: GET /changes with
// the filter as query parameters. Its events are the results of knowledge/subscribe
// without the JSON-RPC envelope and without a selection; id lines are always sent.
// docs/reference/changes.md lists the parameters.
type Changes struct{ h *Handler }

// NewChangesHandler returns the handler of /changes. It needs no Querier in deps.
func NewChangesHandler(deps Deps, options Options) *Changes {
	return &Changes{NewHandler(deps, options)}
}

// ServeHTTP serves the feed, or answers with the error as JSON under the HTTP status
// that knowledge/subscribe uses for it.
func (c *Changes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		w.Header().Set("Allow", http.MethodGet)
		http.Error(w, "The feed is read with GET.", http.StatusMethodNotAllowed)
		return
	}
	began := time.Now()
	err := c.serveFeed(w, r, c.h.recordEnd("changes", began, func() {}))
	if err == nil {
		return
	}
	failed := c.h.errorOf(r.Context(), subscriptions, true, err)
	c.h.writeError(w, r, failed)
	c.h.observeCall(r.Context(), "changes", began, failed)
}

// serveFeed serves the feed. An error means that there is none.
func (c *Changes) serveFeed(w http.ResponseWriter, r *http.Request, ended func(code int)) error {
	q, err := c.readQuery(r)
	if err != nil {
		return err
	}
	o := &opening{of: subscriptions, transport: "changes", method: "changes", write: changesFraming, ids: true, establish: func(ctx context.Context) (*feed, error) {
		sub, err := changefeed.Start(ctx, c.h.store, changefeed.Statements{Filter: q.filter}, q.resume)
		if err != nil {
			return nil, err
		}
		return c.h.newChangeFeed(sub), nil
	}}
	return c.h.serveStream(w, r, o, ended)
}

var changesFraming = &framing{
	result: appendJSON,
	last: func(e *Error) (sse.Event, error) {
		data, err := appendJSON(nil, e)
		return sse.Event{Name: "end", Data: data}, err
	},
}

// writeError answers with an error outside of JSON-RPC.
func (h *Handler) writeError(w http.ResponseWriter, r *http.Request, e *Error) {
	body, err := appendJSON([]byte(`{"error":`), e)
	if err != nil {
		h.log.ErrorContext(r.Context(), "answer not encoded", "error", err)
	}
	setRetryAfter(w.Header(), e.retryAfter)
	writeJSON(w, e.status, append(body, '}'))
}

// changesQuery is a decoded request for the feed.
type changesQuery struct {
	filter kg.Filter
	resume operation.Resume
}

// readQuery reads the parameters. An unknown parameter is an error, because a misspelt
// filter must not match everything.
func (c *Changes) readQuery(r *http.Request) (q changesQuery, err error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return q, kg.Errorf(kg.CodeInvalid, "the query string is malformed")
	}
	f := new(failure)
	p := parameters{failure: f, values: values, reader: reader{failure: f, prefixes: c.h.prefixes}}
	q.filter.Replacements = true
	q.filter.View.Principal = caller.From(r.Context()).Principal
	q.filter.Patterns = []kg.Pattern{p.readPattern()}
	q.filter.Ops = p.readOps("op")
	q.filter.View.Graphs = p.readGraphs("graph")
	q.filter.View.AllGraphs = p.readFlag("allGraphs")
	q.filter.View.MinCertainty = p.readCertainty("requiredCertainty")
	resume, snapshot := p.takeOne("resume"), p.readFlag("snapshot")
	if since := p.takeOne("since"); resume == "" {
		resume = since
	}
	p.checkAllRead()
	if err := f.firstError(); err != nil {
		return q, err
	}
	q.resume, _, err = c.h.readResume(r.Header, "resume", resume, snapshot)
	return q, err
}
