package main

import (
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/message"
	"koine/channels/scope"
	"koine/cmd/koine/internal/cli"
	"koine/graph/limit"
	"koine/kg/kgtest"
)

// The reference of errors has a row for each code of package kg, and for no other.
func TestErrorsOfTheReference(t *testing.T) {
	text := document(t, "docs/reference/errors.md")
	_, reasons, _ := strings.Cut(text, "\n## Reasons\n")
	reasons, _, _ = strings.Cut(reasons, "\n## ")
	shown := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([A-Z_]+)` \\|").FindAllStringSubmatch(reasons, -1) {
		shown[row[1]] = true
	}
	codes := kgtest.Codes(t, "../../kg")
	if len(codes) < 40 {
		t.Fatalf("package kg has %d codes", len(codes))
	}
	for _, code := range codes {
		if !shown[string(code)] {
			t.Errorf("docs/reference/errors.md has no row for %s", code)
		}
		delete(shown, string(code))
	}
	for code := range shown {
		t.Errorf("docs/reference/errors.md has a row for %s, which no code of package kg is", code)
	}
}

// The reference of limits has the flags of the server with their defaults.
func TestFlagsOfTheLimits(t *testing.T) {
	parser, err := newParser(cli.Terminal{Out: io.Discard, Err: io.Discard}, func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	defaults := map[string]string{}
	walkFlags(parser.Model.Node, func(node *kong.Node, f *kong.Flag) {
		if node.Name == "serve" {
			defaults[f.Name] = f.Default
		}
	})
	rows := regexp.MustCompile("(?m)^\\| `--([a-z-]+)` \\| (\\S+) \\|").FindAllStringSubmatch(document(t, "docs/reference/limits.md"), -1)
	if len(rows) < 10 {
		t.Fatalf("docs/reference/limits.md has %d flags", len(rows))
	}
	for _, row := range rows {
		if is, ok := defaults[row[1]]; !ok || is != row[2] {
			t.Errorf("docs/reference/limits.md says that --%s is %s; it is %q", row[1], row[2], is)
		}
	}
}

// The reference of limits has the bounds that the packages declare.
func TestBoundsOfTheLimits(t *testing.T) {
	text := document(t, "docs/reference/limits.md")
	for _, bound := range []struct {
		row string
		is  int
	}{
		{"`tokens`", limit.DefaultTokens},
		{"`depth`", limit.DefaultDepth},
		{"`fields`", limit.DefaultFields},
		{"`aliases`", limit.DefaultAliases},
		{"`repeats`", limit.DefaultRepeats},
		{"`rootFields`", limit.DefaultRootFields},
		{"`complexity`", limit.DefaultComplexity},
		{"`pageSize`", limit.DefaultMaxPageSize},
		{"`groups`", limit.DefaultGroups},
		{"`groupedValues`", limit.DefaultGroupedValues},
		{"`rows`", limit.DefaultRows},
		{"`keptRows`", limit.DefaultKeptRows},
		{"`reads`", limit.DefaultReads},
		{"`pathNodes`", limit.DefaultPathNodes},
		{"`commits`", limit.DefaultCommits},
		{"name of a channel", channel.MaxNameRunes},
		{"message with its metadata", channel.MaxMessageBytes},
		{"parts, artifacts and tags of a message", message.MaxParts},
		{"page of messages", channels.MaxPage},
		{"members of a channel", channels.DefaultMaxMembers},
		{"channels of a server", channels.DefaultMaxChannels},
		{"channels of an intent with its tasks", scope.MaxChannels},
	} {
		if row := fmt.Sprintf("\n| %s | %s", bound.row, grouped(bound.is)); !strings.Contains(text, row+" ") && !strings.Contains(text, row+",") {
			t.Errorf("docs/reference/limits.md has no row%s", row)
		}
	}
}

// grouped is a number with a comma between groups of three digits.
func grouped(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
