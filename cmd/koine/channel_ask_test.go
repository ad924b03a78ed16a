package main

import (
	"strings"
	"testing"

	"koine/cmd/koine/internal/cli"
)

// An unknown agent is reported after the request was sent, and not if it is refused: then
// the error has the way to add the agent.
func TestAskTellsOfAStrangerOnceAsked(t *testing.T) {
	const card = `{"name": "actor", "url": "http://x/rpc", "capabilities": {"knowledgeGraph": true, "messaging": {"channels": {"version": "0.1"}}}}`
	const noRecord, noDeeds = `{"data": {"agent": null}}`, `{"data": {"audit": {"nodes": []}}}`
	const refused = `{"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": "no", "data": {"reason": "NOT_MEMBER", "field": "recipient", "detail": "agent://zoe is no member of the channel"}}}`
	const published = `{"jsonrpc": "2.0", "id": 1, "result": {"event": {"id": "m", "channelId": "c", "sequence": 3}}}`
	const answered = "data: {\"result\": {\"kind\": \"messageEvent\", \"event\": {\"sequence\": 4, \"messageType\": \"response\", \"correlationId\": \"m\"}}}\n\n"
	ask := func(answers ...string) (code int, text string) {
		var out, said strings.Builder
		args := []string{"channel", "ask", "0192f1c0-0000-7000-8000-000000000000", "Well?", "--recipient", "zoe", "--url", acting(t, card, answers...)}
		code = execute(t.Context(), args, cli.Terminal{In: strings.NewReader(""), Out: &out, Err: &said})
		return code, said.String()
	}
	code, said := ask(noRecord, noDeeds, refused)
	if code != cli.ExitRefused || strings.Contains(said, "Nothing is known") || !strings.Contains(said, "koine channel add") || !strings.Contains(said, "koine channel invite") {
		t.Errorf("refused: ends with %d and says %q", code, said)
	}
	code, said = ask(noRecord, noDeeds, published, published, answered)
	if code != cli.ExitOK || !strings.Contains(said, "The server does not know agent://zoe") {
		t.Errorf("out: ends with %d and says %q", code, said)
	}
}
