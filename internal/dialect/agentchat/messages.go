package agentchat

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"time"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/message"
	"koine/internal/plainjson"
	"koine/internal/rest"
	"koine/internal/search"
	"koine/kg"
)

type messageDraft struct {
	Content  *string         `json:"content"`
	Type     string          `json:"type"`
	Metadata json.RawMessage `json:"metadata"`
	Tags     []string        `json:"tags"` // beside those in metadata
}

// toPublication converts a message of the protocol.
func (d *messageDraft) toPublication(id channel.ID) (p channels.Publication, err error) {
	p.Channel = id
	switch {
	case d.Content == nil || *d.Content == "":
		return p, kg.Errorf(kg.CodeInvalid, "is required").At("content")
	case len(*d.Content) > MaxContentBytes:
		return p, kg.Errorf(kg.CodeLimitExceeded, "content has %d bytes; the limit is %d", len(*d.Content), MaxContentBytes).At("content")
	}
	switch t := message.ContentType(d.Type); t {
	case "":
		p.ContentType = message.Text
	case message.Text, message.Structured, message.Action:
		p.ContentType = t
	case message.Notice:
		return p, kg.Errorf(kg.CodePermissionDenied, "only the server sends messages of the type system").At("type")
	default:
		return p, kg.Errorf(kg.CodeInvalid, "must be text, structured or action").At("type")
	}
	if err := d.readMetadata(&p); err != nil {
		return p, err
	}
	if p.Format == formatJSON && !json.Valid([]byte(*d.Content)) {
		return p, kg.Errorf(kg.CodeInvalid, "must be JSON, as metadata.format says").At("content")
	}
	part, err := plainjson.Encode(struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}{"text", *d.Content})
	p.Parts = []json.RawMessage{part}
	return p, err
}

// readMetadata reads the members of metadata that the protocol defines, and keeps the
// others.
func (d *messageDraft) readMetadata(p *channels.Publication) error {
	raw, err := objectIn("metadata", d.Metadata)
	if err != nil {
		return err
	}
	p.Tags = d.Tags
	if raw == nil {
		return nil
	}
	var known struct {
		Format   *string  `json:"format"`
		ReplyTo  *string  `json:"in_reply_to"`
		ThreadID *string  `json:"thread_id"`
		Tags     []string `json:"tags"`
	}
	if err := rest.Decode(raw, &known); err != nil {
		e := kg.AsError(err)
		return e.At("metadata." + e.Field)
	}
	if known.Format != nil {
		switch p.Format = *known.Format; p.Format {
		case formatPlain, formatMarkdown, formatJSON:
		default:
			return kg.Errorf(kg.CodeInvalid, "must be plain, markdown or json").At("metadata.format")
		}
	}
	if known.ReplyTo != nil {
		p.ReplyTo = message.ID(*known.ReplyTo)
	}
	if known.ThreadID != nil {
		p.Thread = *known.ThreadID
	}
	p.Tags = append(slices.Clone(d.Tags), known.Tags...)
	var all map[string]json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		return err
	}
	for _, name := range wellKnownNames {
		delete(all, name)
	}
	if len(all) > 0 {
		p.Metadata, err = plainjson.Encode(all)
	}
	return err
}

// postMessage publishes a message.
func (h *Handler) postMessage(w http.ResponseWriter, r *http.Request, who *requester) (int, any, error) {
	var body messageDraft
	if err := h.readBody(w, r, &body); err != nil {
		return 0, nil, err
	}
	p, err := body.toPublication(pathRoom(r))
	if err != nil {
		return 0, nil, err
	}
	p.IdempotencyKey = r.Header.Get("Idempotency-Key")
	m, err := h.publish(r.Context(), who, p)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusCreated, encodeMessage(m), nil
}

func (h *Handler) publish(ctx context.Context, who *requester, p channels.Publication) (*message.Message, error) {
	receipt, err := h.deps.Channels.Publish(ctx, who.onChannels(), p)
	if err != nil {
		return nil, err
	}
	if receipt.Message == nil { // cannot be: there are no facts
		return nil, kg.Errorf(kg.CodeConstraintViolation, "the message was refused by a rule")
	}
	return receipt.Message, nil
}

// deleteMessage retracts a message.
func (h *Handler) deleteMessage(_ http.ResponseWriter, r *http.Request, who *requester) (int, any, error) {
	_, err := h.deps.Channels.Retract(r.Context(), who.onChannels(), channels.Retraction{Channel: pathRoom(r), Message: message.ID(r.PathValue("mid"))})
	return http.StatusNoContent, nil, err
}

type messagePage struct {
	Messages []*wireMessage `json:"messages"`
	HasMore  bool           `json:"has_more"`
	Next     *string        `json:"next_cursor"`
}

// listMessages lists messages of a room, ascending: the newest ones, or those before or
// after a place. next_cursor is the place of the next page: to be sent as before, or as
// after with after or since.
func (h *Handler) listMessages(_ http.ResponseWriter, r *http.Request, who *requester) (int, any, error) {
	q, err := historyOf(r)
	if err != nil {
		return 0, nil, err
	}
	if r.URL.Query().Has("q") {
		if h.deps.Search == nil {
			return 0, nil, &errorNotImplemented{"q"}
		}
		q.Among = h.messagesWith(r.URL.Query().Get("q"), pathRoom(r))
	}
	page, end, more, err := h.deps.Channels.HistoryPage(r.Context(), who.onChannels(), pathRoom(r), q)
	if err != nil {
		return 0, nil, err
	}
	out := messagePage{Messages: make([]*wireMessage, 0, len(page)), HasMore: more}
	for _, m := range page {
		out.Messages = append(out.Messages, encodeMessage(m))
	}
	if q.Descending {
		slices.Reverse(out.Messages)
	}
	if more {
		next := strconv.FormatInt(end, 10)
		out.Next = &next
	}
	return http.StatusOK, out, nil
}

// messagesWith returns a function that finds the messages of a room with words of a query.
func (h *Handler) messagesWith(words string, room channel.ID) func(context.Context, *kg.Snapshot) ([]message.ID, error) {
	return func(ctx context.Context, s *kg.Snapshot) ([]message.ID, error) {
		found, err := h.deps.Search.Subjects(ctx, s, search.Request{Query: words, Filter: search.Filter{Channels: []channel.ID{room}}})
		if err != nil {
			return nil, kg.AsError(err).At("q")
		}
		list := make([]message.ID, 0, len(found))
		for _, t := range found {
			list = append(list, message.IDOf(t))
		}
		return list, nil
	}
}

// historyOf reads the query of a list of messages.
func historyOf(r *http.Request) (q channels.HistoryQuery, err error) {
	if q.PageSize, err = rest.LimitParam(r, DefaultPage, MaxPage); err != nil {
		return q, err
	}
	query := r.URL.Query()
	if before := query.Get("before"); before != "" {
		if n, err := strconv.ParseInt(before, 10, 64); err != nil {
			q.BeforeMessage = message.ID(before)
		} else if n < 1 {
			return q, kg.Errorf(kg.CodeInvalid, "must be a message id or a sequence").At("before")
		} else {
			q.BeforeSequence = n
		}
	}
	after := query.Get("after")
	if after != "" {
		if n, err := strconv.ParseInt(after, 10, 64); err != nil {
			q.SinceMessage = message.ID(after)
		} else if n < 0 {
			return q, kg.Errorf(kg.CodeInvalid, "must be a message id or a sequence").At("after")
		} else {
			q.SinceSequence = &n
		}
	}
	if q.SinceTime, err = timeParam(r, "since"); err != nil {
		return q, err
	}
	q.Descending = after == "" && q.SinceTime.IsZero()
	if sender := query.Get("sender"); sender != "" {
		id, err := parseAgent("sender", sender)
		if err != nil {
			return q, err
		}
		q.Authors = []kg.AgentID{id}
	}
	switch t := message.ContentType(query.Get("type")); t {
	case "", message.Text, message.Structured, message.Action, message.Notice:
		q.ContentType = t
	default:
		return q, kg.Errorf(kg.CodeInvalid, "must be text, structured, action or system").At("type")
	}
	q.Tag, q.Thread = query.Get("tag"), query.Get("thread")
	return q, nil
}

// timeParam reads a query parameter with a time, zero if it is absent.
func timeParam(r *http.Request, name string) (time.Time, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, kg.Errorf(kg.CodeInvalid, "must be a time such as 2026-02-19T10:30:00.123Z, or a day").At(name)
}
