package a2a

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"koine/internal/caller"
	"koine/internal/sse"
)

// HTTPPath is the path of base A2A over HTTP+JSON below the endpoint of an agent: 1.0
// directly under it, 0.3 under its /v1.
const HTTPPath = "/http"

// httpRow is a row of the table of HTTP+JSON (A2A 1.0, section 11.3; A2A 0.3, section
// 3.5.3): an operation of the core under a method and a path.
type httpRow struct {
	verb, path string
	operation  string            // by its name in 1.0
	query      map[string]string // members of the params that the query has, with their kinds
}

// The rows of both versions. A path with a suffix precedes the path without. Both verbs of
// a subscription are in use: the specifications have POST and their protocol buffers GET.
var httpRows = []httpRow{
	{http.MethodPost, "message:send", "SendMessage", nil},
	{http.MethodPost, "message:stream", "SendStreamingMessage", nil},
	{http.MethodPost, "tasks/{id}:cancel", "CancelTask", nil},
	{http.MethodPost, "tasks/{id}:subscribe", "SubscribeToTask", nil},
	{http.MethodGet, "tasks/{id}:subscribe", "SubscribeToTask", nil},
	{http.MethodGet, "tasks/{id}", "GetTask", map[string]string{"historyLength": "number"}},
	{http.MethodPost, "tasks/{taskId}/pushNotificationConfigs", "CreateTaskPushNotificationConfig", nil},
	{http.MethodGet, "tasks/{taskId}/pushNotificationConfigs", "ListTaskPushNotificationConfigs", nil},
	{http.MethodGet, "tasks/{taskId}/pushNotificationConfigs/{id}", "GetTaskPushNotificationConfig", nil},
	{http.MethodDelete, "tasks/{taskId}/pushNotificationConfigs/{id}", "DeleteTaskPushNotificationConfig", nil},
}

// The rows of 1.0 only, and of 0.3.
var (
	httpRows1 = append([]httpRow{
		{http.MethodGet, "extendedAgentCard", "GetExtendedAgentCard", nil},
		{http.MethodGet, "tasks", "ListTasks", map[string]string{
			"contextId": "text", "status": "text", "pageSize": "number", "pageToken": "text", "historyLength": "number", "statusTimestampAfter": "text",
			"lastUpdatedAfter": "text", // the Go client's name
			"includeArtifacts": "flag",
		}},
	}, httpRows...)
	httpRows03 = append([]httpRow{{http.MethodGet, "card", "GetExtendedAgentCard", nil}}, httpRows...)
)

// match returns the values of the path's variables.
func (row *httpRow) match(segments []string) (values map[string]string, ok bool) {
	want := strings.Split(row.path, "/")
	if len(want) != len(segments) {
		return nil, false
	}
	values = map[string]string{}
	for i, w := range want {
		name, suffix, variable := strings.Cut(strings.TrimPrefix(w, "{"), "}")
		if !variable {
			if w != segments[i] {
				return nil, false
			}
			continue
		}
		value, has := strings.CutSuffix(segments[i], suffix)
		if !has || value == "" {
			return nil, false
		}
		values[name] = value
	}
	return values, true
}

// HTTP returns base A2A over HTTP+JSON for the handler's agent, at the path base.
func (h *Handler) HTTP(base string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// A stream is served from this frame, as in ServeHTTP.
		if s := h.serveHTTPCall(w, r, base); s != nil {
			h.serveHTTPStream(w, s)
		}
	})
}

// httpCall is a request over HTTP+JSON.
type httpCall struct {
	version version
	method  method
	request *http.Request
	call    request // as over JSON-RPC, without an id
	began   time.Time
	leave   func()
}

// serveHTTPCall serves all requests but one for a stream, which it returns.
func (h *Handler) serveHTTPCall(w http.ResponseWriter, r *http.Request, base string) (stream *httpCall) {
	h.setActiveExtensions(w, r)
	c := &httpCall{version: version1, request: r, call: request{method: unknownMethod}, began: time.Now(), leave: func() {}}
	if e := h.readHTTPCall(w, c, base); e != nil {
		h.observeCall(r.Context(), c.call.method, c.began, e)
		h.writeHTTPError(w, r, c.version, e)
		return nil
	}
	if c.method.stream != nil {
		return c
	}
	result, e := h.callHTTP(c)
	h.observeCall(r.Context(), c.call.method, c.began, e)
	var body []byte
	if e == nil {
		var err error
		if body, err = appendJSON(nil, result); err != nil {
			e = internalError(r.Context(), err, true)
			h.log.ErrorContext(r.Context(), "answer not encoded", "request", caller.From(r.Context()).RequestID, "error", err)
		}
	}
	if e != nil {
		h.writeHTTPError(w, r, c.version, e)
		return nil
	}
	writeHTTPBody(w, r, c.version, http.StatusOK, body)
	return nil
}

// readHTTPCall reads the request: the operation of its path, and its params from the body, the
// path and the query.
func (h *Handler) readHTTPCall(w http.ResponseWriter, c *httpCall, base string) *Error {
	path := strings.TrimPrefix(c.request.URL.EscapedPath(), base)
	rows := httpRows1
	if below, ok := strings.CutPrefix(path, "/v1/"); ok {
		path, rows, c.version = below, httpRows03, version03HTTP
	}
	row, values, e := findHTTPRow(w, rows, c.request.Method, strings.TrimPrefix(path, "/"))
	if e != nil {
		return e
	}
	for _, o := range h.coreOperations() {
		if o.name == row.operation {
			c.method, c.call.method = o.methodOf(c.version), o.name
			if c.version.name == version03.name {
				c.call.method = o.name03
			}
			break
		}
	}
	c.call.params, e = h.httpParams(w, c.request, row, values)
	return e
}

// findHTTPRow returns the row of a path, with the values of its variables.
func findHTTPRow(w http.ResponseWriter, rows []httpRow, verb, path string) (*httpRow, map[string]string, *Error) {
	segments := strings.Split(path, "/")
	for i, s := range segments {
		if plain, err := url.PathUnescape(s); err == nil {
			segments[i] = plain
		}
	}
	found, verbs := "", []string{}
	for i := range rows {
		row := &rows[i]
		if found != "" && row.path != found {
			continue
		}
		values, ok := row.match(segments)
		switch {
		case !ok:
			continue
		case row.verb == verb:
			return row, values, nil
		}
		found = row.path
		verbs = append(verbs, row.verb)
	}
	if found != "" {
		w.Header().Set("Allow", strings.Join(verbs, ", "))
		return nil, nil, newError(codeMethodNotFound, "the path does not support "+clipText(verb)+": use "+strings.Join(verbs, " or "), details{Reason: reasonMethodNotFound}).withStatus(http.StatusMethodNotAllowed)
	}
	d := details{Reason: reasonMethodNotFound, Hint: "A2A 1.0 over HTTP+JSON is directly under this address, 0.3 under /v1."}
	for i := range rows {
		d.Supported = append(d.Supported, rows[i].verb+" /"+rows[i].path)
	}
	slices.Sort(d.Supported)
	return nil, nil, newError(codeMethodNotFound, "the path does not exist", d).withStatus(http.StatusNotFound)
}

// httpParams returns the params of a row. What the path says replaces what the body says.
func (h *Handler) httpParams(w http.ResponseWriter, r *http.Request, row *httpRow, values map[string]string) ([]byte, *Error) {
	var body []byte
	if has := r.ContentLength != 0 && row.verb == http.MethodPost; has || strings.HasPrefix(row.path, "message:") {
		var e *Error
		if body, e = readBody(w, r, h.options.MaxBodyBytes); e != nil {
			return nil, e
		}
		if len(bytes.TrimSpace(body)) > 0 || len(values) == 0 {
			if err := scanBody(body, h.options.MaxDepth); err != nil {
				return nil, unusableBody(err)
			}
		}
	}
	query := queryMembers(r.URL.Query(), row.query)
	if len(values) == 0 && len(query) == 0 {
		return body, nil
	}
	members := map[string]json.RawMessage{}
	if body = bytes.TrimSpace(body); len(body) > 0 {
		if body[0] != '{' {
			return body, nil // the operation refuses it
		}
		for _, m := range splitObject(body) {
			members[camelMember(m.name)] = m.value
		}
	}
	maps.Copy(members, query)
	for name, value := range values {
		members[name] = quoteMember(value)
	}
	out, err := appendJSON(nil, members)
	if err != nil {
		return nil, parseError(err)
	}
	return out, nil
}

// camelMember returns the name that a variable of a path replaces.
func camelMember(name string) string {
	if name == "task_id" {
		return "taskId"
	}
	return name
}

func quoteMember(text string) json.RawMessage {
	out, _ := appendJSON(nil, text) // text always encodes
	return out
}

// queryMembers returns the members that the query has. Other parameters are ignored, as
// unknown members of a body are; a number or flag that is none stays a text, which the
// operation refuses.
func queryMembers(query url.Values, kinds map[string]string) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	for name, kind := range kinds {
		if !query.Has(name) {
			continue
		}
		text := query.Get(name)
		value := quoteMember(text)
		if n, err := strconv.Atoi(text); kind == "number" && err == nil {
			value = strconv.AppendInt(nil, int64(n), 10) // 007 and +7 are no JSON
		} else if kind == "flag" && (text == "true" || text == "false") {
			value = json.RawMessage(text)
		}
		if name == "lastUpdatedAfter" {
			name = "statusTimestampAfter"
		}
		out[name] = value
	}
	return out
}

// callOf returns the call for a method.
func (c *httpCall) callOf() *call {
	out := callOf(c.request, &c.call)
	out.byPath = true
	return out
}

// callHTTP executes a unary operation.
func (h *Handler) callHTTP(c *httpCall) (any, *Error) {
	r, leave, err := h.narrowRequest(c.request, &c.call)
	defer leave()
	var result any
	if c.request = r; err == nil {
		ctx, end := h.options.Span(r.Context(), c.call.method)
		result, err = callRecovered(func() (any, error) { return c.method.unary(ctx, c.callOf()) })
		end(err)
	}
	if err != nil {
		return nil, h.errorOf(r.Context(), c.method.family, true, err)
	}
	return result, nil
}

// serveHTTPStream serves a stream, or answers with the error for which there is none. The
// stream may be open when it returns; until then its frame stays on the stack (see
// serveStream).
func (h *Handler) serveHTTPStream(w http.ResponseWriter, c *httpCall) {
	o, err := h.openHTTPStream(c)
	if err == nil {
		err = h.serveStream(w, c.request, o, h.recordEnd(c.call.method, c.began, c.leave))
	}
	if err == nil {
		return
	}
	defer c.leave()
	ctx := c.request.Context()
	failed := h.errorOf(ctx, c.method.family, true, err)
	h.observeCall(ctx, c.call.method, c.began, failed)
	h.writeHTTPError(w, c.request, c.version, failed)
}

func (h *Handler) openHTTPStream(c *httpCall) (o *opening, err error) {
	if c.request, c.leave, err = h.narrowRequest(c.request, &c.call); err != nil {
		return nil, err
	}
	ctx := c.request.Context()
	if o, err = callRecovered(func() (*opening, error) { return c.method.stream(ctx, c.callOf()) }); err != nil {
		return nil, err
	}
	c.call.params = nil // the stream does not hold the body
	v := c.version
	o.of, o.transport, o.method = c.method.family, "http+json", c.call.method
	o.write = &framing{
		result: appendJSON,
		last: func(e *Error) (sse.Event, error) {
			data, err := appendHTTPError(v, e)
			return sse.Event{Name: "error", Data: data}, err
		},
	}
	return o, nil
}

// writeHTTPError answers with an error under its status.
func (h *Handler) writeHTTPError(w http.ResponseWriter, r *http.Request, v version, e *Error) {
	e = e.asListed()
	status := httpStatusOf(e)
	body, err := appendHTTPError(v, e)
	if err != nil {
		h.log.ErrorContext(r.Context(), "answer not encoded", "request", caller.From(r.Context()).RequestID, "error", err)
		body = fmt.Appendf(nil, `{"error":{"code":%d,"status":"INTERNAL","message":"Internal error","details":[]}}`, status)
	}
	setRetryAfter(w.Header(), e.retryAfter)
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="koine", error="invalid_token"`)
	}
	writeHTTPBody(w, r, v, status, body)
}

// httpMediaType is the media type of 1.0 (A2A 1.0, section 11.1).
const httpMediaType = "application/a2a+json"

// writeHTTPBody writes an answer. A client that does not accept the media type of 1.0 gets
// application/json: the Go client reads no error of another type.
func writeHTTPBody(w http.ResponseWriter, r *http.Request, v version, status int, body []byte) {
	mediaType := "application/json"
	if v.name == version1.name {
		w.Header().Add("Vary", "Accept")
		if strings.Contains(strings.Join(r.Header.Values("Accept"), ","), httpMediaType) {
			mediaType = httpMediaType
		}
	}
	writeBody(w, mediaType, status, body)
}
