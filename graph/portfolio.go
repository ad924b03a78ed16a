package graph

import (
	"context"
	"encoding/json"
	"time"

	"koine/graph/internal/knowledge"
	"koine/internal/intents"
	"koine/kg"
)

// Portfolio is a portfolio as the caller sees it.
type Portfolio struct{ record *intents.Portfolio }

func sizeOfPortfolio(p *intents.Portfolio) int {
	return len(p.Description) + len(p.Metadata) + len(p.Governance)
}

// readPortfolio answers Query.portfolio.
func readPortfolio(ctx context.Context, id string) (*Portfolio, error) {
	r := runOf(ctx)
	service, by, err := r.intentService()
	if err != nil {
		return nil, err
	}
	p, err := service.Portfolios().Get(ctx, by, id)
	if err != nil {
		return nil, withFieldNames(err, map[string]string{"portfolioId": "id"})
	}
	return &Portfolio{p}, r.chargeBytes(sizeOfPortfolio(p))
}

// Portfolio answers Query.portfolio.
func (*queryRoot) Portfolio(ctx context.Context, id string) (*Portfolio, error) {
	return readPortfolio(ctx, id)
}

// Portfolios answers Query.portfolios.
func (*queryRoot) Portfolios(ctx context.Context, creatorID *string, first *int, after *Cursor) (*PortfolioConnection, error) {
	r := runOf(ctx)
	service, by, err := r.intentService()
	if err != nil {
		return nil, err
	}
	creator := kg.AgentID("")
	if creatorID != nil {
		creator = kg.CanonicalAgent(*creatorID)
	}
	p, err := r.openDomainRange("portfolios", knowledge.PageArgs{First: first, After: after}, intents.MaxPortfolioPage, creator)
	if err != nil {
		return nil, err
	}
	found, next, err := service.Portfolios().List(ctx, by, creator, p.key, p.size)
	if err == nil {
		err = chargeAll(r, found, func(p **intents.Portfolio) int { return sizeOfPortfolio(*p) })
	}
	if err != nil {
		return nil, atArgument(err)
	}
	page := newListPage(p, found, next != "", "", func(p **intents.Portfolio) string { return (*p).ID }, func(p **intents.Portfolio) Portfolio { return Portfolio{*p} })
	page.count = func(context.Context) (int64, bool, error) {
		n, err := service.Portfolios().Count(ctx, by, creator)
		return n, true, err
	}
	return page, nil
}

// PortfolioID is the id of the portfolio.
func (p *Portfolio) PortfolioID() string { return p.record.ID }

// Name is the name of the portfolio.
func (p *Portfolio) Name() string { return p.record.Name }

// Description is nil if the portfolio has none.
func (p *Portfolio) Description() *string { return nilIfEmpty(p.record.Description) }

// Status is the status of the portfolio.
func (p *Portfolio) Status() PortfolioStatus { return PortfolioStatus(inSchema(p.record.Status)) }

// Metadata is nil if the portfolio has none.
func (p *Portfolio) Metadata() json.RawMessage { return p.record.Metadata }

// Governance is nil if the portfolio has none.
func (p *Portfolio) Governance() json.RawMessage { return p.record.Governance }

// Intents reads the intents of the portfolio that the caller may see.
func (p *Portfolio) Intents(ctx context.Context) ([]PortfolioMembership, error) {
	service, by, err := runOf(ctx).intentService()
	if err != nil {
		return nil, err
	}
	return memberships(service.Portfolios().Intents(ctx, by, p.record.ID))
}

// CreatedBy is the agent that created the portfolio.
func (p *Portfolio) CreatedBy() *Agent { return agentOf(p.record.CreatedBy) }

// CreatedByID is the id of that agent.
func (p *Portfolio) CreatedByID() string { return string(p.record.CreatedBy) }

// CreatedAt is when the portfolio was created.
func (p *Portfolio) CreatedAt() time.Time { return p.record.CreatedAt }

// UpdatedAt is when the portfolio last changed.
func (p *Portfolio) UpdatedAt() time.Time { return p.record.UpdatedAt }

// PortfolioMembership is the place of an intent in a portfolio.
type PortfolioMembership struct{ record intents.Membership }

func memberships(list []intents.Membership, err error) ([]PortfolioMembership, error) {
	out := make([]PortfolioMembership, len(list))
	for i, m := range list {
		out[i] = PortfolioMembership{m}
	}
	return out, err
}

// PortfolioID is the id of the portfolio.
func (m *PortfolioMembership) PortfolioID() string { return m.record.Portfolio }

// Portfolio is the portfolio.
func (m *PortfolioMembership) Portfolio(ctx context.Context) (*Portfolio, error) {
	return unlessGone(readPortfolio(ctx, m.record.Portfolio))
}

// IntentID is the id of the intent.
func (m *PortfolioMembership) IntentID() string { return string(m.record.Intent) }

// Intent is the intent.
func (m *PortfolioMembership) Intent(ctx context.Context) (*Intent, error) {
	return intentIfAny(ctx, m.record.Intent)
}

// Role is primary, member or dependency.
func (m *PortfolioMembership) Role() string { return m.record.Role }

// Priority orders the intents of a portfolio.
func (m *PortfolioMembership) Priority() int64 { return m.record.Priority }

// AddedBy is the agent that added the intent.
func (m *PortfolioMembership) AddedBy() *Agent { return agentOf(m.record.AddedBy) }

// AddedAt is when the intent was added.
func (m *PortfolioMembership) AddedAt() time.Time { return m.record.AddedAt }

// Portfolios reads the portfolios that the intent is in.
func (it *Intent) Portfolios(ctx context.Context) ([]PortfolioMembership, error) {
	service, by, err := runOf(ctx).intentService()
	if err != nil {
		return nil, err
	}
	return memberships(service.Portfolios().Of(ctx, by, it.record.ID))
}
