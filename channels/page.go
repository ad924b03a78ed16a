package channels

import (
	"crypto/sha256"
	"encoding/json"

	"koine/kg"
)

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
