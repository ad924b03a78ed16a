package intents

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"koine/channels"
	"koine/channels/scope"
	"koine/internal/agents"
	"koine/internal/systemgraph"
	"koine/kg"
)

// Limits of portfolios.
const (
	MaxPortfolios         = 10_000 // of the server
	MaxCreatorPortfolios  = 1000   // that an agent created
	MaxPortfolioIntents   = 1000   // that are listed of a portfolio
	MaxIntentPortfolios   = 100    // that an intent is in
	MaxPortfolioBytes     = 64 << 10
	MaxPortfolioNameRunes = 255
	DefaultPortfolioPage  = 50
	MaxPortfolioPage      = 200
	MaxPortfolioPageBytes = 4 << 20 // texts and JSON of a page
)

// PortfolioStatus is the status of a portfolio, which its creator sets.
type PortfolioStatus string

// States of portfolios.
const (
	PortfolioActive    PortfolioStatus = "active"
	PortfolioCompleted PortfolioStatus = "completed"
	PortfolioAbandoned PortfolioStatus = "abandoned"
)

// Portfolio is a named collection of intents. Every authenticated caller may read it; which
// intents are in it is part of each intent, and read by the readers of the intent.
type Portfolio struct {
	ID                   string // a UUID
	Name, Description    string
	Status               PortfolioStatus
	Metadata, Governance json.RawMessage // JSON objects, or nil
	CreatedBy            kg.AgentID
	CreatedAt, UpdatedAt time.Time
}

// Membership is the place of an intent in a portfolio.
type Membership struct {
	Portfolio string
	Intent    scope.ID
	Role      string
	Priority  int64
	AddedBy   kg.AgentID
	AddedAt   time.Time
}

// PortfoliosGraph holds the records of all portfolios. Every authenticated caller may read
// it.
var PortfoliosGraph = kg.IRI(kg.OwnGraphPrefix + "portfolios")

const (
	portfoliosPart   = "portfolios" // of an intent
	portfolioPrefix  = "urn:koine:portfolio:"
	portfolioClass   = "Portfolio"
	membershipPrefix = "urn:koine:portfolio-membership:"
)

// Roles of intents in portfolios.
var membershipRoles = []string{"primary", "member", "dependency"}

// Size returns the bytes of the texts and the JSON of the portfolio.
func (p *Portfolio) Size() int {
	return len(p.Name) + len(p.Description) + len(p.Metadata) + len(p.Governance)
}

// Entity returns the portfolio as an entity of the graph.
func (p *Portfolio) Entity() kg.Term { return kg.IRI(portfolioPrefix + p.ID) }

// Entity returns the membership as an entity of the graph.
func (m *Membership) Entity() kg.Term {
	return kg.IRI(membershipPrefix + m.Portfolio + ":" + string(m.Intent))
}

func (p *Portfolio) toRecord() systemgraph.Record {
	return systemgraph.Record{
		systemgraph.Type: systemgraph.Class(portfolioClass), "portfolioName": systemgraph.Values(p.Name), "portfolioDescription": systemgraph.Text(p.Description),
		"portfolioStatus": systemgraph.Values(string(p.Status)), "portfolioMetadata": systemgraph.JSON(p.Metadata), "portfolioGovernance": systemgraph.JSON(p.Governance),
		"portfolioCreatedBy": {kg.IRI(string(p.CreatedBy))}, "portfolioCreatedAt": {kg.DateTime(p.CreatedAt)}, "portfolioUpdatedAt": {kg.DateTime(p.UpdatedAt)},
	}
}

func portfolioOf(subject kg.Term, r systemgraph.Record) *Portfolio {
	return &Portfolio{
		ID: strings.TrimPrefix(subject.Value(), portfolioPrefix), Name: r.Text("portfolioName"), Description: r.Text("portfolioDescription"),
		Status: PortfolioStatus(r.Text("portfolioStatus")), Metadata: r.JSON("portfolioMetadata"), Governance: r.JSON("portfolioGovernance"),
		CreatedBy: kg.AgentID(r.Text("portfolioCreatedBy")), CreatedAt: r.Time("portfolioCreatedAt"), UpdatedAt: r.Time("portfolioUpdatedAt"),
	}
}

func (m *Membership) toRecord() systemgraph.Record {
	return systemgraph.Record{
		"inPortfolio": {kg.IRI(portfolioPrefix + m.Portfolio)}, "membershipRole": systemgraph.Values(m.Role), "membershipPriority": {kg.Integer(m.Priority)},
		"membershipAddedBy": {kg.IRI(string(m.AddedBy))}, "membershipAddedAt": {kg.DateTime(m.AddedAt)},
	}
}

func membershipOf(intent scope.ID, r systemgraph.Record) Membership {
	return Membership{
		Portfolio: strings.TrimPrefix(r.Text("inPortfolio"), portfolioPrefix), Intent: intent, Role: r.Text("membershipRole"), Priority: r.Integer("membershipPriority"),
		AddedBy: kg.AgentID(r.Text("membershipAddedBy")), AddedAt: r.Time("membershipAddedAt"),
	}
}

// Portfolios manages portfolios. Its methods may be called concurrently.
type Portfolios struct {
	store  *kg.Store
	scopes *channels.Scopes
	bounds *bounds
}

// Create creates a portfolio of the acting agent. ID, Status, CreatedBy and the times are set
// by the call.
//
// Errors: CodeInvalid; CodeLimitExceeded above MaxPortfolios and MaxCreatorPortfolios.
func (s *Portfolios) Create(ctx context.Context, by channels.Caller, d Portfolio) (*Portfolio, error) {
	agent, err := by.ActingAgent()
	if err != nil {
		return nil, err
	}
	if d.Name == "" {
		return nil, kg.Errorf(kg.CodeInvalid, "name is empty").At("name")
	}
	if err := checkText("name", d.Name, MaxPortfolioNameRunes); err != nil {
		return nil, err
	}
	if err := checkText("description", d.Description, MaxDescriptionRunes); err != nil {
		return nil, err
	}
	for field, raw := range map[string]json.RawMessage{"metadata": d.Metadata, "governancePolicy": d.Governance} {
		if n := len(raw); n > MaxPortfolioBytes {
			return nil, kg.Errorf(kg.CodeLimitExceeded, "%s has %d bytes; the limit is %d", field, n, MaxPortfolioBytes).At(field)
		}
		if raw != nil && !json.Valid(raw) {
			return nil, kg.Errorf(kg.CodeInvalid, "%s is not JSON", field).At(field)
		}
	}
	id, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	d.ID, d.Status, d.CreatedBy = id.String(), PortfolioActive, agent
	err = systemgraph.Update(ctx, s.store, by.UpdateMeta("portfolios/create"), func(tx *kg.Tx) error {
		n, err := tx.CountOwn(PortfoliosGraph, systemgraph.Property("portfolioName"))
		if err != nil {
			return err
		}
		if n >= uint64(s.bounds.Portfolios) {
			return kg.Errorf(kg.CodeLimitExceeded, "server has the maximum of %d portfolios", s.bounds.Portfolios)
		}
		if err := s.checkShare(tx, agent); err != nil {
			return err
		}
		d.CreatedAt, d.UpdatedAt = tx.Time(), tx.Time()
		return systemgraph.WriteOver(tx, PortfoliosGraph, d.Entity(), nil, d.toRecord())
	})
	if err != nil {
		return nil, err
	}
	return &d, nil
}

// checkShare returns an error if the agent created as many portfolios as it may. Portfolios are
// kept for good, so one agent could leave none for the others.
func (s *Portfolios) checkShare(tx *kg.Tx, agent kg.AgentID) error {
	n, most := 0, s.bounds.CreatorPortfolios
	for _, err := range tx.MatchOwn(kg.Pattern{Predicate: systemgraph.Property("portfolioCreatedBy"), Object: kg.IRI(string(agent)), Graph: PortfoliosGraph}) {
		if err != nil {
			return err
		}
		if n++; n == most {
			e := kg.Errorf(kg.CodeLimitExceeded, "agent has created the maximum of %d portfolios", most)
			e.Hint = "Add intents to one of these portfolios: a portfolio has any number of them."
			return e
		}
	}
	return nil
}

var errNoPortfolio = kg.Errorf(kg.CodeNotFound, "portfolio not found").At("portfolioId")

// Get returns a portfolio.
//
// Errors: CodeNotFound.
func (s *Portfolios) Get(ctx context.Context, by channels.Caller, id string) (p *Portfolio, err error) {
	err = viewPart(ctx, s.store, by, func(snapshot *kg.Snapshot) error {
		p, err = readPortfolio(snapshot.Match, id)
		return err
	})
	return p, err
}

func readPortfolio(match systemgraph.Matcher, id string) (*Portfolio, error) {
	subject := (&Portfolio{ID: id}).Entity()
	r, err := systemgraph.Read(match, PortfoliosGraph, subject)
	if err == nil && r == nil {
		err = errNoPortfolio
	}
	if err != nil {
		return nil, err
	}
	return portfolioOf(subject, r), nil
}

// List returns up to n portfolios in order of creation that follow the portfolio after (""
// for the first page), and the id after which the next page begins, "" after the last page. A
// page ends before the portfolio with which it would have more than MaxPortfolioPageBytes.
// creator, if set, excludes those of others.
func (s *Portfolios) List(ctx context.Context, by channels.Caller, creator kg.AgentID, after string, n int) (page []*Portfolio, next string, err error) {
	if n == 0 {
		n = DefaultPortfolioPage
	}
	n = min(max(n, 1), MaxPortfolioPage)
	err = viewPart(ctx, s.store, by, func(snapshot *kg.Snapshot) error {
		pattern := kg.Pattern{Predicate: systemgraph.Property("portfolioCreatedBy"), Graph: PortfoliosGraph}
		if creator != "" {
			pattern.Object = kg.IRI(string(creator))
		}
		subjects, err := systemgraph.Subjects(snapshot.Match, pattern)
		if err != nil {
			return err
		}
		slices.SortFunc(subjects, func(a, b kg.Term) int { return strings.Compare(a.Value(), b.Value()) }) // UUIDs of version 7
		from, bytes := 0, 0
		if after != "" {
			from, _ = slices.BinarySearchFunc(subjects, portfolioPrefix+after+"\x00", func(t kg.Term, id string) int { return strings.Compare(t.Value(), id) })
		}
		for _, subject := range subjects[from:] {
			if len(page) == n {
				next = page[n-1].ID
				return nil
			}
			r, err := systemgraph.Read(snapshot.Match, PortfoliosGraph, subject)
			if err != nil {
				return err
			}
			p := portfolioOf(subject, r)
			if bytes += p.Size(); bytes > s.bounds.PortfolioPageBytes && len(page) > 0 {
				next = page[len(page)-1].ID
				return nil
			}
			page = append(page, p)
		}
		return nil
	})
	return page, next, err
}

// Count counts the portfolios of List, on all pages.
func (s *Portfolios) Count(ctx context.Context, by channels.Caller, creator kg.AgentID) (n int64, err error) {
	pattern := kg.Pattern{Predicate: systemgraph.Property("portfolioCreatedBy"), Graph: PortfoliosGraph}
	if creator != "" {
		pattern.Object = kg.IRI(string(creator))
	}
	err = viewPart(ctx, s.store, by, func(snapshot *kg.Snapshot) error {
		count, err := snapshot.Count(pattern)
		n = int64(count)
		return err
	})
	return n, err
}

// SetStatus sets the status of a portfolio. It requires its creator.
//
// Errors: CodeNotFound; CodePermissionDenied; CodeInvalid.
func (s *Portfolios) SetStatus(ctx context.Context, by channels.Caller, id string, status PortfolioStatus) (p *Portfolio, err error) {
	agent, err := by.ActingAgent()
	if err != nil {
		return nil, err
	}
	if !slices.Contains([]PortfolioStatus{PortfolioActive, PortfolioCompleted, PortfolioAbandoned}, status) {
		return nil, kg.Errorf(kg.CodeInvalid, "status must be active, completed or abandoned, not %.60q", status).At("status")
	}
	err = systemgraph.Update(ctx, s.store, by.UpdateMeta("portfolios/setStatus"), func(tx *kg.Tx) error {
		if p, err = readPortfolio(tx.MatchOwn, id); err != nil {
			return err
		}
		if p.CreatedBy != agent {
			return kg.Errorf(kg.CodePermissionDenied, "only the creator of the portfolio can do this")
		}
		p.Status, p.UpdatedAt = status, tx.Time()
		return systemgraph.Write(tx, PortfoliosGraph, p.Entity(), p.toRecord())
	})
	return p, err
}

// AddIntent adds an intent to a portfolio, or changes its role and priority there. It
// requires the level scope.Write in the intent. role is primary, member or dependency;
// member if "".
//
// Errors: CodeNotFound for the portfolio; CodeInvalid; CodeLimitExceeded above
// MaxIntentPortfolios; those of channels.Scopes.Change.
func (s *Portfolios) AddIntent(ctx context.Context, by channels.Caller, portfolio string, intent scope.ID, role string, priority int64) (*Membership, error) {
	agent, err := by.ActingAgent()
	if err != nil {
		return nil, err
	}
	if role == "" {
		role = "member"
	}
	if !slices.Contains(membershipRoles, role) {
		return nil, kg.Errorf(kg.CodeInvalid, "role must be primary, member or dependency, not %.60q", role).At("role")
	}
	m := &Membership{Portfolio: portfolio, Intent: intent, Role: role, Priority: priority, AddedBy: agent}
	_, err = s.scopes.Change(ctx, by, intent, scope.Write, "portfolios/addIntent", func(tx *kg.Tx, _ *scope.Scope) error {
		if _, err := readPortfolio(tx.MatchOwn, portfolio); err != nil {
			return err
		}
		graph := intent.PartGraph(portfoliosPart)
		was, err := systemgraph.Read(tx.MatchOwn, graph, m.Entity())
		if err != nil {
			return err
		}
		if m.AddedAt = tx.Time(); was != nil {
			old := membershipOf(intent, was)
			m.AddedAt, m.AddedBy = old.AddedAt, old.AddedBy
		} else if n, err := tx.CountOwn(graph, systemgraph.Property("inPortfolio")); err != nil {
			return err
		} else if n >= uint64(s.bounds.IntentPortfolios) {
			return kg.Errorf(kg.CodeLimitExceeded, "intent is in the maximum of %d portfolios", s.bounds.IntentPortfolios)
		}
		return systemgraph.WriteOver(tx, graph, m.Entity(), was, m.toRecord())
	})
	if err != nil {
		return nil, err
	}
	return m, nil
}

// RemoveIntent takes an intent out of a portfolio. It requires the level scope.Write in the
// intent.
//
// Errors: CodeNotFound if it is not in the portfolio; those of channels.Scopes.Change.
func (s *Portfolios) RemoveIntent(ctx context.Context, by channels.Caller, portfolio string, intent scope.ID) error {
	m := &Membership{Portfolio: portfolio, Intent: intent}
	_, err := s.scopes.Change(ctx, by, intent, scope.Write, "portfolios/removeIntent", func(tx *kg.Tx, _ *scope.Scope) error {
		r, err := systemgraph.Read(tx.MatchOwn, intent.PartGraph(portfoliosPart), m.Entity())
		if err != nil {
			return err
		}
		if r == nil {
			return kg.Errorf(kg.CodeNotFound, "intent is not in the portfolio").At("intentId")
		}
		return systemgraph.Remove(tx, kg.Pattern{Subject: m.Entity(), Graph: intent.PartGraph(portfoliosPart)})
	})
	return err
}

// Intents returns the intents of a portfolio that the caller may read, by priority, greatest
// first, then by the time at which they were added; at most MaxPortfolioIntents.
//
// Errors: CodeNotFound.
func (s *Portfolios) Intents(ctx context.Context, by channels.Caller, portfolio string) (list []Membership, err error) {
	err = viewPart(ctx, s.store, by, func(snapshot *kg.Snapshot) error {
		p, err := readPortfolio(snapshot.Match, portfolio)
		if err != nil {
			return err
		}
		list, err = s.readMemberships(snapshot, kg.Pattern{Predicate: systemgraph.Property("inPortfolio"), Object: p.Entity()})
		return err
	})
	slices.SortFunc(list, func(a, b Membership) int {
		if a.Priority != b.Priority {
			return int(max(-1, min(1, b.Priority-a.Priority)))
		}
		if c := a.AddedAt.Compare(b.AddedAt); c != 0 {
			return c
		}
		return strings.Compare(string(a.Intent), string(b.Intent))
	})
	return list, err
}

// Of returns the places of an intent in portfolios.
//
// Errors: CodeScopeNotFound.
func (s *Portfolios) Of(ctx context.Context, by channels.Caller, intent scope.ID) (list []Membership, err error) {
	if _, err := s.scopes.Get(ctx, by, intent); err != nil {
		return nil, err
	}
	err = viewPart(ctx, s.store, by, func(snapshot *kg.Snapshot) error {
		list, err = s.readMemberships(snapshot, kg.Pattern{Predicate: systemgraph.Property("inPortfolio"), Graph: intent.PartGraph(portfoliosPart)})
		return err
	})
	return list, err
}

// readMemberships reads up to MaxPortfolioIntents memberships with a matching statement inPortfolio. The snapshot
// shows those of intents that its reader may read.
func (s *Portfolios) readMemberships(snapshot *kg.Snapshot, p kg.Pattern) (list []Membership, err error) {
	for st, err := range snapshot.Match(p) {
		if err != nil {
			return nil, err
		}
		intent, _ := scope.OfGraph(st.Graph)
		if intent == "" || st.Graph != intent.PartGraph(portfoliosPart) {
			continue
		}
		r, err := systemgraph.Read(snapshot.Match, st.Graph, st.Subject)
		if err != nil {
			return nil, err
		}
		if list = append(list, membershipOf(intent, r)); len(list) == s.bounds.PortfolioIntents {
			break
		}
	}
	return list, nil
}

// bareName returns the name of an agent as events have it, without the scheme.
func bareName(id kg.AgentID) string { return agents.ShortID(id) }
