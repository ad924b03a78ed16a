package a2a

import (
	"context"

	"koine/channels"
)

// publish is channels/publish (channels extension, section 7.1; WIRE §7).
func (h *Handler) publish(ctx context.Context, c *call) (any, error) {
	f := new(failure)
	params := readParams(f, c.params)
	p := readPublication(&params)
	params.done()
	if err := f.error(); err != nil {
		return nil, err
	}
	receipt, err := h.channels.Publish(ctx, c.byCaller(), p)
	if err != nil {
		return nil, err
	}
	return publishAnswer{Event: encodeMessage(receipt.Message), Replayed: receipt.Replayed}, nil
}

func readPublication(params *object) (p channels.Publication) {
	id, _ := params.text("channelId")
	p.Channel, p.To = channels.ChannelID(id), params.agent("to")
	parts, _ := params.array("parts")
	for _, part := range parts {
		p.Parts = append(p.Parts, part)
	}
	p.ArtifactRefs = params.texts("artifactRefs")
	p.Metadata = params.content("metadata")
	p.IdempotencyKey, _ = params.text("idempotencyKey")
	p.Envelope = readEnvelope(params)
	p.Justification, _ = params.text("justification")
	p.TaskID, _ = params.text("taskId")
	p.SessionID, _ = params.text("sessionId")
	return p
}

// readEnvelope reads what koine adds to a publication.
func readEnvelope(params *object) (e channels.Envelope) {
	text := func(name string) string { s, _ := params.text(name); return s }
	e.Interaction = channels.Interaction(text("messageType"))
	e.ContentType = channels.ContentType(text("contentType"))
	e.Format = text("format")
	e.Tags = params.texts("tags")
	e.To = text("recipient")
	e.Correlation = channels.MessageID(text("correlationId"))
	e.ExpiresAt = params.millis("expiresAt")
	e.ReplyTo = channels.MessageID(text("replyToId"))
	e.Thread = text("threadId")
	return e
}

// publishAnswer is the result of channels/publish.
type publishAnswer struct {
	Event    *wireMessage `json:"event"`
	Replayed bool         `json:"replayed,omitempty"`
}
