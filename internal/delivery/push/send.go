package push

import (
	"errors"

	"koine/internal/delivery"
)

// errCreatorRefused is the reason for not delivering an event now.
var errCreatorRefused = errors.New("creator of the task is suspended")

// sendWithRetry delivers a body in up to MaxTries attempts. It waits as long as the creator
// of the task is refused, which is no attempt. Its error does not reveal the URL.
func (h *hook) sendWithRetry(body []byte) error {
	tries := 0
	for failed := 1; ; failed++ {
		err := h.postOnce(body)
		if !errors.Is(err, errCreatorRefused) {
			if tries++; err == nil || h.line.Context().Err() != nil || tries == MaxTries || !delivery.IsRetryable(err) {
				return err
			}
		}
		if !delivery.Backoff(h.line.Context(), h.service.options.Pause, failed) {
			return h.line.Context().Err()
		}
	}
}

// postOnce calls the hook once, unless the creator of the task is refused. The creator may
// be suspended while the event waits for its slot.
func (h *hook) postOnce(body []byte) error {
	release, err := h.service.sender.Acquire(h.line.Context(), h.task.Creator)
	if err != nil {
		return err
	}
	defer release()
	if !h.service.options.MayDeliver(h.task.Creator) {
		return errCreatorRefused
	}
	return h.service.sender.Post(h.line.Context(), h.config.webhookTarget(), nil, body)
}
