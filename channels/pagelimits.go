package channels

import (
	"unicode/utf8"

	"koine/channels/internal/check"
	"koine/kg"
)

// Limits of requests (channels extension, section 8; WIRE §7).
const (
	DefaultPage  = 50
	MaxPage      = 200
	MaxAuthorIDs = 32
	MaxKeyRunes  = 128
	MaxReplies   = 5000 // per message, returned by Replies
	MaxRemovals  = 20   // passes of RemoveAgent over the agent's channels
)

func checkKey(key string) error {
	if n := utf8.RuneCountInString(key); n > MaxKeyRunes {
		return check.TooMuch("idempotencyKey", "idempotencyKey has %d characters; the limit is %d", n, MaxKeyRunes)
	}
	return nil
}

func checkReason(reason string) error {
	if !utf8.ValidString(reason) {
		return kg.Errorf(kg.CodeInvalid, "reason must be valid UTF-8").At("reason")
	}
	if n := utf8.RuneCountInString(reason); n > MaxReasonRunes {
		return check.TooMuch("reason", "reason has %d characters; the limit is %d", n, MaxReasonRunes)
	}
	return nil
}

// MaxReasonRunes is the maximum length of a reason.
const MaxReasonRunes = 1024

// mustAdminister returns an error if the principal is not an administrator of the
// server.
func mustAdminister(p kg.Principal) error {
	if !p.IsAdmin() {
		return check.Denied("only administrators can do this")
	}
	return nil
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
