package auth

import (
	"time"

	"koine/kg"
)

// How principals were authenticated here (kg.Principal.Method).
const (
	methodKey   = "key"
	methodToken = "jwt"
)

// maxRotations bounds how many keys are followed that took each other's place.
const maxRotations = 1000

// CurrentRights gives somebody who asked for something earlier, and is not here now,
// the rights of now: those that it had, as far as its credential still gives them.
// A key has to be good still, or one that a rotation put in its place. A token
// ended long ago, as tokens do, and nobody can be asked what the next one would
// bring: its rights are those it had. An error (CodeUnauthenticated,
// CodePermissionDenied for an agent that is suspended) says why it has none.
func (g *Gate) CurrentRights(p kg.Principal) (kg.Principal, error) {
	if p.Trusted() {
		return p, nil
	}
	h := credentialHolder{principal: p, expires: time.Now().Add(time.Hour)} // whatever became of the token
	switch {
	case p.Method == methodKey && g.options.Keys != nil:
		key := g.successor(p.Key)
		if key == nil || key.Agent != p.ID {
			return kg.Principal{}, kg.Errorf(kg.CodeUnauthenticated, "the key is gone")
		}
		h.key = key.Name
		now := kg.Principal{ID: key.Agent, Roles: key.Roles, ActFor: g.actFor(key.ActFor, key.Roles), Method: methodKey}
		p.Roles, p.ActFor = kg.CommonRoles(p, now), commonAgents(p, now)
	case p.Method == methodToken && g.options.Tokens != nil:
	default:
		return kg.Principal{}, kg.Errorf(kg.CodeUnauthenticated, "callers known by %q are not let in any more", p.Method)
	}
	return p, g.checkValid(h)
}

// successor is the key of this name, or the one in whose favour it ended.
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
