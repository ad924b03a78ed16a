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

// keySet is an immutable set of verification keys.
type keySet struct{ keys []verifyKey }

// verifyKey is a key and the algorithms that it may be used with.
type verifyKey struct {
	id   string
	key  jwk.Key
	algs []jwa.SignatureAlgorithm
}

// findKey returns the key for a token: the one with the key id or, for a token without
// a key id, the only one for its algorithm. known reports whether the set has a key
// with the id.
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
			return nil, true // ambiguous: two keys fit and the token has no key id
		}
		key = k.key
	}
	return key, known || key != nil
}

// readKeySet reads the key set from its URL or file.
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
		return nil, fmt.Errorf("unexpected response: %s", response.Status)
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

// readBounded reads up to MaxSetBytes.
func readBounded(r io.Reader) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r, MaxSetBytes+1))
	if err == nil && len(body) > MaxSetBytes {
		err = fmt.Errorf("key set is larger than %d bytes", MaxSetBytes)
	}
	return body, err
}

// parseKeySet returns the usable keys of a set. Its errors do not contain the content,
// because a file may hold secrets.
func (v *Verifier) parseKeySet(body []byte) (*keySet, error) {
	all, err := jwk.Parse(body, jwk.WithStrictKeySetParsing(false))
	if err != nil {
		return nil, errors.New("not a JSON Web Key Set")
	}
	if all.Len() > MaxSetKeys {
		return nil, fmt.Errorf("key set has %d keys; the limit is %d", all.Len(), MaxSetKeys)
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
		return nil, errors.New("key set has no key for an allowed algorithm")
	}
	return s, nil
}

// usableKey returns the key with its algorithms; ok is false if it cannot verify
// signatures.
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
