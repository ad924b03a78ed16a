package scan

import (
	"encoding/json"
	"time"

	"koine/channels"
	"koine/kg"
)

// callBody is the body of a call.
type callBody struct {
	Message callMessage `json:"message"`
	// Caller is the authenticated principal, which may act for the author.
	Caller callCaller `json:"caller"`
}

type callCaller struct {
	ID    kg.AgentID `json:"id"`
	Roles []string   `json:"roles"`
}

type callMessage struct {
	ID            string            `json:"id"`
	ChannelID     string            `json:"channelId"`
	ChannelName   string            `json:"channelName,omitempty"`
	ChannelKind   string            `json:"channelKind"`
	Visibility    string            `json:"visibility"`
	ScopeID       string            `json:"scopeId,omitempty"`
	Author        kg.AgentID        `json:"author"`
	Parts         []json.RawMessage `json:"parts"`
	Metadata      json.RawMessage   `json:"metadata,omitempty"`
	ArtifactRefs  []string          `json:"artifactRefs,omitempty"`
	MessageType   string            `json:"messageType,omitempty"`
	ContentType   string            `json:"contentType,omitempty"`
	Format        string            `json:"format,omitempty"`
	Tags          []string          `json:"tags,omitempty"`
	Recipient     string            `json:"recipient,omitempty"`
	Recipients    []kg.AgentID      `json:"recipients,omitempty"`
	CorrelationID string            `json:"correlationId,omitempty"`
	ReplyToID     string            `json:"replyToId,omitempty"`
	ThreadID      string            `json:"threadId,omitempty"`
	Retracts      string            `json:"retracts,omitempty"`
	ExpiresAt     *time.Time        `json:"expiresAt,omitempty"`
	Justification string            `json:"justification,omitempty"`
	Facts         []callFact        `json:"facts,omitempty"`
}

// callFact is a fact of the message, with terms in N-Triples syntax.
type callFact struct {
	Op        string `json:"op"`
	Subject   string `json:"subject"`
	Predicate string `json:"predicate"`
	Object    string `json:"object"`
	Graph     string `json:"graph,omitempty"`
}

// encodeCall returns the body of the call for a message.
func encodeCall(scanned *channels.ScannedMessage) ([]byte, error) {
	m, c := scanned.Message, scanned.Channel
	out := callMessage{
		ID: string(m.ID), ChannelID: string(c.ID), ChannelName: c.Name, ChannelKind: string(c.Kind), Visibility: string(c.Visibility), ScopeID: string(c.Scope),
		Author: m.Author, Parts: m.Parts, Metadata: m.Metadata, ArtifactRefs: m.ArtifactRefs,
		MessageType: string(m.Interaction), ContentType: string(m.ContentType), Format: m.Format, Tags: m.Tags, Recipient: m.To, Recipients: m.Recipients,
		CorrelationID: string(m.Correlation), ReplyToID: string(m.ReplyTo), ThreadID: m.Thread, Retracts: string(m.Retracts), Justification: scanned.Meta.Justification,
	}
	if !m.ExpiresAt.IsZero() {
		out.ExpiresAt = &m.ExpiresAt
	}
	for i := range scanned.Patches {
		p := &scanned.Patches[i]
		fact := callFact{Op: p.Op.String(), Subject: p.Quad.Subject.String(), Predicate: p.Quad.Predicate.String(), Object: p.Quad.Object.String()}
		if g := p.Quad.Graph; !g.IsZero() && g != kg.DefaultGraph {
			fact.Graph = g.String()
		}
		out.Facts = append(out.Facts, fact)
	}
	by := scanned.Meta.Principal
	return json.Marshal(callBody{out, callCaller{by.ID, append([]string{}, by.Roles...)}})
}
