package main

import (
	"log/slog"
	"net"
	"strings"

	"koine/cmd/koine/internal/buildinfo"
	"koine/cmd/koine/internal/cli"
	"koine/kg"
)

// printWelcome logs the server's address and prints suggestions to try.
func (c *serveCommand) printWelcome(t cli.Terminal, log *slog.Logger, addr net.Addr, store *kg.Store, who *identity) {
	url := c.urlPrefix() + addr.String()
	if err := store.Ready(); err != nil {
		log.Warn("the store refuses updates", "reason", err)
	}
	log.Info("listening", "url", url, "version", buildinfo.Version(), "mode", c.Auth)
	if t.Records == nil { // JSON logs contain the record above
		t.Notef("%s", c.welcomeText(who, url))
	}
	if c.listening != nil {
		c.listening(url)
	}
}

// welcomeText returns the suggestions. They refer to KOINE_KEY and never contain a
// credential.
func (c *serveCommand) welcomeText(who *identity, url string) string {
	text, auth, name := addressWelcome, "", " -H 'X-Agent-ID: dora'"
	if who.requiresCredentials() {
		text, auth, name = text+credentialWelcome, ` -H "Authorization: Bearer $KOINE_KEY"`, ""
		if who.acceptsKeys() {
			text += keysWelcome
		}
	}
	switch {
	case c.Demo:
		text += demoWelcome
	case who.requiresCredentials():
		text += "  koine load FILE\n"
	default:
		text += "\nLoad a file:       koine load --url {url} FILE\n"
	}
	if !who.requiresCredentials() {
		text += openWelcome
	}
	return strings.NewReplacer("{url}", url, "{auth}", auth, "{name}", name, "{credential}", who.credentialText()).Replace(text)
}

// credentialText names the accepted kinds of credentials.
func (w *identity) credentialText() string {
	switch {
	case !w.acceptsTokens():
		return "a key"
	case !w.acceptsKeys():
		return "a token"
	}
	return "a key or a token"
}

const addressWelcome = `
koine listens at   {url}
  playground       {url}/playground
  GraphQL          {url}/graphql
  JSON-RPC (A2A)   {url}/a2a
  agent card       {url}/.well-known/agent-card.json
  changes (SSE)    {url}/changes
  RDF in and out   {url}/data
`

const openWelcome = `Without credentials, the server is reachable from this machine only, and every local user may do anything.
`

const credentialWelcome = `
Callers need {credential}; the playground asks for it. On the command line:

  export KOINE_URL={url} KOINE_KEY=…
  koine query '{ me { id roles } }'
`

const keysWelcome = `  koine keys create --agent NAME      # creates another key; for administrators
`

// demoWelcome uses {auth} for a credential, and {name} for the agent's name of requests
// without one.
const demoWelcome = `
Try, in another terminal:

  # who asserts what about a finding, and with what certainty
  curl -s {url}/graphql{auth} -H 'Content-Type: application/json' -d '{"query":
    "{ entity(iri: \"finding:1\") { label out { nodes { predicate certainty assertedBy } } } }"}'

  # watch the changes …
  curl -N {url}/changes{auth}

  # … and make one, as an agent
  curl -s {url}/a2a{auth} -H 'Content-Type: application/json'{name} -d '{"jsonrpc": "2.0", "id": 1,
    "method": "knowledge/update", "params": {"justification": "Read it again", "mutations": [{"op": "add", "statement":
    {"subject": {"id": "finding:1"}, "predicate": {"id": "lab:status"}, "object": {"value": "doubtful"}, "certainty": 0.4}}]}}'

  # export everything as RDF
  curl -s {url}/data{auth} -H 'Accept: application/trig'

The demo data is deleted when the server exits, unless --data is given.
`
