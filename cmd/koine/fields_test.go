package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"koine/cmd/koine/internal/cli"
)

// A field that a server refuses is reported as the flag or argument with its value. If the
// command has none, as for the content of a file, it is reported as it is.
func TestFieldsAreToldAsFlags(t *testing.T) {
	const id = "0192f1c0-0000-7000-8000-000000000000"
	const card = `{"name": "actor", "url": "http://x/rpc", "capabilities": {"knowledgeGraph": true, "messaging": {"channels": {"version": "0.1"}}}}`
	for _, c := range []struct {
		args  []string
		field string
		said  string
	}{
		{[]string{"query", "{ a }"}, "metadata.koine.minRevision", "--min-revision: wrong"},
		{[]string{"query", "{ a }"}, "requiredCertainty", "--min-certainty: wrong"},
		{[]string{"query", "{ a }"}, "variables.id", "no: variables.id: wrong"},
		{[]string{"query", "{ a }"}, "", "no: wrong"},
		{[]string{"update", "add", "a", "b", "c"}, "mutations[0].statement.subject.id", "<subject>: wrong"},
		{[]string{"update", "add", "a", "b", "c"}, "mutations[0].statement.provenance.sourceAgentId", "--source: wrong"},
		{[]string{"update", "add", "a", "b", "c"}, "metadata.koine.idempotencyKey", "--idempotency-key: wrong"},
		{[]string{"update", "apply"}, "mutations[0].statement.subject.id", "no: mutations[0].statement.subject.id: wrong"},
		{[]string{"channel", "create", "n", "--another"}, "members[3].principalId", "--member: wrong"},
		{[]string{"channel", "history", id}, "authorIds[0]", "--author: wrong"},
		{[]string{"channel", "history", id}, "channelId", id + ": wrong"},
		{[]string{"channel", "publish", id, "x"}, "idempotencyKey", "--once: wrong"},
		{[]string{"channel", "publish", id, "x"}, "patches[0].op", "no: patches[0].op: wrong"},
	} {
		url := acting(t, card, `{"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": "no", "data": {"field": "`+c.field+`", "detail": "wrong"}}}`)
		var out, said strings.Builder
		execute(t.Context(), append(c.args, "--url", url), cli.Terminal{In: strings.NewReader("[]"), Out: &out, Err: &said})
		if said.String() != "koine: "+c.said+"\n" {
			t.Errorf("%v, %s: says %q, want %q", c.args, c.field, said.String(), c.said)
		}
	}
}

// Each flag or argument reported in place of a field belongs to a command.
func TestFieldsAreSaidBySomething(t *testing.T) {
	parser, err := newParser(cli.Terminal{}, func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	var known []string
	err = kong.Visit(parser.Model, func(one kong.Visitable, next kong.Next) error {
		switch one := one.(type) {
		case *kong.Flag:
			known = append(known, one.Name)
		case *kong.Value:
			known = append(known, one.Name)
		}
		return next(nil)
	})
	if err != nil {
		t.Fatal(err)
	}
	for field, names := range fieldFlags {
		for _, name := range names {
			if !slices.Contains(known, name) {
				t.Errorf("%s is said by %s, which no command has", field, name)
			}
		}
	}
}
