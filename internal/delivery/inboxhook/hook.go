package inboxhook

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"koine/channels"
	"koine/channels/message"
	"koine/internal/delivery"
	"koine/kg"
)

// hook delivers the messages of an agent to its endpoint.
type hook struct {
	service *Service
	agent   kg.AgentID
	target  delivery.Target
	turn    *sync.Mutex // held during a call; shared with the previous hook of the agent
	line    delivery.Line
	failed  int // consecutive failures; used by run alone

	mu       sync.Mutex  // guards the following
	position kg.Position // behind the last message that is done with
	dirty    bool        // the position is not stored yet
}

// Reasons for not delivering a message now.
var (
	errChanged = errors.New("endpoint was changed")
	errRefused = errors.New("agent is suspended")
)

// next returns the deliveries, which go on until the line ends. The caller holds h.mu.
func (h *hook) next() func() { return h.run }

// run delivers messages until the line ends.
func (h *hook) run() {
	ctx := h.line.Context()
	for ctx.Err() == nil {
		err := h.deliverFrom(ctx)
		switch {
		case ctx.Err() != nil, errors.Is(err, errChanged):
			h.line.Stop() // the watcher starts its successor
			return
		case err == nil, kg.CodeOf(err) == kg.CodeResync, kg.CodeOf(err) == kg.CodeAccessChanged:
			continue
		}
		if h.failed++; h.failed == 1 {
			h.service.options.Logger.Warn("endpoint of an agent fails; its messages wait", "agent", h.agent, "error", err)
		}
		delivery.Backoff(ctx, h.service.options.Pause, h.failed)
	}
}

// deliverFrom delivers the messages from the position on. It returns, without an error after
// a call that took long, so that the store's state of then is not held for long.
func (h *hook) deliverFrom(ctx context.Context) error {
	h.mu.Lock()
	from := h.position
	h.mu.Unlock()
	by := channels.Caller{Principal: kg.SystemPrincipal(), Actor: h.agent}
	feed, err := channels.StreamAudience(ctx, h.service.channels, by, &from)
	if err != nil {
		return err
	}
	defer feed.Close()
	for d, err := range feed.Messages() {
		if err != nil {
			return err
		}
		began := time.Now()
		if d.Withheld == "" {
			if err := h.deliver(ctx, d.Message); err != nil {
				return err
			}
		}
		if h.failed > 0 {
			h.service.options.Logger.Info("endpoint of an agent gets messages again", "agent", h.agent, "tries", h.failed)
			h.failed = 0
		}
		h.mu.Lock()
		h.position, h.dirty = d.Position, true
		h.mu.Unlock()
		if time.Since(began) > maxHold {
			break
		}
	}
	return nil
}

// deliver calls the endpoint with a message. It returns nil if the message is done with:
// delivered, or refused for good.
func (h *hook) deliver(ctx context.Context, m *message.Message) error {
	s := h.service
	h.turn.Lock()
	defer h.turn.Unlock()
	release, err := s.sender.Acquire(ctx, h.agent)
	if err != nil {
		return err
	}
	defer release()
	url, err := s.endpointOf(ctx, h.agent)
	switch {
	case err != nil:
		return err
	case url != h.target.URL:
		return errChanged
	case !s.options.MayDeliver(h.agent):
		return errRefused
	}
	body, err := s.options.Body(ctx, h.agent, m)
	if err != nil || body == nil {
		return err
	}
	err = s.sender.Post(ctx, &h.target, http.Header{"Idempotency-Key": {string(m.ID)}, "X-Agent-ID": {strings.TrimPrefix(string(h.agent), "agent://")}}, body)
	if err != nil && !delivery.IsRetryable(err) {
		s.options.Logger.Warn("endpoint of an agent refuses a message, which is left out", "agent", h.agent, "message", m.ID, "error", err)
		return nil
	}
	return err
}
