package jwt

import (
	"slices"
	"strings"

	"github.com/lestrrat-go/jwx/v3/jwt"

	"koine/internal/auth"
	"koine/internal/caller"
	"koine/kg"
)

// readClaims reads the agent, roles and expiry of a token.
func (v *Verifier) readClaims(token jwt.Token) (c auth.Claims, err error) {
	ends, ok := token.Expiration()
	if !ok {
		return c, errToken
	}
	c.Expires = ends.Add(v.options.Skew)
	name, _ := claimAt(token, v.options.AgentClaim).(string)
	if c.Agent, err = caller.ParseAgent(name); err != nil {
		return c, errUnauthenticated("token has no valid agent in the claim %s", v.options.AgentClaim)
	}
	if c.Roles, ok = stringList(claimAt(token, v.options.RolesClaim), auth.MaxRoles); !ok {
		return c, errUnauthenticated("claim %s of the token is not a list of roles", v.options.RolesClaim)
	}
	c.Roles = slices.DeleteFunc(c.Roles, func(role string) bool { return !auth.ValidRole(role) })
	others, ok := stringList(claimAt(token, v.options.ActForClaim), auth.MaxActFor)
	if !ok {
		return c, errUnauthenticated("claim %s of the token is not a list of agents", v.options.ActForClaim)
	}
	for _, text := range others {
		agent := kg.Anybody
		if text != string(kg.Anybody) {
			if agent, err = caller.ParseAgent(text); err != nil {
				return c, errUnauthenticated("claim %s of the token is not a list of agents", v.options.ActForClaim)
			}
		}
		c.ActFor = append(c.ActFor, agent)
	}
	return c, nil
}

// claimAt returns the value at a path, or nil. A claim with dots in its name takes
// precedence.
func claimAt(token jwt.Token, path string) any {
	var value any
	if token.Get(path, &value) == nil {
		return value
	}
	first, rest, _ := strings.Cut(path, ".")
	if rest == "" || token.Get(first, &value) != nil {
		return nil
	}
	for rest != "" {
		object, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		if whole, ok := object[rest]; ok {
			return whole
		}
		first, rest, _ = strings.Cut(rest, ".")
		value = object[first]
	}
	return value
}

// stringList reads a list of words, which may also be one string separated by spaces
// (RFC 8693, section 4.2). A missing value is an empty list.
func stringList(value any, limit int) (out []string, ok bool) {
	switch value := value.(type) {
	case nil:
		return nil, true
	case string:
		out = strings.Fields(value)
	case []string:
		out = slices.Clone(value)
	case []any:
		for _, item := range value {
			text, ok := item.(string)
			if !ok {
				return nil, false
			}
			out = append(out, text)
		}
	default:
		return nil, false
	}
	return out, len(out) <= limit
}
