package main

import (
	"fmt"
	"strings"
	"testing"

	"koine/cmd/koine/internal/cli"
)

// An unknown position is refused with the valid ones.
func TestInboxFromNowhere(t *testing.T) {
	var out, said strings.Builder
	url := acting(t, actingCard, `{"errors": [{"message": "the position is not of this log", "extensions": {"code": "POSITION_GONE", "hint": "start from a snapshot"}}]}`)
	code := execute(t.Context(), []string{"channel", "inbox", "--from", "rubbish", "--url", url}, cli.Terminal{In: strings.NewReader(""), Out: &out, Err: &said})
	if code != cli.ExitRefused || !strings.Contains(said.String(), "--from takes the position that koine channel inbox printed last") || strings.Contains(said.String(), "snapshot") {
		t.Errorf("ends with %d and says %q", code, said.String())
	}
}

// An inbox is read page by page, an empty one included, until its end or the limit; then
// the command prints the position.
func TestInboxIsReadPageByPage(t *testing.T) {
	page := func(position string, more bool, sequences ...int) string {
		var nodes []string
		for _, n := range sequences {
			nodes = append(nodes, fmt.Sprintf(`{"channelId": "c", "sequence": %d, "timestamp": "2026-01-31T10:00:00Z", "author": "agent://a", "withheld": "EXPIRED", "retracts": {"id": "m", "sequence": 1}}`, n))
		}
		return fmt.Sprintf(`{"data": {"inbox": {"nodes": [%s], "pageInfo": {"endCursor": %q, "hasNextPage": %t}}}}`, strings.Join(nodes, ","), position, more)
	}
	line := func(n int) string {
		return fmt.Sprintf("c  %d  2026-01-31 10:00:00Z  agent://a  retracts 1  (expired)\n", n)
	}
	for name, c := range map[string]struct {
		count   string
		answers []string
		printed string
		said    string
	}{
		"to its end": {"0", []string{page("p1", true, 1, 2), page("p2", true), page("p3", false, 3)}, line(1) + line(2) + line(3), "p3"},
		"so many":    {"3", []string{page("p1", true, 1, 2), page("p2", true, 3)}, line(1) + line(2) + line(3), "p2"},
	} {
		var out, said strings.Builder
		args := []string{"channel", "inbox", "--count", c.count, "--url", acting(t, actingCard, c.answers...)}
		code := execute(t.Context(), args, cli.Terminal{In: strings.NewReader(""), Out: &out, Err: &said})
		if code != cli.ExitOK || out.String() != c.printed || said.String() != "Continue with --from "+c.said+"\n" {
			t.Errorf("%s: ends with %d, prints %q and says %q", name, code, out.String(), said.String())
		}
	}
}
