package auth

import (
	"slices"
	"time"

	"koine/internal/records"
	"koine/kg"
)

// Key is an API key without its secret.
type Key struct {
	// Name is the part of the key by which it is looked up; it is no secret.
	Name string
	Mode Mode
	// Label is what people call it.
	Label string
	// Agent is whose key it is, Roles and ActFor what it gives that agent.
	Agent  kg.AgentID
	Roles  []string
	ActFor []kg.AgentID

	Created   time.Time
	CreatedBy kg.AgentID
	// Expires is when it stops being good; the zero time is never.
	Expires time.Time
	// Revoked is when it was revoked; zero if it was not.
	Revoked time.Time
	// ReplacedBy is the key that a rotation made in its place, "" if there is none.
	ReplacedBy string

	hash string
}

// State is what has become of a key.
type State string

// The states.
const (
	Active  State = "ACTIVE"
	Expired State = "EXPIRED"
	Revoked State = "REVOKED"
)

// StateAt is the key's state at a time.
func (k *Key) StateAt(now time.Time) State {
	switch {
	case !k.Revoked.IsZero():
		return Revoked
	case !k.Expires.IsZero() && !now.Before(k.Expires):
		return Expired
	}
	return Active
}

// The record of a key: its class, and its properties beside it.
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

// keyOf reads a record; nil for one that is none of a key, or not whole.
func keyOf(subject kg.Term, r records.Record) *Key {
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

// toRecord is what is written of a new key.
func (k *Key) toRecord() records.Record {
	class, of := records.Class(keyClass)
	r := records.Record{
		class: of, propHash: records.Values(k.hash), propMode: records.Values(string(k.Mode)), propAgent: records.Values(string(k.Agent)),
		propRole: records.Values(k.Roles...), propCreated: {kg.DateTime(k.Created)}, propCreatedBy: records.Values(string(k.CreatedBy)),
	}
	for _, agent := range k.ActFor {
		r[propActFor] = append(r[propActFor], kg.String(string(agent)))
	}
	if k.Label != "" {
		r[propLabel] = records.Values(k.Label)
	}
	if !k.Expires.IsZero() {
		r[propExpires] = []kg.Term{kg.DateTime(k.Expires)}
	}
	return r
}

// IsAdmin tells whether the key gives the role of an administrator.
func (k *Key) IsAdmin() bool { return slices.Contains(k.Roles, kg.RoleAdmin) }
