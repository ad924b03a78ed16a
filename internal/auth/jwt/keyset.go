package jwt

import (
	"context"
	"crypto/rsa"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"

	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwk"
	"github.com/lestrrat-go/jwx/v3/jws"
)

// keySet is what tokens are checked with. It does not change.
type keySet struct{ keys []verifyKey }

// verifyKey is a key with the algorithms that it may be used with.
type verifyKey struct {
	id   string
	key  jwk.Key
	algs []jwa.SignatureAlgorithm
}

// findKey is the key for a token: the one of that name, or, for a token that names
// none, the only one that its algorithm can be checked with.
func (s *keySet) findKey(id string, alg jwa.SignatureAlgorithm) (key jwk.Key, known bool) {
	for _, k := range s.keys {
		if id != "" && k.id != id {
			continue
		}
		known = known || id != ""
		if !slices.Contains(k.algs, alg) {
			continue
		}
		if key != nil {
			return nil, true // two that fit, and the token does not say which
		}
		key = k.key
	}
	return key, known || key != nil
}

// readKeySet gets the set from where it is.
func (v *Verifier) readKeySet(ctx context.Context) (*keySet, error) {
	var body []byte
	var err error
	if v.options.isURL() {
		body, err = v.fetchKeySet(ctx)
	} else {
		body, err = readFile(v.options.Keys)
	}
	if err != nil {
		return nil, err
	}
	return v.parseKeySet(body)
}

func (v *Verifier) fetchKeySet(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, v.options.Keys, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/jwk-set+json, application/json")
	response, err := v.options.HTTP.Do(r)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the answer is %s", response.Status)
	}
	return readBounded(response.Body)
}

func readFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readBounded(f)
}

func readBounded(r io.Reader) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r, MaxSetBytes+1))
	if err == nil && len(body) > MaxSetBytes {
		err = fmt.Errorf("the key set is larger than %d bytes", MaxSetBytes)
	}
	return body, err
}

// parseKeySet takes the keys that can be used out of a set. Errors say nothing of what
// is in it: in a file there may be secrets.
func (v *Verifier) parseKeySet(body []byte) (*keySet, error) {
	all, err := jwk.Parse(body, jwk.WithStrictKeySetParsing(false))
	if err != nil {
		return nil, errors.New("it is not a JSON Web Key Set")
	}
	if all.Len() > MaxSetKeys {
		return nil, fmt.Errorf("%d keys are more than the %d that are taken", all.Len(), MaxSetKeys)
	}
	s := &keySet{}
	for i := range all.Len() {
		if key, ok := all.Key(i); ok {
			if usable, ok := v.usableKey(key); ok {
				s.keys = append(s.keys, usable)
			}
		}
	}
	if len(s.keys) == 0 {
		return nil, errors.New("there is no key in it that an allowed algorithm could use")
	}
	return s, nil
}

// usableKey tells whether signatures are checked with the key, and with which
// algorithms.
func (v *Verifier) usableKey(key jwk.Key) (out verifyKey, ok bool) {
	if use, has := key.KeyUsage(); has && use != "sig" {
		return out, false
	}
	if key.KeyType() == jwa.OctetSeq() && v.options.isURL() {
		return out, false
	}
	algs, err := jws.AlgorithmsForKey(key)
	if err != nil {
		return out, false
	}
	own, hasOwn := key.Algorithm()
	for _, alg := range algs {
		if v.options.allowsAlgorithm(alg.String()) && (!hasOwn || own.String() == alg.String()) {
			out.algs = append(out.algs, alg)
		}
	}
	if key, err = key.PublicKey(); err != nil || len(out.algs) == 0 {
		return out, false
	}
	var rsaKey rsa.PublicKey
	if key.KeyType() == jwa.RSA() && (jwk.Export(key, &rsaKey) != nil || rsaKey.N.BitLen() < MinRSABits) {
		return out, false
	}
	out.key = key
	out.id, _ = key.KeyID()
	return out, true
}
