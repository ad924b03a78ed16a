package base

import (
	"bytes"
	"encoding/json"
	"strings"

	"koine/internal/plainjson"
	"koine/internal/tasks"
	"koine/kg"
)

// Decode decodes a JSON object into a struct. It accepts snake_case beside camelCase;
// null counts as absent.
func Decode(raw []byte, into any) error {
	raw, err := toCamel(raw)
	if err == nil {
		err = json.Unmarshal(raw, into)
	}
	if err == nil {
		return nil
	}
	if field, should, ok := plainjson.Mistyped(err); ok {
		return kg.Errorf(kg.CodeInvalid, "%s", should).At(field)
	}
	return kg.AsError(err)
}

// opaqueMembers are the members with content of the sender's own, which stays unchanged.
var opaqueMembers = map[string]bool{"metadata": true, "data": true, "details": true}

// toCamel converts the names of members to camelCase.
func toCamel(raw []byte) ([]byte, error) {
	if !bytes.Contains(raw, []byte("_")) {
		return raw, nil
	}
	switch raw = bytes.TrimSpace(raw); raw[0] {
	case '{':
		return camelObject(raw)
	case '[':
		var list []json.RawMessage
		if err := json.Unmarshal(raw, &list); err != nil {
			return nil, err
		}
		for i := range list {
			element, err := toCamel(list[i])
			if err != nil {
				return nil, err
			}
			list[i] = element
		}
		return plainjson.Encode(list)
	}
	return raw, nil
}

func camelObject(raw []byte) ([]byte, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return nil, err
	}
	out := make(map[string]json.RawMessage, len(members))
	for name, value := range members {
		name = camelName(name)
		if !opaqueMembers[name] {
			inner, err := toCamel(value)
			if err != nil {
				return nil, err
			}
			value = inner
		}
		if _, twice := out[name]; twice {
			return nil, kg.Errorf(kg.CodeInvalid, "the member occurs twice, in camelCase and snake_case").At(name)
		}
		out[name] = value
	}
	return plainjson.Encode(out) // without escapes for HTML, as sent
}

func camelName(name string) string {
	first, rest, snake := strings.Cut(name, "_")
	for snake {
		var word string
		word, rest, snake = strings.Cut(rest, "_")
		if word != "" {
			first += strings.ToUpper(word[:1]) + word[1:]
		}
	}
	return first
}

// NonNull returns raw JSON, nil if it is absent or null.
func NonNull(raw json.RawMessage) json.RawMessage {
	if string(raw) == "null" {
		return nil
	}
	return raw
}

// HistoryOf returns the requested history length, -1 (all) if it is absent.
func HistoryOf(length *int) (int, error) {
	switch {
	case length == nil:
		return -1, nil
	case *length < 0:
		return 0, kg.Errorf(kg.CodeInvalid, "cannot be negative").At("historyLength")
	}
	return *length, nil
}

// Required returns the error for a missing member.
func Required(field string) *kg.Error { return kg.Errorf(kg.CodeInvalid, "is required").At(field) }

// ReadTask reads params that name a task, which are the same in both versions.
func ReadTask(params []byte) (*TaskRef, error) {
	var p struct {
		ID            tasks.TaskID `json:"id"`
		HistoryLength *int         `json:"historyLength"`
	}
	if err := Decode(params, &p); err != nil {
		return nil, err
	}
	if p.ID == "" {
		return nil, Required("id")
	}
	history, err := HistoryOf(p.HistoryLength)
	return &TaskRef{ID: p.ID, History: history}, err
}
