package search

import "testing"

// The short way to the text of parts gives what decoding them gives, or gives up.
func FuzzPlainPartsText(f *testing.F) {
	for _, parts := range []string{
		`[{"type":"text","text":"words of it"}]`,
		`[{"type":"text","text":"a"},{"text": "ü", "type":"text"},{"kind":"x"}]`,
		`[{"text":""}]`, `[{"text":"a","text":"b"}]`, `[{"Text":"a"}]`, `[{"tEXt":"a","text":"b"}]`, `[{"ſ":"a"}]`,
		`[{"text":"a\\nb"}]`, `[{"te\u0078t":"a"}]`, `[{"text":"a","data":"b"}]`, `[{"text":"a","data":{"x":["b"]}}]`, `[{"text":"a","DATA":"b"}]`,
		`[{"text":1}]`, `[{"text":null}]`, `[{"text":"a","n":1}]`, `[{}]`, `[]`, `[`, ``, `{"text":"a"}`, `"a"`, `[{"text":"a"}`, `[{"text":"a"},]`,
		`[{"text":"a",}]`, `[{"text" : "a"}]`, `[{"text":"a"}] `, `[{"text":"a"}]]`, "[{\"text\":\"a\nb\"}]", "[{\"text\":\"a\xff\"}]", `[[]]`, `[{"text":"a"},{"text":"b"]`,
	} {
		f.Add(parts)
	}
	f.Fuzz(func(t *testing.T, parts string) {
		if text, ok := plainPartsText(parts); ok && text != decodedPartsText(parts) {
			t.Errorf("%q: %q, want %q", parts, text, decodedPartsText(parts))
		}
	})
}

// The messages of most clients take the short way.
func TestPlainPartsAreTaken(t *testing.T) {
	for parts, want := range map[string]string{
		`[{"type":"text","text":"words of it"}]`:      "words of it\n",
		`[{"text":"ü", "type":"text"},{"text": "b"}]`: "ü\nb\n",
		`[{"kind":"note"}]`:                           "",
	} {
		if text, ok := plainPartsText(parts); !ok || text != want {
			t.Errorf("%s: %q, %v", parts, text, ok)
		}
	}
}
