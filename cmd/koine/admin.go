package main

import (
	"encoding/json"
	"net/http"

	"koine/internal/caller"
	"koine/kg"
)

// requireAdmin serves requests of administrators and answers all others with
// PERMISSION_DENIED. In open mode every caller on the machine is an administrator.
func requireAdmin(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p := caller.From(r.Context()).Principal; !p.IsAdmin() {
			writeAdminError(w, kg.Errorf(kg.CodePermissionDenied, "this endpoint requires an administrator"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// adminStatuses maps the error codes of the administrators' endpoints to HTTP statuses.
// Any other code is answered with 503.
var adminStatuses = []struct {
	code   kg.Code
	status int
}{
	{kg.CodeInvalid, http.StatusBadRequest},
	{kg.CodePermissionDenied, http.StatusForbidden},
	{kg.CodeRevisionGone, http.StatusGone},
	{kg.CodeRevisionAhead, http.StatusBadRequest},
	{kg.CodeLogDamaged, http.StatusInternalServerError},
	{kg.CodeInternal, http.StatusInternalServerError},
}

// writeAdminError answers with an error in the JSON form that all endpoints outside
// GraphQL and JSON-RPC share.
func writeAdminError(w http.ResponseWriter, e *kg.Error) {
	status := http.StatusServiceUnavailable
	for _, row := range adminStatuses {
		if row.code == e.Code {
			status = row.status
		}
	}
	type data struct {
		Reason kg.Code `json:"reason"`
		Domain string  `json:"domain"`
		Field  string  `json:"field,omitempty"`
		Hint   string  `json:"hint,omitempty"`
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// An encoding error means that the client has disconnected.
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{
		"message": e.Message, "data": data{e.Code, "koine", e.Field, e.Hint},
	}})
}
