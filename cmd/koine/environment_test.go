package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"koine/cmd/koine/internal/cli"
)

// A variable means the same for every command that reads it, and flags of one call have
// none.
func TestVariablesMeanOneThing(t *testing.T) {
	parser, err := newParser(cli.Terminal{Out: io.Discard, Err: io.Discard}, func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	meaning, shared := map[string]string{}, map[string]bool{}
	every := func(node *kong.Node, f *kong.Flag) {
		path := node.FullPath()
		if f.Name != "help" && f.Name != "version" && len(f.Envs) == 0 && (path == "koine" || path == "koine serve") {
			t.Errorf("%s --%s has no variable", path, f.Name)
		}
		for _, name := range f.Envs {
			if strings.HasPrefix(name, "KOINE_") && name != "KOINE_"+strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_")) {
				t.Errorf("%s --%s is %s", path, f.Name, name)
			}
			is := fmt.Sprintf("%s %s %s", f.Target.Type(), f.PlaceHolder, f.Tag.Type)
			if before, ok := meaning[name]; ok && before != is {
				t.Errorf("%s is %q for %s --%s, and elsewhere %q", name, is, path, f.Name, before)
			}
			meaning[name] = is
			if path != "koine" && path != "koine serve" {
				shared[name] = true
			}
		}
	}
	walkFlags(parser.Model.Node, every)
	want := []string{"KOINE_AS", "KOINE_CACERT", "KOINE_DATA", "KOINE_KEY", "KOINE_PREFIX", "KOINE_RESERVE_MIB", "KOINE_URL"}
	if got := slices.Sorted(maps.Keys(shared)); !slices.Equal(got, want) {
		t.Errorf("commands beside serve read %q, want %q", got, want)
	}
}

func walkFlags(node *kong.Node, do func(*kong.Node, *kong.Flag)) {
	for _, f := range node.Flags {
		do(node, f)
	}
	for _, child := range node.Children {
		walkFlags(child, do)
	}
}

// A variable that resembles one of koine's is reported with that one; others are ignored.
func TestMisspeltVariables(t *testing.T) {
	parser, err := newParser(cli.Terminal{Out: io.Discard, Err: io.Discard}, func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"KOINE_LISEN":              "KOINE_LISTEN",
		"KOINE_LOGFORMAT":          "KOINE_LOG_FORMAT",
		"KOINE_PUBLICURL":          "KOINE_PUBLIC_URL",
		"KOINE_DATADIR":            "KOINE_DATA",
		"KOINE_SOAK":               "",
		"KOINE_DATA_DIR":           "KOINE_DATA",
		"KOINE_MAX_STREAM":         "KOINE_MAX_STREAMS",
		"KOINE_LISTEN":             "",
		"KOINE_VERSION":            "",
		"KOINE_SERVICE_HOST":       "",
		"KOINE_PORT_8080_TCP_ADDR": "",
		"HOME":                     "",
	} {
		var said strings.Builder
		warnOfVariables(cli.LogFlags{Format: "text"}.NewLogger(&said), parser.Model.Node, []string{name + "=x"})
		if got := said.String(); (got == "") != (want == "") || !strings.Contains(got, "nearest="+want) && want != "" || strings.Contains(got, "=x") {
			t.Errorf("%s: told %q, want %q named", name, got, want)
		}
	}
}
