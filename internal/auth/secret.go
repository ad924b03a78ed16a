package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"strings"
)

// Mode says what a key is for. It stands in the key itself, so that people and
// scanners see it.
type Mode string

// The modes.
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

// randomText draws letters and digits, each as likely as any other.
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

// newSecret makes the text of a key.
func newSecret(mode Mode) (text, name string) {
	name = randomText(nameLength)
	return keyPrefix + string(mode) + "_" + name + "_" + randomText(secretLength), name
}

// IsKey tells whether a credential has the form of an API key, whoever made it.
func IsKey(credential string) bool { return strings.HasPrefix(credential, keyPrefix) }

// nameOf is the name in a key's text.
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

// hashOf is what is stored of a key: it covers all of its text.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// sameHash compares in a time that does not depend on where they differ.
func sameHash(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
