package main

import (
	"strings"
	"testing"

	"koine/cmd/koine/internal/cli"
)

// An unknown channel is reported with the command that lists channels.
func TestNoSuchChannel(t *testing.T) {
	const card = `{"name": "actor", "url": "http://x/rpc", "capabilities": {"knowledgeGraph": true, "messaging": {"channels": {"version": "0.1"}}}}`
	var out, said strings.Builder
	url := acting(t, card, `{"jsonrpc": "2.0", "id": 1, "result": {"channels": []}}`, `{"data": {"scopes": {"nodes": [], "pageInfo": {"hasNextPage": false}}}}`)
	code := execute(t.Context(), []string{"channel", "history", "lab", "--url", url}, cli.Terminal{In: strings.NewReader(""), Out: &out, Err: &said})
	if code != cli.ExitRefused || !strings.Contains(said.String(), "koine channel list") {
		t.Errorf("ends with %d and says %q", code, said.String())
	}
}
