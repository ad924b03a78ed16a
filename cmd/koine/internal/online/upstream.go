package online

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"

	"koine/client"
	"koine/cmd/koine/internal/cli"
)

// maxUpstreamBytes bounds the answer about an upstream.
const maxUpstreamBytes = 64 << 10

type agentUpstream struct {
	ID  string `arg:"" help:"Id of the agent."`
	URL string `arg:"" optional:"" help:"Endpoint of the A2A server that the agent is. Without it the present one is shown."`
	cli.ServerFlags
	Binding         string `help:"Binding of A2A: JSONRPC or HTTP+JSON." enum:"JSONRPC,HTTP+JSON" default:"JSONRPC"`
	ProtocolVersion string `help:"Version of A2A: 1.0, or 0.3 over JSONRPC." enum:"1.0,0.3" default:"1.0"`
	NoStreaming     bool   `help:"The A2A server does not stream."`
	BearerFile      string `help:"File with a token that is sent to the A2A server." type:"path" placeholder:"FILE"`
	Remove          bool   `help:"Remove the upstream."`
}

// Run sets the upstream of an agent, shows it or removes it.
func (c *agentUpstream) Run(ctx context.Context, t cli.Terminal) error {
	if c.Remove && c.URL != "" {
		return cli.Usagef("--remove and a URL are mutually exclusive")
	}
	server, err := c.OpenClient(ctx)
	if err != nil {
		return err
	}
	switch {
	case c.Remove:
		return c.call(ctx, t, server, http.MethodDelete, nil)
	case c.URL == "":
		return c.call(ctx, t, server, http.MethodGet, nil)
	}
	setting := map[string]any{"url": c.URL, "binding": c.Binding, "protocolVersion": c.ProtocolVersion, "streaming": !c.NoStreaming}
	if c.BearerFile != "" {
		token, err := cli.ReadText(t, "", c.BearerFile)
		if err != nil {
			return err
		}
		setting["authentication"] = map[string]string{"scheme": "Bearer", "credentials": strings.TrimSpace(token)}
	}
	body, err := json.Marshal(setting)
	if err != nil {
		return err
	}
	return c.call(ctx, t, server, http.MethodPut, body)
}

// call calls the server and prints its answer.
func (c *agentUpstream) call(ctx context.Context, t cli.Terminal, server *client.Client, method string, body []byte) error {
	header := http.Header{"Content-Type": {"application/json"}}
	path := "/agents/" + url.PathEscape(strings.TrimPrefix(c.ID, "agent://")) + "/upstream"
	response, err := server.Do(ctx, method, path, header, bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(response.Body, maxUpstreamBytes))
	if err != nil || len(raw) == 0 {
		return err
	}
	return cli.PrintJSON(t.Out, raw, true)
}
