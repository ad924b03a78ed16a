package a2a

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"koine/kg"
)

// The families of base A2A: to cancel what has ended is an error of its own.
var (
	coreCalls  = family{own: codeInternal, table: coreErrors, log: true, listed: true}
	coreCancel = family{own: codeInternal, table: cancelErrors, log: true, listed: true}
)

// coreErrors is the table of base A2A (A2A 1.0, section 5.4). What A2A has no code
// for is about the params, or internal; or it is who may do what, for which A2A wants
// codes of the server's own. What refuses a stream is told in a stream (refuseStream).
var coreErrors = slices.Concat(storeErrors, []errorRow{
	{kg.CodeTaskNotFound, codeTaskNotFound, http.StatusOK, http.StatusOK},
	{kg.CodeTaskEnded, codeUnsupported, http.StatusOK, http.StatusOK},
	{kg.CodeContentType, codeContentType, http.StatusOK, http.StatusOK},
	{kg.CodeAgentNotFound, codeInvalidParams, http.StatusOK, http.StatusOK},
	{kg.CodeInvalid, codeInvalidParams, http.StatusOK, http.StatusOK},
	{kg.CodeUnknownPrefix, codeInvalidParams, http.StatusOK, http.StatusOK},
	{kg.CodeLimitExceeded, codeInvalidParams, http.StatusOK, http.StatusOK},
	{kg.CodeCursorForeign, codeInvalidParams, http.StatusOK, http.StatusOK},
	{kg.CodeCursorGone, codeInvalidParams, http.StatusOK, http.StatusOK},
	{kg.CodePositionGone, codeInvalidParams, http.StatusOK, http.StatusOK},
	{kg.CodeJudgeLimit, codeInvalidParams, http.StatusOK, http.StatusOK},
	{kg.CodePermissionDenied, codeUnauthorized, http.StatusForbidden, http.StatusOK},
	{kg.CodeSourceForbidden, codeUnauthorized, http.StatusForbidden, http.StatusOK},
	{kg.CodeReserved, codeUnauthorized, http.StatusForbidden, http.StatusOK},
	{kg.CodeConstraintViolation, codeUnauthorized, http.StatusForbidden, http.StatusOK},
	{kg.CodeAlignmentViolation, codeUnauthorized, http.StatusForbidden, http.StatusOK},
	{kg.CodeUnauthenticated, codeUnauthenticated, http.StatusUnauthorized, http.StatusUnauthorized},
	{kg.CodeRateLimited, codeRateLimit, http.StatusTooManyRequests, http.StatusTooManyRequests},
	{kg.CodeOverloaded, codeRateLimit, http.StatusTooManyRequests, http.StatusTooManyRequests},
})

var cancelErrors = slices.Concat([]errorRow{{kg.CodeTaskEnded, codeNotCancelable, http.StatusOK, http.StatusOK}},
	slices.DeleteFunc(slices.Clone(coreErrors), func(row errorRow) bool { return row.code == kg.CodeTaskEnded }))

// coreDomain is where the names of A2A's own errors come from, and coreReasons are
// these names (A2A 1.0, section 5.4). All other reasons are koine's.
const coreDomain = "a2a-protocol.org"

var coreReasons = map[int]string{
	codeTaskNotFound:   "TASK_NOT_FOUND",
	codeNotCancelable:  "TASK_NOT_CANCELABLE",
	codeNoPush:         "PUSH_NOTIFICATION_NOT_SUPPORTED",
	codeUnsupported:    "UNSUPPORTED_OPERATION",
	codeContentType:    "CONTENT_TYPE_NOT_SUPPORTED",
	codeNoExtendedCard: "EXTENDED_AGENT_CARD_NOT_CONFIGURED",
	codeVersion:        "VERSION_NOT_SUPPORTED",
}

// listed is the error as base A2A has it: with a list of details, and where it is one
// of A2A's own, under the name that it has there. koine's reason is the cause then. Its
// clients show the message to people: what is wrong with the params is in it too.
func (e *Error) listed() *Error {
	if d, _ := e.Data.(details); e.Code == codeInvalidParams && !d.listed {
		spelt := *e
		for _, text := range []string{d.Field, d.Detail} {
			if text != "" {
				spelt.Message += ": " + text
			}
		}
		e = &spelt
	}
	return e.with(func(d *details) {
		d.listed = true
		if d.Field == "to" {
			d.Field = "" // who is asked is said by the address
		}
		name, ok := coreReasons[e.Code]
		if !ok || d.Domain == coreDomain {
			return
		}
		if d.Reason != name {
			d.Cause = d.Reason
		}
		d.Reason, d.Domain = name, coreDomain
	})
}

// MarshalJSON writes the details as an object, or, of an error of base A2A, as a list
// with a google.rpc.ErrorInfo (A2A 1.0, section 9.5).
func (d details) MarshalJSON() ([]byte, error) {
	type object details
	if !d.listed {
		return appendJSON(nil, object(d))
	}
	metadata := map[string]string{}
	for name, text := range map[string]string{
		"field": d.Field, "detail": d.Detail, "hint": d.Hint, "cause": d.Cause, "oldestPosition": d.OldestPosition, "position": d.Position,
		"requestId": d.RequestID, "supported": strings.Join(d.Supported, ", "),
	} {
		if text != "" {
			metadata[name] = text
		}
	}
	if d.RetryAfterMs > 0 {
		metadata["retryAfterMs"] = strconv.FormatInt(d.RetryAfterMs, 10)
	}
	return appendJSON(nil, []errorInfo{{"type.googleapis.com/google.rpc.ErrorInfo", d.Reason, d.Domain, metadata}})
}

// errorInfo is a google.rpc.ErrorInfo.
type errorInfo struct {
	Type     string            `json:"@type"`
	Reason   string            `json:"reason"`
	Domain   string            `json:"domain"`
	Metadata map[string]string `json:"metadata,omitempty"`
}

var _ json.Marshaler = details{}
