package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"koine/cmd/koine/internal/cli"
	"koine/internal/slowtest"
)

// acting is a server that has a card and then sends the given answers: the first, then the
// second, and so on. One that begins with "data:" or "id:" is a stream, one with a number
// has that status.
func acting(t *testing.T, card string, answers ...string) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			fmt.Fprint(w, card)
			return
		}
		if strings.HasSuffix(r.URL.Path, "/graphql") {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			if strings.Contains(string(body), "vocabulary { prefixes") {
				fmt.Fprint(w, `{"data": {"vocabulary": {"prefixes": []}}}`)
				return
			}
		}
		if len(answers) == 0 {
			t.Errorf("asked once too often: %s", r.URL)
			return
		}
		answer := answers[0]
		answers = answers[1:]
		var status int
		switch _, err := fmt.Sscanf(answer, "%d ", &status); {
		case err == nil:
			w.WriteHeader(status)
			answer = answer[4:]
		case strings.HasPrefix(answer, "data:"), strings.HasPrefix(answer, "id:"):
			w.Header().Set("Content-Type", "text/event-stream")
		}
		fmt.Fprint(w, answer)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

const actingCard = `{"name": "actor", "url": "http://x/rpc", "capabilities": {"knowledgeGraph": true}}`

// A server's answer decides the output and the exit code of the program.
func TestAnswersOfServers(t *testing.T) {
	t.Setenv("KOINE_KEY", "")
	rpc := func(data string) string {
		return `{"jsonrpc": "2.0", "id": 1, "error": {"code": -32010, "message": "Query failed", "data": ` + data + `}}`
	}
	for name, c := range map[string]struct {
		card   string
		answer string
		code   int
		said   string
	}{
		"an answer":      {"", `{"result": {"data": {"revision": 7}, "queryMetadata": {}}}`, cli.ExitOK, ""},
		"part of one":    {"", `{"result": {"data": {"a": null}, "queryMetadata": {"errors": [{"message": "gone", "path": ["a", 0], "extensions": {"code": "NOT_FOUND"}}]}}}`, cli.ExitRefused, "koine: the answer has errors\n  a.0: gone (NOT_FOUND)\n"},
		"a refusal":      {"", rpc(`{"reason": "INVALID", "field": "query", "detail": "is empty", "hint": "Say something."}`), cli.ExitRefused, "koine: <query>: is empty (INVALID)\nSay something.\n"},
		"several":        {"", rpc(`{"reason": "INVALID", "errors": [{"message": "one", "path": ["x"]}, {"message": "two", "extensions": {"code": "TIMEOUT"}}]}`), cli.ExitRefused, "koine: Query failed (INVALID)\n  x: one\n  two (TIMEOUT)\n"},
		"of GraphQL":     {"", rpc(`{"reason": "INVALID", "errors": [{"message": "Query failed", "path": ["x"]}, {"message": "two", "extensions": {"code": "TIMEOUT"}}]}`), cli.ExitRefused, "koine: x: Query failed (INVALID)\n  two (TIMEOUT)\n"},
		"one of GraphQL": {"", rpc(`{"reason": "INVALID", "errors": [{"message": "Query failed", "path": ["x"]}]}`), cli.ExitRefused, "koine: Query failed (INVALID)\n"},
		"later":          {"", "429 " + rpc(`{"reason": "RATE_LIMITED", "retryAfterMs": 1}`), cli.ExitFailure, "koine: Query failed (RATE_LIMITED)\n"},
		"at its end":     {"", "503 " + rpc(`{"reason": "SERVER_SHUTDOWN"}`), cli.ExitFailure, "koine: Query failed (SERVER_SHUTDOWN)\n"},
		"a fault":        {"", rpc(`{"reason": "INTERNAL"}`), cli.ExitFailure, "koine: Query failed (INTERNAL)\n"},
		"a failed disk":  {"", rpc(`{"reason": "READ_ONLY"}`), cli.ExitFailure, "koine: Query failed (READ_ONLY)\n"},
		"a damaged log":  {"", rpc(`{"reason": "LOG_DAMAGED"}`), cli.ExitDamaged, "koine: Query failed (LOG_DAMAGED)\n"},
		"no reason":      {"", rpc(`null`), cli.ExitRefused, "koine: Query failed\n"},
		"no credential":  {"", "401 " + rpc(`{"reason": "UNAUTHENTICATED", "hint": "Send a key as Authorization: Bearer …"}`), cli.ExitRefused, "koine: Query failed (UNAUTHENTICATED)\nSet KOINE_KEY to a key or a token.\n"},
		"a bad one":      {"", "401 " + rpc(`{"reason": "UNAUTHENTICATED", "hint": "Get a new one."}`), cli.ExitRefused, "koine: Query failed (UNAUTHENTICATED)\nGet a new one.\n"},
		"a proxy":        {"", "502 <html>", cli.ExitFailure, "koine: the server answered 502 Bad Gateway: <html>\n"},
		"nonsense":       {"", "<html>", cli.ExitFailure, "koine: the response is not JSON-RPC: "},
		"another agent":  {`{"name": "parrot", "url": "http://x/rpc"}`, "", cli.ExitRefused, `does not announce the knowledge graph extension (CAPABILITY_MISSING)`},
		"no agent":       {"hello", "", cli.ExitFailure, "has no valid agent card\n"},
		"one that moved": {"", "308 ", cli.ExitFailure, "koine: the server answered 308 Permanent Redirect\n"},
	} {
		if c.card == "" {
			c.card = actingCard
		}
		var out, said strings.Builder
		code := execute(t.Context(), []string{"query", "{ revision }", "--url", acting(t, c.card, c.answer)}, cli.Terminal{In: strings.NewReader(""), Out: &out, Err: &said})
		if code != c.code || !strings.Contains(said.String(), c.said) || (c.code == cli.ExitOK) != (said.String() == "") {
			t.Errorf("%s: ends with %d and says %q, want %d and %q", name, code, said.String(), c.code, c.said)
		}
	}
}

// A replaced graph is a line, a row or an object, and its present statements follow.
func TestWatchTellsOfAReplacedGraph(t *testing.T) {
	slowtest.Long(t)
	event := func(id, member string) string { return fmt.Sprintf("id: %s\ndata: {%s}\n\n", id, member) }
	replaced := `"result": {"op": "graphReplaced", "graph": "urn:g", "timestamp": "2026-01-02T03:04:05Z", "changeMetadata": {"revision": 7, "actor": "agent://a", "justification": "why", "position": "p1", "counts": {"statementsBefore": 3, "statementsAfter": 4, "statementsAdded": 2, "statementsRemoved": 1}}}`
	for flag, want := range map[string]string{
		"":       "! 7  urn:g was replaced: 2 statements added, 1 removed, it had 3 and has 4  by agent://a  (why)\n! resync: the current state follows\n",
		"--csv":  "op,revision,time,subject,predicate,object,graph,certainty,source,actor,justification\ngraphReplaced,7,2026-01-02T03:04:05Z,,,,urn:g,,,agent://a,why\nresync,,,,,,,,,,\n",
		"--json": `{"op":"graphReplaced","graph":"urn:g"`,
	} {
		url := acting(t, actingCard,
			event("p1", replaced)+event("p1", `"error": {"code": -32012, "message": "the graph was replaced", "data": {"reason": "RESYNC"}}`),
			event("p2", `"result": {"op": "add", "statement": {"subject": {"id": "urn:s"}, "predicate": {"id": "urn:p"}, "object": {"value": 1}}, "changeMetadata": {"revision": 7, "source": "agent://s", "position": "p2", "snapshot": true, "snapshotEnd": true}}`),
			"403 "+`{"error": {"code": -32012, "message": "no more", "data": {"reason": "PERMISSION_DENIED"}}}`,
		)
		args := []string{"watch", "--url", url}
		if flag != "" {
			args = append(args, flag)
		}
		var out, said strings.Builder
		execute(t.Context(), args, cli.Terminal{In: strings.NewReader(""), Out: &out, Err: &said})
		if !strings.HasPrefix(out.String(), want) || !strings.HasPrefix(said.String(), "the statements shown may be outdated (the graph was replaced); rereading them in ") {
			t.Errorf("%s: told\n%s\nand said %s", flag, out.String(), said.String())
		}
	}
}

// After the replacement of a whole graph, its statements are read again as of the
// replacement, and the subscription continues behind it. A server that does not answer the
// query is followed from a snapshot of everything, like one that has no position to
// continue from.
func TestWatchRereadsAReplacedGraph(t *testing.T) {
	slowtest.Long(t)
	event := func(id, member string) string { return fmt.Sprintf("id: %s\ndata: {%s}\n\n", id, member) }
	replaced := event("p1", `"result": {"op": "graphReplaced", "graph": "urn:g", "timestamp": "2026-01-02T03:04:05Z", "changeMetadata": {"revision": 7, "actor": "agent://a", "position": "p1"}}`) +
		event("p1", `"error": {"code": -32012, "message": "the graph was replaced", "data": {"reason": "RESYNC", "oldestPosition": "p2"}}`)
	page := func(subject, more string) string {
		return `{"data": {"statements": {"nodes": [{"subject": {"id": "` + subject + `"}, "predicate": "urn:p", "object": {"value": 1}, "graph": "urn:g", "revision": 7, "assertions": [{"source": "agent://s", "certainty": 0.5, "revision": 7}]}], "pageInfo": {"hasNextPage": ` + more + `, "endCursor": "c1"}}}}`
	}
	behind := event("p3", `"result": {"op": "add", "statement": {"subject": {"id": "urn:z"}, "predicate": {"id": "urn:p"}, "object": {"value": 3}}, "changeMetadata": {"revision": 8, "source": "agent://s", "position": "p3"}}`)
	end := "403 " + `{"error": {"code": -32012, "message": "no more", "data": {"reason": "PERMISSION_DENIED"}}}`
	whole := event("p3", `"result": {"op": "add", "statement": {"subject": {"id": "urn:w"}, "predicate": {"id": "urn:p"}, "object": {"value": 2}}, "changeMetadata": {"revision": 7, "source": "agent://s", "position": "p3", "snapshot": true, "snapshotEnd": true}}`)
	for name, c := range map[string]struct {
		flags   []string
		answers []string
		want    string
	}{
		"lines": {nil, []string{replaced, page("urn:x", "true"), page("urn:y", "false"), behind, end},
			"! 7  urn:g was replaced  by agent://a\n! resync: the current state of urn:g follows\n= 7  urn:x  urn:p  1  in urn:g  0.5  by agent://s\n= 7  urn:y  urn:p  1  in urn:g  0.5  by agent://s\n+ 8  urn:z  urn:p  3  by agent://s\n"},
		"CSV": {[]string{"--csv"}, []string{replaced, page("urn:x", "false"), behind, end},
			"op,revision,time,subject,predicate,object,graph,certainty,source,actor,justification\ngraphReplaced,7,2026-01-02T03:04:05Z,,,,urn:g,,,agent://a,\nresync,7,,,,,urn:g,,,,\nsnapshot,7,,urn:x,urn:p,1,urn:g,0.5,agent://s,,\nadd,8,,urn:z,urn:p,3,,,agent://s,,\n"},
		"JSON": {[]string{"--json"}, []string{replaced, page("urn:x", "false"), behind, end},
			`{"op":"graphReplaced","graph":"urn:g","timestamp":"2026-01-02T03:04:05Z","changeMetadata":{"revision":7,"actor":"agent://a","position":"p1"}}` + "\n" +
				`{"op":"resync","graph":"urn:g"}` + "\n" +
				`{"changeMetadata":{"revision":7,"snapshot":true,"source":"agent://s"},"op":"add","statement":{"certainty":0.5,"graph":"urn:g","object":{"value":1},"predicate":{"id":"urn:p"},"subject":{"id":"urn:x"}}}` + "\n" +
				`{"op":"add","statement":{"subject":{"id":"urn:z"},"predicate":{"id":"urn:p"},"object":{"value":3}},"changeMetadata":{"revision":8,"source":"agent://s","position":"p3"}}` + "\n"},
		"no queries": {nil, []string{replaced, `{"errors": [{"message": "trusted documents only", "extensions": {"code": "PERMISSION_DENIED"}}]}`, whole, end},
			"! 7  urn:g was replaced  by agent://a\n! resync: the current state follows\n= 7  urn:w  urn:p  2  by agent://s\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, said strings.Builder
			execute(t.Context(), append([]string{"watch", "--url", acting(t, actingCard, c.answers...)}, c.flags...), cli.Terminal{In: strings.NewReader(""), Out: &out, Err: &said})
			if out.String() != c.want {
				t.Errorf("told\n%s\nwant\n%s\nand said %s", out.String(), c.want, said.String())
			}
		})
	}
}

// If the server can no longer continue in order, the stream starts from the beginning, and
// this is reported.
func TestWatchGoesOnBehindAResync(t *testing.T) {
	event := func(id, member string) string { return fmt.Sprintf("id: %s\ndata: {%s}\n\n", id, member) }
	change := func(object, more string) string {
		return `"result": {"op": "add", "statement": {"subject": {"id": "urn:s"}, "predicate": {"id": "urn:p"}, "object": {"value": ` + object + `}}, "changeMetadata": {"revision": 7, "source": "agent://s"` + more + `}}`
	}
	for _, asJSON := range []bool{false, true} {
		url := acting(t, actingCard,
			event("p1", change("1", `, "position": "p1"`))+event("p1", `"error": {"code": -32012, "message": "the caller's access has changed", "data": {"reason": "RESYNC"}}`),
			event("p2", change("2", `, "position": "p2", "snapshot": true, "snapshotEnd": true`))+event("p3", change("3", `, "position": "p3"`)),
			"403 "+`{"error": {"code": -32012, "message": "no more", "data": {"reason": "PERMISSION_DENIED"}}}`,
		)
		var out, said strings.Builder
		args := []string{"watch", "--url", url}
		want := "+ 7  urn:s  urn:p  1  by agent://s\n! resync: the current state follows\n= 7  urn:s  urn:p  2  by agent://s\n+ 7  urn:s  urn:p  3  by agent://s\n"
		if asJSON {
			args = append(args, "--json")
		}
		code := execute(t.Context(), args, cli.Terminal{In: strings.NewReader(""), Out: &out, Err: &said})
		if asJSON {
			if lines := strings.Split(out.String(), "\n"); len(lines) != 5 || lines[1] != `{"op":"resync"}` || !strings.Contains(lines[2], `"snapshotEnd":true`) {
				t.Errorf("told\n%s", out.String())
			}
		} else if out.String() != want {
			t.Errorf("told\n%s", out.String())
		}
		if code != cli.ExitRefused || !strings.Contains(said.String(), "the statements shown may be outdated (the caller's access has changed); rereading them") || !strings.Contains(said.String(), "Continue with --from p3\n") || !strings.HasSuffix(said.String(), "koine: no more (PERMISSION_DENIED)\n") {
			t.Errorf("ends with %d and says %s", code, said.String())
		}
	}
}

// waiting is a writer that closes a channel when a text is written to it.
type waiting struct {
	text string
	told chan struct{}
	all  strings.Builder
}

func (w *waiting) Write(p []byte) (int, error) {
	w.all.Write(p)
	if w.told != nil && strings.Contains(w.all.String(), w.text) {
		close(w.told)
		w.told = nil
	}
	return len(p), nil
}

// TestLoadTellsThatTheServerWorks sends a document to a server that does not answer before
// the client has reported that the server is at work.
func TestLoadTellsThatTheServerWorks(t *testing.T) {
	slowtest.Long(t)
	told := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			fmt.Fprint(w, actingCard)
			return
		}
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			t.Error(err)
		}
		select {
		case <-told:
		case <-r.Context().Done():
			t.Error("the client left")
		}
		fmt.Fprint(w, `{"quads": 1, "statements": 1, "revision": 3}`)
	}))
	defer server.Close()
	said := &waiting{text: "standard input was sent; the server has been processing it for", told: told}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	code := execute(ctx, []string{"load", "--url", server.URL, "--format", "nt", "-"},
		cli.Terminal{In: strings.NewReader("<urn:s> <urn:p> <urn:o> .\n"), Out: io.Discard, Err: said})
	if code != cli.ExitOK || !strings.Contains(said.all.String(), "1 statements, 1 of them new; revision 3") {
		t.Errorf("ends with %d and says %s", code, said.all.String())
	}
}
