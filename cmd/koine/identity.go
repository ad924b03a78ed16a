package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"koine/cmd/koine/internal/cli"
	"koine/internal/agents"
	"koine/internal/auth"
	"koine/internal/auth/jwt"
	"koine/internal/caller"
	"koine/internal/dialect/agentchat"
	"koine/internal/dialect/modelcontext"
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
	Oversee        string            `help:"Role of agents that may read channels without taking part, private and direct ones too (default: none). koine records each in the channel, visible to its members, before the first read." placeholder:"ROLE"`
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
	chat   *auth.Gate // of AgentChat's keys in open mode; nil otherwise
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
	if f.Auth == "open" { // keys that AgentChat hands out are checked on its paths alone
		who.keys = auth.NewTable()
		who.chat = auth.NewGate(auth.Options{Keys: who.keys, Agents: who.agents, RefuseTestKeys: f.RefuseTestKeys})
		who.agents.OnSuspend = who.chat.Recheck
		return who, nil
	}
	if !slices.Contains([]string{"keys", "jwt", "keys,jwt", "jwt,keys"}, f.Auth) {
		return nil, cli.Usagef("--auth %s: must be open, keys, jwt, or keys,jwt", f.Auth)
	}
	byRole, err := f.roleActFor()
	if err != nil {
		return nil, cli.AsUsage(err)
	}
	options := auth.Options{RoleActFor: byRole, RefuseTestKeys: f.RefuseTestKeys}
	if strings.Contains(f.Auth, "jwt") {
		if who.tokens, err = f.openVerifier(ctx, log); err != nil {
			return nil, cli.Usagef("--auth %s: %w", f.Auth, err)
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

// overseers returns the role of --oversee. Roles with a meaning of their own are refused:
// those of administrators and of confined credentials, and those that anybody who registers
// over AgentChat has.
func (f *identityFlags) overseers(open bool) (string, error) {
	switch role := f.Oversee; {
	case role == "":
		return "", nil
	case open:
		return "", cli.Usagef("--oversee %s: requires credentials, such as --auth keys: in open mode every caller has every role", role)
	case !auth.ValidRole(role):
		return "", cli.Usagef("--oversee: %q is not a role", role)
	case slices.Contains([]string{kg.RoleAdmin, kg.RoleReviewer, kg.RoleReader, kg.RoleMetrics, kg.RoleBackup, agentchat.Role, agentchat.RoleGuest}, role):
		return "", cli.Usagef("--oversee %s: the role has a meaning of its own: name another one, such as auditor", role)
	default:
		return role, nil
	}
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
	w.keys.Follow(c)
}

// eachAgent calls fn for every registered agent until fn returns false.
func (w *identity) eachAgent(fn func(kg.AgentID) bool) { w.agents.Each(fn) }

// isAvailable reports whether the agent is registered and can be given work.
func (w *identity) isAvailable(id kg.AgentID) bool { return w.agents.IsAvailable(id) }

// load reads the agents and keys of the store.
func (w *identity) load(ctx context.Context, store *kg.Store) error {
	if err := w.agents.Load(ctx, store); err != nil {
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

// chatAdmit returns the function by which AgentChat authenticates its keys in open mode,
// nil otherwise.
func (w *identity) chatAdmit() httpd.Admit {
	if w.chat == nil {
		return nil
	}
	return w.chat.Admit
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

// firstKey creates the first administrator key if no administrator has one. It writes the
// secret to the file of --admin-key-file, or to standard error if the log is in text form.
//
// The file is created before the key. An empty file is left by a start that ended between
// the two steps; it gets a new key, because the secret of a key made by that start is
// lost.
func (w *identity) firstKey(ctx context.Context, t cli.Terminal, log *slog.Logger, store *kg.Store) error {
	if !w.acceptsKeys() {
		return nil
	}
	hasAdmin := w.keys.HasAdmin(time.Now())
	if path := w.flags.AdminKeyFile; path != "" {
		return w.firstKeyInFile(ctx, log, store, path, hasAdmin)
	}
	switch {
	case hasAdmin:
		return nil
	case t.Records == nil:
		made, err := makeFirstKey(ctx, store)
		if err != nil {
			return err
		}
		t.Quiet = false // the secret is printed nowhere else
		t.Notef(firstKeyText, made.Agent, made.Secret)
		return nil
	case w.acceptsTokens():
		log.Warn("no administrator has a key, and none is created: secrets are not written to a JSON log", "hint", "create one with --admin-key-file FILE, or as an administrator with a token")
		return nil
	}
	return cli.Usagef("no administrator has a key, and secrets are not written to a JSON log: pass --admin-key-file FILE for the first one")
}

func (w *identity) firstKeyInFile(ctx context.Context, log *slog.Logger, store *kg.Store, path string, hasAdmin bool) error {
	info, err := os.Stat(path)
	absent := errors.Is(err, fs.ErrNotExist)
	switch {
	case hasAdmin && (absent || err == nil && info.Size() > 0):
		return nil
	case err != nil && !absent:
		return fmt.Errorf("--admin-key-file: %w", err)
	case !absent && (info.Size() > 0 || !info.Mode().IsRegular()):
		return cli.Usagef("--admin-key-file: %s exists and is not empty: choose another file, or remove it", path)
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("--admin-key-file: %w", err)
	}
	defer file.Close()
	if err := file.Chmod(0o600); err != nil {
		return fmt.Errorf("--admin-key-file: %w", err)
	}
	made, err := makeFirstKey(ctx, store)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(file, made.Secret+"\n"); err != nil {
		return fmt.Errorf("--admin-key-file: %w", err)
	}
	if err := errors.Join(file.Sync(), file.Close()); err != nil {
		return fmt.Errorf("--admin-key-file: %w", err)
	}
	log.Info("the first administrator's key was written to a file", "agent", made.Agent, "key", made.Name, "file", path)
	return nil
}

func makeFirstKey(ctx context.Context, store *kg.Store) (auth.CreatedKey, error) {
	return auth.NewKeys(store).Create(ctx, kg.Meta{Principal: kg.SystemPrincipal(), Justification: "first key of an administrator"},
		auth.KeyRequest{Agent: firstAdmin, Label: "first administrator", Roles: []string{kg.RoleAdmin}})
}

const firstAdmin kg.AgentID = "agent://admin"

const firstKeyText = `
No administrator has a key. This is the first one, for %s; it is printed only once:

  %s
`

// protectedResource returns the OAuth metadata of the server and the function that finds its
// address; both are nil if it accepts no tokens.
func (w *identity) protectedResource(publicURL string) (*modelcontext.ProtectedResource, func(*http.Request) string) {
	if !w.acceptsTokens() {
		return nil, nil
	}
	p := &modelcontext.ProtectedResource{Issuer: w.flags.JWTIssuer, PublicURL: publicURL}
	return p, p.URL
}
