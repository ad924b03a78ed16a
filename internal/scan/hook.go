package scan

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"time"
	"unicode/utf8"

	"koine/channels"
	"koine/channels/message"
	"koine/internal/delivery"
	"koine/kg"
)

// Defaults and bounds of HookOptions.
const (
	DefaultTimeout   = 2 * time.Second
	MaxTimeout       = 30 * time.Second
	DefaultMaxBytes  = 1 << 20
	DefaultMaxCalls  = 32
	MaxSecretBytes   = 512
	MaxResponseBytes = 16 << 10
	MaxReasonRunes   = 500
)

// OnFailure is the verdict on a message that the hook does not judge.
type OnFailure string

// The choices.
const (
	Accept OnFailure = "accept" // publish it
	Reject OnFailure = "reject" // refuse it; a repetition is judged anew
	Hold   OnFailure = "hold"   // let reviewers decide
)

// Headers of a call. The signature is the lower-case hexadecimal HMAC-SHA256, with the
// secret, of the timestamp, a dot, and the body.
const (
	TimestampHeader = "X-Koine-Timestamp" // Unix seconds
	SignatureHeader = "X-Koine-Signature" // "sha256=" and the signature
)

// HookOptions configures a Hook. Zero values of the bounds mean their defaults.
type HookOptions struct {
	Target delivery.Target
	// Secret signs the calls; they are not signed without it.
	Secret []byte
	// AllowPrivate permits a hook at a private or loopback address.
	AllowPrivate bool
	// Timeout bounds the judgement of a message, with the wait for its turn.
	Timeout time.Duration
	// MaxBytes bounds the body of a call. A larger message is not sent.
	MaxBytes int
	// MaxCalls bounds the calls under way.
	MaxCalls int
	// OnFailure is Reject if empty.
	OnFailure OnFailure
	// Hold has the conditions of a review that the hook asks for.
	Hold   kg.Hold
	Clock  func() time.Time // time.Now if nil
	Logger *slog.Logger     // may be nil
}

// Hook is a web hook that judges messages. It is safe for concurrent use.
type Hook struct {
	options HookOptions
	sender  *delivery.Sender
	breaker breaker
}

// NewHook returns a hook, or an error if its options are invalid.
func NewHook(o HookOptions) (*Hook, error) {
	o.Timeout, o.MaxBytes, o.MaxCalls = cmp.Or(o.Timeout, DefaultTimeout), cmp.Or(o.MaxBytes, DefaultMaxBytes), cmp.Or(o.MaxCalls, DefaultMaxCalls)
	o.OnFailure = cmp.Or(o.OnFailure, Reject)
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	switch {
	case o.OnFailure != Accept && o.OnFailure != Reject && o.OnFailure != Hold:
		return nil, kg.Errorf(kg.CodeInvalid, "on-failure must be accept, reject or hold, not %q", o.OnFailure)
	case o.Timeout < 0 || o.Timeout > MaxTimeout:
		return nil, kg.Errorf(kg.CodeInvalid, "the time of the hook must be at most %s", MaxTimeout)
	case o.MaxBytes < 0 || o.MaxCalls < 0:
		return nil, kg.Errorf(kg.CodeInvalid, "the bounds of the hook must be positive")
	case len(o.Secret) > MaxSecretBytes:
		return nil, kg.Errorf(kg.CodeLimitExceeded, "the secret has more than %d bytes", MaxSecretBytes)
	}
	if err := o.Target.Check(o.AllowPrivate); err != nil {
		return nil, err
	}
	return &Hook{
		options: o, breaker: breaker{clock: o.Clock},
		sender: delivery.New(delivery.Options{AllowPrivate: o.AllowPrivate, MaxConcurrent: o.MaxCalls, Timeout: o.Timeout, Unshared: true}),
	}, nil
}

// Close closes idle connections.
func (h *Hook) Close() { h.sender.Close() }

// judge asks the hook about a message. Its error ends the publication: the caller is
// gone.
func (h *Hook) judge(ctx context.Context, m *channels.ScannedMessage) (channels.Ruling, error) {
	body, err := encodeCall(m)
	if err != nil {
		return channels.Ruling{}, err
	}
	if len(body) > h.options.MaxBytes {
		return h.unjudged("the message is too large for the content hook"), nil
	}
	breaks := h.options.OnFailure != Hold // a held message costs reviewers more than its author's time
	if breaks && !h.breaker.allow() {
		return h.unjudged("the content hook is away"), nil
	}
	inner, cancel := context.WithTimeout(ctx, h.options.Timeout)
	defer cancel()
	release, err := h.sender.Acquire(inner, kg.System)
	if err != nil {
		h.breaker.undecided()
		if ctx.Err() != nil {
			return channels.Ruling{}, kg.Errorf(kg.CodeTimeout, "the request ended before its message was judged")
		}
		return h.unjudged("too many messages are being judged"), nil
	}
	defer release()
	answer, err := h.call(inner, body)
	switch {
	case ctx.Err() != nil: // says nothing about the hook
		h.breaker.undecided()
		return channels.Ruling{}, kg.Errorf(kg.CodeTimeout, "the request ended before its message was judged")
	case err != nil:
		switch first, away := h.breaker.failed(); {
		case away:
			h.options.Logger.Warn("content hook is away: messages are not judged for now", "error", err, "onFailure", string(h.options.OnFailure))
		case first:
			h.options.Logger.Warn("content hook did not judge a message", "error", err, "onFailure", string(h.options.OnFailure))
		}
		return h.unjudged("the content hook did not judge the message"), nil
	}
	if h.breaker.succeeded() {
		h.options.Logger.Info("content hook judges messages again")
	}
	return h.rulingOf(answer), nil
}

// call makes one call. Its errors reveal nothing of the message and of the response.
func (h *Hook) call(ctx context.Context, body []byte) (answer, error) {
	header := http.Header{}
	if len(h.options.Secret) > 0 {
		at := strconv.FormatInt(h.options.Clock().Unix(), 10)
		header.Set(TimestampHeader, at)
		header.Set(SignatureHeader, "sha256="+sign(h.options.Secret, at, body))
	}
	raw, err := h.sender.Call(ctx, &h.options.Target, header, body, MaxResponseBytes)
	if err != nil {
		return answer{}, err
	}
	return decodeAnswer(raw)
}

// sign returns the signature of a call.
func sign(secret []byte, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(timestamp + "."))
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}

// unjudged is the ruling on a message that the hook does not judge.
func (h *Hook) unjudged(why string) channels.Ruling {
	out := channels.Ruling{Transient: true}
	switch h.options.OnFailure {
	case Reject:
		out.Verdict = kg.Verdict{Outcome: kg.Rejected, Reason: "Content Not Checked", Details: why + ": retry later"}
	case Hold:
		out.Verdict = h.held(why)
	}
	return out
}

// held is the verdict on a message that waits for a review.
func (h *Hook) held(why string) kg.Verdict {
	hold := h.options.Hold
	return kg.Verdict{Outcome: kg.Held, Details: "content hook: " + why, Hold: &hold}
}

// answer is the response of a hook.
type answer struct {
	Verdict string   `json:"verdict"`
	Reason  string   `json:"reason"`
	Tags    []string `json:"tags"`
}

var errMalformed = errors.New("response of the content hook is malformed")

// decodeAnswer decodes a response. Unknown members are ignored: a hook may serve others.
func decodeAnswer(raw []byte) (a answer, err error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if dec.Decode(&a) != nil {
		return answer{}, errMalformed
	}
	if _, err := dec.Token(); err != io.EOF {
		return answer{}, errMalformed
	}
	checked := message.Envelope{Tags: a.Tags}
	switch {
	case a.Verdict != "accept" && a.Verdict != "reject" && a.Verdict != "hold":
		return answer{}, errMalformed
	case len(a.Tags) > channels.MaxAddedTags || checked.Normalize() != nil:
		return answer{}, errMalformed
	case !utf8.ValidString(a.Reason) || utf8.RuneCountInString(a.Reason) > MaxReasonRunes:
		return answer{}, errMalformed
	}
	a.Tags = checked.Tags
	return a, nil
}

// rulingOf converts a response.
func (h *Hook) rulingOf(a answer) channels.Ruling {
	out := channels.Ruling{Tags: a.Tags}
	switch a.Verdict {
	case "reject":
		out.Verdict = kg.Verdict{Outcome: kg.Rejected, Reason: cmp.Or(a.Reason, "Content Refused"), Details: "content hook"}
	case "hold":
		out.Verdict = h.held(cmp.Or(a.Reason, "the message needs a review"))
	}
	return out
}
