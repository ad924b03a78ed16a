package agentchat_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/rogpeppe/go-internal/txtar"

	"koine/channels"
	"koine/internal/dialect/agentchat"
)

var rewrite = flag.Bool("update", false, "write the answers that come into testdata/wire")

// Each file of testdata/wire is a conversation with a fresh server: steps, each followed
// by its whole answer, byte for byte. Values that differ between runs are masked. The
// file's comment says what it pins, and its first word may be the options of the server:
// "public", "keys", "off" or "oversee", in which ${ova} is a key with the role of overseers.
//
// A step is a request line, headers, an empty line and a body; or "SOCKET name", lines
// that begin with "open PATH" (and headers), "> frame" or "read N" (N frames, sorted,
// because answers and events are not ordered among each other) or "close" (until it is
// closed). "[ann=api_key]" in the name of a step remembers a member of the answer: ${ann}
// stands for it afterwards, and masks it in answers.
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
	known   map[string]string
	sockets map[string]*peer
}

func converse(t *testing.T, file string) {
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(archive.Comment) == 0 {
		t.Fatal("the file does not say what it pins")
	}
	o, co := agentchat.Options{Registration: agentchat.RegisterOpen}, channels.Options{}
	switch first, _, _ := strings.Cut(string(archive.Comment), ":"); first {
	case "public":
		o.PublicDirectory = true
	case "keys":
		o.Registration = agentchat.RegisterKeys
	case "off":
		o.Registration = agentchat.RegisterOff
	case "oversee":
		co.OverseerRole = "auditor"
	}
	c := &conversation{startWith(t, o, co), map[string]string{}, map[string]*peer{}}
	if co.OverseerRole != "" {
		c.known["ova"] = c.keyWith("ova", co.OverseerRole)
	}
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
			value := regexp.MustCompile(`"` + found[2] + `":"([^"]+)"`).FindStringSubmatch(got)
			if value == nil {
				t.Fatalf("%s: no %s in %s", f.Name, found[2], got)
			}
			c.known[found[1]] = value[1]
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
	{regexp.MustCompile(`ak_(live|test)_[0-9A-Za-z_]{40,}`), `<ak_$1>`},
	{regexp.MustCompile(`ag_[a-z0-9]{20}`), `<agent>`},
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), `<uuid>`},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`), `<time>`},
	{regexp.MustCompile(`"day":"\d{4}-\d\d-\d\d"`), `"day":"<day>"`},
	{regexp.MustCompile(`"next_cursor":"[A-Za-z0-9_-]{20,}"`), `"next_cursor":"<cursor>"`},
	{regexp.MustCompile(`"retry_after_ms":\d+`), `"retry_after_ms":<ms>`},
	{regexp.MustCompile(` retry=\d+`), ` retry=<s>`},
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

// expand replaces the names of remembered values; ${long N} is a text of N letters.
func (c *conversation) expand(text []byte) string {
	for name, value := range c.known {
		text = bytes.ReplaceAll(text, []byte("${"+name+"}"), []byte(value))
	}
	return long.ReplaceAllStringFunc(string(text), func(found string) string {
		n, _ := strconv.Atoi(long.FindStringSubmatch(found)[1])
		return strings.Repeat("x", n)
	})
}

var long = regexp.MustCompile(`\$\{long (\d+)\}`)

// step executes a step and returns its answer.
func (c *conversation) step(data []byte) string {
	c.t.Helper()
	text := strings.TrimSuffix(c.expand(data), "\n")
	first, rest, _ := strings.Cut(text, "\n")
	if name, ok := strings.CutPrefix(first, "SOCKET "); ok {
		return c.onSocket(name, rest)
	}
	method, path, ok := strings.Cut(first, " ")
	if !ok || !requestLine.MatchString(first) {
		c.t.Fatalf("not a request: %s", first)
	}
	r, err := http.NewRequestWithContext(c.t.Context(), method, c.URL+path, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	for rest != "" {
		var line string
		if line, rest, _ = strings.Cut(rest, "\n"); line == "" {
			break
		}
		name, value, _ := strings.Cut(line, ":")
		r.Header.Set(name, strings.TrimSpace(value))
	}
	if rest != "" {
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(rest)), int64(len(rest))
		if r.Header.Get("Content-Type") == "" {
			r.Header.Set("Content-Type", "application/json")
		}
	}
	resp, err := c.Client().Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprint(&b, resp.StatusCode)
	for _, name := range []string{"Content-Type", "Allow", "WWW-Authenticate", "Upgrade"} {
		if v := resp.Header.Get(name); v != "" {
			fmt.Fprint(&b, " ", v)
		}
	}
	if v := resp.Header.Get("Retry-After"); v != "" {
		fmt.Fprint(&b, " retry=", v)
	}
	b.WriteString("\n")
	b.Write(body)
	return b.String()
}

// onSocket executes the lines of a step on a socket and returns the frames that it read.
func (c *conversation) onSocket(name, lines string) string {
	c.t.Helper()
	var b strings.Builder
	for line := range strings.SplitSeq(lines, "\n") {
		verb, rest, _ := strings.Cut(line, " ")
		p := c.sockets[name]
		switch verb {
		case "open":
			path, header, _ := strings.Cut(rest, " ")
			o := &websocket.DialOptions{HTTPHeader: http.Header{}}
			if field, value, ok := strings.Cut(header, ": "); ok {
				o.HTTPHeader.Set(field, value)
			}
			conn, _, err := websocket.Dial(c.t.Context(), c.URL+path, o)
			if err != nil {
				c.t.Fatal(err)
			}
			conn.SetReadLimit(1 << 20)
			c.t.Cleanup(func() { _ = conn.CloseNow() })
			c.sockets[name] = &peer{c.t, conn}
		case ">":
			p.send(rest)
		case "read":
			n, err := strconv.Atoi(rest)
			if err != nil {
				c.t.Fatal(err)
			}
			var frames []string
			for range n {
				frame, err := p.read()
				if err != nil {
					c.t.Fatalf("%s: %v after %q", name, err, frames)
				}
				frames = append(frames, "< "+frame+"\n")
			}
			slices.Sort(frames)
			b.WriteString(strings.Join(frames, ""))
		case "close":
			for {
				frame, err := p.read()
				var closed websocket.CloseError
				if errors.As(err, &closed) {
					fmt.Fprintf(&b, "closed %d %s\n", closed.Code, closed.Reason)
					break
				}
				if err != nil {
					c.t.Fatal(err)
				}
				fmt.Fprintf(&b, "< %s\n", frame)
			}
		case "hangup":
			_ = p.conn.Close(websocket.StatusNormalClosure, "")
		default:
			c.t.Fatalf("not a line of a socket: %s", line)
		}
	}
	return b.String()
}
