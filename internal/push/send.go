package push

import "koine/internal/webhook"

// sendWithRetry delivers a body in up to MaxTries attempts. Its error does not reveal
// the URL.
func (h *hook) sendWithRetry(body []byte) error {
	for try := 1; ; try++ {
		err := h.postOnce(body)
		if err == nil || h.ctx.Err() != nil || try == MaxTries || !webhook.IsRetryable(err) {
			return err
		}
		if !webhook.Backoff(h.ctx, h.service.options.Pause, try) {
			return h.ctx.Err()
		}
	}
}

// postOnce calls the hook once.
func (h *hook) postOnce(body []byte) error {
	release, err := h.service.sender.Acquire(h.ctx)
	if err != nil {
		return err
	}
	defer release()
	return h.service.sender.Post(h.ctx, h.config.webhookTarget(), nil, body)
}
