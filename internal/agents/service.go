package agents

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"koine/internal/systemgraph"
	"koine/kg"
)

// Service reads and changes records. Its methods may be called concurrently.
type Service struct{ store systemgraph.Store }

// NewService returns a service for the records in the store.
func NewService(store systemgraph.Store) *Service { return &Service{store} }

// Limits of records.
const (
	MaxAgents    = 50_000 // above, bearers of tokens get no record
	MaxNameBytes = 256
	MaxRoles     = 100
)

// Get returns the record of an agent, or nil.
func (s *Service) Get(ctx context.Context, id kg.AgentID) (*Record, error) {
	snapshot, err := s.openView(ctx)
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	subject := subjectOf(kg.CanonicalAgent(string(id)))
	r, err := systemgraph.Read(snapshot.Match, Graph, subject)
	return recordOf(subject, r), err
}

// List returns up to first records after after, sorted by id, and whether there are
// more.
func (s *Service) List(ctx context.Context, after kg.AgentID, first int) (page []Record, more bool, err error) {
	snapshot, err := s.openView(ctx)
	if err != nil {
		return nil, false, err
	}
	defer snapshot.Close()
	subjects, err := systemgraph.Instances(snapshot.Match, Graph, agentClass)
	if err != nil {
		return nil, false, err
	}
	slices.SortFunc(subjects, kg.Term.Compare)
	for _, subject := range subjects {
		if strings.Compare(subject.Value(), string(after)) <= 0 {
			continue
		}
		if len(page) == first {
			return page, true, nil
		}
		r, err := systemgraph.Read(snapshot.Match, Graph, subject)
		if err != nil {
			return nil, false, err
		}
		page = append(page, *recordOf(subject, r))
	}
	return page, false, nil
}

// IDs returns the ids of all agents on record, sorted.
func (s *Service) IDs(ctx context.Context) ([]kg.AgentID, error) {
	snapshot, err := s.openView(ctx)
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	subjects, err := systemgraph.Instances(snapshot.Match, Graph, agentClass)
	ids := make([]kg.AgentID, len(subjects))
	for i, subject := range subjects {
		ids[i] = kg.AgentID(subject.Value())
	}
	slices.Sort(ids)
	return ids, err
}

func (s *Service) openView(ctx context.Context) (*kg.Snapshot, error) {
	return s.store.View(ctx, kg.View{Principal: kg.SystemPrincipal(), Graphs: []kg.Term{Graph}})
}

// Change is a change of a record. Nil fields are unchanged.
type Change struct {
	Name   *string
	Owner  *kg.AgentID // "" for none
	Status *Status
}

// Update changes a record. Administrators can change all of it, an agent only its own
// name. Suspending an agent ends its sessions.
func (s *Service) Update(ctx context.Context, m kg.Meta, id kg.AgentID, change Change) (now Record, err error) {
	id = kg.CanonicalAgent(string(id))
	if err := change.checkAllowed(m.Principal, id); err != nil {
		return now, err
	}
	properties, err := change.toRecord()
	if err != nil {
		return now, err
	}
	m.Justification = cmp.Or(m.Justification, "agent changed")
	err = systemgraph.Update(ctx, s.store, m, func(tx *kg.Tx) error {
		subject := subjectOf(id)
		found, err := systemgraph.Read(tx.MatchOwn, Graph, subject)
		if err != nil {
			return err
		}
		if recordOf(subject, found) == nil {
			return kg.Errorf(kg.CodeNotFound, "agent %s not found", id).At("id")
		}
		if err := systemgraph.Write(tx, Graph, subject, properties); err != nil {
			return err
		}
		if found, err = systemgraph.Read(tx.MatchOwn, Graph, subject); err == nil {
			now = *recordOf(subject, found)
		}
		return err
	})
	return now, err
}

func (c *Change) checkAllowed(p kg.Principal, id kg.AgentID) error {
	admin := p.IsAdmin()
	switch {
	case !admin && p.ID != id:
		return kg.Errorf(kg.CodePermissionDenied, "only administrators can change the records of other agents")
	case !admin && (c.Owner != nil || c.Status != nil):
		return kg.Errorf(kg.CodePermissionDenied, "agents can change only their name; ask an administrator for other changes")
	case p.ID == id && c.Status != nil && *c.Status == Suspended:
		return kg.Errorf(kg.CodeInvalid, "caller cannot suspend itself").At("status")
	}
	return nil
}

// toRecord validates the change and returns it as properties.
func (c *Change) toRecord() (systemgraph.Record, error) {
	r := systemgraph.Record{}
	if c.Name != nil {
		if len(*c.Name) > MaxNameBytes || !utf8.ValidString(*c.Name) || strings.ContainsFunc(*c.Name, unicode.IsControl) {
			return nil, kg.Errorf(kg.CodeInvalid, "name must be plain text of at most %d bytes", MaxNameBytes).At("name")
		}
		r[propName] = systemgraph.Text(*c.Name)
	}
	if c.Owner != nil {
		owner := kg.CanonicalAgent(string(*c.Owner))
		if err := owner.Valid(); owner != "" && err != nil {
			return nil, kg.AsError(err).At("owner")
		}
		r[propOwner] = systemgraph.Text(string(owner))
	}
	if c.Status != nil {
		if *c.Status != Active && *c.Status != Suspended {
			return nil, kg.Errorf(kg.CodeInvalid, "status must be %s or %s", Active, Suspended).At("status")
		}
		r[propStatus] = systemgraph.Values(string(*c.Status))
	}
	return r, nil
}
