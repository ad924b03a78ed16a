package auth

import (
	"time"

	"koine/kg"
)

// Authentication methods (kg.Principal.Method).
const (
	methodKey   = "key"
	methodToken = "jwt"
)

// maxRotations bounds the chain of rotated keys that is followed.
const maxRotations = 1000

// CurrentRights returns the current rights of a principal that made an earlier request
// and is absent now: its former rights, reduced to those that its credential still
// grants. A key must still be valid, or replaced by a valid key through rotation. A
// token has usually expired, and the rights of the next one are unknown, so the former
// rights apply. The error is CodeUnauthenticated, or CodePermissionDenied for a
// suspended agent.
func (g *Gate) CurrentRights(p kg.Principal) (kg.Principal, error) {
	if p.Trusted() {
		return p, nil
	}
	h := credentialHolder{principal: p, expires: time.Now().Add(time.Hour)} // regardless of the token's expiry
	switch {
	case p.Method == methodKey && g.options.Keys != nil:
		key := g.successor(p.Key)
		if key == nil || key.Agent != p.ID {
			return kg.Principal{}, kg.Errorf(kg.CodeUnauthenticated, "key no longer exists")
		}
		h.key = key.Name
		now := kg.Principal{ID: key.Agent, Roles: key.Roles, ActFor: g.actFor(key.ActFor, key.Roles), Method: methodKey}
		p.Roles, p.ActFor = kg.CommonRoles(p, now), commonAgents(p, now)
	case p.Method == methodToken && g.options.Tokens != nil:
	default:
		return kg.Principal{}, kg.Errorf(kg.CodeUnauthenticated, "authentication method %q is no longer accepted", p.Method)
	}
	return p, g.checkValid(h)
}

// successor returns the key with this name, or the active key that replaced it by
// rotation.
func (g *Gate) successor(name string) *Key {
	key, now := g.options.Keys.keyByName(name), time.Now()
	for range maxRotations {
		if key == nil || key.ReplacedBy == "" || key.StateAt(now) != Expired {
			return key
		}
		key = g.options.Keys.keyByName(key.ReplacedBy)
	}
	return key
}
