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

// Capability is an ability that an agent card announces.
type Capability string

// The capabilities that the methods of a client need.
const (
	KnowledgeGraph Capability = "the knowledge graph extension" // Query, Update, Subscribe
	Channels       Capability = "the channels extension"        // CreateChannel … Ask
	BaseA2A        Capability = "A2A over JSON-RPC"             // A2A
)

// URIs of the extensions in the list of A2A 1.0.
const (
	knowledgeURI = "urn:koine:a2a:knowledge-graph:1.0"
	channelsURI  = "urn:koine:a2a:channels:0.1"
)

// maxCardBytes is the largest agent card that is read.
const maxCardBytes = 1 << 20

// Card holds the members of an agent card that a client uses.
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

// Has reports whether the card announces the capability, in the form of A2A 1.0 or in
// that of the extension's specification.
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

// jsonRPC returns the URL of the JSON-RPC interface, or "" if there is none.
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

// rpcEndpoint returns the URL for JSON-RPC: the path from the card, at the given origin.
func (c *Card) rpcEndpoint(origin string) (string, error) {
	at, err := url.Parse(c.jsonRPC())
	if err != nil || at.Host == "" {
		return "", &Error{Reason: CapabilityMissing, Message: fmt.Sprintf("the agent card of %q at %s has no JSON-RPC interface", c.Name, origin)}
	}
	return origin + at.EscapedPath(), nil
}

// requireCapability returns a CapabilityMissing error unless the card has the capability.
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
	hint := "It announces no capability that this client supports."
	if len(has) > 0 {
		hint = "It announces " + strings.Join(has, ", ") + "."
	}
	return &Error{Reason: CapabilityMissing, Message: fmt.Sprintf("the agent card of %q at %s does not announce %s", c.card.Name, c.origin, capability), Hint: hint}
}

// requireGraphQL returns a CapabilityMissing error unless the agent accepts queries in GraphQL.
func (c *Client) requireGraphQL() error {
	if err := c.requireCapability(KnowledgeGraph); err != nil {
		return err
	}
	languages := c.card.Capabilities.QueryLanguages
	if len(languages) == 0 || slices.ContainsFunc(languages, func(l string) bool { return strings.EqualFold(l, "graphql") }) {
		return nil
	}
	return &Error{Reason: CapabilityMissing, Message: fmt.Sprintf("%q at %s does not accept queries in GraphQL", c.card.Name, c.origin), Hint: "It accepts " + strings.Join(languages, ", ") + "."}
}

// fetchCard reads the agent card at the well-known path below the address.
func (c *Client) fetchCard(ctx context.Context) (*Card, error) {
	response, err := c.Do(ctx, http.MethodGet, "/.well-known/agent-card.json", nil, nil)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxCardBytes+1))
	if err != nil {
		return nil, fmt.Errorf("client: reading the agent card: %w", err)
	}
	card := &Card{Raw: body}
	if len(body) > maxCardBytes || json.Unmarshal(body, card) != nil || card.Name == "" {
		return nil, fmt.Errorf("client: %s has no valid agent card", c.base)
	}
	return card, nil
}
