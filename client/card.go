package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Capability is something that an agent card announces.
type Capability string

// The capabilities that the methods of a client need.
const (
	KnowledgeGraph Capability = "the knowledge graph extension" // Query, Update, Subscribe
	Channels       Capability = "the channels extension"        // CreateChannel … Ask
	BaseA2A        Capability = "A2A over JSON-RPC"             // A2A
)

// The extensions of A2A's own list.
const (
	knowledgeURI = "urn:koine:a2a:knowledge-graph:1.0"
	channelsURI  = "urn:koine:a2a:channels:0.1"
)

// Bounds on agent cards.
const maxCardBytes = 1 << 20

// Card is what a client reads of an agent card.
type Card struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Version     string `json:"version"`
	URL         string `json:"url"`
	Interfaces  []struct {
		URL     string `json:"url"`
		Binding string `json:"protocolBinding"`
		Version string `json:"protocolVersion"`
	} `json:"supportedInterfaces"`
	Capabilities struct {
		Streaming      bool     `json:"streaming"`
		KnowledgeGraph bool     `json:"knowledgeGraph"`
		QueryLanguages []string `json:"knowledgeGraphQueryLanguages"`
		Messaging      *struct {
			Channels *struct {
				Version  string   `json:"version"`
				Features []string `json:"features"`
			} `json:"channels"`
		} `json:"messaging"`
		Extensions []struct {
			URI string `json:"uri"`
		} `json:"extensions"`
	} `json:"capabilities"`
	// Raw is the whole card.
	Raw json.RawMessage `json:"-"`
}

// Has tells whether the card announces the capability, in either of the forms that
// A2A 1.0 and the texts of the extensions have for it.
func (c *Card) Has(capability Capability) bool {
	switch capability {
	case KnowledgeGraph:
		return c.Capabilities.KnowledgeGraph || c.hasExtension(knowledgeURI)
	case Channels:
		return c.Capabilities.Messaging != nil && c.Capabilities.Messaging.Channels != nil || c.hasExtension(channelsURI)
	case BaseA2A:
		return c.jsonRPC() != ""
	}
	return false
}

func (c *Card) hasExtension(uri string) bool {
	for _, e := range c.Capabilities.Extensions {
		if e.URI == uri {
			return true
		}
	}
	return false
}

// jsonRPC is the address that speaks JSON-RPC, or "".
func (c *Card) jsonRPC() string {
	for _, i := range c.Interfaces {
		if strings.EqualFold(i.Binding, "JSONRPC") && i.URL != "" {
			return i.URL
		}
	}
	if len(c.Interfaces) == 0 {
		return c.URL // A2A 0.3
	}
	return ""
}

// rpcEndpoint is where JSON-RPC goes: at the origin, with the path of the card.
func (c *Card) rpcEndpoint(origin string) (string, error) {
	at, err := url.Parse(c.jsonRPC())
	if err != nil || at.Host == "" {
		return "", &Error{Reason: CapabilityMissing, Message: fmt.Sprintf("the agent card of %q at %s names no address for JSON-RPC", c.Name, origin)}
	}
	return origin + at.EscapedPath(), nil
}

// requireCapability is an error unless the card has the capability.
func (c *Client) requireCapability(capability Capability) error {
	if c.card.Has(capability) {
		return nil
	}
	var has []string
	for _, other := range []Capability{KnowledgeGraph, Channels, BaseA2A} {
		if c.card.Has(other) {
			has = append(has, string(other))
		}
	}
	hint := "It announces nothing that this client knows."
	if len(has) > 0 {
		hint = "It announces " + strings.Join(has, ", ") + "."
	}
	return &Error{Reason: CapabilityMissing, Message: fmt.Sprintf("the agent card of %q at %s does not announce %s", c.card.Name, c.origin, capability), Hint: hint}
}

// requireGraphQL is an error unless the agent takes queries in GraphQL.
func (c *Client) requireGraphQL() error {
	if err := c.requireCapability(KnowledgeGraph); err != nil {
		return err
	}
	languages := c.card.Capabilities.QueryLanguages
	if len(languages) == 0 || slices.ContainsFunc(languages, func(l string) bool { return strings.EqualFold(l, "graphql") }) {
		return nil
	}
	return &Error{Reason: CapabilityMissing, Message: fmt.Sprintf("%q at %s takes no queries in GraphQL", c.card.Name, c.origin), Hint: "It takes " + strings.Join(languages, ", ") + "."}
}

// fetchCard reads the card below the address.
func (c *Client) fetchCard(ctx context.Context) (*Card, error) {
	response, err := c.Do(ctx, http.MethodGet, "/.well-known/agent-card.json", nil, nil)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxCardBytes+1))
	if err != nil {
		return nil, fmt.Errorf("client: the agent card broke off: %w", err)
	}
	card := &Card{Raw: body}
	if len(body) > maxCardBytes || json.Unmarshal(body, card) != nil || card.Name == "" {
		return nil, fmt.Errorf("client: what %s has for an agent card is none", c.base)
	}
	return card, nil
}
