package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"koine/internal/systemgraph"
	"koine/kg"
)

// Key is an API key without its secret.
type Key struct {
	// Name is the lookup name in the key; it is not secret.
	Name string
	Mode Mode
	// Label is the display name.
	Label string
	// Agent is the owner of the key. Roles and ActFor are the rights that it grants.
	Agent  kg.AgentID
	Roles  []string
	ActFor []kg.AgentID

	Created   time.Time
	CreatedBy kg.AgentID
	// Expires is the end of its validity; the zero time means never.
	Expires time.Time
	// Revoked is the time of the revocation, or zero.
	Revoked time.Time
	// ReplacedBy is the name of the key that replaced this one in a rotation, or "".
	ReplacedBy string

	hash string
}

// State is the state of a key.
type State string

// States.
const (
	Active  State = "ACTIVE"
	Expired State = "EXPIRED"
	Revoked State = "REVOKED"
)

// StateAt returns the state of the key at the given time.
func (k *Key) StateAt(now time.Time) State {
	switch {
	case !k.Revoked.IsZero():
		return Revoked
	case !k.Expires.IsZero() && !now.Before(k.Expires):
		return Expired
	}
	return Active
}

// The class and the properties of a key's record.
const (
	keyClass       = "ApiKey"
	keySubject     = "urn:koine:key:"
	propHash       = "keyHash"
	propMode       = "keyMode"
	propLabel      = "keyLabel"
	propAgent      = "keyAgent"
	propRole       = "keyRole"
	propActFor     = "keyActFor"
	propCreated    = "keyCreated"
	propCreatedBy  = "keyCreatedBy"
	propExpires    = "keyExpires"
	propRevoked    = "keyRevoked"
	propReplacedBy = "keyReplacedBy"
)

func subjectOf(name string) kg.Term { return kg.IRI(keySubject + name) }

// keyOf converts a stored record; nil if it is not a complete key.
func keyOf(subject kg.Term, r systemgraph.Record) *Key {
	if !r.Is(keyClass) || len(subject.Value()) != len(keySubject)+nameLength {
		return nil
	}
	k := &Key{
		Name: subject.Value()[len(keySubject):], Mode: Mode(r.Text(propMode)), Label: r.Text(propLabel),
		Agent: kg.AgentID(r.Text(propAgent)), Roles: r.Texts(propRole), ActFor: r.Agents(propActFor),
		Created: r.Time(propCreated), CreatedBy: kg.AgentID(r.Text(propCreatedBy)),
		Expires: r.Time(propExpires), Revoked: r.Time(propRevoked), ReplacedBy: r.Text(propReplacedBy),
		hash: r.Text(propHash),
	}
	if k.Agent == "" || k.hash == "" || len(r[propExpires]) > 0 && k.Expires.IsZero() {
		return nil
	}
	return k
}

// toRecord returns the stored form of a new key.
func (k *Key) toRecord() systemgraph.Record {
	r := systemgraph.Record{
		systemgraph.Type: systemgraph.Class(keyClass), propHash: systemgraph.Values(k.hash), propMode: systemgraph.Values(string(k.Mode)), propAgent: systemgraph.Values(string(k.Agent)),
		propRole: systemgraph.Values(k.Roles...), propCreated: {kg.DateTime(k.Created)}, propCreatedBy: systemgraph.Values(string(k.CreatedBy)),
	}
	for _, agent := range k.ActFor {
		r[propActFor] = append(r[propActFor], kg.String(string(agent)))
	}
	r[propLabel] = systemgraph.Text(k.Label)
	if !k.Expires.IsZero() {
		r[propExpires] = []kg.Term{kg.DateTime(k.Expires)}
	}
	return r
}

// IsAdmin reports whether the key grants the administrator role.
func (k *Key) IsAdmin() bool { return slices.Contains(k.Roles, kg.RoleAdmin) }

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
