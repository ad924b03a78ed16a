// Package facts serves /facts: POST adds facts as Mutation.remember does, PUT replaces the
// values of an entity as Mutation.put does. The body is the input of the mutation in JSON,
// the answer its payload.
package facts

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"

	"koine/internal/caller"
	"koine/internal/operation"
	"koine/internal/rest"
	"koine/kg"
)

// Path is the URL path.
const Path = "/facts"

// MaxBodyBytes bounds a request.
const MaxBodyBytes = 8 << 20

const methods = "POST, PUT"

// payload is the selection of the answers.
const payload = `{
	entities { label iri made } known { subject { id } predicate { id } object { id value type language } graph }
	contradictions { kind reason statementCount }
	update { success statementsAffected verificationStatus verificationDetails revision position commitId proposalId }
}`

// mutation is the document of a method, and the field of its answer.
type mutation struct{ field, document string }

var mutations = map[string]mutation{
	http.MethodPost: {"remember", `mutation($input: RememberInput!) { remember(input: $input) ` + payload + ` }`},
	http.MethodPut:  {"put", `mutation($input: PutInput!) { put(input: $input) ` + payload + ` }`},
}

// Executor executes GraphQL operations.
type Executor interface {
	Execute(context.Context, operation.Request) operation.Result
}

// statuses are the HTTP status codes of errors.
var statuses = kg.Answers[int]{
	Classes: map[kg.Class]int{
		kg.ClassInvalid: http.StatusBadRequest, kg.ClassNotFound: http.StatusNotFound, kg.ClassDenied: http.StatusForbidden,
		kg.ClassConflict: http.StatusConflict, kg.ClassLimit: http.StatusRequestEntityTooLarge, kg.ClassRate: http.StatusTooManyRequests, kg.ClassUnavailable: http.StatusServiceUnavailable,
	},
	Codes: map[kg.Code]int{
		kg.CodeUnauthenticated: http.StatusUnauthorized, kg.CodeContentType: http.StatusUnsupportedMediaType, kg.CodeConstraintViolation: http.StatusUnprocessableEntity,
		kg.CodeJudgeLimit: http.StatusUnprocessableEntity, kg.CodeDiskFull: http.StatusInsufficientStorage,
		kg.CodeOutcomeUnknown: http.StatusInternalServerError, // a proxy must not repeat the write
	},
}

// Handler serves the path for the caller of each request (caller.From).
type Handler struct {
	executor Executor
	refused  func(context.Context, kg.Code)
}

// NewHandler returns a handler. refused, if set, is called for each error, to audit denied
// requests.
func NewHandler(e Executor, refused func(context.Context, kg.Code)) *Handler {
	return &Handler{e, refused}
}

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m, ok := mutations[r.Method]
	if !ok {
		w.Header().Set("Allow", methods)
		rest.WriteError(w, http.StatusMethodNotAllowed, 0, failure{problem{Code: kg.CodeInvalid, Message: "use POST to add facts, PUT to replace the values of an entity"}})
		return
	}
	raw, err := rest.ReadBody(w, r, MaxBodyBytes)
	var input map[string]any
	if err == nil {
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		if d.Decode(&input) != nil || input == nil {
			err = kg.Errorf(kg.CodeInvalid, "the body must be a JSON object")
		}
	}
	if err != nil {
		e := kg.AsError(err)
		h.writeProblem(w, r, problem{Code: e.Code, Message: e.Message, Field: e.Field})
		return
	}
	by := caller.From(r.Context())
	result := h.executor.Execute(r.Context(), operation.Request{
		Query: m.document, Variables: map[string]any{"input": input}, Principal: by.Principal, Actor: by.Actor, Method: r.Method + " " + Path,
	})
	if len(result.Errors) > 0 {
		extensions := result.Errors[0].Extensions
		p := problem{Message: result.Errors[0].Message}
		code, _ := extensions["code"].(string)
		p.Code = kg.Code(code)
		p.Field, _ = extensions["field"].(string)
		p.Hint, _ = extensions["hint"].(string)
		h.writeProblem(w, r, p)
		return
	}
	var data map[string]json.RawMessage
	if err := json.Unmarshal(result.Data, &data); err != nil {
		h.writeProblem(w, r, problem{Code: kg.CodeInternal, Message: "the answer is not readable"})
		return
	}
	rest.Write(w, http.StatusOK, data[m.field])
}

// problem is an error of this protocol.
type problem struct {
	Code    kg.Code `json:"code"`
	Message string  `json:"message"`
	Field   string  `json:"field,omitempty"`
	Hint    string  `json:"hint,omitempty"`
}

type failure struct {
	Error problem `json:"error"`
}

func (h *Handler) writeProblem(w http.ResponseWriter, r *http.Request, p problem) {
	if h.refused != nil {
		h.refused(r.Context(), p.Code)
	}
	status, ok := statuses.Of(p.Code)
	switch {
	case ok:
	case p.Code == kg.CodeInternal:
		status = http.StatusInternalServerError
	default: // an error of GraphQL itself, such as a member that the input does not have
		status = http.StatusBadRequest
	}
	rest.WriteError(w, status, rest.RetryAfter(status, 0), failure{p})
}
