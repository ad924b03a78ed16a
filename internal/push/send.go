package push

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"time"
)

// refusal is an answer that is not 2xx.
type refusal struct{ status int }

func (r refusal) Error() string { return fmt.Sprintf("the web hook answered %d", r.status) }

// again tells whether another try may help.
func again(err error) bool {
	var r refusal
	if errors.As(err, &r) {
		return r.status == http.StatusTooManyRequests || r.status == http.StatusRequestTimeout || r.status >= http.StatusInternalServerError
	}
	return !errors.Is(err, errPrivate)
}

// send delivers a body, in MaxTries tries. Its error says nothing of where to.
func (h *hook) send(body []byte) error {
	pause := h.service.options.Pause
	for try := 1; ; try++ {
		err := h.post(body)
		if err == nil || h.ctx.Err() != nil || try == MaxTries || !again(err) {
			return err
		}
		// Not all that failed at once come back at once.
		if !sleep(h.ctx, pause/2+rand.N(pause/2+1)) {
			return h.ctx.Err()
		}
		pause = min(2*pause, MaxPause)
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// post calls the hook once.
func (h *hook) post(body []byte) error {
	s, c := h.service, h.config
	select {
	case <-h.ctx.Done():
		return h.ctx.Err()
	case s.sending <- struct{}{}:
	}
	defer func() { <-s.sending }()
	r, err := http.NewRequestWithContext(h.ctx, http.MethodPost, c.URL, bytes.NewReader(body))
	if err != nil {
		return plain(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "koine")
	if c.Token != "" { // the name of 0.3, and that of the Go library
		r.Header.Set("X-A2A-Notification-Token", c.Token)
		r.Header.Set("A2A-Notification-Token", c.Token)
	}
	if c.Credentials != "" {
		r.Header.Set("Authorization", c.Scheme+" "+c.Credentials)
	}
	resp, err := s.client.Do(r)
	if err != nil {
		return plain(err)
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, maxAnswerBytes) // so that the connection is kept
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return refusal{resp.StatusCode}
	}
	return nil
}

// plain is the error without the address, and, but for what is of our own, without
// what it says: names and addresses stand there too.
func plain(err error) error {
	var at *url.Error
	switch {
	case errors.Is(err, errPrivate):
		return errPrivate
	case errors.As(err, &at) && at.Timeout():
		return errors.New("the web hook did not answer in time")
	}
	return errors.New("the web hook cannot be reached")
}
