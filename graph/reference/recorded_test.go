package reference

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"koine/internal/slowtest"
	"koine/kg"
)

var update = flag.Bool("update", false, "write testdata/recorded.gz anew, with the documents of the present schema")

const (
	recordedFile      = "testdata/recorded.gz"
	recordedDocuments = 2000
)

// recording is an operation and its answer, without what differs between worlds.
type recording struct {
	Seed      uint64          `json:"seed"`
	By        kg.AgentID      `json:"by"`
	Document  string          `json:"document"`
	Operation string          `json:"operation,omitempty"`
	Variables json.RawMessage `json:"variables,omitempty"`
	Answer    recordedAnswer  `json:"answer"`
}

type recordedAnswer struct {
	Data   string   `json:"data,omitempty"`
	Errors []string `json:"errors,omitempty"` // codes and paths, sorted
}

// TestRecorded compares the answers to 2,000 operations with those of the executor that
// testdata/recorded.gz was written with.
func TestRecorded(t *testing.T) {
	slowtest.Long(t)
	w := newWorld(t)
	if *update {
		record(t, w)
	}
	counts := map[string]int{}
	for _, r := range readRecorded(t) {
		got := w.record(r)
		why := changed(r.Answer, got)
		switch {
		case cmp.Equal(got, r.Answer):
		case why != "":
			counts[why]++
		default:
			t.Errorf("seed %d, as %s\n%s\n%s\n(-before +now)\n%s", r.Seed, r.By, r.Document, r.Variables, cmp.Diff(r.Answer, got))
		}
	}
	t.Logf("%v", counts)
}

// changed says why an answer may differ from one of before, "" if it may not.
func changed(before, now recordedAnswer) string {
	switch {
	case before.failedEarly():
		return "a field fails alone"
	case before.Data != "" && !json.Valid([]byte(before.Data)):
		return "it was no JSON: a budget and a root field that must not be null"
	case before.Data == "null" && now.Data == "null" && len(now.Errors) > 0 && !slices.ContainsFunc(now.Errors, func(e string) bool { return !slices.Contains(before.Errors, e) }):
		return "fewer errors beside the one that made all null"
	case now.Data == "null" && strings.HasPrefix(before.Data, `{"me":null`):
		return "me was null"
	case slices.Equal(before.Errors, now.Errors) && once(before.Data) == once(now.Data):
		return "an object had __typename twice"
	}
	return ""
}

// once drops each member of an object that is there already.
func once(raw string) string {
	dec := json.NewDecoder(strings.NewReader(raw))
	open, err := dec.Token()
	delim, ok := open.(json.Delim)
	if err != nil || !ok {
		return raw
	}
	var b strings.Builder
	b.WriteString(delim.String())
	seen := map[string]bool{}
	for n := 0; dec.More(); {
		name := ""
		if delim == '{' {
			token, _ := dec.Token()
			name, _ = token.(string)
		}
		var v json.RawMessage
		if err := dec.Decode(&v); err != nil {
			return raw
		}
		if delim == '{' && seen[name] {
			continue
		}
		if n++; n > 1 {
			b.WriteByte(',')
		}
		if delim == '{' {
			seen[name] = true
			b.WriteString(string(quote(name)) + ":")
		}
		b.WriteString(once(string(v)))
	}
	b.WriteString(map[json.Delim]string{'{': "}", '[': "]"}[delim])
	return b.String()
}

// failedEarly reports whether a field below another one had failed before the answer came to it,
// and the other one with it. Such a field fails alone now, so there is more in the answer.
func (a recordedAnswer) failedEarly() bool {
	return slices.ContainsFunc(a.Errors, func(e string) bool {
		_, path, _ := strings.Cut(e, " ")
		steps := strings.Split(path, "/")
		return len(steps) > 2 && slices.ContainsFunc(steps[1:len(steps)-1], func(step string) bool { return strings.Contains(a.Data, `"`+step+`":null`) })
	})
}

// record executes an operation.
func (w *world) record(r recording) recordedAnswer {
	i := slices.IndexFunc(callers, func(p kg.Principal) bool { return p.ID == r.By })
	a := w.request(w.engine, callers[i], w.named(r.Document), decodeVariables(w.t, w.named(string(r.Variables))))
	a.name = r.Operation
	got := w.ask(a)
	out := recordedAnswer{Data: w.masked(got.data)}
	for i, f := range got.errors {
		out.Errors = append(out.Errors, w.masked(got.codes[i]+" "+pathOf(f)))
	}
	slices.Sort(out.Errors)
	return out
}

func record(t *testing.T, w *world) {
	schema := schemaOf(t, w)
	var b bytes.Buffer
	out := gzip.NewWriter(&b)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	for seed := range uint64(recordedDocuments) {
		doc := newDocument(schema, seed, true)
		r := recording{Seed: seed, By: doc.by.ID, Document: doc.text, Operation: doc.operation, Variables: doc.variables}
		r.Answer = w.record(r)
		if err := enc.Encode(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(recordedFile, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

func readRecorded(t *testing.T) (all []recording) {
	t.Helper()
	file, err := os.Open(recordedFile)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	in, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	dec := json.NewDecoder(in)
	for dec.More() {
		var r recording
		if err := dec.Decode(&r); err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	if len(all) < recordedDocuments {
		t.Fatalf("%s has only %d documents", recordedFile, len(all))
	}
	return all
}
