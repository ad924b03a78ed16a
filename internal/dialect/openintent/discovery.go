package openintent

import (
	"net/http"

	"koine/internal/caller"
	"koine/internal/rest"
)

// ProtocolVersion is the version of the protocol that is announced.
const ProtocolVersion = "0.1"

// The discovery documents.
const (
	DiscoveryPath     = "/.well-known/openintent.json"
	CompatibilityPath = "/.well-known/openintent-compat.json"
)

const rfcs = "https://github.com/openintent-ai/openintent/blob/main/docs/rfcs/"

type discovery struct {
	Protocol     string   `json:"protocol"`
	Version      string   `json:"version"`
	RFCs         []string `json:"rfcUrls"`
	Capabilities []string `json:"capabilities"`
	OpenAPI      *string  `json:"openApiUrl"`
}

type compatibility struct {
	Protocol   string            `json:"protocol"`
	Version    string            `json:"version"`
	Compliance map[string]string `json:"rfcCompliance"`
}

// NewDiscoveryHandler returns the handler of the discovery documents, which need no
// credential.
func NewDiscoveryHandler() http.Handler {
	routes := http.NewServeMux()
	routes.HandleFunc("GET "+DiscoveryPath, func(w http.ResponseWriter, _ *http.Request) {
		rest.Write(w, http.StatusOK, discovery{
			Protocol: "OpenIntent Coordination Protocol", Version: ProtocolVersion,
			RFCs:         []string{rfcs + "0001-intent-objects.md", rfcs + "0021-agent-to-agent-messaging.md"},
			Capabilities: []string{"intents", "events", "agents", "state-patches", "optimistic-concurrency", "subscriptions", "leasing", "access-control", "messaging"},
		})
	})
	routes.HandleFunc("GET "+CompatibilityPath, func(w http.ResponseWriter, _ *http.Request) {
		rest.Write(w, http.StatusOK, compatibility{"OpenIntent Coordination Protocol", ProtocolVersion, map[string]string{
			"RFC-0001": "partial", "RFC-0003": "partial", "RFC-0004": "partial", "RFC-0006": "partial", "RFC-0011": "partial", "RFC-0012": "partial",
			"RFC-0016": "partial", "RFC-0019": "partial", "RFC-0020": "partial", "RFC-0021": "partial",
		}})
	})
	return routes
}

type serverConfig struct {
	Version    string     `json:"protocol_version"`
	Suspension suspension `json:"suspension"`
}

type suspension struct {
	RetryPolicy *string `json:"default_retry_policy"`
}

// serverConfig handles GET /server/config.
func (h *Handler) serverConfig(http.ResponseWriter, *http.Request, caller.Caller) (int, any, error) {
	return http.StatusOK, serverConfig{Version: ProtocolVersion}, nil
}
