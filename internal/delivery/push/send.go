package push

import "koine/internal/delivery"

// sendWithRetry delivers a body in up to MaxTries attempts. Its error does not reveal
// the URL.
func (h *hook) sendWithRetry(body []byte) error {
	for try := 1; ; try++ {
		err := h.postOnce(body)
		if err == nil || h.line.Context().Err() != nil || try == MaxTries || !delivery.IsRetryable(err) {
			return err
		}
		if !delivery.Backoff(h.line.Context(), h.service.options.Pause, try) {
			return h.line.Context().Err()
		}
	}
}

// postOnce calls the hook once.
func (h *hook) postOnce(body []byte) error {
	release, err := h.service.sender.Acquire(h.line.Context())
	if err != nil {
		return err
	}
	defer release()
	return h.service.sender.Post(h.line.Context(), h.config.webhookTarget(), nil, body)
}
