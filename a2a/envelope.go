package a2a

import (
	"bytes"
	"errors"
	"fmt"

	"koine/kg"
)

// request is one JSON-RPC request object (JSON-RPC 2.0, section 4).
type request struct {
	// id as sent; nil for a notification, which has none. A null id is an id.
	id     []byte
	method string
	params []byte // nil if absent
	// err is the reason for which it is not a request object. Then id is null unless it
	// could be read.
	err *Error
}

func (r *request) isNotification() bool { return r.id == nil && r.err == nil }

var nullID = []byte("null")

// decodeBody decodes a body: one request, or a batch. It returns an error if the body as a
// whole is unusable.
func decodeBody(body []byte, depth, maxBatch int) (requests []request, batch bool, err *Error) {
	if err := scanBody(body, depth); err != nil {
		return nil, false, unusableBody(err)
	}
	body = bytes.TrimSpace(body)
	if body[0] != '[' {
		return []request{readRequest(body)}, false, nil
	}
	elements := splitArray(body)
	switch {
	case len(elements) == 0:
		return nil, true, invalidRequest(reasonInvalidRequest, "a batch cannot be empty", "")
	case len(elements) > maxBatch:
		return nil, true, invalidRequest(string(kg.CodeLimitExceeded),
			fmt.Sprintf("the batch has %d requests, more than the limit of %d", len(elements), maxBatch), "Send several batches.")
	}
	for _, element := range elements {
		requests = append(requests, readRequest(element))
	}
	return requests, true, nil
}

func unusableBody(err error) *Error {
	switch {
	case errors.Is(err, errTooDeep):
		return invalidRequest(string(kg.CodeLimitExceeded), err.Error(), "")
	case errors.Is(err, errRepeated):
		return invalidRequest(reasonInvalidRequest, err.Error(), "")
	}
	return parseError(err)
}

func readRequest(raw []byte) request {
	r := request{}
	if raw[0] != '{' {
		return refusedRequest(nullID, "a request must be an object, not "+kindOf(raw))
	}
	// Unknown members are ignored. null does not count as absent here: a null id is an
	// id, and a null method is invalid.
	var version []byte
	var method []byte
	for _, m := range splitObject(raw) {
		switch m.name {
		case "jsonrpc":
			version = m.value
		case "id":
			r.id = m.value
		case "method":
			method = m.value
		case "params":
			r.params = m.value
		}
	}
	if r.id != nil && r.id[0] != '"' && r.id[0] != 'n' && kindOf(r.id) != "a number" {
		return refusedRequest(nullID, "id must be a string, a number or null, not "+kindOf(r.id))
	}
	answerTo := r.id
	if answerTo == nil {
		answerTo = nullID
	}
	if version == nil || version[0] != '"' || decodeString(version) != "2.0" {
		return refusedRequest(answerTo, `jsonrpc must be "2.0"`)
	}
	if len(method) < len(`"x"`) || method[0] != '"' {
		return refusedRequest(answerTo, "method must be the name of a method")
	}
	r.method = decodeString(method)
	return r
}

func refusedRequest(id []byte, detail string) request {
	return request{id: id, err: invalidRequest(reasonInvalidRequest, detail, "")}
}
