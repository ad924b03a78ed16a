package hub

import (
	"net/http"
	"time"

	"koine/a2a/internal/v1"
	"koine/internal/delivery"
	"koine/internal/delivery/mailhook"
	"koine/internal/plainjson"
	"koine/internal/rest"
	"koine/internal/tasks"
)

// hookConfig is the configuration of a web hook: a push notification configuration of A2A
// 1.0.
type hookConfig struct {
	URL            string `json:"url"`
	Token          string `json:"token"`
	Authentication struct {
		Scheme      string `json:"scheme"`
		Credentials string `json:"credentials"`
	} `json:"authentication"`
}

// hookState is the visible state of a web hook, without the secrets of its calls.
type hookState struct {
	Origin  string       `json:"origin"`
	Scheme  string       `json:"scheme,omitempty"`
	Set     string       `json:"set"`
	Waiting int          `json:"waiting"`
	Failing *hookFailing `json:"failing,omitempty"`
}

type hookFailing struct {
	Since string `json:"since"`
	Error string `json:"error"`
}

func stateOf(s *mailhook.State) *hookState {
	out := &hookState{Origin: s.Origin, Scheme: s.Scheme, Set: formatTime(s.Set), Waiting: s.Pending}
	if !s.FailingSince.IsZero() {
		out.Failing = &hookFailing{formatTime(s.FailingSince), s.Failure}
	}
	return out
}

func formatTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// Letter encodes a letter for its mailbox and its web hook (mailhook.Options.Body).
func Letter(l *tasks.Letter) ([]byte, error) { return plainjson.Encode(v1.Letter(l)) }

// getWebhook handles GET /agents/<id>/webhook.
func (h *Handler) getWebhook(_ http.ResponseWriter, r *http.Request) (int, any, error) {
	who, err := mailboxOwner(r)
	if err != nil {
		return 0, nil, err
	}
	state, err := h.deps.Hooks.State(r.Context(), who)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, stateOf(state), nil
}

// setWebhook handles PUT /agents/<id>/webhook.
func (h *Handler) setWebhook(w http.ResponseWriter, r *http.Request) (int, any, error) {
	who, err := mailboxOwner(r)
	if err != nil {
		return 0, nil, err
	}
	body, err := h.readBody(w, r)
	if err != nil {
		return 0, nil, err
	}
	var wish hookConfig
	if err := rest.Decode(body, &wish); err != nil {
		return 0, nil, err
	}
	state, err := h.deps.Hooks.Set(r.Context(), who, delivery.Target{
		URL: wish.URL, Token: wish.Token, Scheme: wish.Authentication.Scheme, Credentials: wish.Authentication.Credentials,
	})
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, stateOf(state), nil
}

// deleteWebhook handles DELETE /agents/<id>/webhook.
func (h *Handler) deleteWebhook(_ http.ResponseWriter, r *http.Request) (int, any, error) {
	who, err := mailboxOwner(r)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusNoContent, nil, h.deps.Hooks.Delete(r.Context(), who)
}
