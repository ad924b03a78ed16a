package channels

import (
	"crypto/sha256"
	"encoding/json"
	"unicode/utf8"

	"koine/channels/internal/check"
	"koine/kg"
)

// Limits of requests (channels extension, section 8).
const (
	DefaultPage    = 50
	MaxPage        = 200
	MaxAuthorIDs   = 32
	MaxKeyRunes    = 128
	MaxReasonRunes = 1024
	MaxReplies     = 5000 // per message, returned by Replies
	MaxNameTries   = 8    // of PublishByName while the channel is created or deleted concurrently
	MaxRemovals    = 20   // passes of RemoveAgent over the agent's channels
)

func errNoEvents() *kg.Error {
	return kg.Errorf(kg.CodeInvalid, "audit requires a channel in a scope").At("audit")
}

func errOutOfScope(agent kg.AgentID) *kg.Error {
	e := kg.Errorf(kg.CodeNotMember, "%s has no access to the scope of the channel, so it could not accept", agent).At("principalId")
	e.Hint = "give the agent access to the scope first; the roles of a credential are known after its first request"
	return e
}

func errLastOwner() *kg.Error {
	e := kg.Errorf(kg.CodeLastOwner, "agent is the last owner of the channel").At("principalId")
	e.Hint = "make another member an owner first, or delete the channel"
	return e
}

func errStaysByScope(agent kg.AgentID) *kg.Error {
	e := kg.Errorf(kg.CodeInvalid, "%s has access through the scope and would keep it", agent).At("principalId")
	e.Hint = "ban the agent from the channel or remove its access to the scope; to change its role, add it again"
	return e
}

func pageSize(n int) int {
	if n == 0 {
		return DefaultPage
	}
	return min(max(n, 1), MaxPage)
}

// pageToken seals and opens page tokens. A token that was modified, or that belongs to
// another query or caller, does not open.
type pageToken struct {
	store *kg.Store
	bound []byte
}

// boundTo returns a hash of the query and caller that a page token belongs to.
func boundTo(parts ...any) []byte {
	raw, err := json.Marshal(parts)
	if err != nil {
		panic(err) // cannot fail for strings and numbers
	}
	sum := sha256.Sum256(raw)
	return sum[:]
}

func (t pageToken) seal(at string) string { return t.store.Seal([]byte(at), t.bound) }

func (t pageToken) open(token string) (string, error) {
	if token == "" {
		return "", nil
	}
	at, err := t.store.Unseal(token, t.bound)
	if err != nil {
		return "", kg.AsError(err).At("pageToken")
	}
	return string(at), nil
}

func checkKey(key string) error {
	if n := utf8.RuneCountInString(key); n > MaxKeyRunes {
		return check.TooMuch("idempotencyKey", "idempotencyKey has %d characters; the limit is %d", n, MaxKeyRunes)
	}
	return nil
}

// checkReason returns an error unless a text may be the reason of a change.
func checkReason(field, reason string) error {
	if !utf8.ValidString(reason) {
		return kg.Errorf(kg.CodeInvalid, "%s must be valid UTF-8", field).At(field)
	}
	if n := utf8.RuneCountInString(reason); n > MaxReasonRunes {
		return check.TooMuch(field, "%s has %d characters; the limit is %d", field, n, MaxReasonRunes)
	}
	return nil
}

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
