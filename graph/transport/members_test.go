package transport

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
)

// FuzzMembers compares the members of objects, and their values, with those that
// encoding/json reads.
func FuzzMembers(f *testing.F) {
	for _, text := range []string{
		`{}`, ` { } `, `null`, `[]`, `"a"`, `{"a":1}`, `{"a":1,"a":"two"}`, "{\n\t\"a\" : [1, {\"b\":\"}\"}] ,\r\n\"c\":null}",
		`{"query":"{ a(b: \"c\\\"}\") }","variables":{"iri":"urn:person:1","n":12345678901234567890.0e3}}`,
		`{"\u0061":"\ud83d\ude00\ud800","":true,"b\\":false,"c":-0.5E-7}`, `{"a":{}}`, `{"a":[]}`, `{"a":"b"`, `{"a" "b"}`, `{"a":01}`, `{"ä":"ö 😀"}`, `{"a":{"b":{"c":[[]]}}}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, refused := decodeObject(text, "it")
		var want map[string]json.RawMessage
		err := json.Unmarshal(text, &want)
		if refused != nil {
			if e := refused.message; e == "it is not JSON" && err == nil || e == "it must be a JSON object" && !json.Valid(text) {
				t.Fatalf("%q is refused: %s", text, e)
			}
			return
		}
		if err != nil || len(got) != len(want) {
			t.Fatalf("%q: %q, want %q, %v", text, got, want, err)
		}
		for name, raw := range want {
			if !bytes.Equal(got[name], raw) {
				t.Fatalf("%q: %q is %q, want %q", text, name, got[name], raw)
			}
			var s string
			if is := json.Unmarshal(raw, &s) == nil && raw[0] == '"'; is {
				if text, ok := decodeString(raw); !ok || text != s {
					t.Fatalf("%q is %q, %t", raw, text, ok)
				}
			}
			var m map[string]any
			if raw[0] == '{' && decodeNumbers(raw, &m) == nil {
				if object, ok := decodeMap(raw); !ok || !reflect.DeepEqual(object, m) {
					t.Fatalf("%q is %v, want %v", raw, object, m)
				}
			}
		}
	})
}
