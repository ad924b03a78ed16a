package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"koine/internal/agents"
	"koine/internal/auth"
	"koine/internal/auth/jwt"
	"koine/internal/caller"
	"koine/internal/httpd"
	"koine/kg"
)

// identityFlags select how the server authenticates its callers.
type identityFlags struct {
	Auth string `help:"Authentication of callers: open (none, on this machine only), keys (API keys), jwt (tokens of an identity provider), or keys,jwt." default:"open" placeholder:"HOW" completes:"open,keys,jwt"`

	JWKS           string            `help:"Key set that verifies tokens: a URL or a file." placeholder:"URL|FILE" name:"jwks"`
	JWTIssuer      string            `help:"Required issuer of tokens." placeholder:"ISS" name:"jwt-issuer"`
	JWTAudience    []string          `help:"Required audience of tokens; one of several is enough." placeholder:"AUD" name:"jwt-audience"`
	JWTSkew        time.Duration     `help:"Maximum difference between the clocks of the issuer and of this machine." default:"30s" name:"jwt-skew"`
	JWTAgentClaim  string            `help:"Claim that names the agent." default:"sub" name:"jwt-agent-claim" placeholder:"CLAIM"`
	JWTRolesClaim  string            `help:"Claim with the roles. Dots separate the names of nested objects." default:"roles" name:"jwt-roles-claim" placeholder:"CLAIM"`
	JWTActForClaim string            `help:"Claim with the agents that the caller may act for." default:"actFor" name:"jwt-act-for-claim" placeholder:"CLAIM"`
	JWTAlgorithm   []string          `help:"Accepted signature algorithms (default: those with key pairs). HS256, HS384 and HS512 require a key set in a file." name:"jwt-algorithm" placeholder:"ALG"`
	RoleActFor     map[string]string `help:"Agents that principals with a role may act for, separated by spaces, or *; may be repeated." placeholder:"ROLE=AGENTS"`
	RefuseTestKeys bool              `help:"Refuse ak_test_ keys."`
	AdminKeyFile   string            `help:"Write the first administrator key to this new file, readable by its owner only, instead of standard error." placeholder:"FILE" type:"path"`
}

// identity authenticates the callers of a server. In open mode it only holds the registered
// agents.
type identity struct {
	flags  *identityFlags
	log    *slog.Logger
	gate   *auth.Gate // nil in open mode
	keys   *auth.Table
	agents *agents.Registry
	tokens *jwt.Verifier
	close  func()
	store  *kg.Store // nil before it is open
}

// checkAgent rejects ids that no agent may have (kg.Store.CheckAgent).
func (w *identity) checkAgent(ctx context.Context, id kg.AgentID) error {
	if w.store == nil {
		return id.WellFormed()
	}
	return w.store.CheckAgent(ctx, id)
}

// newIdentity checks the flags and opens the key set that they name.
func (f *identityFlags) newIdentity(ctx context.Context, log *slog.Logger) (*identity, error) {
	who := &identity{flags: f, log: log, agents: agents.NewRegistry(log)}
	who.close = who.agents.Close
	if f.Auth == "open" {
		return who, nil
	}
	if !slices.Contains([]string{"keys", "jwt", "keys,jwt", "jwt,keys"}, f.Auth) {
		return nil, usageError{fmt.Errorf("--auth %s: must be open, keys, jwt, or keys,jwt", f.Auth)}
	}
	byRole, err := f.roleActFor()
	if err != nil {
		return nil, usageError{err}
	}
	options := auth.Options{RoleActFor: byRole, RefuseTestKeys: f.RefuseTestKeys}
	if strings.Contains(f.Auth, "jwt") {
		if who.tokens, err = f.openVerifier(ctx, log); err != nil {
			return nil, usageError{fmt.Errorf("--auth %s: %w", f.Auth, err)}
		}
		options.Tokens = who.tokens
	}
	who.keys = auth.NewTable()
	options.Agents, options.CheckAgent = who.agents, who.checkAgent
	if strings.Contains(f.Auth, "keys") {
		options.Keys = who.keys
	}
	who.gate = auth.NewGate(options)
	who.agents.OnSuspend = who.gate.Recheck
	who.close = sync.OnceFunc(func() {
		who.agents.Close()
		if who.tokens != nil {
			who.tokens.Close()
		}
	})
	return who, nil
}

func (f *identityFlags) openVerifier(ctx context.Context, log *slog.Logger) (*jwt.Verifier, error) {
	if f.JWKS == "" || f.JWTIssuer == "" || len(f.JWTAudience) == 0 {
		return nil, errors.New("tokens require --jwks, --jwt-issuer and --jwt-audience")
	}
	return jwt.Open(ctx, jwt.Options{
		Keys: f.JWKS, Issuer: f.JWTIssuer, Audience: f.JWTAudience, Skew: f.JWTSkew,
		AgentClaim: f.JWTAgentClaim, RolesClaim: f.JWTRolesClaim, ActForClaim: f.JWTActForClaim,
		Algorithms: f.JWTAlgorithm, Logger: log,
	})
}

func (f *identityFlags) roleActFor() (map[string][]kg.AgentID, error) {
	out := map[string][]kg.AgentID{}
	for role, list := range f.RoleActFor {
		if !auth.ValidRole(role) {
			return nil, fmt.Errorf("--role-act-for: %q is not a role", role)
		}
		for _, name := range strings.Fields(list) {
			agent := kg.Anybody
			if name != string(kg.Anybody) {
				var err error
				if agent, err = caller.ParseAgent(name); err != nil {
					return nil, fmt.Errorf("--role-act-for %s: %w", role, err)
				}
			}
			out[role] = append(out[role], agent)
		}
	}
	return out, nil
}

// requiresCredentials reports whether callers must authenticate: false in open mode.
func (w *identity) requiresCredentials() bool { return w.gate != nil }

// applyCommit follows a commit to koine's own graphs. Agents come first, so that the keys of
// a suspended agent are refused.
func (w *identity) applyCommit(c *kg.Commit) {
	w.agents.Follow(c)
	if w.requiresCredentials() {
		w.keys.Follow(c)
	}
}

// eachAgent calls fn for every registered agent until fn returns false.
func (w *identity) eachAgent(fn func(kg.AgentID) bool) { w.agents.Each(fn) }

// isAvailable reports whether the agent is registered and can be given work.
func (w *identity) isAvailable(id kg.AgentID) bool { return w.agents.IsAvailable(id) }

// load reads the agents and keys of the store.
func (w *identity) load(ctx context.Context, store *kg.Store) error {
	if err := w.agents.Load(ctx, store); err != nil || !w.requiresCredentials() {
		return err
	}
	return w.keys.Load(ctx, store)
}

// httpAdmit returns the authentication function of the HTTP server, nil in open mode.
func (w *identity) httpAdmit() httpd.Admit {
	if !w.requiresCredentials() {
		return nil
	}
	return w.gate.Admit
}

// narrowFunc returns the function by which the A2A endpoint checks further credentials, nil
// in open mode.
func (w *identity) narrowFunc() func(context.Context, caller.Caller, string, func(error)) (caller.Caller, func(), error) {
	if !w.requiresCredentials() {
		return nil
	}
	return w.gate.Narrow
}

// currentRights returns the function that looks up the present rights of a principal who
// authenticated earlier, nil in open mode.
func (w *identity) currentRights() func(kg.Principal) (kg.Principal, error) {
	if !w.requiresCredentials() {
		return nil
	}
	return w.gate.CurrentRights
}

func (w *identity) acceptsKeys() bool   { return strings.Contains(w.flags.Auth, "keys") }
func (w *identity) acceptsTokens() bool { return strings.Contains(w.flags.Auth, "jwt") }
