package openintent

import (
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"koine/channels/scope"
	"koine/internal/caller"
)

// sdkEventTypes returns the types of events that the SDK knows: one other type makes it
// refuse a whole list.
func sdkEventTypes(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("testdata/eventtypes.txt")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")[1:]
}

// The types that a client may append are those of the SDK's models.
func TestEventTypesOfTheSDK(t *testing.T) {
	known := sdkEventTypes(t)
	if got := slices.Sorted(maps.Keys(eventTypes)); !slices.Equal(got, known) {
		t.Errorf("got %q, want %q", got, known)
	}
	models, err := os.ReadFile("../../third_party/openintent-sdk/openintent/models.py")
	if err != nil {
		t.Fatal(err)
	}
	_, class, _ := strings.Cut(string(models), "\nclass EventType(str, Enum):\n")
	class, _, _ = strings.Cut(class, "\nclass ")
	var values []string
	for _, found := range regexp.MustCompile(`(?m)^    [A-Z0-9_]+ = "([^"]+)"`).FindAllStringSubmatch(class, -1) {
		values = append(values, found[1])
	}
	slices.Sort(values)
	if values = slices.Compact(values); !slices.Equal(values, known) {
		t.Errorf("the SDK has %q, testdata/eventtypes.txt %q", values, known)
	}
}

// Every type that the server writes is known to the SDK in a list of events: those of the
// domain, and one of another protocol, which becomes a comment.
func TestEventsThatAreWritten(t *testing.T) {
	known := sdkEventTypes(t)
	h := NewHandler(Deps{}, Options{})
	of := func(kind string) string {
		t.Helper()
		data := json.RawMessage(`{"parts":[{"type":"text","text":"x"}]}`)
		e, err := h.eventOf(context.Background(), caller.Caller{}, &scope.Event{Type: kind, Data: data})
		if err != nil {
			t.Fatal(err)
		}
		return e.Type
	}
	types := domainEventTypes(t)
	for _, kind := range types {
		want := kind
		switch kind {
		case scope.EventMessage:
			want = typeMessage
		case scope.EventOverseen:
			want = typeComment
		}
		if kind == scope.EventOverseen { // the SDK has no such type
			want = typeComment
		}
		if got := of(kind); got != want || !slices.Contains(known, got) {
			t.Errorf("an event of type %s is written as %s, which the SDK does not know", kind, got)
		}
	}
	if len(types) < 10 {
		t.Errorf("of the domain only %q were found", types)
	}
	if got := of("io.example.other"); !slices.Contains(known, got) {
		t.Errorf("an event of another protocol is written as %s", got)
	}
	files, err := filepath.Glob("testdata/wire/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(string(text), "rfc:") {
			continue
		}
		for _, found := range regexp.MustCompile(`"sequence":\d+|"intent_id":"[^"]*","event_type":"([^"]+)"`).FindAllStringSubmatch(string(text), -1) {
			if found[1] != "" && !slices.Contains(known, found[1]) {
				t.Errorf("%s shows an event of type %s, which the SDK does not know", file, found[1])
			}
		}
	}
}

// domainEventTypes returns the constants of the domain for types of events.
func domainEventTypes(t *testing.T) (out []string) {
	t.Helper()
	for _, dir := range []string{"../../intents", "../../../channels/scope"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(parsed, func(n ast.Node) bool {
				spec, ok := n.(*ast.ValueSpec)
				if !ok || len(spec.Values) != len(spec.Names) {
					return true
				}
				for i, name := range spec.Names {
					value, ok := spec.Values[i].(*ast.BasicLit)
					if !ok || value.Kind != token.STRING || !eventConstant.MatchString(name.Name) {
						continue
					}
					kind, err := strconv.Unquote(value.Value)
					if err != nil {
						t.Fatal(fmt.Errorf("%s: %w", name.Name, err))
					}
					out = append(out, kind)
				}
				return true
			})
		}
	}
	return out
}

var eventConstant = regexp.MustCompile(`^Event[A-Z]`)
