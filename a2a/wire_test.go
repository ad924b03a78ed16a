package a2a_test

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"koine/a2a"
	"koine/internal/sse"
	"koine/kg"
)

var rewrite = flag.Bool("update", false, "write the answers that come into testdata/wire")

// Each file of testdata/wire is a conversation with a fresh server: requests, each
// followed by its whole answer, byte for byte. Values that differ between runs are
// masked. The file's comment names the behavior that it pins.
//
// A request is a JSON body for POST /, or a request line, headers, an empty line and a
// body; a body that begins with a double quote after "go " is a Go string, for bytes
// that a text file cannot hold. ${position} stands for the last position in an answer,
// and likewise ${channel}, ${message}, ${task}, ${token} of a page, and ${event}, the
// id of an event of a stream. The clock advances by a second with each request: append new
// cases at the end of a file, so that the times of the others stay.
func TestWire(t *testing.T) {
	files, err := filepath.Glob("testdata/wire/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no conversations: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { converse(t, file) })
	}
}

func converse(t *testing.T, file string) {
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(archive.Comment) == 0 {
		t.Error("the file does not say what it pins")
	}
	about := &a2a.CardOptions{Version: "test", PublicURL: "https://koine.example", Channels: true, Push: true, Keys: true}
	s := newTestServerWith(t, kg.Options{}, sse.Options{}, a2a.Options{Card: about})
	out := &txtar.Archive{Comment: archive.Comment}
	last := map[string]string{}
	answers := map[string][]byte{}
	for _, f := range archive.Files {
		if name, ok := strings.CutSuffix(f.Name, " =>"); ok {
			answers[name] = f.Data
		}
	}
	for _, f := range archive.Files {
		if strings.HasSuffix(f.Name, " =>") {
			continue
		}
		s.clock.Add(1)
		got := answer(t, s.send(t, f.Data, last))
		for name, member := range remembered {
			if found := member.FindAllStringSubmatch(got, -1); found != nil {
				last[name] = found[len(found)-1][1]
			}
		}
		got = mask(got)
		if strings.HasPrefix(filepath.Base(file), "channels_refused") {
			got = texts.ReplaceAllString(got, `"$1":"…"`)
		}
		want, ok := answers[f.Name]
		if !*rewrite && (!ok || got != string(want)) {
			t.Errorf("%s:\ngot\n%s\nwant\n%s", f.Name, got, want)
		}
		out.Files = append(out.Files, f, txtar.File{Name: f.Name + " =>", Data: []byte(got)})
	}
	if *rewrite {
		if err := os.WriteFile(file, txtar.Format(out), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// texts match the messages for people, which the domain may change.
var texts = regexp.MustCompile(`"(message|detail|hint)":"(?:[^"\\]|\\.)*"`)

// remembered are the members of answers that later requests may refer to.
var remembered = map[string]*regexp.Regexp{
	"position": regexp.MustCompile(`"(?:position|oldestPosition)":"([A-Za-z0-9_-]{20,})"`),
	"channel":  regexp.MustCompile(`"channel":{"id":"([^"]+)"`),
	"token":    regexp.MustCompile(`"nextPageToken":"([^"]+)"`),
	"task":     regexp.MustCompile(`"id":"([0-9a-f-]{36})","contextId"`),
	"message":  regexp.MustCompile(`"event":{"id":"([^"]+)"`),
	"event":    regexp.MustCompile(`(?m)^id: ([A-Za-z0-9_-]{20,})$`),
}

// masks replace values that differ between runs.
var masks = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`"(position|oldestPosition)":"[A-Za-z0-9_-]{20,}"`), `"$1":"<position>"`},
	{regexp.MustCompile(`"cursor":"[A-Za-z0-9_-]{20,}"`), `"cursor":"<cursor>"`},
	{regexp.MustCompile(`"nextPageToken":"[A-Za-z0-9_-]{20,}"`), `"nextPageToken":"<token>"`},
	{regexp.MustCompile(`"(commitId|changeId|id|channelId|correlationId|replyToId|proposalId|taskId|contextId)":"[0-9a-f-]{36}"`), `"$1":"<uuid>"`},
	{regexp.MustCompile(`"name":"tasks/[0-9a-f-]{36}/`), `"name":"tasks/<uuid>/`},
	{regexp.MustCompile(`"messageId":"[0-9a-f]{8}-[0-9a-f-]{27}(-failure)?"`), `"messageId":"<uuid>$1"`},
	{regexp.MustCompile(`(?m)^id: [A-Za-z0-9_-]{20,}$`), `id: <position>`},
	{regexp.MustCompile(`"durationMs":[0-9.]+`), `"durationMs":<ms>`},
	{regexp.MustCompile(`"statementsRead":[0-9]+`), `"statementsRead":<n>`},
}

func mask(text string) string {
	for _, m := range masks {
		text = m.pattern.ReplaceAllString(text, m.with)
	}
	return text
}

// send sends a request as written in the file.
func (s *testServer) send(t *testing.T, text []byte, last map[string]string) *http.Response {
	t.Helper()
	for name, value := range last {
		text = bytes.ReplaceAll(text, []byte("${"+name+"}"), []byte(value))
	}
	method, path, header, body := "POST", "/", http.Header{"Content-Type": {"application/json"}}, strings.TrimSuffix(string(text), "\n")
	if first, rest, _ := strings.Cut(body, "\n"); requestLine.MatchString(first) {
		method, path, _ = strings.Cut(first, " ")
		header = http.Header{}
		for rest != "" {
			var line string
			if line, rest, _ = strings.Cut(rest, "\n"); line == "" {
				break
			}
			name, value, _ := strings.Cut(line, ":")
			header.Set(name, strings.TrimSpace(value))
		}
		body = rest
	}
	if quoted, ok := strings.CutPrefix(body, "go "); ok {
		raw, err := strconv.Unquote(quoted)
		if err != nil {
			t.Fatal(err)
		}
		body = raw
	}
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = header
	resp, err := s.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

var requestLine = regexp.MustCompile(`^[A-Z]+ /\S*$`)

// answer formats the response as in the file.
func answer(t *testing.T, resp *http.Response) string {
	t.Helper()
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d", resp.StatusCode)
	for _, name := range []string{"Content-Type", "Retry-After", "Allow"} {
		if v := resp.Header.Get(name); v != "" {
			fmt.Fprintf(&b, " %s", v)
		}
	}
	b.WriteString("\n")
	if len(body) > 0 {
		fmt.Fprintf(&b, "%s\n", bytes.TrimSuffix(body, []byte("\n")))
	}
	return b.String()
}
