package openintent_test

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"koine/channels"
	"koine/channels/scope"
	"koine/internal/dialect/openintent"
	"koine/kg"
)

var rewrite = flag.Bool("update", false, "write the answers that come into testdata/wire")

// Each file of testdata/wire is a conversation with a fresh server: steps, each followed
// by its whole answer, byte for byte. Values that differ between runs are masked. The
// file's comment says what it pins; if it begins with "rfc:", the server writes the names
// of the RFC.
//
// A step is a request line, headers, an empty line and a body. "[a=id]" in the name of a
// step remembers a member of the answer: ${a} stands for it afterwards, and masks it in
// answers. "(4.2)" in a name is the row of testdata/rows.txt that the step shows.
// A step with the header "Read: N" reads N events of a stream, which "[last=id:]" resumes.
func TestWire(t *testing.T) {
	files, err := filepath.Glob("testdata/wire/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no conversations: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			converse(t, file)
		})
	}
}

// conversation is the state of a file.
type conversation struct {
	*server
	known map[string]string
}

func converse(t *testing.T, file string) {
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(archive.Comment) == 0 {
		t.Fatal("the file does not say what it pins")
	}
	c := &conversation{start(t, openintent.Options{RFCNames: strings.HasPrefix(string(archive.Comment), "rfc:")}), map[string]string{}}
	c.known["start"] = c.store.FormatPosition(c.store.Head())
	out := &txtar.Archive{Comment: archive.Comment}
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
		got := c.step(f.Data)
		for _, found := range remembering.FindAllStringSubmatch(f.Name, -1) {
			pattern := `"` + found[2] + `":"([^"]+)"`
			if found[2] == "last" {
				pattern = `(?s).*\nid: (\S+)\n`
			}
			value := regexp.MustCompile(pattern).FindStringSubmatch(got)
			if value == nil {
				t.Fatalf("%s: no %s in %s", f.Name, found[2], got)
			}
			c.known[found[1]] = value[1]
		}
		if strings.HasPrefix(got, "409") && !strings.Contains(string(f.Data), "/leases") && strings.Contains(strings.ToLower(got), "lease") {
			t.Errorf("%s: the SDK takes the answer for a conflict of leases: %s", f.Name, got)
		}
		got = c.mask(got)
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

var (
	remembering = regexp.MustCompile(`[\[ ](\w+)=(\w+)`)
	requestLine = regexp.MustCompile(`^[A-Z]+ /\S*$`)
)

// masks replace values that differ between runs.
var masks = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), `<uuid>`},
	{regexp.MustCompile(`"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00"`), `"<time>"`},
	{regexp.MustCompile(`"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}"`), `"<naive time>"`},
	{regexp.MustCompile(`"[0-9a-f]{64}"`), `"<hash>"`},
	{regexp.MustCompile(`(?m)^id: [A-Za-z0-9_-]{20,}$`), `id: <position>`},
}

func (c *conversation) mask(text string) string {
	names := make([]string, 0, len(c.known))
	for name := range c.known {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		text = strings.ReplaceAll(text, c.known[name], "${"+name+"}")
	}
	for _, m := range masks {
		text = m.pattern.ReplaceAllString(text, m.with)
	}
	return text
}

// step sends a request and returns its answer.
func (c *conversation) step(data []byte) string {
	t := c.t
	for name, value := range c.known {
		data = bytes.ReplaceAll(data, []byte("${"+name+"}"), []byte(value))
	}
	first, rest, _ := strings.Cut(strings.TrimSuffix(string(data), "\n"), "\n")
	if title, ok := strings.CutPrefix(first, "SCOPE "); ok { // an intent, without the paths of §4
		sc, err := c.channels.Scopes().Create(t.Context(), channels.Caller{Principal: kg.Principal{ID: "agent://ann", Method: "key"}},
			scope.Draft{Title: title, Access: scope.Access{Everybody: title != "closed"}})
		if err != nil {
			t.Fatal(err)
		}
		return `{"id":"` + string(sc.ID) + "\"}\n"
	}
	if !requestLine.MatchString(first) {
		t.Fatalf("no request: %s", data)
	}
	method, path, _ := strings.Cut(first, " ")
	header := http.Header{"X-Agent-Id": {"ann"}}
	for rest != "" {
		var line string
		if line, rest, _ = strings.Cut(rest, "\n"); line == "" {
			break
		}
		name, value, _ := strings.Cut(line, ":")
		header.Set(name, strings.TrimSpace(value))
	}
	if rest != "" && header.Get("Content-Type") == "" {
		header.Set("Content-Type", "application/json")
	}
	events := 0
	_, _ = fmt.Sscan(header.Get("Read"), &events)
	header.Del("Read")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, c.URL+path, strings.NewReader(rest))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = header
	response, err := c.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var b strings.Builder
	fmt.Fprintf(&b, "%d", response.StatusCode)
	for _, name := range []string{"Content-Type", "Retry-After", "Allow", "WWW-Authenticate"} {
		if v := response.Header.Get(name); v != "" {
			fmt.Fprintf(&b, " %s", v)
		}
	}
	b.WriteString("\n")
	if response.StatusCode == http.StatusOK && events > 0 {
		lines := bufio.NewReader(response.Body)
		for range events {
			b.WriteString(readEvent(t, lines))
		}
		return b.String()
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if len(body) > 0 {
		fmt.Fprintf(&b, "%s\n", bytes.TrimSuffix(body, []byte("\n")))
	}
	return b.String()
}

// readEvent reads one event of a stream, without comments.
func readEvent(t testing.TB, lines *bufio.Reader) string {
	t.Helper()
	var b strings.Builder
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("the stream ended after %q: %v", b.String(), err)
		}
		switch {
		case strings.HasPrefix(line, ":"):
		case line != "\n":
			b.WriteString(line)
		case b.Len() > 0:
			return b.String() + "\n"
		}
	}
}
