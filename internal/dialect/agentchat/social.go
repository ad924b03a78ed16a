package agentchat

import (
	"context"
	"net/http"
	"slices"

	"koine/channels/channel"
	"koine/internal/agents"
	"koine/internal/caller"
	"koine/internal/following"
	"koine/internal/reputation"
	"koine/internal/rest"
	"koine/kg"
)

// Following keeps the follows between agents (following.Service).
type Following interface {
	Follow(ctx context.Context, by caller.Caller, whom kg.AgentID) error
	Unfollow(ctx context.Context, by caller.Caller, whom kg.AgentID) error
	Followers(ctx context.Context, by caller.Caller, agent, after kg.AgentID, first int) ([]kg.AgentID, bool, error)
	Following(ctx context.Context, by caller.Caller, agent, after kg.AgentID, first int) ([]kg.AgentID, bool, error)
	Feed(ctx context.Context, by caller.Caller, q following.FeedQuery) (page []following.Item, next kg.Position, more bool, err error)
}

// Reputation computes scores (reputation.Service).
type Reputation interface {
	Of(ctx context.Context, by caller.Caller, agent kg.AgentID) (*reputation.Reputation, error)
}

// followAgent records that the caller follows an agent.
func (h *Handler) followAgent(_ http.ResponseWriter, r *http.Request, who *requester) (int, any, error) {
	id, err := parseAgent("id", r.PathValue("id"))
	if err != nil {
		return 0, nil, err
	}
	if _, err := h.deps.Agents.Get(r.Context(), id); err != nil {
		return 0, nil, err
	}
	return http.StatusNoContent, nil, h.deps.Following.Follow(r.Context(), who.Caller, id)
}

// unfollowAgent ends it.
func (h *Handler) unfollowAgent(_ http.ResponseWriter, r *http.Request, who *requester) (int, any, error) {
	id, err := parseAgent("id", r.PathValue("id"))
	if err != nil {
		return 0, nil, err
	}
	return http.StatusNoContent, nil, h.deps.Following.Unfollow(r.Context(), who.Caller, id)
}

// sideOf lists one side of the statements of following.
type sideOf func(ctx context.Context, by caller.Caller, agent, after kg.AgentID, first int) ([]kg.AgentID, bool, error)

// listSide returns the call that lists a side.
func (h *Handler) listSide(of func() sideOf) call {
	return func(_ http.ResponseWriter, r *http.Request, who *requester) (int, any, error) {
		limit, err := rest.LimitParam(r, DefaultPage, MaxPage)
		if err != nil {
			return 0, nil, err
		}
		id, err := h.pathAgent(r, who)
		if err != nil {
			return 0, nil, err
		}
		if _, err := h.deps.Agents.Get(r.Context(), id); err != nil && id != who.agent {
			return 0, nil, err
		}
		after := kg.AgentID("")
		if cursor := r.URL.Query().Get("cursor"); cursor != "" {
			if after, err = parseAgent("cursor", cursor); err != nil {
				return 0, nil, err
			}
		}
		ids, more, err := of()(r.Context(), who.Caller, id, after, limit)
		if err != nil {
			return 0, nil, err
		}
		out := agentPage{Agents: []*agent{}}
		for _, one := range ids {
			record, err := h.deps.Agents.Get(r.Context(), one)
			if err != nil && kg.CodeOf(err) != kg.CodeAgentNotFound {
				return 0, nil, err
			}
			out.Agents = append(out.Agents, h.encodeAgent(one, record))
		}
		if more {
			next := agents.ShortID(ids[len(ids)-1])
			out.Next = &next
		}
		return http.StatusOK, out, nil
	}
}

// The types of the items of a feed.
const (
	itemMessage = "message"
	itemFact    = "fact"
)

type (
	feedItem struct {
		Type      string       `json:"type"`
		AgentID   string       `json:"agent_id"`
		Timestamp string       `json:"timestamp"`
		Message   *wireMessage `json:"message,omitempty"`
		Fact      *wireFact    `json:"fact,omitempty"`
	}
	wireFact struct {
		Subject   string `json:"subject"`
		Predicate string `json:"predicate"`
		Object    string `json:"object"`
		Graph     string `json:"graph,omitempty"`
	}
	feedPage struct {
		Items []feedItem `json:"items"`
		Next  string     `json:"next_cursor"`
		More  bool       `json:"has_more"`
	}
)

// getFeed lists the publications of the agents that the caller follows: the newest, or what
// came after a cursor. next_cursor is always set, so that a client can ask for more later.
func (h *Handler) getFeed(_ http.ResponseWriter, r *http.Request, who *requester) (int, any, error) {
	limit, err := rest.LimitParam(r, DefaultPage, MaxPage)
	if err != nil {
		return 0, nil, err
	}
	q := following.FeedQuery{PageSize: limit}
	if after := r.URL.Query().Get("after"); after != "" {
		if q.After, err = h.deps.Store.ParsePosition(after); err != nil {
			return 0, nil, kg.AsError(err).At("after")
		}
	}
	page, next, more, err := h.deps.Following.Feed(r.Context(), who.Caller, q)
	if err != nil {
		return 0, nil, err
	}
	out := feedPage{Items: []feedItem{}, Next: h.deps.Store.FormatPosition(next), More: more}
	for _, one := range page {
		item := feedItem{Type: itemMessage, AgentID: agents.ShortID(one.Agent), Timestamp: formatTime(one.Time)}
		if one.Message != nil {
			item.Message = encodeMessage(one.Message)
		} else {
			item.Type, item.Fact = itemFact, &wireFact{one.Fact.Subject.String(), one.Fact.Predicate.String(), one.Fact.Object.String(), one.Fact.Graph.Value()}
		}
		out.Items = append(out.Items, item)
	}
	return http.StatusOK, out, nil
}

type wireReputation struct {
	Score  *int              `json:"score"`
	Counts reputation.Counts `json:"counts"`
	Since  string            `json:"since"`
	// Partial reports that there are more events than count.
	Partial bool `json:"partial,omitempty"`
}

// getReputation returns the reputation of an agent as the caller sees it.
func (h *Handler) getReputation(_ http.ResponseWriter, r *http.Request, who *requester) (int, any, error) {
	id, err := h.pathAgent(r, who)
	if err != nil {
		return 0, nil, err
	}
	if _, err := h.deps.Agents.Get(r.Context(), id); err != nil {
		return 0, nil, err
	}
	found, err := h.deps.Reputation.Of(r.Context(), who.Caller, id)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, wireReputation{found.Score, found.Counts, formatTime(found.Since), found.Partial}, nil
}

// publicAgent is an agent in the public directory.
type publicAgent struct {
	ID           string   `json:"id"`
	Name         string   `json:"name"`
	Capabilities []string `json:"capabilities"`
	Status       string   `json:"status"`
	Reputation   *int     `json:"reputation"`
}

// encodeFor returns an agent as the caller sees it. A visitor sees less, and the
// reputation that follows from public data.
func (h *Handler) encodeFor(ctx context.Context, who *requester, id kg.AgentID, record *agents.Record) (any, error) {
	full := h.encodeAgent(id, record)
	if !who.visitor {
		return full, nil
	}
	found, err := h.deps.Reputation.Of(ctx, who.Caller, id)
	if err != nil {
		return nil, err
	}
	return publicAgent{full.ID, full.Name, full.Capabilities, full.Status, found.Score}, nil
}

// MaxWantedRooms bounds the rooms in an agent's profile that ask for its capabilities.
const MaxWantedRooms = 20

// wantedIn lists the rooms that ask for a capability of an agent, among those whose
// metadata the caller may see.
func (h *Handler) wantedIn(ctx context.Context, who *requester, capabilities []string) (list []wantedRoom, err error) {
	if len(capabilities) == 0 {
		return nil, nil
	}
	l := channel.ListQuery{PageSize: MaxPage}
	for range MaxPageReads {
		page, next, err := h.deps.Channels.List(ctx, who.onChannels(), l)
		if err != nil {
			return nil, err
		}
		for _, c := range page {
			wanted := slices.DeleteFunc(slices.Clone(wantedBy(c)), func(tag string) bool { return !slices.Contains(capabilities, tag) })
			if len(wanted) > 0 && len(list) < MaxWantedRooms {
				list = append(list, wantedRoom{string(c.ID), c.Name, wanted})
			}
		}
		if l.PageToken = next; next == "" || len(list) == MaxWantedRooms {
			break
		}
	}
	return list, nil
}
