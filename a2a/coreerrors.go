package a2a

import (
	"encoding/json"
	"maps"
	"net/http"
	"strconv"
	"strings"

	"koine/kg"
)

// The families of base A2A: canceling an ended task has an error of its own.
var (
	coreCalls  = family{own: codeInternal, table: coreErrors, log: true, listed: true}
	coreCancel = family{own: codeInternal, table: cancelErrors, log: true, listed: true}
)

// coreErrors is the table of base A2A (A2A 1.0, section 5.4). Errors without a code of
// A2A are about the params, or internal; or about rights, for which A2A requires codes
// of the server's own. The refusal of a stream is sent in a stream (refuseStream).
var coreErrors = kg.Answers[answer]{
	Classes: map[kg.Class]answer{
		kg.ClassInvalid:     coreInvalid,
		kg.ClassLimit:       coreInvalid,
		kg.ClassNotFound:    coreInvalid,
		kg.ClassDenied:      {codeUnauthorized, http.StatusForbidden, http.StatusOK},
		kg.ClassConflict:    coreInvalid,
		kg.ClassRate:        {codeRateLimit, http.StatusTooManyRequests, http.StatusTooManyRequests},
		kg.ClassUnavailable: {own, http.StatusServiceUnavailable, http.StatusOK},
	},
	Codes: map[kg.Code]answer{
		kg.CodeTaskNotFound:    {codeTaskNotFound, http.StatusOK, http.StatusOK},
		kg.CodeTaskEnded:       {codeUnsupported, http.StatusOK, http.StatusOK},
		kg.CodeContentType:     {codeContentType, http.StatusOK, http.StatusOK},
		kg.CodeUnauthenticated: {codeUnauthenticated, http.StatusUnauthorized, http.StatusUnauthorized},
		kg.CodeResync:          ownBadRequest,
		kg.CodeAccessChanged:   ownBadRequest,
	},
}

var coreInvalid = answer{codeInvalidParams, http.StatusOK, http.StatusOK}

var cancelErrors = kg.Answers[answer]{Classes: coreErrors.Classes, Codes: withAnswer(coreErrors.Codes, kg.CodeTaskEnded, answer{codeNotCancelable, http.StatusOK, http.StatusOK})}

// withAnswer returns a copy of a table with one more answer.
func withAnswer(table map[kg.Code]answer, code kg.Code, a answer) map[kg.Code]answer {
	table = maps.Clone(table)
	table[code] = a
	return table
}

// coreDomain is the domain of A2A's own reasons, and coreReasons are these (A2A 1.0,
// section 5.4). All other reasons are koine's.
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

// asListed converts an error to the form of base A2A: with a list of details and, if it
// is one of A2A's own errors, with A2A's reason and koine's as the cause. Its clients
// show the message to people, so the message includes the problem with the params.
func (e *Error) asListed() *Error {
	if d, _ := e.Data.(details); e.Code == codeInvalidParams && !d.listed {
		spelt := *e
		for _, text := range []string{d.Field, d.Detail} {
			if text != "" {
				spelt.Message += ": " + text
			}
		}
		e = &spelt
	}
	return e.withDetails(func(d *details) {
		d.listed = true
		if d.Field == "to" {
			d.Field = "" // the address names the agent
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

// MarshalJSON encodes the details as an object, or for an error of base A2A as a list
// with a google.rpc.ErrorInfo (A2A 1.0, section 9.5).
func (d details) MarshalJSON() ([]byte, error) {
	type object details
	if !d.listed {
		return appendJSON(nil, object(d))
	}
	return appendJSON(nil, []errorInfo{d.errorInfo()})
}

// errorInfo returns the details as a google.rpc.ErrorInfo.
func (d details) errorInfo() errorInfo {
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
	return errorInfo{errorInfoType, d.Reason, d.Domain, metadata}
}

const errorInfoType = "type.googleapis.com/google.rpc.ErrorInfo"

// errorInfo is a google.rpc.ErrorInfo.
type errorInfo struct {
	Type     string            `json:"@type"`
	Reason   string            `json:"reason"`
	Domain   string            `json:"domain"`
	Metadata map[string]string `json:"metadata,omitempty"`
}

var _ json.Marshaler = details{}
