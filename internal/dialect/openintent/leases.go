package openintent

import (
	"errors"
	"net/http"
	"time"

	"koine/channels/scope"
	"koine/internal/caller"
	"koine/internal/intents"
	"koine/kg"
)

// wireLease is a lease. Its times have no offset, because the SDK compares them with a
// local time that has none.
type wireLease struct {
	ID         string   `json:"id"`
	IntentID   scope.ID `json:"intent_id"`
	AgentID    string   `json:"agent_id"`
	Scope      string   `json:"scope"`
	Status     string   `json:"status"`
	AcquiredAt string   `json:"acquired_at"`
	CreatedAt  string   `json:"created_at"`
	ExpiresAt  string   `json:"expires_at"`
	ReleasedAt *string  `json:"released_at"`
}

const naiveLayout = "2006-01-02T15:04:05.000"

func leaseOf(l *intents.Lease) *wireLease {
	acquired := l.AcquiredAt.UTC().Format(naiveLayout)
	return &wireLease{l.ID, l.Intent, bare(l.Agent), l.Scope, "active", acquired, acquired, l.ExpiresAt.UTC().Format(naiveLayout), nil}
}

// maxLeaseSeconds bounds a duration before it becomes one.
const maxLeaseSeconds = int64(intents.MaxLeaseDuration / time.Second)

// leaseDraft is the body of a lease.
type leaseDraft struct {
	Scope    *string `json:"scope"`
	Duration *int64  `json:"duration_seconds"`
}

func (d *leaseDraft) duration() (time.Duration, error) {
	if d.Duration == nil {
		return intents.DefaultLeaseDuration, nil
	}
	if *d.Duration < 1 || *d.Duration > maxLeaseSeconds {
		return 0, errField("duration_seconds", "duration_seconds must be from 1 to 86400", "value_error")
	}
	return time.Duration(*d.Duration) * time.Second, nil
}

// acquireLease handles POST /intents/{id}/leases.
func (h *Handler) acquireLease(w http.ResponseWriter, r *http.Request, who caller.Caller) (int, any, error) {
	var body leaseDraft
	if err := h.readBody(w, r, &body); err != nil {
		return 0, nil, err
	}
	if body.Scope == nil {
		return 0, nil, errRequired("scope")
	}
	duration, err := body.duration()
	if err != nil {
		return 0, nil, err
	}
	l, err := h.deps.Intents.Leases().Acquire(r.Context(), channelCaller(who), scope.ID(r.PathValue("id")), *body.Scope, duration)
	var held *intents.HeldError
	if errors.As(err, &held) {
		return 0, nil, &wireError{Message: "Lease already held for this scope", Code: string(kg.CodeLeaseHeld), ExistingLease: leaseOf(&held.Lease), status: http.StatusConflict}
	}
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, leaseOf(l), nil
}

// listLeases handles GET /intents/{id}/leases.
func (h *Handler) listLeases(_ http.ResponseWriter, r *http.Request, who caller.Caller) (int, any, error) {
	list, err := h.deps.Intents.Leases().List(r.Context(), channelCaller(who), scope.ID(r.PathValue("id")))
	if err != nil {
		return 0, nil, err
	}
	out := struct {
		Leases []*wireLease `json:"leases"`
	}{make([]*wireLease, 0, len(list))}
	for i := range list {
		out.Leases = append(out.Leases, leaseOf(&list[i]))
	}
	return http.StatusOK, out, nil
}

// renewLease handles PATCH /intents/{id}/leases/{lease}.
func (h *Handler) renewLease(w http.ResponseWriter, r *http.Request, who caller.Caller) (int, any, error) {
	var body leaseDraft
	if err := h.readBody(w, r, &body); err != nil {
		return 0, nil, err
	}
	duration, err := body.duration()
	if err != nil {
		return 0, nil, err
	}
	l, err := h.deps.Intents.Leases().Renew(r.Context(), channelCaller(who), scope.ID(r.PathValue("id")), r.PathValue("lease"), duration)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, leaseOf(l), nil
}

// releaseLease handles DELETE /intents/{id}/leases/{lease}.
func (h *Handler) releaseLease(_ http.ResponseWriter, r *http.Request, who caller.Caller) (int, any, error) {
	if _, err := h.deps.Intents.Leases().Release(r.Context(), channelCaller(who), scope.ID(r.PathValue("id")), r.PathValue("lease")); err != nil {
		return 0, nil, err
	}
	return http.StatusOK, struct {
		Message string `json:"message"`
	}{"Lease released"}, nil
}
