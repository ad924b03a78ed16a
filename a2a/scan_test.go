package a2a

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestScan(t *testing.T) {
	names := func(n int, last string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `"n%d":%d,`, i, i)
		}
		return "{" + b.String() + `"` + last + `":0}`
	}
	for _, row := range []struct {
		name, body string
		want       error
	}{
		{"an object", `{"a":[1,{"a":2}],"b":"\"}{"}`, nil},
		{"the same name in two objects", `{"a":{"a":1},"b":{"a":1}}`, nil},
		{"the same string twice in an array", `["a","a"]`, nil},
		{"a value that equals a name", `{"a":"a"}`, nil},
		{"a pair of surrogates", `"\ud83d\ude00"`, nil},
		{"an escaped backslash before u", `"\\ud83d"`, nil},
		{"nothing", ``, errNotJSON},
		{"half an object", `{"a":`, errNotJSON},
		{"two values", `{} {}`, errNotJSON},
		{"a raw line break in a string", "\"a\nb\"", errNotJSON},
		{"no UTF-8", "\"\xff\"", errNotUTF8},
		{"an overlong encoding", "\"\xc0\xaf\"", errNotUTF8},
		{"half a pair, first", `"\ud83d"`, errSurrogate},
		{"half a pair, second", `"\ude00"`, errSurrogate},
		{"halves the wrong way round", `"\ude00\ud83d"`, errSurrogate},
		{"text between the halves", `"\ud83dx\ude00"`, errSurrogate},
		{"another escape between the halves", `"\ud83d\n\ude00"`, errSurrogate},
		{"half a pair in a name", `{"\ud83d":1}`, errSurrogate},
		{"a name twice", `{"a":1,"a":2}`, errRepeated},
		{"a name twice, once escaped", `{"a":1,"\u0061":2}`, errRepeated},
		{"a name twice, far inside", `{"x":[{"b":{"a":1,"c":{},"a":2}}]}`, errRepeated},
		{"a name twice after an inner object", `{"a":{"b":1},"a":1}`, errRepeated},
		{"many names", names(fewNames+5, "z"), nil},
		{"many names, the first again", names(fewNames+5, "n0"), errRepeated},
		{"many names, the last again", names(fewNames+5, "n20"), errRepeated},
		{"as deep as allowed", strings.Repeat("[", 8) + strings.Repeat("]", 8), nil},
		{"one deeper", strings.Repeat("[", 9) + strings.Repeat("]", 9), errTooDeep},
		{"one deeper in objects", strings.Repeat(`{"a":`, 9) + "1" + strings.Repeat("}", 9), errTooDeep},
	} {
		if err := scanBody([]byte(row.body), 8); !errors.Is(err, row.want) {
			t.Errorf("%s: got %v, want %v", row.name, err, row.want)
		}
	}
}

// FuzzDecode: no body crashes the decoder; accepted bodies decode as in a plain JSON
// decoder, ids included; and every answer is JSON.
func FuzzDecode(f *testing.F) {
	for _, body := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"knowledge/query","params":{"query":"{revision}"}}`,
		`[{"jsonrpc":"2.0","id":"a","method":"x"},1,{"jsonrpc":"2.0","method":"y"}]`,
		`{"jsonrpc":"2.0","id":123456789012345678901234567890.5e-3,"method":"\u0061"}`,
		`{"id":null,"id":null}`, `{"id":{}}`, `[]`, `"\ud800"`, "\xff", ` { } `, `[[[[`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		requests, batch, refusal := decodeBody(body, 16, 8)
		if refusal != nil {
			requests = []request{{id: nullID, err: refusal}}
		} else if !json.Valid(body) {
			t.Fatalf("accepted what is not JSON: %q", body)
		}
		var want []map[string]json.RawMessage
		if refusal == nil {
			want = plainObjects(body, batch)
		}
		for i, r := range requests {
			if refusal == nil && r.err == nil {
				compare(t, r, want[i])
			}
			resp := response{id: r.id, err: r.err}
			if resp.id == nil {
				resp.id = nullID
			}
			out, err := resp.appendTo(nil)
			if err != nil || !json.Valid(out) {
				t.Fatalf("an answer that is not JSON: %q, %v", out, err)
			}
		}
	})
}

func plainObjects(body []byte, batch bool) []map[string]json.RawMessage {
	var elements []json.RawMessage // of their own memory: RawMessage decodes into what it holds
	if batch {
		_ = json.Unmarshal(body, &elements)
	} else {
		elements = append(elements, body)
	}
	objects := make([]map[string]json.RawMessage, len(elements))
	for i, e := range elements {
		_ = json.Unmarshal(e, &objects[i])
	}
	return objects
}

func compare(t *testing.T, r request, plain map[string]json.RawMessage) {
	t.Helper()
	if string(r.id) != string(plain["id"]) {
		t.Errorf("id: got %s, want %s", r.id, plain["id"])
	}
	if string(r.params) != string(plain["params"]) {
		t.Errorf("params: got %s, want %s", r.params, plain["params"])
	}
	var method string
	if err := json.Unmarshal(plain["method"], &method); err != nil || method != r.method {
		t.Errorf("method: got %q, want %q (%v)", r.method, method, err)
	}
}

// FuzzMutation: no patch crashes the reader, and an accepted patch equals the decoded
// wire form of its statement.
func FuzzMutation(f *testing.F) {
	for _, patch := range []string{
		`{"op":"add","statement":{"subject":{"id":"a b","type":"foaf:Person"},"predicate":{"id":"foaf:name"},"object":{"value":"x","language":"en"}}}`,
		`{"op":"remove","statement":{"subject":{"id":"_:b"},"predicate":{"id":"urn:p"},"object":{"id":"urn:o","value":null}}}`,
		`{"op":"replace","statement":{"subject":{"id":"urn:s"},"predicate":{"id":"urn:p"},"object":{"value":1e400,"type":"xsd:decimal"},"certainty":0.5,"provenance":{"sourceAgentId":"x"}}}`,
		`{"op":"add","statement":{"subject":{"id":"urn:s"},"predicate":{"id":"urn:p"},"object":{"value":123456789012345678901234567890}}}`,
	} {
		f.Add([]byte(patch))
	}
	prefixes := testPrefixes(f)
	f.Fuzz(func(t *testing.T, raw []byte) {
		if scanBody(raw, 16) != nil {
			return
		}
		fail := new(failure)
		r := reader{failure: fail, prefixes: prefixes}
		m := r.readMutation("p", raw)
		if fail.err != nil {
			return
		}
		out, err := appendJSON(nil, map[string]any{"op": m.Op.String(), "statement": encodeQuad(m.Quad)})
		if err != nil {
			t.Fatal(err)
		}
		again := r.readMutation("p", out)
		if fail.err != nil {
			t.Fatalf("%s: %v", out, fail.err)
		}
		if again.Op != m.Op || again.Quad != m.Quad {
			t.Errorf("got %+v, want %+v after %s", again.Quad, m.Quad, out)
		}
	})
}
