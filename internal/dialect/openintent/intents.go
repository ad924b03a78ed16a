package openintent

import (
	"encoding/json"
	"net/http"

	"koine/channels"
	"koine/channels/scope"
	"koine/internal/caller"
	"koine/internal/intents"
	"koine/internal/rest"
)

// Bounds of a list of intents.
const (
	DefaultIntents = 50
	MaxIntents     = 1000
)

// wireIntent is an intent. All members are always present.
type wireIntent struct {
	ID             scope.ID        `json:"id"`
	Title          string          `json:"title"`
	Description    string          `json:"description"`
	CreatedBy      string          `json:"created_by"`
	ParentIntentID *string         `json:"parent_intent_id"`
	ParentID       *string         `json:"parent_id"`
	DependsOn      []scope.ID      `json:"depends_on"`
	Constraints    json.RawMessage `json:"constraints"`
	State          json.RawMessage `json:"state"`
	Status         intents.Status  `json:"status"`
	Confidence     float64         `json:"confidence"`
	Version        int64           `json:"version"`
	Governance     json.RawMessage `json:"governance_policy"`
	CreatedAt      string          `json:"created_at"`
	UpdatedAt      string          `json:"updated_at"`
}

func intentOf(it *intents.Intent) *wireIntent {
	out := &wireIntent{
		ID: it.ID, Title: it.Title, Description: it.Description, CreatedBy: bare(it.CreatedBy), ParentIntentID: orNull(string(it.Parent)), ParentID: orNull(string(it.Parent)),
		DependsOn: it.DependsOn, Constraints: orEmptyObject(it.Constraints), State: orEmptyObject(it.State), Status: it.Status, Confidence: it.Confidence, Version: it.Version,
		Governance: it.Governance, CreatedAt: formatTime(it.CreatedAt), UpdatedAt: formatTime(it.UpdatedAt),
	}
	if out.DependsOn == nil {
		out.DependsOn = []scope.ID{}
	}
	return out
}

// intentDraft is the body of POST /intents.
type intentDraft struct {
	Title       *string         `json:"title"`
	Description string          `json:"description"`
	Constraints json.RawMessage `json:"constraints"` // an object, or a list in older clients
	State       object          `json:"state"`
	CreatedBy   string          `json:"created_by"`
	Parent      *scope.ID       `json:"parent_intent_id"`
	DependsOn   []scope.ID      `json:"depends_on"`
	Governance  object          `json:"governance_policy"`
	Status      intents.Status  `json:"status"`
	Confidence  float64         `json:"confidence"`
}

// createIntent handles POST /intents. New intents are open to everybody that the server admits.
func (h *Handler) createIntent(w http.ResponseWriter, r *http.Request, who caller.Caller) (int, any, error) {
	var body intentDraft
	if err := h.readBody(w, r, &body); err != nil {
		return 0, nil, err
	}
	if body.Title == nil {
		return 0, nil, errRequired("title")
	}
	by, err := h.actAs(r.Context(), who, "created_by", body.CreatedBy)
	if err != nil {
		return 0, nil, err
	}
	d := intents.NewIntent{
		Title: *body.Title, Description: body.Description, DependsOn: body.DependsOn, State: body.State, Governance: body.Governance,
		Status: body.Status, Confidence: body.Confidence, Access: scope.Access{Everybody: true},
	}
	if string(body.Constraints) != "null" {
		d.Constraints = body.Constraints
	}
	if body.Parent != nil {
		d.Parent = *body.Parent
	}
	if d.IdempotencyKey, err = rest.IdempotencyKey(r); err != nil {
		return 0, nil, err
	}
	it, err := h.deps.Intents.Create(r.Context(), channelCaller(by), d)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, intentOf(it), nil
}

// listIntents handles GET /intents: the newest first.
func (h *Handler) listIntents(_ http.ResponseWriter, r *http.Request, who caller.Caller) (int, any, error) {
	limit, err := intParam(r, "limit", DefaultIntents, 1, MaxIntents)
	if err != nil {
		return 0, nil, err
	}
	skip, err := intParam(r, "offset", 0, 0, MaxSkipped)
	if err != nil {
		return 0, nil, err
	}
	out, bytes := struct {
		Intents []*wireIntent `json:"intents"`
	}{[]*wireIntent{}}, 0
	q := intents.ListQuery{Status: intents.Status(r.URL.Query().Get("status")), Backward: true, PageSize: channels.MaxPage}
	for len(out.Intents) < limit && bytes <= MaxListBytes {
		page, next, err := h.deps.Intents.List(r.Context(), channelCaller(who), q)
		if err != nil {
			return 0, nil, err
		}
		for _, it := range page {
			if skip > 0 {
				skip--
				continue
			}
			if len(out.Intents) == limit || bytes > MaxListBytes {
				break
			}
			bytes += len(it.State) + len(it.Constraints) + len(it.Governance) + len(it.Description)
			out.Intents = append(out.Intents, intentOf(it))
		}
		if q.Behind = next; next == "" {
			break
		}
	}
	return http.StatusOK, out, nil
}

// getIntent handles GET /intents/{id}.
func (h *Handler) getIntent(_ http.ResponseWriter, r *http.Request, who caller.Caller) (int, any, error) {
	it, err := h.deps.Intents.Get(r.Context(), channelCaller(who), scope.ID(r.PathValue("id")))
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, intentOf(it), nil
}

// patchState handles POST /intents/{id}/state: patches, or an object that is merged.
func (h *Handler) patchState(w http.ResponseWriter, r *http.Request, who caller.Caller) (int, any, error) {
	version, err := ifMatch(r)
	if err != nil {
		return 0, nil, err
	}
	var body struct {
		Patches []intents.Patch `json:"patches"`
		State   object          `json:"state"`
	}
	if err := h.readBody(w, r, &body); err != nil {
		return 0, nil, err
	}
	if body.State != nil {
		body.Patches = append(body.Patches, intents.Patch{Op: intents.Merge, Value: body.State.orEmpty()})
	}
	if body.Patches == nil {
		return 0, nil, errRequired("patches")
	}
	it, err := h.deps.Intents.PatchState(r.Context(), channelCaller(who), scope.ID(r.PathValue("id")), version, body.Patches)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, intentOf(it), nil
}

// setStatus handles POST /intents/{id}/status.
func (h *Handler) setStatus(w http.ResponseWriter, r *http.Request, who caller.Caller) (int, any, error) {
	version, err := ifMatch(r)
	if err != nil {
		return 0, nil, err
	}
	var body struct {
		Status *intents.Status `json:"status"`
		Reason string          `json:"reason"`
	}
	if err := h.readBody(w, r, &body); err != nil {
		return 0, nil, err
	}
	if body.Status == nil {
		return 0, nil, errRequired("status")
	}
	it, err := h.deps.Intents.SetStatus(r.Context(), channelCaller(who), scope.ID(r.PathValue("id")), version, *body.Status, body.Reason)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, intentOf(it), nil
}
