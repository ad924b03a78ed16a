package channels

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"koine/kg"
)

// Interaction says what a message is for between its author and its recipients.
type Interaction string

// The interactions. "" is a message of the channels extension, which has none.
const (
	Request      Interaction = "request"   // expects a response
	Response     Interaction = "response"  // answers a request
	Notification Interaction = "notify"    // expects nothing
	BroadcastAll Interaction = "broadcast" // to everybody in the channel
)

// ContentType says how the content is meant.
type ContentType string

// The content types. "" is said by nobody.
const (
	Text       ContentType = "text"
	Structured ContentType = "structured"
	Action     ContentType = "action"
	Notice     ContentType = "system" // published by koine itself only
)

// Bounds of an Envelope.
const (
	MaxTags        = 32
	MaxTagRunes    = 128
	MaxThreadRunes = 256
	MaxFormatRunes = 64
	MaxRecipients  = 1000 // of one message
)

// Everyone, as an address, is everybody in the channel.
const Everyone = "*"

// rolePrefix begins the address of all agents with a role.
const rolePrefix = "role:"

// Envelope is what a message says about itself beside its content. The zero
// Envelope says nothing.
type Envelope struct {
	Interaction Interaction
	ContentType ContentType
	Format      string   // such as "markdown"
	Tags        []string // in order, each once
	// To is whom the author addresses: an agent, "role:" and a role, or Everyone;
	// "" is Everyone too.
	To string
	// Recipients are the agents that To stood for when the message was published;
	// nil for everybody in the channel.
	Recipients []kg.AgentID
	// Correlation is the request that a response answers. In any other message, also one
	// of no interaction, it is only a message of the channel that this one belongs to.
	Correlation MessageID
	// ExpiresAt is from when on the message is not delivered any more; the zero time
	// for never, as of a request once it is answered.
	ExpiresAt time.Time
	ReplyTo   MessageID
	Thread    string
}

// normalize refuses what no message can say, and brings what it says into one form.
func (e *Envelope) normalize() error {
	switch e.Interaction {
	case "", Request, Response, Notification, BroadcastAll:
	default:
		return kg.Errorf(kg.CodeInvalid, "a message is a request, response, notify or broadcast, not %.60q", e.Interaction).At("messageType")
	}
	switch e.ContentType {
	case "", Text, Structured, Action, Notice:
	default:
		return kg.Errorf(kg.CodeInvalid, "content is text, structured, action or system, not %.60q", e.ContentType).At("contentType")
	}
	for _, t := range [...]struct {
		field, text string
		most        int
	}{{"format", e.Format, MaxFormatRunes}, {"threadId", e.Thread, MaxThreadRunes}, {"recipient", e.To, kg.MaxAgentIDBytes}, {"correlationId", string(e.Correlation), MaxIDBytes}, {"replyToId", string(e.ReplyTo), MaxIDBytes}} {
		if !utf8.ValidString(t.text) {
			return kg.Errorf(kg.CodeInvalid, "it is UTF-8").At(t.field)
		}
		if n := utf8.RuneCountInString(t.text); n > t.most {
			return errTooMuch(t.field, "%d characters are more than the %d that it may have", n, t.most)
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
		return errTooMuch("tags", "%d tags are more than the %d that a message has", len(tags), MaxTags)
	}
	for _, tag := range tags {
		if tag == "" || !utf8.ValidString(tag) {
			return kg.Errorf(kg.CodeInvalid, "a tag is a text").At("tags")
		}
		if utf8.RuneCountInString(tag) > MaxTagRunes {
			return errTooMuch("tags", "a tag has at most %d characters", MaxTagRunes)
		}
	}
	e.Tags = tags
	return nil
}

func (e *Envelope) checkAddress() error {
	switch {
	case e.Interaction == Response && e.Correlation == "":
		return kg.Errorf(kg.CodeInvalid, "a response says which request it answers").At("correlationId")
	case e.Interaction == Response:
		e.To = "" // whoever asked
		return nil
	case e.Interaction == BroadcastAll:
		e.To = Everyone
		return nil
	case e.Interaction == Request && (e.To == "" || e.To == Everyone):
		err := kg.Errorf(kg.CodeInvalid, "a request is addressed to an agent, or to a role by role:<name>").At("recipient")
		err.Hint = "roles are those that the records of agents have, not what members are in a channel"
		return err
	case e.To == "" || e.To == Everyone:
		return nil
	case strings.HasPrefix(e.To, rolePrefix):
		if e.To == rolePrefix {
			return kg.Errorf(kg.CodeInvalid, "role: needs the name of a role").At("recipient")
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

// applyStatement takes one statement about the message in.
func (e *Envelope) applyStatement(property, object kg.Term) {
	text := object.Value()
	switch property {
	case propInteraction:
		e.Interaction = Interaction(text)
	case propContentType:
		e.ContentType = ContentType(text)
	case propFormat:
		e.Format = text
	case propTag:
		at, _ := slices.BinarySearch(e.Tags, text)
		e.Tags = slices.Insert(e.Tags, at, text)
	case propTo:
		e.To = text
	case propRecipient:
		at, _ := slices.BinarySearch(e.Recipients, kg.AgentID(text))
		e.Recipients = slices.Insert(e.Recipients, at, kg.AgentID(text))
	case propCorrelation:
		e.Correlation = messageIDIn(object)
	case propExpires:
		e.ExpiresAt, _ = object.DateTimeValue()
	case propReplyTo:
		e.ReplyTo = messageIDIn(object)
	case propThread:
		e.Thread = text
	}
}

// envelopeStatements lists what is stored of it, but for address and recipients, which are
// known in the commit only.
func (e *Envelope) envelopeStatements() (out []statement) {
	for _, t := range [...]struct {
		property kg.Term
		text     string
	}{{propInteraction, string(e.Interaction)}, {propContentType, string(e.ContentType)}, {propFormat, e.Format}, {propThread, e.Thread}} {
		if t.text != "" {
			out = append(out, statement{t.property, kg.String(t.text)})
		}
	}
	for _, tag := range e.Tags {
		out = append(out, statement{propTag, kg.String(tag)})
	}
	if e.Correlation != "" {
		out = append(out, statement{propCorrelation, e.Correlation.Entity()})
	}
	if !e.ExpiresAt.IsZero() {
		out = append(out, statement{propExpires, kg.DateTime(e.ExpiresAt)})
	}
	if e.ReplyTo != "" {
		out = append(out, statement{propReplyTo, e.ReplyTo.Entity()})
	}
	return out
}

// addressStatements lists what is stored of whom the message goes to.
func (e *Envelope) addressStatements() (out []statement) {
	if e.To != "" {
		out = append(out, statement{propTo, kg.String(e.To)})
	}
	for _, agent := range e.Recipients {
		out = append(out, statement{propRecipient, kg.IRI(string(agent))})
	}
	return out
}

// canonicalFields is the same for two that say the same.
func (e *Envelope) canonicalFields() any {
	return []any{e.Interaction, e.ContentType, e.Format, e.Tags, e.To, e.Correlation, e.ExpiresAt.UnixMilli(), e.ReplyTo, e.Thread}
}
