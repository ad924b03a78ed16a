package channels

import (
	"crypto/sha256"
	"encoding/json"

	"koine/kg"
)

// pageToken makes and opens the tokens of pages. One that was changed, or is of
// another listing or caller, is not opened.
type pageToken struct {
	store *kg.Store
	bound []byte
}

// boundTo is a hash of what a page belongs to.
func boundTo(parts ...any) []byte {
	raw, err := json.Marshal(parts)
	if err != nil {
		panic(err) // texts and numbers
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
