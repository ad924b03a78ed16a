package transport

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/vektah/gqlparser/v2/gqlerror"

	"koine/internal/operation"
	"koine/kg"
)

// httpError is the answer to a request without a valid GraphQL operation.
type httpError struct {
	status  int
	code    kg.Code
	message string
	allow   string
	errs    gqlerror.List // instead of code and message
}

func (e *httpError) write(w http.ResponseWriter, form responseForm) {
	if e.allow != "" {
		w.Header().Set("Allow", e.allow)
	}
	if e.errs != nil {
		writeBody(w, form, e.status, append(appendErrors([]byte(`{"errors":`), e.errs), '}'))
		return
	}
	writeRefusal(w, form, e.status, string(e.code), e.message)
}

func mutationByGet() *httpError {
	return &httpError{status: http.StatusMethodNotAllowed, code: kg.CodePermissionDenied, allow: "POST", message: "a mutation needs a POST request"}
}

func badRequest(message string) *httpError {
	return &httpError{status: http.StatusBadRequest, code: kg.CodeInvalid, message: message}
}

// decodeRequest reads the operation of a request (GraphQL over HTTP, section 5).
func (h *Handler) decodeRequest(w http.ResponseWriter, r *http.Request) (operation.Request, *httpError) {
	switch r.Method {
	case http.MethodGet:
		if e := refuseCrossSite(r); e != nil {
			return operation.Request{}, e
		}
		return decodeQuery(r)
	case http.MethodPost:
		return h.decodeBody(w, r)
	}
	return operation.Request{}, &httpError{status: http.StatusMethodNotAllowed, code: kg.CodeInvalid, allow: "GET, POST, PUT, DELETE", message: "GraphQL requires GET or POST"}
}

// Any of these headers makes a browser send a preflight request to another
// site.
var preflightHeaders = []string{"X-Agent-ID", "GraphQL-Require-Preflight", "Apollo-Require-Preflight", "X-API-Key", "Authorization"}

// refuseCrossSite refuses requests that a page of another site can send
// without a preflight. A POST needs a JSON content type and therefore a
// preflight. A GET is refused if the browser marks it as cross-site. Clients
// other than browsers do not send that mark.
func refuseCrossSite(r *http.Request) *httpError {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "cross-site" && site != "same-site" {
		return nil
	}
	for _, name := range preflightHeaders {
		if r.Header.Get(name) != "" {
			return nil
		}
	}
	return &httpError{status: http.StatusForbidden, code: kg.CodePermissionDenied,
		message: "a request from another site needs a header like GraphQL-Require-Preflight: 1, or POST"}
}

// decodeQuery reads an operation from the URL.
func decodeQuery(r *http.Request) (operation.Request, *httpError) {
	q := r.URL.Query()
	req := operation.Request{Query: q.Get("query"), DocumentID: q.Get("documentId"), OperationName: q.Get("operationName"), QueriesOnly: true}
	for name, to := range map[string]*map[string]any{"variables": &req.Variables, "extensions": &req.Extensions} {
		text := q.Get(name)
		if text == "" {
			continue
		}
		if _, e := decodeObject([]byte(text), "the parameter "+name); e != nil {
			return req, e
		}
		if err := decodeNumbers([]byte(text), to); err != nil {
			return req, badRequest("the parameter " + name + " must be a JSON object")
		}
	}
	if !namesDocument(&req) {
		return req, badRequest("the parameter query is missing")
	}
	return req, nil
}

// namesDocument reports whether a request has a document, an id or a hash.
func namesDocument(req *operation.Request) bool {
	return req.Query != "" || req.DocumentID != "" || req.Extensions["persistedQuery"] != nil
}

// decodeBody reads an operation from a JSON body.
func (h *Handler) decodeBody(w http.ResponseWriter, r *http.Request) (req operation.Request, e *httpError) {
	if !isJSON(r.Header.Get("Content-Type")) {
		return req, &httpError{status: http.StatusUnsupportedMediaType, code: kg.CodeInvalid, message: "a POST needs Content-Type: application/json in UTF-8"}
	}
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return req, &httpError{status: http.StatusUnsupportedMediaType, code: kg.CodeInvalid, message: "Content-Encoding is not supported"}
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, h.options.MaxBodyBytes))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return req, &httpError{status: http.StatusRequestEntityTooLarge, code: kg.CodeLimitExceeded, message: fmt.Sprintf("the body is larger than the %d bytes that are taken; /data takes RDF of any size", tooLarge.Limit)}
	}
	if err != nil {
		return req, badRequest("the body could not be read")
	}
	fields, e := decodeObject(body, "the body")
	if e != nil {
		return req, e
	}
	return decodeFields(fields)
}

// isJSON reports whether a media type is JSON in UTF-8.
func isJSON(contentType string) bool {
	if contentType == "application/json" { // nearly always
		return true
	}
	kind, params, err := mime.ParseMediaType(contentType)
	charset := strings.ToLower(params["charset"])
	return err == nil && kind == "application/json" && (charset == "" || charset == "utf-8" || charset == "utf8")
}

// decodeFields reads the members of a request. null equals absent. Unknown
// members are ignored, as the specification requires.
func decodeFields(fields map[string]json.RawMessage) (req operation.Request, e *httpError) {
	given := func(name string) (raw json.RawMessage, is bool) {
		raw = fields[name]
		return raw, raw != nil && string(raw) != "null"
	}
	for _, m := range [...]struct {
		name string
		to   *string
	}{{"query", &req.Query}, {"documentId", &req.DocumentID}, {"operationName", &req.OperationName}} {
		if raw, is := given(m.name); is {
			var ok bool
			if *m.to, ok = decodeString(raw); !ok {
				return req, badRequest(m.name + " must be a string")
			}
		}
	}
	for _, m := range [...]struct {
		name string
		to   *map[string]any
	}{{"variables", &req.Variables}, {"extensions", &req.Extensions}} {
		if raw, is := given(m.name); is {
			var ok bool
			if *m.to, ok = decodeMap(raw); !ok {
				return req, badRequest(m.name + " must be an object")
			}
		}
	}
	if !namesDocument(&req) {
		return req, badRequest("query is missing: the document to execute, as a string")
	}
	return req, nil
}

// decodeObject reads the members of a JSON object.
func decodeObject(text []byte, what string) (fields map[string]json.RawMessage, e *httpError) {
	switch {
	case !utf8.Valid(text):
		return nil, badRequest(what + " is not valid UTF-8")
	case len(bytes.TrimSpace(text)) == 0:
		return nil, badRequest(what + " is empty")
	case jsonDepth(text) > MaxBodyDepth:
		return nil, &httpError{status: http.StatusBadRequest, code: kg.CodeLimitExceeded, message: what + " is nested too deeply"}
	}
	valid := json.Valid(text)
	text = bytes.Trim(text, " \t\r\n")
	switch {
	case !valid:
		return nil, badRequest(what + " is not JSON")
	case string(text) == "null":
		return nil, nil
	case text[0] != '{':
		return nil, badRequest(what + " must be a JSON object")
	}
	return readMembers(text), nil
}

// decodeNumbers decodes a valid text and keeps the digits of numbers.
func decodeNumbers(text []byte, to any) error {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	return dec.Decode(to)
}

// jsonDepth returns the maximal nesting of a JSON text. For invalid JSON the
// result is arbitrary.
func jsonDepth(text []byte) (greatest int) {
	depth, inString := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			depth++
			greatest = max(greatest, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	return greatest
}
