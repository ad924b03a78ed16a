package openintent

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"time"

	"koine/channels/channel"
	"koine/channels/scope"
	"koine/internal/caller"
	"koine/internal/plainjson"
	"koine/internal/rest"
	"koine/internal/sse"
	"koine/kg"
)

// The events of streams. An agent of the SDK knows those in capitals alone.
const (
	eventMessage       = "channel_message"
	eventAssigned      = "AGENT_ASSIGNED"
	eventState         = "STATE_CHANGED"
	eventStatus        = "STATUS_CHANGED"
	eventLeaseAcquired = "LEASE_ACQUIRED"
	eventLeaseReleased = "LEASE_RELEASED"
	eventCompleted     = "INTENT_COMPLETED"
)

// event is an event of a stream with the position behind it.
type event struct {
	name     string
	data     any
	position kg.Position
}

// source opens the events of a stream after a position; nil means from now on.
type source func(ctx context.Context, from *kg.Position) (opened, error)

// opened is an open source. It must be closed, also if nobody reads its events: a client may leave
// before its stream begins.
type opened struct {
	events iter.Seq2[event, error]
	close  func()
}

// streamOf returns the source of a stream for a request. Its error is that of the request.
type streamOf func(r *http.Request, who caller.Caller) (source, error)

// streams has the paths of the streams: the SDK asks for the first of each pair, the
// protocol's own server serves the second.
func (h *Handler) streams() map[string]streamOf {
	out := map[string]streamOf{}
	for what, of := range map[string]streamOf{"intents": h.intentStream, "agents": h.agentStream, "portfolios": h.portfolioStream, "channels": h.channelStream} {
		out["GET "+Root+"/"+what+"/{id}/subscribe"] = of
		out["GET "+Root+"/subscribe/"+what+"/{id}"] = of
	}
	return out
}

// StreamPaths are the patterns of the streams. Their refusals are to be delayed: the SDK
// asks again at once, for ever, whatever the answer says.
func StreamPaths() (out []string) {
	for _, what := range []string{"intents", "agents", "portfolios", "channels"} {
		out = append(out, "GET "+Root+"/"+what+"/{id}/subscribe", "GET "+Root+"/subscribe/"+what+"/{id}")
	}
	return out
}

// lastEventID is the header with the position to resume a stream after.
const lastEventID = "Last-Event-ID"

// serveStream answers with the events of a stream.
func (h *Handler) serveStream(w http.ResponseWriter, r *http.Request, who caller.Caller, open streamOf) error {
	from, err := open(r, who)
	if err != nil {
		return err
	}
	out, err := h.deps.Streams.Open(r.Context(), sse.StreamOptions{IDs: true, Heartbeat: h.options.Heartbeat})
	if err != nil {
		return rest.StreamError(err)
	}
	defer out.Close()
	events, closeSource, err := h.followSource(out.Context(), from, h.resumePosition(r))
	if err != nil {
		return err
	}
	defer closeSource()
	err = out.Serve(w, r, events)
	h.reportEnd(r.Context(), err)
	var refused *sse.Refused
	if errors.As(err, &refused) {
		return rest.StreamError(err)
	}
	return nil
}

// resumePosition returns the position of the Last-Event-ID, nil for none. A position of
// another log counts as none: the SDK would ask with it for ever.
func (h *Handler) resumePosition(r *http.Request) *kg.Position {
	after, err := h.deps.Positions.ParsePosition(r.Header.Get(lastEventID))
	if err != nil {
		return nil
	}
	return &after
}

// reopenWait is the wait before a source is opened again that ended without an event.
const reopenWait = time.Second

// followSource returns the events of a source from a position. When the source ends because its
// reader was too slow or what it watches has changed, it is opened again behind the last
// event: the stream itself goes on. The caller must call closeSource when it no longer reads.
func (h *Handler) followSource(ctx context.Context, open source, from *kg.Position) (events iter.Seq2[sse.Event, error], closeSource func(), err error) {
	head := h.deps.Positions.Head()
	if from == nil {
		from = &head
	}
	current, err := open(ctx, from)
	if kg.CodeOf(err) == kg.CodePositionGone {
		from = &head
		current, err = open(ctx, from)
	}
	if err != nil {
		return nil, nil, err
	}
	return func(yield func(sse.Event, error) bool) {
		for {
			moved := false
			var end error
			for e, err := range current.events {
				if err != nil {
					end = err
					break
				}
				data, err := plainjson.Encode(e.data)
				if !yield(sse.Event{ID: h.deps.Positions.FormatPosition(e.position), Name: e.name, Data: data}, err) || err != nil {
					return
				}
				from, moved = &e.position, true
			}
			if code := kg.CodeOf(end); code != kg.CodeResync && code != kg.CodeAccessChanged {
				yield(sse.Event{}, end)
				return
			}
			if !moved {
				select {
				case <-time.After(reopenWait):
				case <-ctx.Done():
					return
				}
			}
			current.close()
			if current, err = open(ctx, from); err != nil {
				current.close = func() {}
				yield(sse.Event{}, err)
				return
			}
		}
	}, func() { current.close() }, nil
}

// reportEnd reports the end of a stream to the operator, unless the client caused it.
func (h *Handler) reportEnd(ctx context.Context, reason error) {
	var refused *sse.Refused
	if reason == nil || errors.Is(reason, sse.ErrClientGone) || errors.Is(reason, context.Canceled) || errors.As(reason, &refused) {
		return
	}
	e := sse.End{Transport: "openintent", Reason: string(kg.CodeOf(reason))}
	switch {
	case errors.Is(reason, sse.ErrShutdown):
		e.Reason = "SERVER_SHUTDOWN"
	case errors.Is(reason, sse.ErrSlowConsumer):
		e.Reason = "SLOW_CONSUMER"
	case errors.Is(reason, sse.ErrEventTooLarge):
		e.Reason = "EVENT_TOO_LARGE"
	}
	h.deps.Streams.ReportEnd(ctx, e)
}

// channelStream is the stream of one channel.
func (h *Handler) channelStream(r *http.Request, who caller.Caller) (source, error) {
	r.SetPathValue("channel", r.PathValue("id"))
	c, err := h.channelNamed(r, who)
	if err != nil {
		return nil, err
	}
	sc, err := h.deps.Channels.Scopes().Get(r.Context(), channelCaller(who), c.Scope)
	if err != nil {
		return nil, channel.ErrNotFound()
	}
	intent := sc.ID
	if sc.Parent != "" {
		intent = sc.Parent
	}
	return func(ctx context.Context, from *kg.Position) (opened, error) {
		return h.messagesIn(ctx, who, sc.ID, intent, c.ID, from)
	}, nil
}

// messagesIn yields the messages of a scope, or of one of its channels, that the caller may
// read.
func (h *Handler) messagesIn(ctx context.Context, who caller.Caller, in, intent scope.ID, of channel.ID, from *kg.Position) (opened, error) {
	feed, err := h.deps.Channels.StreamScope(ctx, channelCaller(who), in, from)
	if err != nil {
		return opened{}, err
	}
	return opened{func(yield func(event, error) bool) {
		for d, err := range feed.Messages() {
			if err == nil && (d.Withheld != "" || of != "" && d.Channel != of) {
				continue
			}
			e := event{name: eventMessage, position: d.Position}
			if err == nil {
				m := convertMessage(d.Message)
				m.IntentID = intent
				e.data = m
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}, feed.Close}, nil
}
