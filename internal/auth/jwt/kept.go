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

// MaxCachedTokens bounds the good tokens that are known again without checking
// their signatures, which costs up to a tenth of a millisecond. One more takes the
// place of another, which is then checked again.
const MaxCachedTokens = 4096

// tokenCache are tokens that were found good, by their hashes: the tokens
// themselves are not kept. It takes no lock.
type tokenCache [MaxCachedTokens]atomic.Pointer[cachedToken]

// cachedToken is never changed.
type cachedToken struct {
	hash    [sha256.Size]byte
	set     *keySet   // by whose keys it was good
	checked time.Time // it is not known to have been good before
	claims  auth.Claims
}

func (k *tokenCache) slotFor(hash *[sha256.Size]byte) *atomic.Pointer[cachedToken] {
	return &k[binary.LittleEndian.Uint64(hash[:])%MaxCachedTokens]
}

// findClaims gives the claims of a token that is still good: its keys are those of this
// set, and it has not ended. With a clock that was set back nothing is known.
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

// storeClaims notes the claims of a good token. They are shared from now on.
func (k *tokenCache) storeClaims(hash *[sha256.Size]byte, set *keySet, now time.Time, c *auth.Claims) {
	c.Roles, c.ActFor = slices.Clip(c.Roles), slices.Clip(c.ActFor)
	k.slotFor(hash).Store(&cachedToken{*hash, set, now, *c})
}
