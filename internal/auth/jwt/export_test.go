package jwt

import (
	"crypto/sha256"
	"time"
)

// KnownAt tells whether the token would be let in at the time without being
// checked.
func (v *Verifier) KnownAt(text string, now time.Time) bool {
	hash := sha256.Sum256([]byte(text))
	_, known := v.cache.findClaims(&hash, v.set.Load(), now)
	return known
}

// Kept is how many tokens are kept.
func (v *Verifier) Kept() (n int) {
	for i := range v.cache {
		if v.cache[i].Load() != nil {
			n++
		}
	}
	return n
}
