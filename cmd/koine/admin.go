package main

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"

	"koine/cmd/koine/internal/offline"
	"koine/internal/caller"
	"koine/internal/memory"
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

// checkHandler answers POST with the report of a check of the running store, which stays within the
// shares of the memory.
func checkHandler(store *kg.Store, s memory.Shares) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.Header().Set("Allow", http.MethodPost)
			http.Error(w, "a check requires method POST", http.StatusMethodNotAllowed)
			return
		}
		report, err := store.Maintenance().Check(r.Context(), offline.CheckOptions(store, s))
		if err != nil {
			http.Error(w, kg.AsError(err).Message, http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(report) // an encoding error means that the client has disconnected
	})
}

// maxBackups is the number of backups that a server writes at the same time.
const maxBackups = 2

// backupHandler answers POST with a backup of the running store. The parameter since, a
// revision, asks for an incremental backup from there. With epoch and hash as well, the
// request fails unless the backup that ends at since is of this log. attach attaches files to full
// backups; it may be nil.
func backupHandler(store *kg.Store, attach func(kg.AttachFile) error, log *slog.Logger) http.Handler {
	places := make(chan struct{}, maxBackups)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.Header().Set("Allow", http.MethodPost)
			http.Error(w, "a backup requires method POST", http.StatusMethodNotAllowed)
			return
		}
		o, err := backupOptionsOf(r.URL.Query())
		if err != nil {
			writeAdminError(w, kg.AsError(err))
			return
		}
		select {
		case places <- struct{}{}:
			defer func() { <-places }()
		default:
			writeAdminError(w, kg.Errorf(kg.CodeOverloaded, "%d backups are in progress, the maximum: try again later", maxBackups))
			return
		}
		begun := false
		o.Attach = attach
		o.Begin = func(info kg.BackupInfo) {
			begun = true
			w.Header().Set("Content-Type", "application/octet-stream")
			w.Header().Set("Content-Disposition", fmt.Sprintf(`attachment; filename="koine-%d.koine"`, info.To))
		}
		info, err := store.Maintenance().Backup(r.Context(), w, o)
		switch {
		case err != nil && begun:
			log.Warn("the backup was aborted", "err", err)
			panic(http.ErrAbortHandler) // aborts the response: the client must not take a partial backup for a complete one
		case err != nil:
			writeAdminError(w, kg.AsError(err))
		default:
			log.Info("backed up", "from", info.From, "to", info.To)
		}
	})
}

// backupOptionsOf parses the query parameters of a backup request.
func backupOptionsOf(query url.Values) (o kg.BackupOptions, err error) {
	if text := query.Get("since"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return o, kg.Errorf(kg.CodeInvalid, "%q is not the number of a revision", text).At("since")
		}
		o.Since = kg.Revision(n)
	}
	if query.Has("epoch") || query.Has("hash") {
		o.Follows = &kg.BackupInfo{Epoch: query.Get("epoch"), To: o.Since, ToHash: query.Get("hash")}
	}
	return o, nil
}
