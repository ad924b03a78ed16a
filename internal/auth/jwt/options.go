package jwt

import (
	"cmp"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwa"

	"koine/kg"
)

// Options configures a Verifier. Keys, Issuer and Audience are required.
type Options struct {
	// Keys is the URL or the file name of the key set.
	Keys string
	// Issuer must be the token's iss, and one of Audience must be in its aud: a token
	// that the same provider issued for another service is rejected.
	Issuer   string
	Audience []string
	// Skew is the tolerated clock difference.
	Skew time.Duration
	// AgentClaim, RolesClaim and ActForClaim are the names of claims; dots select
	// members of objects ("realm_access.roles").
	AgentClaim, RolesClaim, ActForClaim string
	// Algorithms are the allowed algorithms; nil means DefaultAlgorithms.
	Algorithms []string
	// Refresh is the interval at which the set is read. A token with an unknown key id
	// triggers an earlier read, at most once per RefreshAtMost.
	Refresh, RefreshAtMost time.Duration
	HTTP                   *http.Client
	Logger                 *slog.Logger
}

// Defaults and limits.
const (
	DefaultSkew          = 30 * time.Second
	MaxSkew              = 10 * time.Minute
	DefaultAgentClaim    = "sub"
	DefaultRolesClaim    = "roles"
	DefaultActForClaim   = "actFor"
	DefaultRefresh       = 15 * time.Minute
	DefaultRefreshAtMost = 30 * time.Second

	MaxTokenBytes = 16 << 10
	MaxSetBytes   = 1 << 20
	MaxSetKeys    = 100
	MinRSABits    = 2048
	fetchTimeout  = 10 * time.Second
)

// DefaultAlgorithms are the asymmetric signature algorithms.
var DefaultAlgorithms = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}

func (o Options) withDefaults() Options {
	o.Skew = cmp.Or(o.Skew, DefaultSkew)
	o.AgentClaim = cmp.Or(o.AgentClaim, DefaultAgentClaim)
	o.RolesClaim = cmp.Or(o.RolesClaim, DefaultRolesClaim)
	o.ActForClaim = cmp.Or(o.ActForClaim, DefaultActForClaim)
	o.Refresh = cmp.Or(o.Refresh, DefaultRefresh)
	o.RefreshAtMost = cmp.Or(o.RefreshAtMost, DefaultRefreshAtMost)
	if o.Algorithms == nil {
		o.Algorithms = DefaultAlgorithms
	}
	if o.HTTP == nil {
		o.HTTP = http.DefaultClient
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

func (o *Options) isURL() bool {
	return strings.HasPrefix(o.Keys, "https://") || strings.HasPrefix(o.Keys, "http://")
}

func (o *Options) validate() error {
	switch {
	case o.Keys == "":
		return kg.Errorf(kg.CodeInvalid, "key set is required: a URL or a file")
	case o.Issuer == "":
		return kg.Errorf(kg.CodeInvalid, "issuer is required: without it, tokens of any issuer would be accepted")
	case len(o.Audience) == 0:
		return kg.Errorf(kg.CodeInvalid, "audience is required: without it, tokens for other services would be accepted")
	case o.Skew < 0 || o.Skew > MaxSkew:
		return kg.Errorf(kg.CodeInvalid, "clock skew must be between 0 and %s", MaxSkew)
	}
	for _, name := range o.Algorithms {
		alg, ok := jwa.LookupSignatureAlgorithm(name)
		switch {
		case !ok || alg == jwa.NoSignature():
			return kg.Errorf(kg.CodeInvalid, "%q is not a signature algorithm", name)
		case alg.IsSymmetric() && o.isURL():
			return kg.Errorf(kg.CodeInvalid, "%s needs a shared secret, which must be in a file, not at a URL", name)
		}
	}
	return nil
}

func (o *Options) allowsAlgorithm(name string) bool { return slices.Contains(o.Algorithms, name) }
