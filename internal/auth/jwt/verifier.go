package jwt

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jws"
	"github.com/lestrrat-go/jwx/v3/jwt"

	"koine/internal/auth"
	"koine/kg"
)

// Verifier verifies tokens. It is safe for concurrent use.
type Verifier struct {
	options         Options
	set             atomic.Pointer[keySet] // nil until the first read
	cache           tokenCache
	refreshRequests chan struct{} // signaled for a token with an unknown key id
	stop            context.CancelFunc
	stopped         sync.WaitGroup
}

// Open reads the key set and refreshes it until Close. A file must exist and be valid.
// A URL that is unavailable is retried, and until it responds all tokens are refused.
func Open(ctx context.Context, o Options) (*Verifier, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	v := &Verifier{options: o, refreshRequests: make(chan struct{}, 1)}
	switch set, err := v.readKeySet(ctx); {
	case err == nil:
		v.set.Store(set)
	case !o.isURL():
		return nil, kg.Errorf(kg.CodeInvalid, "key set %s: %w", o.Keys, err)
	default:
		o.Logger.Warn("cannot read the key set; tokens are refused", "url", o.Keys, "error", err)
	}
	var work context.Context
	work, v.stop = context.WithCancel(context.Background())
	v.stopped.Go(func() { v.refreshLoop(work) })
	return v, nil
}

// Close stops refreshing and waits for it.
func (v *Verifier) Close() {
	v.stop()
	v.stopped.Wait()
}

// refreshLoop reads the set periodically.
func (v *Verifier) refreshLoop(ctx context.Context) {
	for {
		due := time.NewTimer(v.options.Refresh)
		select {
		case <-ctx.Done():
			due.Stop()
			return
		case <-due.C:
		case <-v.refreshRequests:
			due.Stop()
		}
		set, err := v.readKeySet(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			v.options.Logger.Warn("cannot refresh the key set; using the last one", "from", v.options.Keys, "error", err)
		default:
			v.set.Store(set)
		}
		rest := time.NewTimer(v.options.RefreshAtMost)
		select {
		case <-ctx.Done():
			rest.Stop()
			return
		case <-rest.C:
		}
	}
}

// requestRefresh triggers a refresh of the set.
func (v *Verifier) requestRefresh() {
	select {
	case v.refreshRequests <- struct{}{}:
	default:
	}
}

func errUnauthenticated(format string, args ...any) error {
	return kg.Errorf(kg.CodeUnauthenticated, format, args...)
}

var errToken = errUnauthenticated("the credential is not valid")

// Verify verifies a token and returns its claims. The error is a *kg.Error with
// CodeUnauthenticated.
func (v *Verifier) Verify(text string) (c auth.Claims, err error) {
	if len(text) > MaxTokenBytes {
		return c, errUnauthenticated("the token is longer than %d bytes", MaxTokenBytes)
	}
	// Read both before the verification: a concurrent change can only shorten the
	// validity of the cache entry.
	set, now := v.set.Load(), time.Now().Round(0)
	hash := sha256.Sum256([]byte(text))
	if c, known := v.cache.findClaims(&hash, set, now); known {
		return c, nil
	}
	if c, err = v.verifyToken(text, set); err == nil {
		v.cache.storeClaims(&hash, set, now, &c)
	}
	return c, err
}

// verifyToken verifies a token that is not in the cache.
func (v *Verifier) verifyToken(text string, set *keySet) (c auth.Claims, err error) {
	payload, err := v.verifySignature(text, set)
	if err != nil {
		return c, err
	}
	token := jwt.New()
	if err := json.Unmarshal(payload, token); err != nil {
		return c, errToken
	}
	if err := v.validateClaims(token); err != nil {
		return c, err
	}
	return v.readClaims(token)
}

// verifySignature verifies the signature and returns the payload. It accepts only the
// compact form (RFC 7519, section 1), and of the header only alg, kid and crit: a token
// must not provide its own verification key.
func (v *Verifier) verifySignature(text string, set *keySet) ([]byte, error) {
	if strings.Count(text, ".") != 2 || strings.HasPrefix(text, "{") {
		return nil, errToken
	}
	message, err := jws.ParseString(text)
	if err != nil || len(message.Signatures()) != 1 {
		return nil, errToken
	}
	header := message.Signatures()[0].ProtectedHeaders()
	alg, ok := header.Algorithm()
	if !ok || alg == jwa.NoSignature() || !v.options.allowsAlgorithm(alg.String()) {
		return nil, errUnauthenticated("signature algorithm of the token is not allowed")
	}
	if header.Has(jws.CriticalKey) { // RFC 7515, section 4.1.11: no extensions are supported
		return nil, errToken
	}
	if set == nil {
		v.requestRefresh()
		return nil, errUnauthenticated("tokens cannot be verified at the moment: retry later")
	}
	id, _ := header.KeyID()
	key, known := set.findKey(id, alg)
	if !known {
		v.requestRefresh()
	}
	if key == nil {
		return nil, errToken
	}
	payload, err := jws.Verify([]byte(text), jws.WithKey(alg, key))
	if err != nil {
		return nil, errToken
	}
	return payload, nil
}

// validateClaims validates the registered claims (RFC 7519, section 4.1).
func (v *Verifier) validateClaims(token jwt.Token) error {
	err := jwt.Validate(token,
		jwt.WithIssuer(v.options.Issuer), jwt.WithRequiredClaim(jwt.ExpirationKey), jwt.WithAcceptableSkew(v.options.Skew))
	switch {
	case err == nil:
	case errors.Is(err, jwt.TokenExpiredError()):
		return errUnauthenticated("the token has expired")
	case errors.Is(err, jwt.TokenNotYetValidError()):
		return errUnauthenticated("the token is not valid yet")
	case errors.Is(err, jwt.InvalidIssuerError()):
		return errUnauthenticated("token has another issuer")
	default:
		return errToken
	}
	if list, _ := token.Audience(); !slices.ContainsFunc(list, func(s string) bool { return slices.Contains(v.options.Audience, s) }) {
		return errUnauthenticated("token has another audience")
	}
	return nil
}
