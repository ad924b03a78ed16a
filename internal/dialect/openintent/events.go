package openintent

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"koine/channels/channel"
	"koine/channels/message"
	"koine/channels/scope"
	"koine/internal/caller"
	"koine/internal/intents"
	"koine/internal/plainjson"
	"koine/kg"
)

// Bounds of a list of events.
const (
	DefaultEvents = 100
	MaxEvents     = 1000
	MaxSkipped    = 100_000 // offset
)

// The types of events with a meaning of their own.
const (
	// typeMessage is the type of the copy of an audited message: the RFC's name is in the
	// log and in streams, and the SDK's in lists, unless Options.RFCNames says otherwise.
	typeMessage    = "channel.message"
	typeMessageRFC = scope.EventMessage
	// typeComment stands for types that the SDK does not know.
	typeComment = "comment"
)

// wireEvent is an event of an intent.
type wireEvent struct {
	ID        string          `json:"id"`
	IntentID  scope.ID        `json:"intent_id"`
	Type      string          `json:"event_type"`
	Actor     string          `json:"actor"`
	Payload   json.RawMessage `json:"payload"`
	CreatedAt string          `json:"created_at"`
	Sequence  int64           `json:"sequence"`
	Hash      string          `json:"event_hash"`
	Previous  *string         `json:"previous_event_hash"`
	TraceID   *string         `json:"trace_id"`
	Parent    *string         `json:"parent_event_id"`
}

// auditedMessage is the data of the event of a message, as the domain writes it.
type auditedMessage struct {
	Channel     channel.ID        `json:"channelId"`
	Name        string            `json:"channelName"`
	Message     message.ID        `json:"messageId"`
	Type        string            `json:"messageType"`
	To          string            `json:"to"`
	ContentHash string            `json:"contentHash"`
	Parts       []json.RawMessage `json:"parts"`
	Metadata    json.RawMessage   `json:"metadata"`
}

// wireAudited is the payload of the event of a message (RFC 6).
type wireAudited struct {
	Channel     channel.ID      `json:"channel_id"`
	Name        string          `json:"channel_name"`
	Message     message.ID      `json:"message_id"`
	Type        string          `json:"message_type"`
	To          *string         `json:"to"`
	Payload     json.RawMessage `json:"payload,omitempty"`
	ContentHash string          `json:"content_hash,omitempty"` // in place of a payload that the reader may not see
}

func eventID(intent scope.ID, sequence int64) string {
	return string(intent) + "." + strconv.FormatInt(sequence, 10)
}

// eventOf converts an event for a reader.
func (h *Handler) eventOf(ctx context.Context, who caller.Caller, e *scope.Event) (*wireEvent, error) {
	out := &wireEvent{
		ID: eventID(e.Scope, e.Sequence), IntentID: e.Scope, Type: e.Type, Actor: bare(e.Actor), Payload: e.Data, CreatedAt: formatTime(e.Time),
		Sequence: e.Sequence, Hash: e.Hash, Previous: orNull(e.Previous), TraceID: orNull(e.TraceID),
	}
	if e.ParentEvent > 0 {
		parent := eventID(e.Scope, e.ParentEvent)
		out.Parent = &parent
	}
	switch {
	case e.Type == scope.EventMessage:
		if !h.options.RFCNames {
			out.Type = typeMessage
		}
		return out, h.fillAudited(ctx, who, out, e)
	case !h.options.RFCNames && !eventTypes[e.Type]:
		out.Type = typeComment
		out.Payload = plainjson.MustEncode(struct {
			Type    string          `json:"event_type"`
			Payload json.RawMessage `json:"payload"`
		}{e.Type, orEmptyObject(e.Data)})
	}
	out.Payload = orEmptyObject(out.Payload)
	return out, nil
}

func orEmptyObject(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("{}")
	}
	return raw
}

// fillAudited converts the data of the event of a message. The payload is there for readers that
// may read it, and otherwise its hash.
func (h *Handler) fillAudited(ctx context.Context, who caller.Caller, out *wireEvent, e *scope.Event) error {
	var data auditedMessage
	if err := json.Unmarshal(e.Data, &data); err != nil {
		return err
	}
	p := wireAudited{Channel: data.Channel, Name: data.Name, Message: data.Message, Type: data.Type, To: orNull(bare(kg.AgentID(data.To))), ContentHash: data.ContentHash}
	m := &message.Message{Parts: data.Parts, Metadata: data.Metadata}
	if e.Copy != nil { // outlives the message
		m.Parts, m.Metadata = e.Copy.Parts, e.Copy.Metadata
	}
	if len(m.Parts) == 0 {
		read, err := h.deps.Channels.Message(ctx, channelCaller(who), data.Message)
		switch {
		case err == nil && read.Withheld == "":
			m = read
		case err != nil && kg.CodeOf(err).Class() != kg.ClassNotFound && kg.CodeOf(err).Class() != kg.ClassDenied:
			return err
		}
	}
	if len(m.Parts) > 0 {
		p.Payload, p.ContentHash = payloadOf(m), ""
		var trace struct {
			ID string `json:"trace_id"`
		}
		if out.TraceID == nil && len(m.Metadata) > 0 && json.Unmarshal(m.Metadata, &trace) == nil {
			out.TraceID = orNull(trace.ID)
		}
	}
	out.Payload = plainjson.MustEncode(p)
	return nil
}

// listEvents handles GET /intents/{id}/events: the newest first.
func (h *Handler) listEvents(_ http.ResponseWriter, r *http.Request, who caller.Caller) (int, any, error) {
	limit, err := intParam(r, "limit", DefaultEvents, 1, MaxEvents)
	if err != nil {
		return 0, nil, err
	}
	skip, err := intParam(r, "offset", 0, 0, MaxSkipped)
	if err != nil {
		return 0, nil, err
	}
	q := scope.EventQuery{Descending: true}
	switch kind := r.URL.Query().Get("event_type"); kind {
	case "":
	case typeMessage, typeMessageRFC:
		q.Types = []string{scope.EventMessage}
	default:
		q.Types = []string{kind}
	}
	if since := r.URL.Query().Get("since"); since != "" {
		if q.Since, err = parseTime(strings.Replace(since, " ", "+", 1)); err != nil {
			e := errField("since", "since must be a time in ISO 8601", "datetime_parsing")
			e.query = true
			return 0, nil, e
		}
	}
	out, bytes := []*wireEvent{}, 0
	for len(out) < limit && bytes <= MaxListBytes {
		page, next, err := h.deps.Intents.Events(r.Context(), channelCaller(who), scope.ID(r.PathValue("id")), q)
		if err != nil {
			return 0, nil, err
		}
		for _, e := range page {
			if skip > 0 {
				skip--
				continue
			}
			if len(out) == limit || bytes > MaxListBytes {
				break
			}
			wire, err := h.eventOf(r.Context(), who, e)
			if err != nil {
				return 0, nil, err
			}
			out, bytes = append(out, wire), bytes+len(wire.Payload)
		}
		if q.Before = next; next == 0 {
			break
		}
	}
	return http.StatusOK, out, nil
}

// appendEvent handles POST /intents/{id}/events.
func (h *Handler) appendEvent(w http.ResponseWriter, r *http.Request, who caller.Caller) (int, any, error) {
	var body struct {
		Type    *string `json:"event_type"`
		Actor   string  `json:"actor"`
		Payload object  `json:"payload"`
		TraceID string  `json:"trace_id"`
		Parent  *string `json:"parent_event_id"`
	}
	if err := h.readBody(w, r, &body); err != nil {
		return 0, nil, err
	}
	switch {
	case body.Type == nil:
		return 0, nil, errRequired("event_type")
	case !eventTypes[*body.Type] || *body.Type == typeMessage:
		return 0, nil, errField("event_type", "event_type must be a type of the protocol, and not that of a message", "enum")
	}
	by, err := h.actAs(r.Context(), who, "actor", body.Actor)
	if err != nil {
		return 0, nil, err
	}
	id := scope.ID(r.PathValue("id"))
	e := intents.NewEvent{Type: *body.Type, Data: body.Payload.orEmpty(), TraceID: body.TraceID}
	if body.Parent != nil {
		if e.ParentEvent, err = parentEvent(id, *body.Parent); err != nil {
			return 0, nil, err
		}
	}
	made, err := h.deps.Intents.AppendEvent(r.Context(), channelCaller(by), id, e)
	if err != nil {
		return 0, nil, err
	}
	out, err := h.eventOf(r.Context(), by, made)
	return http.StatusOK, out, err
}

// parentEvent returns the sequence of an event of the intent.
func parentEvent(intent scope.ID, id string) (int64, error) {
	of, number, _ := strings.Cut(id, ".")
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 1 || of != string(intent) {
		return 0, errField("parent_event_id", "parent_event_id must be an event of the intent", "value_error")
	}
	return n, nil
}

// wireVerification is the result of verifying the events of an intent.
type wireVerification struct {
	IntentID   scope.ID    `json:"intent_id"`
	Count      int64       `json:"event_count"`
	First      int64       `json:"first_sequence"`
	Last       int64       `json:"last_sequence"`
	Valid      bool        `json:"valid"`
	ChainValid bool        `json:"chain_valid"`
	Breaks     []wireBreak `json:"breaks"`
	Head       *string     `json:"head"`
	Events     []string    `json:"events"`
}

type wireBreak struct {
	Sequence int64 `json:"sequence"`
}

// verifyEvents handles GET /intents/{id}/events/verify. A damaged chain is an answer, not
// an error.
func (h *Handler) verifyEvents(_ http.ResponseWriter, r *http.Request, who caller.Caller) (int, any, error) {
	id := scope.ID(r.PathValue("id"))
	out := &wireVerification{IntentID: id, Valid: true, ChainValid: true, Breaks: []wireBreak{}, Events: []string{}}
	for from := int64(1); from > 0; {
		check, err := h.deps.Intents.VerifyEvents(r.Context(), channelCaller(who), id, from)
		if kg.CodeOf(err) == kg.CodeLogDamaged {
			out.Valid, out.ChainValid = false, false
			out.Breaks = append(out.Breaks, wireBreak{out.Count + 1})
			break
		}
		if err != nil {
			return 0, nil, err
		}
		out.Count += check.Verified
		if out.Head = orNull(check.Head); out.Count > 0 {
			out.First, out.Last = 1, out.Count
		}
		from = check.Next
	}
	return http.StatusOK, out, nil
}
