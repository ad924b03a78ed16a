package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"koine/client"
)

// channelFields selects the fields of a channel that channels/get returns.
const channelFields = `fragment channel on Channel { id name visibility createdAt createdBy members { agent role joinedAt } metadata version
  scopeId closedAt closedReason }`

// graphQLChannel is a channel as GraphQL encodes it.
type graphQLChannel struct {
	ID         string
	Name       string
	Visibility string
	CreatedAt  time.Time
	CreatedBy  string
	Members    []struct {
		Agent    string
		Role     string
		JoinedAt time.Time
	}
	Metadata     json.RawMessage
	Version      int64
	ScopeID      string
	ClosedAt     time.Time
	ClosedReason string
}

// toChannel converts the channel to the form that channels/get returns.
func (c *graphQLChannel) toChannel() (*client.Channel, error) {
	if string(c.Metadata) == "null" {
		c.Metadata = nil
	}
	wire := struct {
		ID           string          `json:"id"`
		Name         string          `json:"name,omitempty"`
		Visibility   string          `json:"visibility"`
		CreatedAt    int64           `json:"createdAt,omitempty"`
		CreatedBy    string          `json:"createdBy,omitempty"`
		Members      []client.Member `json:"members"`
		Metadata     json.RawMessage `json:"metadata,omitempty"`
		Version      int64           `json:"version"`
		Kind         string          `json:"kind"`
		ScopeID      string          `json:"scopeId,omitempty"`
		ClosedAt     int64           `json:"closedAt,omitempty"`
		ClosedReason string          `json:"closedReason,omitempty"`
	}{
		ID: c.ID, Name: c.Name, Visibility: strings.ToLower(c.Visibility), CreatedAt: milliOf(c.CreatedAt), CreatedBy: c.CreatedBy,
		Members: make([]client.Member, 0, len(c.Members)), Metadata: c.Metadata, Version: c.Version, Kind: "channel",
		ScopeID: c.ScopeID, ClosedAt: milliOf(c.ClosedAt), ClosedReason: c.ClosedReason,
	}
	for _, m := range c.Members {
		wire.Members = append(wire.Members, client.Member{Agent: m.Agent, Role: strings.ToLower(m.Role), JoinedAt: milliOf(m.JoinedAt)})
	}
	text, err := encodeJSON(wire)
	if err != nil {
		return nil, err
	}
	out := new(client.Channel)
	return out, json.Unmarshal(text, out)
}

// milliOf returns a time in milliseconds since 1970, 0 for none.
func milliOf(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// runMutation runs a mutation on the channel and prints the channel.
func (c *changedChannel) runMutation(ctx context.Context, t terminal, server *client.Client, mutation, inputType string, input map[string]any) error {
	query := fmt.Sprintf(`mutation($input: %s!) { %s(input: $input) `, inputType, mutation)
	if c.JSON {
		query += "{ ...channel } } " + channelFields
	} else {
		query += "{ id } }"
	}
	var answer map[string]*graphQLChannel
	if err := server.GraphQL(ctx, query, map[string]any{"input": input}, &answer); err != nil {
		return err
	}
	if answer[mutation] == nil {
		return fmt.Errorf("the server's answer: it has no %s", mutation)
	}
	is, err := answer[mutation].toChannel()
	if err != nil {
		return err
	}
	return c.printChannel(t, is)
}
