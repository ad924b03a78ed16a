package hub

import (
	"cmp"
	"net/http"

	"koine/internal/caller"
	"koine/internal/delivery"
	"koine/internal/delivery/forward"
	"koine/internal/rest"
)

// upstreamConfig is the configuration of an upstream.
type upstreamConfig struct {
	URL            string          `json:"url"`
	Binding        forward.Binding `json:"binding"`         // JSON-RPC if absent
	Version        forward.Version `json:"protocolVersion"` // 1.0 if absent
	Streaming      *bool           `json:"streaming"`       // true if absent
	Authentication struct {
		Scheme      string `json:"scheme"`
		Credentials string `json:"credentials"`
	} `json:"authentication"`
}

// upstreamState is the visible state of an upstream, without the secrets of its calls.
type upstreamState struct {
	Origin         string          `json:"origin"`
	Binding        forward.Binding `json:"binding"`
	Version        forward.Version `json:"protocolVersion"`
	Streaming      bool            `json:"streaming"`
	Authentication *upstreamAuth   `json:"authentication,omitempty"`
	Set            string          `json:"set"`
	Waiting        int             `json:"waiting"`
	Active         int             `json:"active"`
	Failing        *hookFailing    `json:"failing,omitempty"`
}

type upstreamAuth struct {
	Scheme      string `json:"scheme"`
	Credentials bool   `json:"credentials"` // whether there are any
}

func upstreamOf(s *forward.State) *upstreamState {
	out := &upstreamState{Origin: s.Origin, Binding: s.Binding, Version: s.Version, Streaming: s.Streaming, Set: formatTime(s.Set), Waiting: s.Waiting, Active: s.Active}
	if s.Scheme != "" {
		out.Authentication = &upstreamAuth{s.Scheme, s.Credentials}
	}
	if !s.FailingSince.IsZero() {
		out.Failing = &hookFailing{formatTime(s.FailingSince), s.Failure}
	}
	return out
}

// getUpstream handles GET /agents/<id>/upstream.
func (h *Handler) getUpstream(_ http.ResponseWriter, r *http.Request) (int, any, error) {
	state, err := h.deps.Forward.State(r.Context(), caller.From(r.Context()), agentOf(r))
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, upstreamOf(state), nil
}

// setUpstream handles PUT /agents/<id>/upstream.
func (h *Handler) setUpstream(w http.ResponseWriter, r *http.Request) (int, any, error) {
	who, agent := caller.From(r.Context()), agentOf(r)
	if err := forward.CheckManages(who, agent); err != nil { // regardless of the body
		return 0, nil, err
	}
	body, err := h.readBody(w, r)
	if err != nil {
		return 0, nil, err
	}
	var wish upstreamConfig
	if err := rest.Decode(body, &wish); err != nil {
		return 0, nil, err
	}
	state, err := h.deps.Forward.Set(r.Context(), who, agent, forward.Setting{
		Target:  delivery.Target{URL: wish.URL, Scheme: wish.Authentication.Scheme, Credentials: wish.Authentication.Credentials},
		Dialect: forward.Dialect{Binding: cmp.Or(wish.Binding, forward.JSONRPC), Version: cmp.Or(wish.Version, forward.V1)}, Unary: wish.Streaming != nil && !*wish.Streaming,
	})
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, upstreamOf(state), nil
}

// deleteUpstream handles DELETE /agents/<id>/upstream.
func (h *Handler) deleteUpstream(_ http.ResponseWriter, r *http.Request) (int, any, error) {
	return http.StatusNoContent, nil, h.deps.Forward.Delete(r.Context(), caller.From(r.Context()), agentOf(r))
}
