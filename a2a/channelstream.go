package a2a

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"strconv"
	"time"

	"koine/channels"
	"koine/channels/message"
	"koine/kg"
)

// Bounds of heartbeatIntervalMs; values outside are clamped.
const (
	MinHeartbeat = time.Second
	MaxHeartbeat = time.Minute
)

// channelStream handles channels/stream (channels extension, section
// 7.3). Ids are sequences; they are sent if the client sets the start, or sends a
// Last-Event-ID, even an empty one.
func (h *Handler) channelStream(_ context.Context, c *call) (*opening, error) {
	params, id := c.channelParams(new(failure))
	n, isSet := params.readNatural("sinceSequence")
	interval, _ := params.readClamped("heartbeatIntervalMs", MinHeartbeat.Milliseconds(), MaxHeartbeat.Milliseconds())
	if err := params.readRest(); err != nil {
		return nil, err
	}
	start := streamStart{sequence: clampSequence(n), field: "sinceSequence", isSet: isSet}
	ids, err := start.readHeader(c.header)
	if err != nil {
		return nil, err
	}
	by := c.byCaller()
	return &opening{ids: ids || isSet, heartbeat: time.Duration(interval) * time.Millisecond, establish: func(ctx context.Context) (*feed, error) {
		st, err := h.channels.Stream(ctx, by, id, start.sequenceAfter())
		if err != nil {
			return nil, start.withField(err)
		}
		return h.newMessageFeed(st), nil
	}}, nil
}

// streamStart is the sequence after which a stream starts, with its origin in the
// request.
type streamStart struct {
	sequence int64
	field    string // field of the request with the start
	isSet    bool   // a start is set; otherwise the stream starts with new messages
}

// readHeader reads the start from a Last-Event-ID, which takes precedence over the
// request: a reconnecting client repeats its request. It reports whether the header is
// present.
func (s *streamStart) readHeader(header http.Header) (asked bool, err error) {
	_, asked = header[lastEventID]
	last := header.Get(lastEventID)
	if last == "" {
		return asked, nil
	}
	n, err := strconv.ParseUint(last, 10, 64)
	if err != nil {
		return asked, kg.Errorf(kg.CodeInvalid, "Last-Event-ID must be a sequence, not %q", clipText(last)).At("Last-Event-ID")
	}
	s.sequence, s.field, s.isSet = clampSequence(n), "Last-Event-ID", true
	return asked, nil
}

func (s *streamStart) sequenceAfter() *int64 {
	if !s.isSet {
		return nil
	}
	return &s.sequence
}

// withField sets the field of an error about the start.
func (s *streamStart) withField(err error) error {
	e := kg.AsError(err)
	if e.Field != "sinceSequence" {
		return err
	}
	f := *e
	f.Field = s.field
	return &f
}

// wireEnvelope is an event of a stream (channels extension, section 4.4).
type wireEnvelope struct {
	Kind  string       `json:"kind"`
	Event *wireMessage `json:"event"`
}

// newMessageFeed wraps the stream, which closing the feed releases. Heartbeats have no
// position: every message is sent, so the last message has it.
func (h *Handler) newMessageFeed(st *channels.Stream) *feed {
	return &feed{
		results: encodeResults(h.encoder, st.Messages()), start: strconv.FormatInt(st.Since(), 10),
		position: func() string { return "" }, close: st.Close,
	}
}

// encodeEvent returns the event of a message.
func encodeEvent(m *message.Message) (json.RawMessage, error) {
	return appendJSON(nil, wireEnvelope{kindMessageEvent, encodeMessage(m)})
}

// encodeResults returns the results of messages.
func encodeResults(encoder *message.Encoder, messages iter.Seq2[*message.Message, error]) iter.Seq2[result, error] {
	return func(yield func(result, error) bool) {
		for m, err := range messages {
			var event json.RawMessage
			if err == nil {
				event, err = encoder.Encode(m)
			}
			if err != nil {
				yield(result{}, err)
				return
			}
			if !yield(result{event, strconv.FormatInt(m.Sequence, 10)}, nil) {
				return
			}
		}
	}
}
