// Package wiretest runs conversations with a server, and compares its answers byte for byte.
//
// Each file of testdata/wire is a conversation with a fresh server: steps, each followed by
// its whole answer. The file's comment names the behavior that it pins. Values that differ
// between runs are masked. With -update the answers that come are written into the files.
//
// A step is a request line, headers, an empty line and a body, or has another form of its
// protocol. "[ann=id]" in the name of a step remembers a member of the answer, and
// "[e=last]" the id of its last event: ${ann} stands for the value afterwards, and masks it
// in answers. ${long N} is a text of N letters.
//
// Begin with Run.
package wiretest

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"koine/internal/slowtest"
)

var rewrite = flag.Bool("update", false, "write the answers that come into testdata/wire")

// Conversation is a file while it runs.
type Conversation struct {
	*testing.T
	// Comment is that of the file.
	Comment string
	// Known are the remembered values, by their names.
	Known map[string]string
}

// Masks replace the values that differ between runs.
type Masks []mask

type mask struct {
	pattern *regexp.Regexp
	with    string
}

// NewMasks returns the masks of patterns, each with its replacement behind it.
func NewMasks(pairs ...string) (out Masks) {
	for pair := range slices.Chunk(pairs, 2) {
		out = append(out, mask{regexp.MustCompile(pair[0]), pair[1]})
	}
	return out
}

// Apply returns a text with its values replaced.
func (m Masks) Apply(text string) string {
	for _, mask := range m {
		text = mask.pattern.ReplaceAllString(text, mask.with)
	}
	return text
}

// Run runs each file. start starts its server, and returns the function that executes a
// step and returns the answer.
func Run(t *testing.T, masks Masks, start func(*Conversation) func(step string) string) {
	for _, file := range files(t) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive := read(t, file)
			if len(archive.Comment) == 0 {
				t.Fatal("the file does not say what it pins")
			}
			c := &Conversation{t, string(archive.Comment), map[string]string{}}
			c.run(archive, masks, start(c))
			if *rewrite {
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// run executes the steps and replaces their answers in the archive.
func (c *Conversation) run(archive *txtar.Archive, masks Masks, step func(string) string) {
	answers := map[string]string{}
	for _, f := range archive.Files {
		answers[f.Name] = string(f.Data)
	}
	var out []txtar.File
	for _, f := range archive.Files {
		if strings.HasSuffix(f.Name, answerSuffix) {
			continue
		}
		got := step(c.expand(string(f.Data)))
		c.remember(f.Name, got)
		got = c.mask(got, masks)
		if want, ok := answers[f.Name+answerSuffix]; !*rewrite && (!ok || got != want) {
			c.Errorf("%s:\ngot\n%s\nwant\n%s", f.Name, got, want)
		}
		out = append(out, f, txtar.File{Name: f.Name + answerSuffix, Data: []byte(got)})
	}
	archive.Files = out
}

const answerSuffix = " =>"

var (
	remembering = regexp.MustCompile(`[\[ ](\w+)=(\w+)`)
	long        = regexp.MustCompile(`\$\{long (\d+)\}`)
)

func (c *Conversation) remember(name, answer string) {
	for _, found := range remembering.FindAllStringSubmatch(name, -1) {
		pattern := `"` + found[2] + `":"([^"]+)"`
		if found[2] == "last" {
			pattern = `(?s).*\nid: (\S+)\n`
		}
		value := regexp.MustCompile(pattern).FindStringSubmatch(answer)
		if value == nil {
			c.Fatalf("%s: no %s in %s", name, found[2], answer)
		}
		c.Known[found[1]] = value[1]
	}
}

func (c *Conversation) expand(text string) string {
	for name, value := range c.Known {
		text = strings.ReplaceAll(text, "${"+name+"}", value)
	}
	return long.ReplaceAllStringFunc(text, func(found string) string {
		n, _ := strconv.Atoi(long.FindStringSubmatch(found)[1])
		return strings.Repeat("x", n)
	})
}

func (c *Conversation) mask(text string, masks Masks) string {
	for _, name := range slices.Sorted(maps.Keys(c.Known)) {
		text = strings.ReplaceAll(text, c.Known[name], "${"+name+"}")
	}
	return masks.Apply(text)
}

var requestLine = regexp.MustCompile(`^[A-Z]+ /\S*$`)

// IsRequest reports whether a step is a request.
func IsRequest(step string) bool {
	first, _, _ := strings.Cut(step, "\n")
	return requestLine.MatchString(first)
}

// NewRequest returns the request that a step is, to the server at the address base, with
// the headers of defaults that it does not have.
func NewRequest(t testing.TB, base, step string, defaults http.Header) *http.Request {
	t.Helper()
	if !IsRequest(step) {
		t.Fatalf("not a request: %s", step)
	}
	first, rest, _ := strings.Cut(strings.TrimSuffix(step, "\n"), "\n")
	method, path, _ := strings.Cut(first, " ")
	header := http.Header{}
	maps.Copy(header, defaults)
	for rest != "" {
		var line string
		if line, rest, _ = strings.Cut(rest, "\n"); line == "" {
			break
		}
		name, value, _ := strings.Cut(line, ":")
		header.Set(name, strings.TrimSpace(value))
	}
	r, err := http.NewRequestWithContext(slowtest.Context(t), method, base+path, strings.NewReader(rest))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = header
	return r
}

// Do sends a request.
func Do(t testing.TB, client *http.Client, r *http.Request) *http.Response {
	t.Helper()
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

// Head returns the first line of an answer: its status, and the named headers that it has.
// A name may have a label, as in "retry=Retry-After".
func Head(resp *http.Response, names ...string) string {
	out := strconv.Itoa(resp.StatusCode)
	for _, name := range names {
		label, field, ok := strings.Cut(name, "=")
		if label += "="; !ok {
			label, field = "", name
		}
		if value := resp.Header.Get(field); value != "" {
			out += " " + label + value
		}
	}
	return out + "\n"
}

// Answer returns an answer as files have it: its head and its body.
func Answer(t testing.TB, resp *http.Response, names ...string) string {
	t.Helper()
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if len(body) > 0 {
		body = fmt.Appendf(nil, "%s\n", bytes.TrimSuffix(body, []byte("\n")))
	}
	return Head(resp, names...) + string(body)
}

// Exchange is a step of a file with its answer.
type Exchange struct{ File, Name, Step, Answer string }

// Exchanges returns those of all files.
func Exchanges(t testing.TB) (out []Exchange) {
	t.Helper()
	for _, file := range files(t) {
		steps := read(t, file).Files
		for i, f := range steps {
			if strings.HasSuffix(f.Name, answerSuffix) {
				continue
			}
			if i+1 == len(steps) || steps[i+1].Name != f.Name+answerSuffix {
				t.Fatalf("%s: %s has no answer", file, f.Name)
			}
			out = append(out, Exchange{file, f.Name, string(f.Data), string(steps[i+1].Data)})
		}
	}
	return out
}

func files(t testing.TB) []string {
	t.Helper()
	found, err := filepath.Glob("testdata/wire/*.txtar")
	if err != nil || len(found) == 0 {
		t.Fatalf("no conversations: %v", err)
	}
	return found
}

func read(t testing.TB, file string) *txtar.Archive {
	t.Helper()
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return archive
}
