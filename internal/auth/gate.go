package auth

import (
	"context"
	"slices"
	"sync"
	"time"

	"koine/internal/caller"
	"koine/kg"
)

// Claims are the verified claims of a bearer token.
type Claims struct {
	Agent  kg.AgentID
	Roles  []string
	ActFor []kg.AgentID
	// Expires is the end of the token's validity. Every token has one.
	Expires time.Time
}

// Tokens verifies bearer tokens (jwt.Verifier). Errors are *kg.Error with
// CodeUnauthenticated and do not contain the token.
type Tokens interface {
	Verify(token string) (Claims, error)
}

// Agents gives access to the agents' records (agents.Registry). Its methods must not
// block.
type Agents interface {
	// Suspended reports whether the agent is suspended.
	Suspended(kg.AgentID) bool
	// Seen is called for each bearer of a token.
	Seen(kg.Principal)
}

// Options configures a Gate. Without Keys it accepts no keys, without Tokens no tokens.
type Options struct {
	Keys   *Table
	Tokens Tokens
	Agents Agents // nil: no agent is suspended
	// CheckAgent rejects impossible agent ids of tokens (kg.Store.CheckAgent); nil
	// accepts all.
	CheckAgent func(context.Context, kg.AgentID) error
	// RoleActFor lists the agents that principals with a role may act for.
	RoleActFor map[string][]kg.AgentID
	// RefuseTestKeys rejects ak_test_ keys.
	RefuseTestKeys bool
}

// Gate authenticates callers and ends their sessions when their credential becomes
// invalid. It is safe for concurrent use.
type Gate struct {
	options Options

	mu       sync.Mutex // guards the following, and the fields of sessions
	sessions map[*session]struct{}
}

// session is a request or stream that depends on a credential.
type session struct {
	holder credentialHolder
	end    func(error)
	timer  *time.Timer // fires when the credential expires; nil if it does not
}

// credentialHolder is the principal of a credential, with the data for checking it
// again.
type credentialHolder struct {
	principal kg.Principal
	key       string // name of the key; "" for a token
	expires   time.Time
}

// NewGate returns a gate. A Table belongs to one gate.
func NewGate(options Options) *Gate {
	g := &Gate{options: options, sessions: map[*session]struct{}{}}
	if options.Keys != nil {
		options.Keys.onChange = g.Recheck
	}
	return g
}

// Admit authenticates a credential. end is called at most once, with a *kg.Error, if
// the credential becomes invalid before release is called. end must not block. The
// error is a *kg.Error with CodeUnauthenticated, or with CodePermissionDenied for a
// suspended agent.
func (g *Gate) Admit(_ context.Context, credential string, end func(error)) (p kg.Principal, release func(), err error) {
	h, err := g.holderOf(credential)
	if err != nil {
		return p, nil, err
	}
	if release, err = g.startSession(h, end); err != nil {
		return p, nil, err
	}
	return h.principal, release, nil
}

// Narrow restricts a caller by a further credential to the roles, and the agents to act
// for, that both have. If the credential is that of another agent, for which the caller
// must be allowed to act, the caller acts for that agent; the graphs that it can read
// do not change. end and release are those of Admit.
func (g *Gate) Narrow(_ context.Context, c caller.Caller, credential string, end func(error)) (n caller.Caller, release func(), err error) {
	h, err := g.holderOf(credential)
	if err != nil {
		return n, nil, err
	}
	further := h.principal
	if err := further.CheckRead(); err != nil {
		return n, nil, err // the combination would have no rights
	}
	if !c.Principal.MayActFor(further.ID) {
		return n, nil, kg.Errorf(kg.CodeSourceForbidden, "caller cannot act for the agent of the security token")
	}
	if c.Actor != "" && !further.MayActFor(c.Actor) {
		return n, nil, kg.Errorf(kg.CodeSourceForbidden, "security token does not permit acting for %s", c.Actor)
	}
	n = c
	n.Principal.Roles = kg.CommonRoles(c.Principal, further)
	n.Principal.ActFor = commonAgents(c.Principal, further)
	if c.Actor == "" && further.ID != c.Principal.ID {
		n.Actor = further.ID
	}
	if release, err = g.startSession(h, end); err != nil {
		return caller.Caller{}, nil, err
	}
	return n, release, nil
}

// commonAgents returns the agents that both principals may act for, except the first
// principal itself.
func commonAgents(p, further kg.Principal) []kg.AgentID {
	var out []kg.AgentID
	for _, agent := range slices.Concat(p.ActFor, further.ActFor, []kg.AgentID{further.ID}) {
		switch {
		case slices.Contains(out, agent):
		case agent == kg.Anybody && !(slices.Contains(p.ActFor, agent) && slices.Contains(further.ActFor, agent)):
		case agent == kg.Anybody || p.MayActFor(agent) && further.MayActFor(agent):
			out = append(out, agent)
		}
	}
	return out
}

var errInvalid = kg.Errorf(kg.CodeUnauthenticated, "the credential is not valid")

// holderOf verifies a credential.
func (g *Gate) holderOf(credential string) (h credentialHolder, err error) {
	if IsKey(credential) {
		h, err = g.holderOfKey(credential)
	} else {
		h, err = g.holderOfToken(credential)
	}
	if err == nil {
		err = g.checkValid(h)
	}
	return h, withHint(err)
}

// withHint adds a hint to an authentication error. The hint is the same for all causes.
func withHint(err error) error {
	if kg.CodeOf(err) != kg.CodeUnauthenticated {
		return err
	}
	e := *kg.AsError(err)
	e.Hint = "Send the key or token whole, as it was given to you. If it is, get a new one: a key from an administrator of this server, a token from your identity provider."
	return &e
}

// dummyKey is compared with unknown keys, so that they take the same time.
var dummyKey = &Key{hash: hashOf("")}

// holderOfKey authenticates an API key. Its duration does not depend on whether the key
// exists.
func (g *Gate) holderOfKey(text string) (h credentialHolder, err error) {
	name, ok := nameOf(text)
	if !ok || g.options.Keys == nil {
		return h, errInvalid
	}
	key := g.options.Keys.keyByName(name)
	if key == nil {
		key = dummyKey
	}
	if !sameHash(hashOf(text), key.hash) || key == dummyKey {
		return h, errInvalid
	}
	p := kg.Principal{ID: key.Agent, Roles: key.Roles, ActFor: g.actFor(key.ActFor, key.Roles), Method: methodKey, Key: name}
	return credentialHolder{p, name, key.Expires}, nil
}

// holderOfToken authenticates a bearer token.
func (g *Gate) holderOfToken(text string) (h credentialHolder, err error) {
	if g.options.Tokens == nil {
		return h, errInvalid
	}
	claims, err := g.options.Tokens.Verify(text)
	if err != nil {
		return h, err
	}
	if mayHaveCredential(claims.Agent) != nil {
		return h, errInvalid
	}
	if g.options.CheckAgent != nil {
		if err := g.options.CheckAgent(context.Background(), claims.Agent); err != nil {
			return h, kg.Errorf(kg.CodeUnauthenticated, "token has no valid agent: %s", kg.AsError(err).Message)
		}
	}
	h = credentialHolder{kg.Principal{ID: claims.Agent, Roles: claims.Roles, ActFor: g.actFor(claims.ActFor, claims.Roles), Method: methodToken}, "", claims.Expires}
	if g.options.Agents != nil && h.principal.CheckWrite() == nil {
		g.options.Agents.Seen(h.principal)
	}
	return h, nil
}

// actFor adds the agents of the roles to those of the credential.
func (g *Gate) actFor(own []kg.AgentID, roles []string) []kg.AgentID {
	if len(g.options.RoleActFor) == 0 {
		return own
	}
	out := slices.Clone(own)
	for _, role := range roles {
		out = append(out, g.options.RoleActFor[role]...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// checkValid returns an error if the credential is no longer valid.
func (g *Gate) checkValid(h credentialHolder) error {
	now := time.Now()
	if h.key != "" {
		key := g.options.Keys.keyByName(h.key)
		switch {
		case key == nil:
			return errInvalid
		case g.options.RefuseTestKeys && key.Mode == Test:
			return kg.Errorf(kg.CodeUnauthenticated, "test keys are not accepted by this server")
		case key.StateAt(now) == Revoked:
			return kg.Errorf(kg.CodeUnauthenticated, "the key was revoked")
		case key.StateAt(now) == Expired:
			return kg.Errorf(kg.CodeUnauthenticated, "the key has expired")
		}
	} else if !now.Before(h.expires) {
		return kg.Errorf(kg.CodeUnauthenticated, "the token has expired")
	}
	if g.options.Agents != nil && g.options.Agents.Suspended(h.principal.ID) {
		return kg.Errorf(kg.CodePermissionDenied, "the agent %s is suspended", h.principal.ID)
	}
	return nil
}

// startSession monitors a session until it is released.
func (g *Gate) startSession(h credentialHolder, end func(error)) (release func(), err error) {
	s := &session{holder: h, end: end}
	g.mu.Lock()
	defer g.mu.Unlock()
	// Check again under the lock: earlier changes did not reach the session, later
	// ones will.
	if err := g.checkValid(h); err != nil {
		return nil, withHint(err)
	}
	g.sessions[s] = struct{}{}
	g.setTimer(s)
	return func() { g.releaseSession(s) }, nil
}

// setTimer sets the session's timer to the current expiry of its credential.
func (g *Gate) setTimer(s *session) {
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
	expires := s.holder.expires
	if s.holder.key != "" {
		if key := g.options.Keys.keyByName(s.holder.key); key != nil {
			expires = key.Expires
		}
	}
	if !expires.IsZero() {
		s.timer = time.AfterFunc(time.Until(expires), g.Recheck)
	}
}

func (g *Gate) releaseSession(s *session) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.removeSession(s)
}

func (g *Gate) removeSession(s *session) {
	if s.timer != nil {
		s.timer.Stop()
	}
	delete(g.sessions, s)
}

// Recheck ends the sessions whose credential has become invalid. It is called after
// changes of keys or agents.
func (g *Gate) Recheck() {
	type ended struct {
		s   *session
		why error
	}
	var gone []ended
	g.mu.Lock()
	for s := range g.sessions {
		if err := g.checkValid(s.holder); err != nil {
			g.removeSession(s)
			gone = append(gone, ended{s, err})
			continue
		}
		g.setTimer(s) // a rotation changes the expiry of a key, and the clock may be set back
	}
	g.mu.Unlock()
	for _, e := range gone {
		e.s.end(e.why)
	}
}
