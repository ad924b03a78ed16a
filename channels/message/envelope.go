package message

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"koine/channels/channel"
	"koine/channels/internal/check"
	"koine/channels/internal/vocab"
	"koine/kg"
)

// Interaction is the purpose of a message between its author and its recipients.
type Interaction string

// Interactions. Messages of the channels extension have none, "".
const (
	Request      Interaction = "request"   // expects a response
	Response     Interaction = "response"  // answers a request
	Notification Interaction = "notify"    // expects nothing
	BroadcastAll Interaction = "broadcast" // to everyone in the channel
)

// ContentType is the kind of a message's content.
type ContentType string

// Content types. "" means unspecified.
const (
	Text       ContentType = "text"
	Structured ContentType = "structured"
	Action     ContentType = "action"
	Notice     ContentType = "system" // published only by koine itself
)

// Limits of an Envelope.
const (
	MaxTags        = 32
	MaxTagRunes    = 128
	MaxThreadRunes = 256
	MaxFormatRunes = 64
	MaxRecipients  = 1000 // per message
)

// Everyone is the address of all readers of the channel.
const Everyone = "*"

// RolePrefix starts the address of all agents with a role.
const RolePrefix = "role:"

// Envelope is the header of a message. The zero Envelope is valid.
type Envelope struct {
	Interaction Interaction
	ContentType ContentType
	Format      string   // for example "markdown"
	Tags        []string // sorted, without duplicates
	// To is the address that the author gave: an agent, "role:" and a role, or
	// Everyone. "" means Everyone.
	To string
	// Recipients are the agents that To resolved to when the message was published; nil
	// means everyone in the channel.
	Recipients []kg.AgentID
	// Correlation is the request that a response answers. In other messages it is any
	// related message of the channel.
	Correlation ID
	// ExpiresAt is the time from which the message is no longer delivered; the zero
	// time means never, which includes an answered request.
	ExpiresAt time.Time
	ReplyTo   ID
	Thread    string
}

// Normalize validates the envelope and brings it into canonical form.
func (e *Envelope) Normalize() error {
	switch e.Interaction {
	case "", Request, Response, Notification, BroadcastAll:
	default:
		return kg.Errorf(kg.CodeInvalid, "messageType must be request, response, notify or broadcast, not %.60q", e.Interaction).At("messageType")
	}
	switch e.ContentType {
	case "", Text, Structured, Action, Notice:
	default:
		return kg.Errorf(kg.CodeInvalid, "contentType must be text, structured, action or system, not %.60q", e.ContentType).At("contentType")
	}
	for _, t := range [...]struct {
		field, text string
		most        int
	}{{"format", e.Format, MaxFormatRunes}, {"threadId", e.Thread, MaxThreadRunes}, {"recipient", e.To, kg.MaxAgentIDBytes}, {"correlationId", string(e.Correlation), channel.MaxIDBytes}, {"replyToId", string(e.ReplyTo), channel.MaxIDBytes}} {
		if !utf8.ValidString(t.text) {
			return kg.Errorf(kg.CodeInvalid, "%s must be valid UTF-8", t.field).At(t.field)
		}
		if n := utf8.RuneCountInString(t.text); n > t.most {
			return check.TooMuch(t.field, "%s has %d characters; the limit is %d", t.field, n, t.most)
		}
	}
	e.ExpiresAt = e.ExpiresAt.UTC().Truncate(time.Millisecond)
	if err := e.checkTags(); err != nil {
		return err
	}
	return e.checkAddress()
}

func (e *Envelope) checkTags() error {
	tags := slices.Clone(e.Tags)
	slices.Sort(tags)
	if tags = slices.Compact(tags); len(tags) > MaxTags {
		return check.TooMuch("tags", "tags has %d tags; the limit is %d", len(tags), MaxTags)
	}
	for _, tag := range tags {
		if tag == "" || !utf8.ValidString(tag) {
			return kg.Errorf(kg.CodeInvalid, "tag must be non-empty valid UTF-8").At("tags")
		}
		if utf8.RuneCountInString(tag) > MaxTagRunes {
			return check.TooMuch("tags", "tag has more than %d characters", MaxTagRunes)
		}
	}
	e.Tags = tags
	return nil
}

func (e *Envelope) checkAddress() error {
	switch {
	case e.Interaction == Response && e.Correlation == "":
		return kg.Errorf(kg.CodeInvalid, "response requires correlationId").At("correlationId")
	case e.Interaction == Response:
		e.To = "" // the author of the request
		return nil
	case e.Interaction == BroadcastAll:
		e.To = Everyone
		return nil
	case e.Interaction == Request && (e.To == "" || e.To == Everyone):
		err := kg.Errorf(kg.CodeInvalid, "request requires a recipient: an agent, or role:<name>").At("recipient")
		err.Hint = "use a role from the records of agents; a member's role in the channel does not count"
		return err
	case e.To == "" || e.To == Everyone:
		return nil
	case strings.HasPrefix(e.To, RolePrefix):
		if e.To == RolePrefix {
			return kg.Errorf(kg.CodeInvalid, "recipient role: has no role name").At("recipient")
		}
		return nil
	}
	agent := kg.CanonicalAgent(e.To)
	e.To = string(agent)
	if err := agent.Valid(); err != nil {
		return kg.AsError(err).At("recipient")
	}
	return nil
}

// applyStatement adds one statement about the message to the envelope.
func (e *Envelope) applyStatement(property, object kg.Term) {
	text := object.Value()
	switch property {
	case vocab.Interaction:
		e.Interaction = Interaction(text)
	case vocab.ContentType:
		e.ContentType = ContentType(text)
	case vocab.Format:
		e.Format = text
	case vocab.Tag:
		at, _ := slices.BinarySearch(e.Tags, text)
		e.Tags = slices.Insert(e.Tags, at, text)
	case vocab.To:
		e.To = text
	case vocab.Recipient:
		at, _ := slices.BinarySearch(e.Recipients, kg.AgentID(text))
		e.Recipients = slices.Insert(e.Recipients, at, kg.AgentID(text))
	case vocab.Correlation:
		e.Correlation = IDIn(object)
	case vocab.Expires:
		e.ExpiresAt, _ = object.DateTimeValue()
	case vocab.ReplyTo:
		e.ReplyTo = IDIn(object)
	case vocab.Thread:
		e.Thread = text
	}
}

// envelopeStatements lists the stored statements of the envelope, except the address
// and the recipients, which are known only within the commit.
func (e *Envelope) envelopeStatements() (out []vocab.Statement) {
	for _, t := range [...]struct {
		property kg.Term
		text     string
	}{{vocab.Interaction, string(e.Interaction)}, {vocab.ContentType, string(e.ContentType)}, {vocab.Format, e.Format}, {vocab.Thread, e.Thread}} {
		if t.text != "" {
			out = append(out, vocab.NewStatement(t.property, kg.String(t.text)))
		}
	}
	for _, tag := range e.Tags {
		out = append(out, vocab.NewStatement(vocab.Tag, kg.String(tag)))
	}
	if e.Correlation != "" {
		out = append(out, vocab.NewStatement(vocab.Correlation, e.Correlation.Entity()))
	}
	if !e.ExpiresAt.IsZero() {
		out = append(out, vocab.NewStatement(vocab.Expires, kg.DateTime(e.ExpiresAt)))
	}
	if e.ReplyTo != "" {
		out = append(out, vocab.NewStatement(vocab.ReplyTo, e.ReplyTo.Entity()))
	}
	return out
}

// AddressStatements lists the stored statements of the address and the recipients.
func (e *Envelope) AddressStatements() (out []vocab.Statement) {
	if e.To != "" {
		out = append(out, vocab.NewStatement(vocab.To, kg.String(e.To)))
	}
	for _, agent := range e.Recipients {
		out = append(out, vocab.NewStatement(vocab.Recipient, kg.IRI(string(agent))))
	}
	return out
}

// canonicalFields returns a value that encodes to the same JSON for equal envelopes.
func (e *Envelope) canonicalFields() any {
	return []any{e.Interaction, e.ContentType, e.Format, e.Tags, e.To, e.Correlation, e.ExpiresAt.UnixMilli(), e.ReplyTo, e.Thread}
}
