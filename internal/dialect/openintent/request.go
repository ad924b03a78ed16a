package openintent

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"

	"koine/channels"
	"koine/internal/caller"
	"koine/internal/rest"
	"koine/kg"
)

// readBody decodes a JSON object. Members that the protocol does not have are ignored, as
// its own server does.
func (h *Handler) readBody(w http.ResponseWriter, r *http.Request, into any) error {
	raw, err := rest.ReadBody(w, r, h.options.MaxBodyBytes)
	if kg.CodeOf(err) == kg.CodeInvalid {
		return errMalformed(kg.AsError(err).Message)
	}
	if err != nil {
		return err
	}
	if raw = bytes.TrimSpace(raw); raw[0] != '{' {
		return errField("", "the body must be a JSON object", "dict_type")
	}
	if err := rest.Decode(raw, into); err != nil {
		e := kg.AsError(err)
		return errField(e.Field, e.Field+" must be "+strings.TrimPrefix(e.Message, "is "), "type_error")
	}
	return nil
}

// actAs returns the caller acting as the agent that a member of the body names: the caller
// itself, or an agent that it may act for.
func (h *Handler) actAs(ctx context.Context, who caller.Caller, field, named string) (caller.Caller, error) {
	if named == "" {
		return who, nil
	}
	agent, err := caller.ParseAgent(named)
	if err != nil {
		return who, errField(field, kg.AsError(err).Message, "value_error")
	}
	if agent == who.Acting() {
		return who, nil
	}
	if !who.Principal.MayActFor(agent) {
		return who, kg.Errorf(kg.CodeSourceForbidden, "you may not act for the agent in %s", field).At(field)
	}
	if h.options.CheckAgent != nil {
		if err := h.options.CheckAgent(ctx, agent); err != nil {
			return who, errField(field, kg.AsError(err).Message, "value_error")
		}
	}
	who.Actor = agent
	return who, nil
}

// channelCaller returns the caller in the form of package channels.
func channelCaller(who caller.Caller) channels.Caller {
	return channels.Caller{Principal: who.Principal, Actor: who.Actor}
}

// ifMatch returns the version in If-Match: 3, "3" or W/"3".
func ifMatch(r *http.Request) (int64, error) {
	text := strings.TrimSpace(r.Header.Get("If-Match"))
	if text == "" {
		return 0, errMalformed("If-Match header required")
	}
	n, err := strconv.ParseInt(strings.Trim(strings.TrimPrefix(text, "W/"), `"`), 10, 64)
	if err != nil || n < 1 {
		return 0, errMalformed("If-Match must be the version that the change is based on")
	}
	return n, nil
}

// intParam returns a query parameter from low to high; otherwise if it is absent.
func intParam(r *http.Request, name string, otherwise, low, high int) (int, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < low || n > high {
		e := errField(name, name+" must be between "+strconv.Itoa(low)+" and "+strconv.Itoa(high), "value_error")
		e.query = true
		return 0, e
	}
	return n, nil
}

// bare returns an agent id as the protocol writes it, without agent://.
func bare(agent kg.AgentID) string { return strings.TrimPrefix(string(agent), "agent://") }

// orNull returns nil for "".
func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// timeLayout is understood by Python 3.10: its fromisoformat refuses Z and any number of
// fraction digits but 3 and 6.
const timeLayout = "2006-01-02T15:04:05.000-07:00"

func formatTime(t time.Time) string { return t.UTC().Format(timeLayout) }

// timeOrNull returns nil for the zero time.
func timeOrNull(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	text := formatTime(t)
	return &text
}

// parseTime parses an ISO 8601 time; one without an offset is in UTC.
func parseTime(text string) (time.Time, error) {
	var first error
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999"} {
		t, err := time.Parse(layout, text)
		if err == nil {
			return t, nil
		}
		first = err
	}
	return time.Time{}, first
}

// object is a JSON object of a body, nil if absent or null.
type object json.RawMessage

// UnmarshalJSON implements json.Unmarshaler.
func (o *object) UnmarshalJSON(raw []byte) error {
	switch {
	case string(raw) == "null":
		*o = nil
	case raw[0] != '{':
		return &json.UnmarshalTypeError{Value: "value", Type: reflect.TypeFor[map[string]any]()}
	default:
		*o = object(bytes.Clone(raw))
	}
	return nil
}

// orEmpty returns the object, {} for none.
func (o object) orEmpty() json.RawMessage {
	if o == nil {
		return json.RawMessage("{}")
	}
	return json.RawMessage(o)
}

// optional is a member of a body that may be absent, null or a value.
type optional[T any] struct {
	given bool
	value *T
}

// UnmarshalJSON implements json.Unmarshaler.
func (o *optional[T]) UnmarshalJSON(raw []byte) error {
	o.given = true
	return json.Unmarshal(raw, &o.value)
}
