package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"koine/internal/rdf"
	"koine/internal/slowtest"
	"koine/kg"
)

// longText is a text of n bytes, some of which are escaped in JSON, XML and RDF.
func longText(n int) string {
	const piece = "a line \"of\" a <polygon> & its ä\n"
	text := strings.Repeat(piece, n/len(piece))
	return text + strings.Repeat("x", n-len(text))
}

// jsonText is a text as JSON that escapes no more than it must.
func jsonText(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(text); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// longDocument is a document with one statement about the subject.
func longDocument(t *testing.T, f rdf.Format, subject, text string) string {
	t.Helper()
	if f == rdf.RDFXML {
		return `<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:u="urn:long:"><r:Description r:about="` + subject + `"><u:text>` +
			strings.NewReplacer("&", "&amp;", "<", "&lt;").Replace(text) + `</u:text></r:Description></r:RDF>`
	}
	var b bytes.Buffer
	quad := kg.Quad{Subject: kg.IRI(subject), Predicate: kg.IRI("urn:long:text"), Object: kg.String(text), Graph: kg.DefaultGraph}
	w := rdf.NewWriter(&b, f, rdf.WriteOptions{})
	if err := errors.Join(w.Write(quad), w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestLongLiterals writes a literal of --max-literal bytes over each protocol and reads it
// back to the byte, and one that is a byte longer is refused with the remedy.
func TestLongLiterals(t *testing.T) {
	slowtest.WithoutRace(t)
	slowtest.Long(t)
	const most = kg.DefaultLiteralBytes
	text := longText(most)
	_, url := startServer(t)
	send := func(method, path, kind, body string) string {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", kind)
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		answer, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(answer)
	}
	patch := func(subject, text string) string {
		return fmt.Sprintf(`{"op":"add","statement":{"subject":{"id":%q},"predicate":{"id":"urn:long:text"},"object":{"value":%s}}}`, subject, jsonText(t, text))
	}
	rpc := func(method, params string) string {
		return send(http.MethodPost, "/a2a", "application/json", `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":`+params+`}`)
	}
	graphql := func(query, variables string) string {
		return send(http.MethodPost, "/graphql", "application/json", `{"query":`+jsonText(t, query)+`,"variables":`+variables+`}`)
	}
	data := func(method, graph string, f rdf.Format) func(subject, text string) string {
		return func(subject, text string) string {
			return send(method, "/data"+graph, f.MediaType(), longDocument(t, f, subject, text))
		}
	}
	doors := []struct {
		name  string
		write func(subject, text string) string
		done  string // is in the answer
	}{
		{"applyPatches", func(subject, text string) string {
			return graphql(`mutation($p: [PatchInput!]!) { applyPatches(input: {patches: $p}) { success } }`, `{"p":[`+patch(subject, text)+`]}`)
		}, `"success":true`},
		{"applyPatches in the query", func(subject, text string) string {
			return graphql(`mutation { applyPatches(input: {patches: [{op: add, statement: {subject: {id: "`+subject+`"}, predicate: {id: "urn:long:text"}, object: {value: `+jsonText(t, text)+`}}}]}) { success } }`, `{}`)
		}, `"success":true`},
		{"replaceGraph", func(subject, text string) string {
			return graphql(`mutation($t: String!) { replaceGraph(input: {iri: "urn:long:g1", turtle: $t}) { added } }`, `{"t":`+jsonText(t, longDocument(t, rdf.Turtle, subject, text))+`}`)
		}, `"added":1`},
		{"knowledge/update", func(subject, text string) string {
			return rpc("knowledge/update", `{"mutations":[`+patch(subject, text)+`]}`)
		}, `"success":true`},
		{"POST N-Quads", data(http.MethodPost, "", rdf.NQuads), `"statements":1`},
		{"POST JSON-LD", data(http.MethodPost, "", rdf.JSONLD), `"statements":1`},
		{"PUT Turtle", data(http.MethodPut, "?graph=urn:long:g2", rdf.Turtle), `"statements":1`},
		{"PUT RDF/XML", data(http.MethodPut, "?graph=urn:long:g3", rdf.RDFXML), `"statements":1`},
	}
	events := subscribe(t, url, `subscription { statementChanged(where: {subject: {eq: "urn:long:knowledge/update"}}) { __typename } }`, nil)
	event := make(chan string, 1)
	go func() { // a client that does not read is cut off
		line, err := "", error(nil)
		for err == nil && !strings.HasPrefix(line, "data: ") { // signs of life
			line, err = events.ReadString('\n')
		}
		event <- fmt.Sprint(err, line)
	}()
	for _, d := range doors {
		subject := "urn:long:" + strings.ReplaceAll(d.name, " ", "-")
		if answer := d.write(subject, text+"x"); !strings.Contains(answer, fmt.Sprintf("a literal of %d bytes is longer than the %d that are taken", most+1, most)) ||
			!strings.Contains(answer, "LIMIT_EXCEEDED") || !strings.Contains(answer, "--max-literal") {
			t.Errorf("%s, a byte longer: %.600s", d.name, answer)
		}
		if answer := d.write(subject, text); !strings.Contains(answer, d.done) {
			t.Errorf("%s: %.600s", d.name, answer)
			continue
		}
		var answer struct {
			Data struct {
				Statements struct {
					Nodes []struct{ Object struct{ Value string } }
				}
			}
		}
		raw := graphql(`query($s: IRI!) { statements(where: {subject: {eq: $s}}, view: {allGraphs: true}) { nodes { object { ... on Literal { value } } } } }`, `{"s":`+jsonText(t, subject)+`}`)
		if err := json.Unmarshal([]byte(raw), &answer); err != nil || len(answer.Data.Statements.Nodes) != 1 || answer.Data.Statements.Nodes[0].Object.Value != text {
			t.Errorf("%s, read by GraphQL: %v, %.600s", d.name, err, raw)
		}
	}

	if got := <-event; !strings.Contains(got, `"object":{"value":`+jsonText(t, text)+`}`) {
		t.Errorf("the event: %.600s", got)
	}
	query := rpc("knowledge/query", `{"query":"{ entity(iri: \"urn:long:applyPatches\") { value(predicate: \"urn:long:text\") } }"}`)
	if !strings.Contains(query, `"value":`+jsonText(t, text)) {
		t.Errorf("knowledge/query: %.600s", query)
	}
	response, err := http.Get(url + "/data?graph=urn:long:g3")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	for q, err := range rdf.Read(response.Body, rdf.Turtle, rdf.Options{}) {
		if err != nil || q.Object.Value() != text {
			t.Errorf("GET /data: %v, %d bytes", err, len(q.Object.Value()))
		}
	}
	if answer := rpc("SendMessage", `{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"data":{"mutations":[`+patch("urn:long:message", text)+`]}}]}}`); !strings.Contains(answer, "more than the limit of 262144 for one message") {
		t.Errorf("a message: %.600s", answer)
	}
	if answer := rpc("knowledge/update", `{"mutations":[`+patch("urn:long:s", text)+`,`+patch("urn:long:s", text)+`]}`); !strings.Contains(answer, "/data accepts RDF of any size") {
		t.Errorf("a body that is too large: %.600s", answer)
	}
}

// TestLoadOfLongLiterals loads them in bulk and as updates, and reads them with a store
// that takes shorter ones only.
func TestLoadOfLongLiterals(t *testing.T) {
	slowtest.WithoutRace(t)
	slowtest.Long(t)
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name+".nq")
		if err := os.WriteFile(path, []byte(longDocument(t, rdf.NQuads, "urn:long:"+name, text)), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	koine := func(args ...string) (string, error) {
		out, err := exec.CommandContext(t.Context(), "koine", args...).CombinedOutput()
		return string(out), err
	}
	store, text, longest := filepath.Join(dir, "d"), longText(kg.DefaultLiteralBytes), longText(kg.MaxLiteralBytes)
	for _, row := range []struct {
		name, text string
		args       []string
		says       string // "": it is loaded
	}{
		{"bulk", text, nil, ""},
		{"updates", text, nil, ""},
		{"long", text + "x", nil, "that are taken"},
		{"longest", longest, []string{"--max-literal", fmt.Sprint(kg.MaxLiteralBytes)}, ""},
		{"longer", longest + "x", []string{"--max-literal", fmt.Sprint(kg.MaxLiteralBytes)}, "that are taken"},
		{"replaced", longest, []string{"--replace", "urn:long:g", "--max-literal", fmt.Sprint(kg.MaxLiteralBytes)}, ""},
		{"flag", text, []string{"--max-literal", fmt.Sprint(kg.MaxLiteralBytes + 1)}, "--max-literal must be between 524288 and 8388608"},
		{"flag", text, []string{"--max-literal", fmt.Sprint(kg.MinLiteralBytes - 1)}, "--max-literal must be between 524288 and 8388608"},
	} {
		out, err := koine(append([]string{"load", "--reserve-mib", "0", "--data", store, file(row.name, row.text)}, row.args...)...)
		if (err != nil) != (row.says != "") || !strings.Contains(out, row.says) {
			t.Errorf("load of %s: %v\n%.600s", row.name, err, out)
		}
	}
	_, url := startServerOn(t, store, "--max-literal", fmt.Sprint(kg.MinLiteralBytes))
	if status, answer := ask(t, http.MethodPost, url+"/graphql", "ann", `{"query":"{ entity(iri: \"urn:long:longest\") { value(predicate: \"urn:long:text\") } }"}`); status != http.StatusOK || !strings.Contains(answer, jsonText(t, longest)) {
		t.Errorf("served: %d %.600s", status, answer)
	}
	export := exec.CommandContext(t.Context(), "koine", "export", "--url", url, "--format", "nquads")
	out, err := export.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := export.Start(); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for q, err := range rdf.Read(bufio.NewReader(out), rdf.NQuads, rdf.Options{LiteralBytes: kg.MaxLiteralBytes}) {
		if err != nil {
			t.Fatal(err)
		}
		got[q.Subject.Value()] = q.Object.Value()
	}
	if err := export.Wait(); err != nil {
		t.Error(err)
	}
	for name, want := range map[string]string{"bulk": text, "updates": text, "longest": longest} {
		if got["urn:long:"+name] != want {
			t.Errorf("%s: the export has %d bytes, want %d", name, len(got["urn:long:"+name]), len(want))
		}
	}
}
