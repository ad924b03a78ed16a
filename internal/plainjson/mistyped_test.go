package plainjson_test

import (
	"encoding/json"
	"testing"

	"koine/internal/plainjson"
)

func TestMistyped(t *testing.T) {
	type shape struct {
		Text   string         `json:"text"`
		Number *int           `json:"number"`
		List   []string       `json:"list"`
		Yes    bool           `json:"yes"`
		Object map[string]any `json:"object"`
		Inner  struct {
			List []string `json:"list"`
		} `json:"inner"`
	}
	for _, row := range []struct{ text, field, should string }{
		{`{"text": 1}`, "text", "is a text"},
		{`{"number": "1"}`, "number", "is a number"},
		{`{"number": 1.5}`, "number", "is a number"},
		{`{"list": "a"}`, "list", "is a list"},
		{`{"list": [1]}`, "list", "is a text"},
		{`{"yes": {}}`, "yes", "is true or false"},
		{`{"object": []}`, "object", "is an object"},
		{`{"inner": true}`, "inner", "is an object"},
		{`{"inner": {"list": {}}}`, "inner.list", "is a list"},
	} {
		field, should, ok := plainjson.Mistyped(json.Unmarshal([]byte(row.text), &shape{}))
		if !ok || field != row.field || should != row.should {
			t.Errorf("%s: %q %q %v, want %q %q", row.text, field, should, ok, row.field, row.should)
		}
	}
	for _, text := range []string{`{}`, `{`} {
		if _, _, ok := plainjson.Mistyped(json.Unmarshal([]byte(text), &shape{})); ok {
			t.Errorf("%s has no member of another kind", text)
		}
	}
}
