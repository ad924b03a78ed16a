package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"strings"
)

// Mode is the purpose of a key. It is part of the key text, visible to people and
// secret scanners.
type Mode string

// Modes.
const (
	Live Mode = "live"
	Test Mode = "test"
)

const (
	keyPrefix    = "ak_"
	nameLength   = 12 // 71 bits
	secretLength = 43 // 256 bits
	alphabet     = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// randomText returns uniformly distributed random letters and digits.
func randomText(length int) string {
	out := make([]byte, 0, length)
	var block [64]byte
	for len(out) < length {
		_, _ = rand.Read(block[:]) // never fails
		for _, b := range block {
			if b &= 63; int(b) < len(alphabet) && len(out) < length {
				out = append(out, alphabet[b])
			}
		}
	}
	return string(out)
}

// newSecret generates the text of a key.
func newSecret(mode Mode) (text, name string) {
	name = randomText(nameLength)
	return keyPrefix + string(mode) + "_" + name + "_" + randomText(secretLength), name
}

// IsKey reports whether a credential has the form of an API key.
func IsKey(credential string) bool { return strings.HasPrefix(credential, keyPrefix) }

// nameOf returns the lookup name in a key's text.
func nameOf(text string) (name string, ok bool) {
	rest, ok := strings.CutPrefix(text, keyPrefix)
	if !ok {
		return "", false
	}
	mode, rest, _ := strings.Cut(rest, "_")
	name, secret, _ := strings.Cut(rest, "_")
	ok = (Mode(mode) == Live || Mode(mode) == Test) && len(name) == nameLength && len(secret) == secretLength
	return name, ok
}

// hashOf returns the stored hash, which covers the whole text of the key.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// sameHash compares two hashes in constant time.
func sameHash(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
