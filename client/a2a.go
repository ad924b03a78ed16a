package client

import (
	"context"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"
)

// A2A is the official client of A2A for the same agent, in the same name: for
// messages and tasks. Whoever asks for it ends it with Destroy.
func (c *Client) A2A(ctx context.Context) (*a2aclient.Client, error) {
	if err := c.needs(BaseA2A); err != nil {
		return nil, err
	}
	endpoints := []*a2a.AgentInterface{a2a.NewAgentInterface(c.rpc, a2a.TransportProtocolJSONRPC)}
	return a2aclient.NewFromEndpoints(ctx, endpoints, a2aclient.WithJSONRPCTransport(c.http))
}
