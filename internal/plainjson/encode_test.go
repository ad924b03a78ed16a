package plainjson_test

import (
	"encoding/json"
	"math"
	"testing"

	"koine/internal/plainjson"
)

func TestEncode(t *testing.T) {
	for _, row := range []struct {
		value any
		want  string
	}{
		{"<a href=\"b\">&", `"<a href=\"b\">&"`},
		{map[string]any{"b": "<", "a": 1}, `{"a":1,"b":"<"}`},
		{[]json.RawMessage{[]byte(`{"x":"<&>"}`)}, `[{"x":"<&>"}]`},
		{nil, `null`},
		{"\u2028 \n", `"\u2028 \n"`},
	} {
		if got, err := plainjson.Encode(row.value); err != nil || string(got) != row.want {
			t.Errorf("%v: %s, %v; want %s", row.value, got, err, row.want)
		}
		if got := plainjson.MustEncode(row.value); string(got) != row.want {
			t.Errorf("%v: %s, want %s", row.value, got, row.want)
		}
	}
	if raw, err := plainjson.Encode(math.NaN()); err == nil {
		t.Errorf("what has no form in JSON: %s", raw)
	}
	defer func() {
		if recover() == nil {
			t.Error("what has no form in JSON does not panic")
		}
	}()
	plainjson.MustEncode(math.NaN())
}
