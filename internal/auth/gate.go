package auth

import (
	"context"
	"slices"
	"sync"
	"time"

	"koine/internal/caller"
	"koine/kg"
)

// Claims are what a bearer token says of its bearer.
type Claims struct {
	Agent  kg.AgentID
	Roles  []string
	ActFor []kg.AgentID
	// Expires is when it stops being good. Every token has an end.
	Expires time.Time
}

// Tokens checks bearer tokens (jwt.Verifier). Errors are *kg.Error with
// CodeUnauthenticated and hold nothing of the token.
type Tokens interface {
	Verify(token string) (Claims, error)
}

// Agents knows the agents' records (agents.Registry). Neither method may block.
type Agents interface {
	// Suspended tells whether the agent is refused.
	Suspended(kg.AgentID) bool
	// Seen is told of each bearer of a token.
	Seen(kg.Principal)
}

// Options of a Gate. Without Keys no key is good, without Tokens no token.
type Options struct {
	Keys   *Table
	Tokens Tokens
	Agents Agents // nil: nobody is suspended
	// CheckAgent refuses ids of bearers that no agent may have (kg.Store.CheckAgent);
	// nil takes them as they are.
	CheckAgent func(context.Context, kg.AgentID) error
	// RoleActFor lists, for a role, the agents that who has it may act for.
	RoleActFor map[string][]kg.AgentID
	// RefuseTestKeys makes ak_test_ keys no good here.
	RefuseTestKeys bool
}

// Gate lets callers in by their credential, and ends what they do when it is no
// longer good. It is safe for concurrent use.
type Gate struct {
	options Options

	mu       sync.Mutex // guards what follows, and what sessions say of themselves
	sessions map[*session]struct{}
}

// session is something that goes on under a credential.
type session struct {
	holder credentialHolder
	end    func(error)
	timer  *time.Timer // fires at the credential's end; nil without one
}

// credentialHolder is whose a credential is.
type credentialHolder struct {
	principal kg.Principal
	key       string // the name of the key, "" for a token
	expires   time.Time
}

// NewGate makes a gate. There is one for each Table.
func NewGate(options Options) *Gate {
	g := &Gate{options: options, sessions: map[*session]struct{}{}}
	if options.Keys != nil {
		options.Keys.onChange = g.Recheck
	}
	return g
}

// Admit says whose the credential is. end is called at most once, with a
// *kg.Error, when it stops being good before release was called; it must not
// block. The error is a *kg.Error with CodeUnauthenticated, or with
// CodePermissionDenied for an agent that is suspended.
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

// Narrow gives what is left of a caller's rights under a further credential: the
// roles, and the agents to act for, that both have. The credential of another
// agent, for which the caller must be allowed to act, makes it act for that one;
// whose graphs may be read stays as it is. end and release are those of Admit.
func (g *Gate) Narrow(_ context.Context, c caller.Caller, credential string, end func(error)) (n caller.Caller, release func(), err error) {
	h, err := g.holderOf(credential)
	if err != nil {
		return n, nil, err
	}
	further := h.principal
	if err := further.CheckRead(); err != nil {
		return n, nil, err // the two together do nothing
	}
	if !c.Principal.MayActFor(further.ID) {
		return n, nil, kg.Errorf(kg.CodeSourceForbidden, "the security token is that of an agent that you may not act for")
	}
	if c.Actor != "" && !further.MayActFor(c.Actor) {
		return n, nil, kg.Errorf(kg.CodeSourceForbidden, "the security token does not let you act for %s", c.Actor)
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

// commonAgents lists the agents that both may act for, beside the first itself.
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

// holderOf checks a credential.
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

// withHint says what to do about a credential that is no good: the same whatever is wrong
// with it.
func withHint(err error) error {
	if kg.CodeOf(err) != kg.CodeUnauthenticated {
		return err
	}
	e := *kg.AsError(err)
	e.Hint = "Send the key or token whole, as it was given to you. If it is, get a new one: a key from an administrator of this server, a token from your identity provider."
	return &e
}

// dummyKey is what an unknown key is compared with, so that it takes as long.
var dummyKey = &Key{hash: hashOf("")}

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
			return h, kg.Errorf(kg.CodeUnauthenticated, "the token names no agent: %s", kg.AsError(err).Message)
		}
	}
	h = credentialHolder{kg.Principal{ID: claims.Agent, Roles: claims.Roles, ActFor: g.actFor(claims.ActFor, claims.Roles), Method: methodToken}, "", claims.Expires}
	if g.options.Agents != nil && h.principal.CheckWrite() == nil {
		g.options.Agents.Seen(h.principal)
	}
	return h, nil
}

// actFor adds to a credential's own agents those that its roles bring.
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

// checkValid says what keeps a holder out at this moment, nil if nothing does.
func (g *Gate) checkValid(h credentialHolder) error {
	now := time.Now()
	if h.key != "" {
		key := g.options.Keys.keyByName(h.key)
		switch {
		case key == nil:
			return errInvalid
		case g.options.RefuseTestKeys && key.Mode == Test:
			return kg.Errorf(kg.CodeUnauthenticated, "test keys are not taken here")
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

// startSession watches over a session until it is released.
func (g *Gate) startSession(h credentialHolder, end func(error)) (release func(), err error) {
	s := &session{holder: h, end: end}
	g.mu.Lock()
	defer g.mu.Unlock()
	// Asked again under the lock: what changed before this was not told to us,
	// what changes from now on is.
	if err := g.checkValid(h); err != nil {
		return nil, withHint(err)
	}
	g.sessions[s] = struct{}{}
	g.setTimer(s)
	return func() { g.releaseSession(s) }, nil
}

// setTimer sets the session's timer by what its credential says now.
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

// Recheck ends the sessions whose credential is no longer good. It is called when
// keys or agents have changed.
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
		g.setTimer(s) // a rotation gives a key another end, and clocks are set back
	}
	g.mu.Unlock()
	for _, e := range gone {
		e.s.end(e.why)
	}
}

// Sessions is how many there are.
func (g *Gate) Sessions() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.sessions)
}
