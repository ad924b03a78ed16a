package agents

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"koine/internal/plainjson"
	"koine/kg"
)

// Card is what an agent says of itself as JSON: the AgentCard of the REST protocol
// (id, name, description, version, capabilities, parameters, auth, metadata) with what
// koine knows beside it.
type Card struct {
	ID           string            `json:"id"`
	Name         string            `json:"name"`
	Description  string            `json:"description"`
	Version      string            `json:"version"`
	Capabilities []string          `json:"capabilities"`
	Skills       []json.RawMessage `json:"skills,omitempty"`
	Parameters   json.RawMessage   `json:"parameters,omitempty"`
	Auth         json.RawMessage   `json:"auth,omitempty"`
	Owner        string            `json:"owner,omitempty"`
	Role         string            `json:"role,omitempty"`
	Endpoint     string            `json:"endpoint,omitempty"`
	Limits       json.RawMessage   `json:"limits,omitempty"`
	Metadata     json.RawMessage   `json:"metadata,omitempty"`
	Status       Status            `json:"status,omitempty"`
	// What an agent does not say of itself.
	Presence   string `json:"presence,omitempty"`
	Registered string `json:"registered,omitempty"`
	Changed    string `json:"changed,omitempty"`
}

// ShortID is an agent's id as it stands in addresses.
func ShortID(id kg.AgentID) string { return strings.TrimPrefix(string(id), "agent://") }

// toCard is the card of a registered agent, with what koine did not understand of it.
func (r *Record) toCard(presence string) json.RawMessage {
	g := r.Registration
	c := Card{
		ID: ShortID(r.ID), Name: r.Name, Description: g.Description, Version: g.Version, Capabilities: g.Tags(), Skills: g.Skills, Parameters: g.Parameters,
		Auth: g.Auth, Owner: ShortID(r.Owner), Role: g.Role, Endpoint: g.Endpoint, Limits: g.Limits, Metadata: g.Metadata, Status: r.Status,
		Presence: presence, Registered: timestamp(g.Time), Changed: timestamp(g.Changed),
	}
	if c.Name == "" {
		c.Name = c.ID
	}
	if c.Capabilities == nil {
		c.Capabilities = []string{}
	}
	raw := plainjson.MustEncode(c)
	if len(g.Extra) > 0 {
		rest := plainjson.MustEncode(g.Extra)
		raw = append(append(raw[:len(raw)-1], ','), rest[1:]...)
	}
	return raw
}

func timestamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}

const webHook = "webhook"

// ParseCard reads what an agent says of itself. Of what koine says, the id is kept,
// for whoever is to compare it, and the rest is left out; Status is "" where it is not
// said.
//
// Errors: CodeInvalid; CodeLimitExceeded.
func ParseCard(raw []byte) (Record, error) {
	if len(raw) > MaxRegistrationBytes {
		return Record{}, errTooLarge()
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil || members == nil {
		return Record{}, kg.Errorf(kg.CodeInvalid, "an agent is registered with a JSON object")
	}
	return recordFrom(members)
}

func recordFrom(members map[string]json.RawMessage) (Record, error) {
	var id, owner string
	var ignored json.RawMessage // koine says it
	g := &Registration{}
	r := Record{Registration: g}
	for _, f := range []struct {
		name string
		into any
	}{
		{"id", &id}, {"name", &r.Name}, {"owner", &owner}, {"status", &r.Status}, {"description", &g.Description}, {"version", &g.Version},
		{"role", &g.Role}, {"endpoint", &g.Endpoint}, {"capabilities", &g.Capabilities}, {"skills", &g.Skills}, {"parameters", &g.Parameters},
		{"auth", &g.Auth}, {"limits", &g.Limits}, {"metadata", &g.Metadata}, {"presence", &ignored}, {"registered", &ignored}, {"changed", &ignored},
	} {
		raw, there := members[f.name]
		delete(members, f.name)
		if !there || string(raw) == "null" {
			continue
		}
		if err := json.Unmarshal(raw, f.into); err != nil {
			return Record{}, errMistyped(f.name, err)
		}
	}
	// What is not understood is kept and shown, and this has secrets in it.
	if raw, there := members[webHook]; there && string(raw) != "null" {
		return Record{}, kg.Errorf(kg.CodeInvalid, "is no part of a card, which everybody sees: it is set beside it").At(webHook)
	}
	delete(members, webHook)
	r.ID, r.Owner = kg.CanonicalAgent(id), kg.CanonicalAgent(owner)
	if len(members) > 0 {
		g.Extra = members
	}
	return r, nil
}

func errMistyped(field string, err error) error {
	if inner, should, ok := plainjson.Mistyped(err); ok {
		if inner != "" {
			field += "." + inner
		}
		return kg.Errorf(kg.CodeInvalid, "%s", should).At(field)
	}
	return kg.Errorf(kg.CodeInvalid, "is no JSON").At(field)
}

// mergeCard puts the members of a change into a card: null takes one away.
func mergeCard(card, change []byte) (Record, error) {
	if len(change) > MaxRegistrationBytes {
		return Record{}, errTooLarge()
	}
	var members, changes map[string]json.RawMessage
	if err := json.Unmarshal(card, &members); err != nil {
		return Record{}, err
	}
	if err := json.Unmarshal(bytes.TrimSpace(change), &changes); err != nil || changes == nil {
		return Record{}, kg.Errorf(kg.CodeInvalid, "a change of an agent is a JSON object")
	}
	for name, value := range changes {
		members[name] = value
		if string(value) == "null" {
			delete(members, name)
		}
	}
	return recordFrom(members)
}
