package agents

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"koine/internal/plainjson"
	"koine/kg"
)

// Card is the self-description of an agent as JSON: the AgentCard of the REST protocol
// (id, name, description, version, capabilities, parameters, auth, metadata) and the
// data that koine adds.
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
	// Set by koine.
	Presence   string `json:"presence,omitempty"`
	Registered string `json:"registered,omitempty"`
	Changed    string `json:"changed,omitempty"`
}

// ShortID returns an agent's id as it appears in URLs, without the scheme.
func ShortID(id kg.AgentID) string { return strings.TrimPrefix(string(id), "agent://") }

// toCard returns the card of a registered agent, with its unknown members.
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

// ParseCard parses the card that an agent sends. Of the members set by koine it keeps
// only the id, for comparison. Status is "" if the card has none.
//
// Errors: CodeInvalid; CodeLimitExceeded.
func ParseCard(raw []byte) (Record, error) {
	if len(raw) > MaxRegistrationBytes {
		return Record{}, errTooLarge()
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil || members == nil {
		return Record{}, kg.Errorf(kg.CodeInvalid, "card must be a JSON object")
	}
	return recordFrom(members)
}

func recordFrom(members map[string]json.RawMessage) (Record, error) {
	var id, owner string
	var ignored json.RawMessage // set by koine
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
		raw, found := members[f.name]
		delete(members, f.name)
		if !found || string(raw) == "null" {
			continue
		}
		if err := json.Unmarshal(raw, f.into); err != nil {
			return Record{}, errMistyped(f.name, err)
		}
	}
	// Unknown members are stored and visible to everyone, and these contain secrets.
	for _, name := range []string{"webhook", "upstream"} {
		if raw, found := members[name]; found && string(raw) != "null" {
			return Record{}, kg.Errorf(kg.CodeInvalid, "is not part of a card, which is public: set it separately").At(name)
		}
		delete(members, name)
	}
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
	return kg.Errorf(kg.CodeInvalid, "must be valid JSON").At(field)
}

// mergeCard applies a JSON merge patch to the members of a card: null removes a member.
func mergeCard(card, change []byte) (Record, error) {
	if len(change) > MaxRegistrationBytes {
		return Record{}, errTooLarge()
	}
	var members, changes map[string]json.RawMessage
	if err := json.Unmarshal(card, &members); err != nil {
		return Record{}, err
	}
	if err := json.Unmarshal(bytes.TrimSpace(change), &changes); err != nil || changes == nil {
		return Record{}, kg.Errorf(kg.CodeInvalid, "change must be a JSON object")
	}
	for name, value := range changes {
		members[name] = value
		if string(value) == "null" {
			delete(members, name)
		}
	}
	return recordFrom(members)
}
