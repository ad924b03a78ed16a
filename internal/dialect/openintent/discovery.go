package openintent

import (
	"net/http"

	"koine/internal/caller"
	"koine/internal/rest"
)

const protocolName = "OpenIntent Coordination Protocol"

// ProtocolVersion is the version of the protocol that is announced.
const ProtocolVersion = "0.1"

// The discovery documents.
const (
	DiscoveryPath     = "/.well-known/openintent.json"
	CompatibilityPath = "/.well-known/openintent-compat.json"
)

const documents = "https://github.com/openintent-ai/openintent/blob/main/docs/rfcs/"

// rfcs are the documents of the protocol of which something is served, and how much of it is.
var rfcs = []struct{ number, document, compliance string }{
	{"0001", "intent-objects", "partial"},
	{"0003", "agent-leasing", "partial"},
	{"0006", "subscriptions", "partial"}, // streams
	{"0007", "intent-portfolios", "partial"},
	{"0011", "access-control", "partial"},
	{"0012", "task-decomposition-planning", "partial"}, // tasks, without plans
	{"0016", "agent-lifecycle-health", "partial"},
	{"0019", "verifiable-event-logs", "partial"}, // the chain of an intent
	{"0020", "distributed-tracing", "partial"},   // trace_id of events
	{"0021", "agent-to-agent-messaging", "full"},
}

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
	about := discovery{
		Protocol: protocolName, Version: ProtocolVersion,
		Capabilities: []string{"intents", "events", "agents", "state-patches", "optimistic-concurrency", "subscriptions", "leasing", "access-control", "messaging"},
	}
	parts := compatibility{protocolName, ProtocolVersion, map[string]string{}}
	for _, rfc := range rfcs {
		about.RFCs = append(about.RFCs, documents+rfc.number+"-"+rfc.document+".md")
		parts.Compliance["RFC-"+rfc.number] = rfc.compliance
	}
	routes := http.NewServeMux()
	routes.HandleFunc("GET "+DiscoveryPath, func(w http.ResponseWriter, _ *http.Request) {
		rest.Write(w, http.StatusOK, about)
	})
	routes.HandleFunc("GET "+CompatibilityPath, func(w http.ResponseWriter, _ *http.Request) {
		rest.Write(w, http.StatusOK, parts)
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
