package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"koine/internal/slowtest"
)

// anyMade is an id or a position that the server generates: an operation uses the one from
// an earlier answer.
var anyMade = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}|\bA[0-9A-Za-z_-]{38}\b`)

// The GraphQL examples of the documents are correct: each operation in them is sent to a
// demo server, in their order, and the text below it is the answer (of a subscription the
// first event with content), without the revision and position that every answer has. An
// operation that begins with a line "# asked by NAME" is that agent's. With UPDATE_README=1
// the answers are written into them.
func TestGuide(t *testing.T) {
	slowtest.Long(t)
	for _, name := range []string{"concepts", "modelling", "guide/queries", "guide/history", "guide/channels", "operations"} {
		t.Run(name, func(t *testing.T) { followGuide(t, "../../docs/"+name+".md") })
	}
}

func followGuide(t *testing.T, path string) {
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, url := startServer(t, "--demo")
	n, made := 0, map[string]string{} // ids and positions by those that are shown
	updated := exchanges.ReplaceAllStringFunc(string(text), func(block string) string {
		n++
		parts := exchanges.FindStringSubmatch(block)
		query := anyMade.ReplaceAllStringFunc(parts[1], func(id string) string {
			if known := made[id]; known != "" {
				return known
			}
			return id
		})
		answer := askGuide(t, url, query)
		shown, now := anyMade.FindAllString(parts[2], -1), anyMade.FindAllString(answer, -1)
		for i := range min(len(shown), len(now)) {
			made[shown[i]] = now[i]
		}
		return "```graphql\n" + query + "```\n```json\n" + answer + "\n```"
	})
	if all := strings.Count(string(text), "```graphql"); n == 0 || n != all {
		t.Errorf("%d of %d operations have an answer below them", n, all)
	}
	if os.Getenv("UPDATE_README") != "" {
		if err := os.WriteFile(path, []byte(updated), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	masked := func(s string) string { return guideMasks.ReplaceAllString(mask(s), "…") }
	if diff := cmp.Diff(masked(string(text)), masked(updated)); diff != "" {
		t.Errorf("what %s shows is not what happens (-shown +happens); UPDATE_README=1 writes it:\n%s", path, diff)
	}
}

// exchanges are an operation and its answer.
var exchanges = regexp.MustCompile("(?s)```graphql\n([^`]*)```\n```json\n([^`]*)```")

// guideMasks are the parts that differ from run to run, beside masks: the ids of keys.
var guideMasks = regexp.MustCompile(`"id": ?"[0-9A-Za-z]{12}"`)

// secretOfKey is a key, which no document shows whole.
var secretOfKey = regexp.MustCompile(`ak_live_[0-9A-Za-z]{12}_[0-9A-Za-z]{43}`)

// askedBy is the line with the agent of an operation.
var askedBy = regexp.MustCompile(`^# asked by (\w+)\n`)

func askGuide(t *testing.T, url, query string) string {
	t.Helper()
	body, err := json.Marshal(map[string]string{"query": query})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), slowtest.Slack(2*time.Minute)) // of an event that never comes
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/graphql", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream;q=0.5")
	if by := askedBy.FindStringSubmatch(query); by != nil {
		req.Header.Set("X-Agent-ID", by[1])
	}
	live := strings.HasPrefix(askedBy.ReplaceAllString(query, ""), "subscription")
	if live {
		req.Header.Set("Accept", "text/event-stream")
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if live {
		event, err := firstNext(res.Body)
		if err != nil {
			t.Fatalf("no event: %v\n%s", err, query)
		}
		return readable(t, event, "hints") // whether there are some goes by when it was asked
	}
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return secretOfKey.ReplaceAllString(readable(t, text), "ak_live_…")
}

// firstNext is the data of the first event `next` of a stream with content.
func firstNext(r io.Reader) ([]byte, error) {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		if data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: ")); ok && !upToDate.Match(data) {
			return data, nil
		}
	}
	return nil, errors.Join(io.ErrUnexpectedEOF, lines.Err())
}

// upToDate is an event with a position only.
var upToDate = regexp.MustCompile(`^\{"data":\{"\w+":\{("position":"[^"]*")?\}\}`)

// readable formats an answer for people: parts that fit are on one line. Beside its
// revision and position it omits these extensions.
func readable(t *testing.T, answer []byte, without ...string) string {
	t.Helper()
	var a struct {
		Errors     json.RawMessage            `json:"errors,omitempty"`
		Data       json.RawMessage            `json:"data,omitempty"`
		Extensions map[string]json.RawMessage `json:"extensions,omitempty"`
	}
	if err := json.Unmarshal(answer, &a); err != nil {
		t.Fatalf("%v in %s", err, answer)
	}
	for _, name := range append(without, "revision", "position") {
		delete(a.Extensions, name)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(a); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	layOut(&out, bytes.TrimSpace(b.Bytes()), "")
	return out.String()
}

// lineWidth is how long a line of an answer may be.
const lineWidth = 110

// layOut writes a JSON text, a list or an object that is too long for a line
// with each of its elements on a line of its own.
func layOut(out *strings.Builder, text []byte, indent string) {
	if len(indent)+len(text) <= lineWidth || text[0] != '{' && text[0] != '[' {
		out.Write(text)
		return
	}
	out.WriteByte(text[0])
	dec := json.NewDecoder(bytes.NewReader(text))
	_, _ = dec.Token() // the bracket; the text was encoded above
	for i := 0; dec.More(); i++ {
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteString("\n" + indent + "  ")
		if text[0] == '{' {
			key, _ := dec.Token()
			name, _ := json.Marshal(key)
			out.Write(name)
			out.WriteString(": ")
		}
		var element json.RawMessage
		_ = dec.Decode(&element)
		layOut(out, element, indent+"  ")
	}
	out.WriteString("\n" + indent)
	out.WriteByte(text[len(text)-1])
}
