package jwt

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
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

// Verifier checks tokens. It is safe for concurrent use.
type Verifier struct {
	options         Options
	set             atomic.Pointer[keySet] // nil until one was read
	cache           tokenCache
	refreshRequests chan struct{} // a token named a key that is not in the set
	stop            context.CancelFunc
	stopped         sync.WaitGroup
}

// Open reads the key set and keeps it fresh until Close. A file must be there and
// right; a URL that does not answer yet is asked again, and until it answers
// every token is refused.
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
		return nil, kg.Errorf(kg.CodeInvalid, "the key set %s: %w", o.Keys, err)
	default:
		o.Logger.Warn("no key set yet, tokens are refused", "url", o.Keys, "error", err)
	}
	var work context.Context
	work, v.stop = context.WithCancel(context.Background())
	v.stopped.Go(func() { v.refreshLoop(work) })
	return v, nil
}

// Close ends the refreshing, and waits for it.
func (v *Verifier) Close() {
	v.stop()
	v.stopped.Wait()
}

// refreshLoop reads the set again and again.
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
			v.options.Logger.Warn("key set not read, the last one counts", "from", v.options.Keys, "error", err)
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

// requestRefresh has the set read soon.
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

// Verify checks a token and reads its claims. The error is a *kg.Error with
// CodeUnauthenticated.
func (v *Verifier) Verify(text string) (c auth.Claims, err error) {
	if len(text) > MaxTokenBytes {
		return c, errUnauthenticated("the token is longer than %d bytes", MaxTokenBytes)
	}
	// Both are taken before the check: what changes meanwhile makes it count for less.
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

// verifyToken does the whole of it.
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

// verifySignature checks the signature. Only the compact form counts (RFC 7519, section
// 1), and of its header only alg, kid and crit: a token does not say itself with
// what it is to be checked.
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
		return nil, errUnauthenticated("tokens signed so are not taken here")
	}
	if header.Has(jws.CriticalKey) { // RFC 7515, section 4.1.11: there are none that we know
		return nil, errToken
	}
	if set == nil {
		v.requestRefresh()
		return nil, errUnauthenticated("tokens cannot be checked at the moment")
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

// validateClaims checks the claims about the token itself (RFC 7519, section 4.1).
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
		return errUnauthenticated("the token is of another issuer")
	default:
		return errToken
	}
	if list, _ := token.Audience(); !haveCommon(list, v.options.Audience) {
		return errUnauthenticated("the token is for another audience")
	}
	return nil
}
