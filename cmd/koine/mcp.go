package main

import (
	"context"
	"errors"
	"io"
	"iter"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"koine"
	"koine/client"
	"koine/cmd/koine/internal/buildinfo"
	"koine/cmd/koine/internal/cli"
	"koine/internal/dialect/modelcontext"
)

// mcpCommand serves the tools for language models over standard input and output.
type mcpCommand struct {
	cli.ServerFlags
	ReadOnly bool   `help:"Offer only the tools that read."`
	Tools    string `help:"The tools to offer: koine's, or those of the reference memory server (memory), over the graph." enum:"koine,memory" default:"koine" placeholder:"koine|memory"`
}

// Help is shown by --help.
func (mcpCommand) Help() string {
	return `A client of the Model Context Protocol starts this command and talks to it over standard input and output. The tools act with the credentials of the command. A server with --search off has neither search nor recall.

An entry of a client's configuration:
  {"mcpServers": {"koine": {"command": "koine", "args": ["mcp", "--url", "http://127.0.0.1:8080", "--as", "dora"]}}}`
}

// Run serves until the client closes standard input.
func (c *mcpCommand) Run(ctx context.Context, t cli.Terminal) error {
	server, err := c.OpenClient(ctx)
	if err != nil {
		return err
	}
	s := modelcontext.NewServer(ctx, toolClient{server}, toolClient{server}, modelcontext.Options{Version: buildinfo.Current().Version, Schema: koine.Schema, ReadOnly: c.ReadOnly, Memory: c.Tools == "memory"})
	err = s.Run(ctx, &mcp.IOTransport{Reader: io.NopCloser(t.In), Writer: nopWriteCloser{t.Out}})
	if errors.Is(err, io.EOF) || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

type nopWriteCloser struct{ io.Writer }

func (nopWriteCloser) Close() error { return nil }

// toolClient is a client as the tools need it.
type toolClient struct{ *client.Client }

// Hinted runs a GraphQL operation and returns its hints.
func (c toolClient) Hinted(ctx context.Context, query string, variables map[string]any, into any) (hints []string, err error) {
	list, err := c.GraphQLHints(ctx, query, variables, into)
	for _, h := range list {
		hints = append(hints, modelcontext.FormatHint(h.Message, h.Nearest))
	}
	return hints, err
}

// Watch yields nil for each change.
func (c toolClient) Watch(ctx context.Context, subscription string, variables map[string]any) iter.Seq[error] {
	return func(yield func(error) bool) {
		for _, err := range c.Subscribe(ctx, client.Subscription{Query: subscription, Variables: variables}) {
			if !yield(err) {
				return
			}
		}
	}
}
