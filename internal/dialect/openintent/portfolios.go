package openintent

import (
	"context"
	"encoding/json"
	"net/http"

	"koine/channels/scope"
	"koine/internal/caller"
	"koine/internal/intents"
	"koine/kg"
)

// wirePortfolio is a portfolio. The SDK reads the times by their second name.
type wirePortfolio struct {
	ID          string          `json:"id"`
	Name        string          `json:"name"`
	Description *string         `json:"description"`
	CreatedBy   string          `json:"created_by"`
	Status      string          `json:"status"`
	Metadata    json.RawMessage `json:"metadata"`
	Governance  json.RawMessage `json:"governance_policy"`
	CreatedAt   string          `json:"created_at"`
	UpdatedAt   string          `json:"updated_at"`
	Created     string          `json:"createdAt"`
	Updated     string          `json:"updatedAt"`
	*portfolioContent
}

// portfolioContent is the part of a portfolio that the caller may see.
type portfolioContent struct {
	Intents   []*wireIntent `json:"intents"`
	Aggregate wireAggregate `json:"aggregate_status"`
}

// wireAggregate counts the intents of a portfolio that the caller may see.
type wireAggregate struct {
	Total      int                    `json:"total"`
	ByStatus   map[intents.Status]int `json:"by_status"`
	Completion int                    `json:"completion_percentage"`
}

func portfolioOf(p *intents.Portfolio) *wirePortfolio {
	created, updated := formatTime(p.CreatedAt), formatTime(p.UpdatedAt)
	return &wirePortfolio{
		ID: p.ID, Name: p.Name, Description: orNull(p.Description), CreatedBy: bare(p.CreatedBy), Status: string(p.Status), Metadata: orEmptyObject(p.Metadata),
		Governance: orEmptyObject(p.Governance), CreatedAt: created, UpdatedAt: updated, Created: created, Updated: updated,
	}
}

// portfolioNotFound names a portfolio in the error of an absent one.
func portfolioNotFound(err error) error {
	if kg.CodeOf(err) == kg.CodeNotFound {
		return errNotFound("Portfolio")
	}
	return err
}

// createPortfolio handles POST /portfolios.
func (h *Handler) createPortfolio(w http.ResponseWriter, r *http.Request, who caller.Caller) (int, any, error) {
	var body struct {
		Name        *string `json:"name"`
		Description *string `json:"description"`
		CreatedBy   string  `json:"created_by"`
		Governance  object  `json:"governance_policy"`
		Metadata    object  `json:"metadata"`
	}
	if err := h.readBody(w, r, &body); err != nil {
		return 0, nil, err
	}
	if body.Name == nil {
		return 0, nil, errRequired("name")
	}
	by, err := h.actAs(r.Context(), who, "created_by", body.CreatedBy)
	if err != nil {
		return 0, nil, err
	}
	d := intents.Portfolio{Name: *body.Name, Governance: json.RawMessage(body.Governance), Metadata: json.RawMessage(body.Metadata)}
	if body.Description != nil {
		d.Description = *body.Description
	}
	p, err := h.deps.Intents.Portfolios().Create(r.Context(), channelCaller(by), d)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, portfolioOf(p), nil
}

// listPortfolios handles GET /portfolios: the first MaxListed, of MaxListBytes at most.
func (h *Handler) listPortfolios(_ http.ResponseWriter, r *http.Request, who caller.Caller) (int, any, error) {
	creator := kg.AgentID("")
	if name := r.URL.Query().Get("created_by"); name != "" {
		creator = kg.CanonicalAgent(name)
	}
	out, after, bytes := []*wirePortfolio{}, "", 0
	for len(out) < MaxListed {
		page, next, err := h.deps.Intents.Portfolios().List(r.Context(), channelCaller(who), creator, after, intents.MaxPortfolioPage)
		if err != nil {
			return 0, nil, err
		}
		for _, p := range page {
			if bytes += p.Size(); bytes > MaxListBytes && len(out) > 0 {
				return http.StatusOK, out, nil
			}
			out = append(out, portfolioOf(p))
		}
		if after = next; next == "" {
			break
		}
	}
	return http.StatusOK, out, nil
}

// contentOf reads the intents of a portfolio that the caller may see.
func (h *Handler) contentOf(ctx context.Context, who caller.Caller, portfolio string) (*portfolioContent, error) {
	members, err := h.deps.Intents.Portfolios().Intents(ctx, channelCaller(who), portfolio)
	if err != nil {
		return nil, portfolioNotFound(err)
	}
	out := &portfolioContent{[]*wireIntent{}, wireAggregate{ByStatus: map[intents.Status]int{}}}
	for i := range members {
		it, err := h.deps.Intents.Get(ctx, channelCaller(who), members[i].Intent)
		if kg.CodeOf(err) == kg.CodeScopeNotFound {
			continue // access was lost meanwhile
		}
		if err != nil {
			return nil, err
		}
		out.Intents = append(out.Intents, intentOf(it))
		out.Aggregate.Total++
		out.Aggregate.ByStatus[it.Status]++
	}
	if n := out.Aggregate.Total; n > 0 {
		out.Aggregate.Completion = 100 * out.Aggregate.ByStatus[intents.Completed] / n
	}
	return out, nil
}

// getPortfolio handles GET /portfolios/{portfolio}.
func (h *Handler) getPortfolio(_ http.ResponseWriter, r *http.Request, who caller.Caller) (int, any, error) {
	p, err := h.deps.Intents.Portfolios().Get(r.Context(), channelCaller(who), r.PathValue("portfolio"))
	if err != nil {
		return 0, nil, portfolioNotFound(err)
	}
	out := portfolioOf(p)
	if out.portfolioContent, err = h.contentOf(r.Context(), who, p.ID); err != nil {
		return 0, nil, err
	}
	return http.StatusOK, out, nil
}

// setPortfolioStatus handles PATCH /portfolios/{portfolio}/status.
func (h *Handler) setPortfolioStatus(w http.ResponseWriter, r *http.Request, who caller.Caller) (int, any, error) {
	var body struct {
		Status *intents.PortfolioStatus `json:"status"`
	}
	if err := h.readBody(w, r, &body); err != nil {
		return 0, nil, err
	}
	if body.Status == nil {
		return 0, nil, errRequired("status")
	}
	p, err := h.deps.Intents.Portfolios().SetStatus(r.Context(), channelCaller(who), r.PathValue("portfolio"), *body.Status)
	if err != nil {
		return 0, nil, portfolioNotFound(err)
	}
	return http.StatusOK, portfolioOf(p), nil
}

// wireMembership is the place of an intent in a portfolio.
type wireMembership struct {
	ID        string   `json:"id"`
	Portfolio string   `json:"portfolio_id"`
	IntentID  scope.ID `json:"intent_id"`
	Role      string   `json:"role"`
	Priority  int64    `json:"priority"`
	AddedAt   string   `json:"added_at"`
}

// addToPortfolio handles POST /portfolios/{portfolio}/intents.
func (h *Handler) addToPortfolio(w http.ResponseWriter, r *http.Request, who caller.Caller) (int, any, error) {
	var body struct {
		Intent   *scope.ID `json:"intent_id"`
		Role     string    `json:"role"`
		Priority int64     `json:"priority"`
	}
	if err := h.readBody(w, r, &body); err != nil {
		return 0, nil, err
	}
	if body.Intent == nil {
		return 0, nil, errRequired("intent_id")
	}
	m, err := h.deps.Intents.Portfolios().AddIntent(r.Context(), channelCaller(who), r.PathValue("portfolio"), *body.Intent, body.Role, body.Priority)
	if err != nil {
		return 0, nil, portfolioNotFound(err)
	}
	return http.StatusOK, wireMembership{m.Portfolio + "." + string(m.Intent), m.Portfolio, m.Intent, m.Role, m.Priority, formatTime(m.AddedAt)}, nil
}

// listPortfolioIntents handles GET /portfolios/{portfolio}/intents.
func (h *Handler) listPortfolioIntents(_ http.ResponseWriter, r *http.Request, who caller.Caller) (int, any, error) {
	out, err := h.contentOf(r.Context(), who, r.PathValue("portfolio"))
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, out, nil
}

// removeFromPortfolio handles DELETE /portfolios/{portfolio}/intents/{id}.
func (h *Handler) removeFromPortfolio(_ http.ResponseWriter, r *http.Request, who caller.Caller) (int, any, error) {
	err := h.deps.Intents.Portfolios().RemoveIntent(r.Context(), channelCaller(who), r.PathValue("portfolio"), scope.ID(r.PathValue("id")))
	return http.StatusNoContent, nil, err
}

// listPortfoliosOf handles GET /intents/{id}/portfolios.
func (h *Handler) listPortfoliosOf(_ http.ResponseWriter, r *http.Request, who caller.Caller) (int, any, error) {
	list, err := h.deps.Intents.Portfolios().Of(r.Context(), channelCaller(who), scope.ID(r.PathValue("id")))
	if err != nil {
		return 0, nil, err
	}
	out := []*wirePortfolio{}
	for i := range list {
		p, err := h.deps.Intents.Portfolios().Get(r.Context(), channelCaller(who), list[i].Portfolio)
		if err != nil {
			return 0, nil, err
		}
		out = append(out, portfolioOf(p))
	}
	return http.StatusOK, out, nil
}
