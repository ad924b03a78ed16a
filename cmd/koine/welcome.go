package main

import (
	"log/slog"
	"net"

	"koine/kg"
)

// welcome says where the server is and what to try.
func (c *serveCommand) welcome(t terminal, log *slog.Logger, addr net.Addr, store *kg.Store) {
	url := c.scheme() + addr.String()
	if err := store.Ready(); err != nil {
		log.Warn("the store takes no updates", "reason", err)
	}
	log.Info("listening", "url", url, "version", versionText(), "mode", c.Auth)
	text := plainWelcome
	if c.Demo {
		text = demoWelcome
	}
	if c.Auth == "open" {
		text += openWelcome
	}
	t.sayf(text, url)
}

const plainWelcome = `
koine is at        %[1]s
  playground       %[1]s/playground
  GraphQL          %[1]s/graphql
  JSON-RPC (A2A)   %[1]s/a2a
  agent card       %[1]s/.well-known/agent-card.json
  changes (SSE)    %[1]s/changes
  RDF in and out   %[1]s/data

Load a file:       koine load --url %[1]s FILE
`

const openWelcome = `Without credentials it answers on this machine only, and everybody on it may do anything.
`

const demoWelcome = `
koine is at        %[1]s
  playground       %[1]s/playground
  GraphQL          %[1]s/graphql
  JSON-RPC (A2A)   %[1]s/a2a
  agent card       %[1]s/.well-known/agent-card.json
  changes (SSE)    %[1]s/changes
  RDF in and out   %[1]s/data

Try, in another terminal:

  # who says what about a finding, and how surely
  curl -s %[1]s/graphql -H 'Content-Type: application/json' -d '{"query":
    "{ entity(iri: \"finding:1\") { label out { nodes { predicate certainty assertedBy } } } }"}'

  # follow the changes …
  curl -N %[1]s/changes

  # … and make one, as an agent
  curl -s %[1]s/a2a -H 'Content-Type: application/json' -H 'X-Agent-ID: dora' -d '{"jsonrpc": "2.0", "id": 1,
    "method": "knowledge/update", "params": {"justification": "Read it again", "mutations": [{"op": "add", "statement":
    {"subject": {"id": "finding:1"}, "predicate": {"id": "lab:status"}, "object": {"value": "doubtful"}, "certainty": 0.4}}]}}'

  # all of it as RDF
  curl -s %[1]s/data -H 'Accept: application/trig'

The demo's data is gone when the server ends, unless it has a --data directory.
`
