package main

import (
	"encoding/json"
	"net/http"

	"koine/internal/caller"
	"koine/kg"
)

// requireAdmin lets only those in who may administrate the store. In open mode
// that is everybody on the machine.
func requireAdmin(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p := caller.From(r.Context()).Principal; !p.IsAdmin() {
			writeAdminError(w, kg.Errorf(kg.CodePermissionDenied, "this is for administrators"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// adminStatuses are the statuses of what the administrators' endpoints refuse,
// beside 503.
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

// writeAdminError answers with an error in the form that all plain answers have.
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
	// A client that is gone has no use for an error.
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{
		"message": e.Message, "data": data{e.Code, "koine", e.Field, e.Hint},
	}})
}
