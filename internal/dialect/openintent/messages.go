package openintent

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/message"
	"koine/channels/receipts"
	"koine/channels/scope"
	"koine/internal/caller"
	"koine/internal/plainjson"
	"koine/internal/rest"
	"koine/kg"
)

// Bounds of a list of messages, which has no pages in this protocol.
const (
	// MaxListed is the number of messages of a list: as many as a channel keeps by default.
	MaxListed = DefaultKeepMessages
	// MaxListBytes bounds the payloads and metadata of a list, of portfolios too. Without
	// since, the newest messages are those listed, because ask() of the SDK looks for its
	// response there; with since the oldest, so that the reader continues behind them.
	MaxListBytes = 4 << 20
)

// wireMessage is a message (RFC 2.1). All members are always present.
type wireMessage struct {
	ID            message.ID      `json:"id"`
	ChannelID     channel.ID      `json:"channel_id"`
	IntentID      scope.ID        `json:"intent_id,omitempty"` // in streams
	Sender        string          `json:"sender"`
	To            *string         `json:"to"`
	MessageType   string          `json:"message_type"`
	CorrelationID *string         `json:"correlation_id"`
	Payload       json.RawMessage `json:"payload"`
	Metadata      json.RawMessage `json:"metadata"`
	Status        string          `json:"status"`
	CreatedAt     string          `json:"created_at"`
	ExpiresAt     *string         `json:"expires_at"`
	ReadAt        *string         `json:"read_at"`
}

// messageDraft is the body of a message and of a reply.
type messageDraft struct {
	Sender        *string `json:"sender"`
	To            *string `json:"to"`
	MessageType   *string `json:"message_type"`
	CorrelationID *string `json:"correlation_id"`
	Payload       object  `json:"payload"`
	Metadata      object  `json:"metadata"`
	ExpiresAt     *string `json:"expires_at"`
}

// dataPart is the part of a message that holds a payload.
type dataPart struct {
	Type string          `json:"type"`
	Data json.RawMessage `json:"data"`
}

// publicationOf reads a message. It returns the caller as its sender.
func (h *Handler) publicationOf(w http.ResponseWriter, r *http.Request, who caller.Caller) (by caller.Caller, p channels.Publication, err error) {
	var body messageDraft
	if err = h.readBody(w, r, &body); err != nil {
		return by, p, err
	}
	if body.Sender == nil || *body.Sender == "" {
		return by, p, errRequired("sender")
	}
	if by, err = h.actAs(r.Context(), who, "sender", *body.Sender); err != nil {
		return by, p, err
	}
	if p.IdempotencyKey, err = rest.IdempotencyKey(r); err != nil {
		return by, p, err
	}
	p.Parts = []json.RawMessage{plainjson.MustEncode(dataPart{"data", body.Payload.orEmpty()})}
	if len(body.Metadata) > len("{}") {
		p.Metadata = body.Metadata
	}
	p.Interaction = message.Notification
	if body.MessageType != nil {
		p.Interaction = message.Interaction(*body.MessageType)
	}
	if body.CorrelationID != nil {
		p.Correlation = message.ID(*body.CorrelationID)
	}
	if body.ExpiresAt != nil {
		if p.ExpiresAt, err = parseTime(*body.ExpiresAt); err != nil {
			return by, p, errField("expires_at", "expires_at must be a time in ISO 8601", "datetime_parsing")
		}
	}
	switch p.Interaction {
	case message.Request, message.Notification:
		if body.To != nil {
			p.Envelope.To = *body.To
		}
	case message.BroadcastAll:
		p.Envelope.To = message.Everyone
	case message.Response: // to whom asked
	default:
		return by, p, errField("message_type", "message_type must be request, response, notify or broadcast", "enum")
	}
	return by, p, nil
}

// sendMessage handles POST /channels/{channel}/messages.
func (h *Handler) sendMessage(w http.ResponseWriter, r *http.Request, who caller.Caller) (int, any, error) {
	by, p, err := h.publicationOf(w, r, who)
	if err != nil {
		return 0, nil, err
	}
	p.Channel = channel.ID(r.PathValue("channel"))
	in, err := h.deps.Channels.Scopes().OfChannel(channelCaller(by), p.Channel)
	if err == nil && in == "" {
		err = channel.ErrNotFound() // see channelNamed
	}
	if err != nil {
		return 0, nil, err
	}
	return h.sent(r.Context(), by)(h.deps.Channels.Publish(r.Context(), channelCaller(by), p))
}

// sendByName handles POST /intents/{id}/channels/{name}/messages: the channel is made with
// the message if the intent has none of the name (RFC 1.4).
func (h *Handler) sendByName(w http.ResponseWriter, r *http.Request, who caller.Caller) (int, any, error) {
	by, p, err := h.publicationOf(w, r, who)
	if err != nil {
		return 0, nil, err
	}
	p.KeepMessages = DefaultKeepMessages
	in, err := h.intentScope(r.Context(), by, scope.ID(r.PathValue("id")))
	if err != nil {
		return 0, nil, err
	}
	return h.sent(r.Context(), by)(h.deps.Channels.PublishByName(r.Context(), channelCaller(by), in, r.PathValue("name"), p))
}

// reply handles POST /channels/{channel}/messages/{message}/reply.
func (h *Handler) reply(w http.ResponseWriter, r *http.Request, who caller.Caller) (int, any, error) {
	by, p, err := h.publicationOf(w, r, who)
	if err != nil {
		return 0, nil, err
	}
	m, err := h.messageNamed(r, by)
	if err != nil {
		return 0, nil, err
	}
	p.Channel, p.Interaction, p.Correlation, p.Envelope.To = m.Channel, message.Response, m.ID, ""
	return h.sent(r.Context(), by)(h.deps.Channels.Publish(r.Context(), channelCaller(by), p))
}

// sent converts the result of a publication.
func (h *Handler) sent(ctx context.Context, by caller.Caller) func(*channels.Receipt, error) (int, any, error) {
	return func(receipt *channels.Receipt, err error) (int, any, error) {
		if err != nil {
			return 0, nil, err
		}
		if receipt.Message == nil {
			return 0, nil, kg.Errorf(kg.CodeConstraintViolation, "message was refused: %s", receipt.Verdict.Reason)
		}
		if !receipt.Replayed { // nobody has read it
			return http.StatusCreated, convertMessage(receipt.Message), nil
		}
		out, err := h.messageOf(ctx, by, receipt.Message)
		return http.StatusCreated, out, err
	}
}

// messageNamed returns the message of the path. One that the caller may not read is not
// found, and neither is one without content, except that it may have expired.
func (h *Handler) messageNamed(r *http.Request, who caller.Caller) (*message.Message, error) {
	c, err := h.channelNamed(r, who)
	if err != nil {
		return nil, err
	}
	m, err := h.deps.Channels.Message(r.Context(), channelCaller(who), message.ID(r.PathValue("message")))
	switch {
	case kg.CodeOf(err) == kg.CodeNotFound:
		return nil, errNotFound("Message")
	case err != nil:
		return nil, err
	case m.Channel != c.ID || m.Withheld != "" && m.Withheld != message.Expired:
		return nil, errNotFound("Message")
	}
	return m, nil
}

// getMessage handles GET /channels/{channel}/messages/{message}.
func (h *Handler) getMessage(_ http.ResponseWriter, r *http.Request, who caller.Caller) (int, any, error) {
	m, err := h.messageNamed(r, who)
	if err != nil {
		return 0, nil, err
	}
	out, err := h.messageOf(r.Context(), who, m)
	return http.StatusOK, out, err
}

// markMessage handles PATCH /channels/{channel}/messages/{message}.
func (h *Handler) markMessage(w http.ResponseWriter, r *http.Request, who caller.Caller) (int, any, error) {
	var body struct {
		Status *string `json:"status"`
	}
	if err := h.readBody(w, r, &body); err != nil {
		return 0, nil, err
	}
	if body.Status == nil {
		return 0, nil, errRequired("status")
	}
	state := receipts.State(*body.Status)
	if state != receipts.Read && state != receipts.Delivered {
		return 0, nil, errField("status", "status must be read or delivered", "enum")
	}
	m, err := h.messageNamed(r, who)
	if err != nil {
		return 0, nil, err
	}
	err = h.deps.Channels.Receipts().Acknowledge(r.Context(), channelCaller(who), receipts.Acknowledgement{Channel: m.Channel, Messages: []message.ID{m.ID}, State: state})
	if err != nil {
		return 0, nil, err
	}
	out, err := h.messageOf(r.Context(), who, m)
	return http.StatusOK, out, err
}

// listMessages handles GET /channels/{channel}/messages.
func (h *Handler) listMessages(_ http.ResponseWriter, r *http.Request, who caller.Caller) (int, any, error) {
	c, err := h.channelNamed(r, who)
	if err != nil {
		return 0, nil, err
	}
	q := channels.HistoryQuery{PageSize: channels.MaxPage, Descending: true}
	if since := r.URL.Query().Get("since"); since != "" {
		if q.Descending, err = false, h.setSince(r.Context(), who, &q, c.ID, since); err != nil {
			return 0, nil, err
		}
	}
	after := q.SinceTime
	to := canonicalAddress(r.URL.Query().Get("to"))
	var list []*message.Message
	bytes := 0
	for full := false; !full; {
		page, end, more, err := h.deps.Channels.HistoryPage(r.Context(), channelCaller(who), c.ID, q)
		if err != nil {
			return 0, nil, err
		}
		for _, m := range page {
			if m.Withheld != "" || to != "" && m.Envelope.To != to || !after.IsZero() && !m.Time.After(after) {
				continue
			}
			bytes += m.Size()
			if full = len(list) == MaxListed || bytes > MaxListBytes && len(list) > 0; full {
				break
			}
			list = append(list, m)
		}
		if q.Behind = end; !more {
			break
		}
	}
	if q.Descending {
		slices.Reverse(list)
	}
	out, err := h.messagesOf(r.Context(), who, c.ID, list)
	return http.StatusOK, out, err
}

// setSince sets the lower bound of a list: a message, or a time. Both are exclusive. A
// message that was evicted is no error: all that is left comes after it.
func (h *Handler) setSince(ctx context.Context, who caller.Caller, q *channels.HistoryQuery, in channel.ID, since string) error {
	if id := message.ID(since); id.IsValid() && !strings.Contains(since, ":") {
		m, err := h.deps.Channels.Message(ctx, channelCaller(who), id)
		if err == nil && m.Channel == in {
			q.Behind = m.Sequence
			return nil
		}
		if err != nil && kg.CodeOf(err) != kg.CodeNotFound {
			return err
		}
	}
	at, err := parseTime(strings.Replace(since, " ", "+", 1)) // a + that was not escaped
	if err != nil {
		e := errField("since", "since must be the id of a message of the channel, or a time in ISO 8601", "value_error")
		e.query = true
		return e
	}
	q.SinceTime = at
	return nil
}

// canonicalAddress returns an address as messages have it.
func canonicalAddress(to string) string {
	if to == "" || to == message.Everyone || strings.HasPrefix(to, message.RolePrefix) {
		return to
	}
	return string(kg.CanonicalAgent(to))
}

// messageOf converts a message.
func (h *Handler) messageOf(ctx context.Context, who caller.Caller, m *message.Message) (*wireMessage, error) {
	list, err := h.messagesOf(ctx, who, m.Channel, []*message.Message{m})
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

// messagesOf converts messages of a channel.
func (h *Handler) messagesOf(ctx context.Context, who caller.Caller, in channel.ID, list []*message.Message) ([]*wireMessage, error) {
	out := make([]*wireMessage, 0, len(list))
	if len(list) == 0 {
		return out, nil
	}
	states, err := h.deps.Channels.Receipts().Summaries(ctx, channelCaller(who), in, list)
	if err != nil {
		return nil, err
	}
	for i, m := range list {
		wire := convertMessage(m)
		switch states[i].State {
		case receipts.Read:
			wire.Status, wire.ReadAt = string(receipts.Read), timeOrNull(states[i].ReadAt)
		case receipts.Expired:
			if m.HasExpired(h.options.Clock()) || m.Withheld == message.Expired {
				wire.Status = string(receipts.Expired)
			}
		}
		out = append(out, wire)
	}
	return out, nil
}

// convertMessage converts a message that was delivered to its reader.
func convertMessage(m *message.Message) *wireMessage {
	out := &wireMessage{
		ID: m.ID, ChannelID: m.Channel, Sender: bare(m.Author), To: orNull(bare(kg.AgentID(m.Envelope.To))), MessageType: string(m.Interaction),
		CorrelationID: orNull(string(m.Correlation)), Payload: payloadOf(m), Metadata: m.Metadata, Status: string(receipts.Delivered),
		CreatedAt: formatTime(m.Time), ExpiresAt: timeOrNull(m.ExpiresAt),
	}
	if out.MessageType == "" {
		out.MessageType = string(message.Notification)
	}
	if out.Metadata == nil {
		out.Metadata = json.RawMessage("{}")
	}
	return out
}

// payloadOf returns the payload of a message: its data, its text, or its parts, which
// messages of other protocols may have.
func payloadOf(m *message.Message) json.RawMessage {
	if m.Withheld != "" || len(m.Parts) == 0 {
		return json.RawMessage("{}")
	}
	if len(m.Parts) == 1 {
		var part struct {
			Data json.RawMessage `json:"data"`
			Text *string         `json:"text"`
		}
		if err := json.Unmarshal(m.Parts[0], &part); err == nil {
			switch {
			case len(part.Data) > 0 && part.Data[0] == '{':
				return part.Data
			case part.Text != nil:
				return plainjson.MustEncode(struct {
					Text string `json:"text"`
				}{*part.Text})
			}
		}
	}
	return plainjson.MustEncode(struct {
		Parts []json.RawMessage `json:"parts"`
	}{m.Parts})
}
