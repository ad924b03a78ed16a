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

// Options of a Verifier. Keys, Issuer and Audience are required.
type Options struct {
	// Keys is the URL or the file of the key set.
	Keys string
	// Issuer must be the token's iss, and one of Audience among its aud: a token
	// that the same provider made for somebody else is not for us.
	Issuer   string
	Audience []string
	// Skew is how far clocks may be apart.
	Skew time.Duration
	// AgentClaim, RolesClaim and ActForClaim name the claims; dots lead into
	// objects ("realm_access.roles").
	AgentClaim, RolesClaim, ActForClaim string
	// Algorithms that are allowed; nil means DefaultAlgorithms.
	Algorithms []string
	// Refresh is how often the set is read anew. A token of a key that is not in
	// it has it read earlier, but not more often than each RefreshAtMost.
	Refresh, RefreshAtMost time.Duration
	HTTP                   *http.Client
	Logger                 *slog.Logger
}

// Defaults and bounds.
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

// DefaultAlgorithms are signatures with a pair of keys.
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

// isURL tells where the set is.
func (o *Options) isURL() bool {
	return strings.HasPrefix(o.Keys, "https://") || strings.HasPrefix(o.Keys, "http://")
}

func (o *Options) validate() error {
	switch {
	case o.Keys == "":
		return kg.Errorf(kg.CodeInvalid, "tokens need a key set: a URL or a file")
	case o.Issuer == "":
		return kg.Errorf(kg.CodeInvalid, "tokens need an issuer: anybody else's would count otherwise")
	case len(o.Audience) == 0:
		return kg.Errorf(kg.CodeInvalid, "tokens need an audience: those that the issuer made for others would count otherwise")
	case o.Skew < 0 || o.Skew > MaxSkew:
		return kg.Errorf(kg.CodeInvalid, "clocks may be between 0 and %s apart", MaxSkew)
	}
	for _, name := range o.Algorithms {
		alg, ok := jwa.LookupSignatureAlgorithm(name)
		switch {
		case !ok || alg == jwa.NoSignature():
			return kg.Errorf(kg.CodeInvalid, "%q is not an algorithm of signatures", name)
		case alg.IsSymmetric() && o.isURL():
			return kg.Errorf(kg.CodeInvalid, "%s needs a shared secret, which stands in a file and not at a URL", name)
		}
	}
	return nil
}

func (o *Options) allowsAlgorithm(name string) bool { return slices.Contains(o.Algorithms, name) }
