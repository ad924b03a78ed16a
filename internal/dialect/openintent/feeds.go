package openintent

import (
	"context"
	"encoding/json"
	"net/http"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/message"
	"koine/channels/scope"
	"koine/internal/caller"
	"koine/internal/intents"
	"koine/internal/plainjson"
	"koine/kg"
)

// The data of events.
type (
	assignedData struct {
		IntentID   scope.ID `json:"intent_id"`
		AgentID    string   `json:"agent_id"`
		Role       string   `json:"role"`
		AssignedBy string   `json:"assigned_by"`
	}
	stateData struct {
		IntentID scope.ID        `json:"intent_id"`
		Old      json.RawMessage `json:"old_state"`
		New      json.RawMessage `json:"new_state"`
		Version  int64           `json:"version"`
		Actor    string          `json:"actor"`
	}
	statusData struct {
		IntentID scope.ID       `json:"intent_id"`
		Old      intents.Status `json:"old_status"`
		New      intents.Status `json:"new_status"`
		Version  int64          `json:"version"`
		Actor    string         `json:"actor"`
	}
	leaseData struct {
		IntentID scope.ID `json:"intent_id"`
		Scope    string   `json:"scope"`
		LeaseID  string   `json:"lease_id"`
		AgentID  string   `json:"agent_id"`
	}
	completedData struct {
		IntentID    scope.ID `json:"intent_id"`
		PortfolioID string   `json:"portfolio_id"`
	}
)

// known are the events that an agent of the SDK handles. Any other makes it fail, so its
// stream has these alone unless it asks for all.
var known = map[string]bool{eventAssigned: true, eventState: true, eventStatus: true, eventLeaseReleased: true, eventCompleted: true}

// view converts the events of a feed for one kind of stream; "" as the name leaves one out.
type view func(ctx context.Context, e *intents.FeedEvent) (name string, data any, err error)

// intentStream is the stream of an intent: the messages of all of its channels that the
// caller may read, and its events.
func (h *Handler) intentStream(r *http.Request, who caller.Caller) (source, error) {
	id := scope.ID(r.PathValue("id"))
	if _, err := h.intentScope(r.Context(), who, id); err != nil {
		return nil, err
	}
	return h.feed(who, intents.FeedQuery{Intent: id}, func(ctx context.Context, e *intents.FeedEvent) (string, any, error) {
		return h.convertEvent(ctx, who, e)
	}), nil
}

// agentStream is the stream of an agent: the events of the intents that it is assigned to.
// The agent need not be registered.
func (h *Handler) agentStream(r *http.Request, who caller.Caller) (source, error) {
	by, err := h.actAs(r.Context(), who, "agent_id", r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	self, all := bare(by.Acting()), r.URL.Query().Get("events") == "all"
	if r.URL.Query().Get("events") == "messages" {
		return h.inboxStream(by), nil
	}
	return h.feed(by, intents.FeedQuery{Agent: by.Acting()}, func(ctx context.Context, e *intents.FeedEvent) (string, any, error) {
		name, data, err := h.convertEvent(ctx, by, e)
		if !all && !known[name] {
			return "", nil, err
		}
		if to, ok := data.(assignedData); ok && to.AgentID != self && !all {
			return "", nil, err // the SDK would begin its work again
		}
		return name, data, err
	}), nil
}

// inboxStream is the stream of an agent's messages: those that are addressed to it in
// channels that it can read, and those to everybody in channels that it takes part in. It is
// a stream of its own, since positions in it are not those of the other one.
func (h *Handler) inboxStream(by caller.Caller) source {
	return func(ctx context.Context, from *kg.Position) (opened, error) {
		feed, err := channels.StreamAudience(ctx, h.deps.Channels, channelCaller(by), from)
		if err != nil {
			return opened{}, err
		}
		return opened{func(yield func(event, error) bool) {
			for d, err := range feed.Messages() {
				e := event{name: eventMessage, position: d.Position}
				if err == nil {
					if d.Withheld != "" {
						continue
					}
					m := convertMessage(d.Message)
					if m.IntentID, err = h.intentOf(ctx, by, d.Channel); kg.CodeOf(err) == kg.CodeChannelNotFound {
						continue // it lost access since
					}
					e.data = m
				}
				if !yield(e, err) || err != nil {
					return
				}
			}
		}, feed.Close}, nil
	}
}

// Notification returns a message as the endpoint of an agent gets it: the data of a
// channel_message event. It is nil if the agent lost access to the channel.
func (h *Handler) Notification(ctx context.Context, agent kg.AgentID, m *message.Message) ([]byte, error) {
	intent, err := h.intentOf(ctx, caller.Caller{Principal: kg.SystemPrincipal(), Actor: agent}, m.Channel)
	if kg.CodeOf(err) == kg.CodeChannelNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	out := convertMessage(m)
	out.IntentID = intent
	return plainjson.Encode(out)
}

// intentOf returns the intent of a channel, "" for a channel without one.
func (h *Handler) intentOf(ctx context.Context, by caller.Caller, id channel.ID) (scope.ID, error) {
	c, err := h.deps.Channels.Get(ctx, channelCaller(by), id)
	if err != nil || c.Scope == "" {
		return "", err
	}
	sc, err := h.deps.Channels.Scopes().Get(ctx, channelCaller(by), c.Scope)
	if err != nil {
		return "", channel.ErrNotFound()
	}
	if sc.Parent != "" {
		return sc.Parent, nil
	}
	return sc.ID, nil
}

// portfolioStream is the stream of a portfolio: the events of its intents.
func (h *Handler) portfolioStream(r *http.Request, who caller.Caller) (source, error) {
	id := r.PathValue("id")
	if _, err := h.deps.Intents.Portfolios().Get(r.Context(), channelCaller(who), id); err != nil {
		return nil, portfolioNotFound(err)
	}
	return h.feed(who, intents.FeedQuery{Portfolio: id}, func(ctx context.Context, e *intents.FeedEvent) (string, any, error) {
		name, data, err := h.convertEvent(ctx, who, e)
		if status, ok := data.(statusData); ok && status.New == intents.Completed {
			return eventCompleted, completedData{e.Intent, id}, err
		}
		if !known[name] {
			name = ""
		}
		return name, data, err
	}), nil
}

// feed returns the source of a stream of a feed.
func (h *Handler) feed(who caller.Caller, q intents.FeedQuery, show view) source {
	return func(ctx context.Context, from *kg.Position) (opened, error) {
		q.After = from
		feed, err := h.deps.Intents.Follow(ctx, channelCaller(who), q)
		if err != nil {
			return opened{}, err
		}
		return opened{func(yield func(event, error) bool) {
			for e, err := range feed.All() {
				out := event{position: e.Position}
				if err == nil {
					out.name, out.data, err = show(ctx, &e)
				}
				if out.name == "" && err == nil {
					continue
				}
				if !yield(out, err) || err != nil {
					return
				}
			}
		}, feed.Close}, nil
	}
}

// convertEvent converts an event of a feed. One without a form of its own in streams has
// the name of its type.
func (h *Handler) convertEvent(ctx context.Context, who caller.Caller, e *intents.FeedEvent) (string, any, error) {
	if e.Message != nil {
		if e.Message.Withheld != "" {
			return "", nil, nil
		}
		m := convertMessage(e.Message)
		m.IntentID = e.Intent
		return eventMessage, m, nil
	}
	var data struct {
		Agent string `json:"agent_id"`
		Role  string `json:"role"`
		Scope string `json:"scope"`
		Lease string `json:"lease_id"`
	}
	actor := bare(e.Event.Actor)
	if err := json.Unmarshal(orEmptyObject(e.Event.Data), &data); err != nil {
		data.Agent = "" // an event of a client: its members mean something else
	}
	switch e.Event.Type {
	case intents.EventAssigned:
		return eventAssigned, assignedData{e.Intent, data.Agent, data.Role, actor}, nil
	case intents.EventLeaseAcquired, intents.EventLeaseReleased:
		name := eventLeaseAcquired
		if e.Event.Type == intents.EventLeaseReleased {
			name = eventLeaseReleased
		}
		if data.Agent == "" {
			data.Agent = actor
		}
		return name, leaseData{e.Intent, data.Scope, data.Lease, data.Agent}, nil
	case intents.EventStatePatched:
		if c := e.Change; c != nil {
			return eventState, stateData{e.Intent, c.OldState, c.NewState, c.Version, actor}, nil
		}
	case intents.EventStatusChanged:
		if c := e.Change; c != nil {
			return eventStatus, statusData{e.Intent, c.OldStatus, c.NewStatus, c.Version, actor}, nil
		}
	}
	wire, err := h.eventOf(ctx, who, e.Event)
	return e.Event.Type, wire, err
}
