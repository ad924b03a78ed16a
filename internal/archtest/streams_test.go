package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// besideStreams lists the files that write Server-Sent Events without r3labs/sse, with the reason and
// what it amounts to. Every other event stream goes through sse.Stream.
var besideStreams = map[string]string{
	"internal/sse/single.go":                     "a refusal in one event: 1 write, after which the answer ends; no place among the streams, no heartbeat",
	"internal/dialect/modelcontext/heartbeat.go": "the library of the protocol frames its own streams, each with a place of sse.Server; 1 comment of 3 bytes for each interval of silence",
}

var writesEvents = regexp.MustCompile(`Set\("Content-Type", "text/event-stream"\)|\[\]byte\(": \\n`)

func TestEventStreamsGoThroughOnePackage(t *testing.T) {
	used := map[string]bool{}
	err := filepath.WalkDir("../..", func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(filepath.ToSlash(path), "../../")
		if d.IsDir() {
			if name == "internal/third_party" || strings.HasPrefix(d.Name(), ".") && d.Name() != ".." {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil || !writesEvents.Match(text) {
			return err
		}
		used[name] = true
		if besideStreams[name] == "" {
			t.Errorf("%s writes Server-Sent Events: let sse.Stream write them, or list it with its figure", name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range besideStreams {
		if !used[name] {
			t.Errorf("%s does not write Server-Sent Events any more: take it off the list", name)
		}
	}
}
