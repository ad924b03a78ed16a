package push

import "koine/internal/webhook"

// send delivers a body, in MaxTries tries. Its error says nothing of where to.
func (h *hook) send(body []byte) error {
	for try := 1; ; try++ {
		err := h.post(body)
		if err == nil || h.ctx.Err() != nil || try == MaxTries || !webhook.Again(err) {
			return err
		}
		if !webhook.Pause(h.ctx, h.service.options.Pause, try) {
			return h.ctx.Err()
		}
	}
}

// post calls the hook once.
func (h *hook) post(body []byte) error {
	release, err := h.service.sender.Place(h.ctx)
	if err != nil {
		return err
	}
	defer release()
	return h.service.sender.Post(h.ctx, h.config.target(), nil, body)
}
