package modelcontext

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// MetadataPath is the path of the OAuth metadata of the server; followed by Path, it is that
// of the metadata of the protocol (RFC 9728, section 3.1).
const MetadataPath = "/.well-known/oauth-protected-resource"

// ProtectedResource tells clients where they get a token.
type ProtectedResource struct {
	Issuer    string // of the tokens that the server accepts
	PublicURL string // "" for the URL of the request
}

// ServeHTTP answers with the metadata.
func (p *ProtectedResource) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m := oauthex.ProtectedResourceMetadata{
		Resource: p.baseURL(r) + strings.TrimPrefix(r.URL.Path, MetadataPath), BearerMethodsSupported: []string{"header"}, ResourceName: "koine",
	}
	if strings.HasPrefix(p.Issuer, "https://") || strings.HasPrefix(p.Issuer, "http://") {
		m.AuthorizationServers = []string{p.Issuer} // an issuer that is no URL is known to the operator alone
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(&m) // the client is gone
}

// URL returns the address of the metadata for a refused request, "" for other paths than the protocol's.
func (p *ProtectedResource) URL(r *http.Request) string {
	if r.URL.Path != Path {
		return ""
	}
	return p.baseURL(r) + MetadataPath + Path
}

func (p *ProtectedResource) baseURL(r *http.Request) string {
	switch {
	case p.PublicURL != "":
		return strings.TrimRight(p.PublicURL, "/")
	case r.TLS != nil:
		return "https://" + r.Host
	}
	return "http://" + r.Host
}
