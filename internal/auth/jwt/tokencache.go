package jwt

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"slices"
	"sync/atomic"
	"time"

	"koine/internal/auth"
)

// MaxCachedTokens is the size of the cache of verified tokens, which saves the
// verification of the signature of up to a tenth of a millisecond. A new entry replaces
// another one; the replaced token is verified again.
const MaxCachedTokens = 4096

// tokenCache caches verified tokens by hash. It does not hold the tokens themselves. It
// takes no lock.
type tokenCache [MaxCachedTokens]atomic.Pointer[cachedToken]

// cachedToken is immutable.
type cachedToken struct {
	hash    [sha256.Size]byte
	set     *keySet   // the set that verified it
	checked time.Time // time of the verification
	claims  auth.Claims
}

func (k *tokenCache) slotFor(hash *[sha256.Size]byte) *atomic.Pointer[cachedToken] {
	return &k[binary.LittleEndian.Uint64(hash[:])%MaxCachedTokens]
}

// findClaims returns the claims of a cached token that is still valid: the key set is
// the same, and the token has not expired. If the clock was set back before the
// verification, it finds nothing.
func (k *tokenCache) findClaims(hash *[sha256.Size]byte, set *keySet, now time.Time) (c auth.Claims, ok bool) {
	t := k.slotFor(hash).Load()
	if t == nil || t.set != set || subtle.ConstantTimeCompare(t.hash[:], hash[:]) != 1 {
		return c, false
	}
	if now.Before(t.checked) || !now.Before(t.claims.Expires) {
		return c, false
	}
	return t.claims, true
}

// storeClaims caches the claims of a verified token. They are shared from then on.
func (k *tokenCache) storeClaims(hash *[sha256.Size]byte, set *keySet, now time.Time, c *auth.Claims) {
	c.Roles, c.ActFor = slices.Clip(c.Roles), slices.Clip(c.ActFor)
	k.slotFor(hash).Store(&cachedToken{*hash, set, now, *c})
}
