package main

import (
	"strings"
	"testing"

	"koine/cmd/koine/internal/cli"
)

// The command to resume is printed so that it works, and not if the server refused to
// begin.
func TestTailTellsWhereToGoOn(t *testing.T) {
	const card = `{"name": "actor", "url": "http://x/rpc", "capabilities": {"messaging": {"channels": {"version": "0.1"}}}}`
	refusal := func(data string) string {
		return `400 {"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": "no", "data": ` + data + `}}`
	}
	for name, c := range map[string]struct{ answer, said string }{
		"beyond the end":     {refusal(`{"reason": "INVALID", "detail": "the channel has 5 messages"}`), "koine: no: the channel has 5 messages (INVALID)\n"},
		"no longer kept":     {refusal(`{"reason": "POSITION_GONE", "oldestSequence": 5}`), "Continue with --since 4\nkoine: no (POSITION_GONE)\n"},
		"refused meanwhile":  {"data: {\"error\": {\"code\": -31101, \"message\": \"no\", \"data\": {\"reason\": \"CHANNEL_NOT_FOUND\"}}}\n\n", "Continue with --since 1\nkoine: no (CHANNEL_NOT_FOUND)\n"},
		"behind what is new": {"data: {\"result\": {\"kind\": \"messageEvent\", \"event\": {\"sequence\": 2}}}\n\ndata: {\"error\": {\"code\": -31106, \"message\": \"no\", \"data\": {\"reason\": \"POSITION_GONE\", \"oldestSequence\": 5}}}\n\n", "Continue with --since 4\nkoine: no (POSITION_GONE)\n"},
	} {
		var out, said strings.Builder
		args := []string{"channel", "tail", "0192f1c0-0000-7000-8000-000000000000", "--since", "1", "--url", acting(t, card, c.answer)}
		code := execute(t.Context(), args, cli.Terminal{In: strings.NewReader(""), Out: &out, Err: &said})
		if code != cli.ExitRefused || said.String() != c.said {
			t.Errorf("%s: ends with %d and says %q, want %q", name, code, said.String(), c.said)
		}
	}
}

// The end of a channel is no failure of its followers.
func TestTailEndsWithItsChannel(t *testing.T) {
	const card = `{"name": "actor", "url": "http://x/rpc", "capabilities": {"messaging": {"channels": {"version": "0.1"}}}}`
	answer := "data: {\"result\": {\"kind\": \"messageEvent\", \"event\": {\"sequence\": 2}}}\n\ndata: {\"error\": {\"code\": -31108, \"message\": \"the channel is closed\", \"data\": {\"reason\": \"CHANNEL_CLOSED\"}}}\n\n"
	var out, said strings.Builder
	args := []string{"channel", "tail", "0192f1c0-0000-7000-8000-000000000000", "--since", "1", "--url", acting(t, card, answer)}
	code := execute(t.Context(), args, cli.Terminal{In: strings.NewReader(""), Out: &out, Err: &said})
	if code != cli.ExitOK || !strings.HasPrefix(out.String(), "2  ") || said.String() != "The channel is closed and takes no new messages.\n" {
		t.Errorf("ends with %d, prints %q and says %q", code, out.String(), said.String())
	}
}
