package agents

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"

	"koine/internal/caller"
	"koine/internal/systemgraph"
	"koine/kg"
)

// Directory registers agents that can be asked, and finds them. Its methods may be
// called concurrently.
type Directory struct {
	store   systemgraph.Store
	options DirectoryOptions
}

// DirectoryOptions configures a Directory. The zero value is valid.
type DirectoryOptions struct {
	// Self is the record of koine itself, listed like other agents; nil omits it.
	Self *Record
	// MaxAgents is the maximum number of agents with a record; 0 means the constant
	// MaxAgents. An agent with a record can always register.
	MaxAgents int
	// Presence returns the presence of an agent for its card. May be nil.
	Presence func(kg.AgentID) string
	// DeregisterTx runs in the commit that deregisters an agent.
	DeregisterTx func(*kg.Tx, kg.AgentID) error
	// BeforeDeregister runs before that commit. It must be idempotent. Deregister
	// returns its error.
	BeforeDeregister func(context.Context, kg.AgentID) error
	// AfterDeregister runs after that commit.
	AfterDeregister func(kg.AgentID)
}

// NewDirectory returns a directory of the records in the store.
func NewDirectory(store systemgraph.Store, o DirectoryOptions) *Directory {
	o.MaxAgents = cmp.Or(o.MaxAgents, MaxAgents)
	if o.Presence == nil {
		o.Presence = func(kg.AgentID) string { return "" }
	}
	if o.DeregisterTx == nil {
		o.DeregisterTx = func(*kg.Tx, kg.AgentID) error { return nil }
	}
	if o.BeforeDeregister == nil {
		o.BeforeDeregister = func(context.Context, kg.AgentID) error { return nil }
	}
	if o.AfterDeregister == nil {
		o.AfterDeregister = func(kg.AgentID) {}
	}
	return &Directory{store, o}
}

// Page sizes.
const (
	DefaultPage = 50
	MaxPage     = 100
)

// Caller is an alias of caller.Caller, for callers without one in a context.
type Caller = caller.Caller

// Query selects agents.
type Query struct {
	// Capability is a capability of the agent, or the id or a tag of one of its skills;
	// "" selects all.
	Capability string
	// After is the last id of the previous page. First is the page size, clamped to
	// 1…MaxPage; 0 means DefaultPage.
	After kg.AgentID
	First int
}

// Get returns a registered agent.
//
// Errors: CodeAgentNotFound.
func (d *Directory) Get(ctx context.Context, id kg.AgentID) (*Record, error) {
	if id = kg.CanonicalAgent(string(id)); id == kg.System && d.options.Self != nil {
		return d.options.Self, nil
	}
	if id.Valid() != nil {
		return nil, errNoAgent()
	}
	r, err := NewService(d.store).Get(ctx, id)
	if err == nil && (r == nil || r.Registration == nil) {
		err = errNoAgent()
	}
	return r, err
}

func errNoAgent() *kg.Error {
	return kg.Errorf(kg.CodeAgentNotFound, "there is no such agent").At("id")
}

// Find returns registered agents sorted by id, and the last id of the page if there are
// more.
func (d *Directory) Find(ctx context.Context, q Query) (page []Record, last kg.AgentID, err error) {
	snapshot, err := NewService(d.store).openView(ctx)
	if err != nil {
		return nil, "", err
	}
	defer snapshot.Close()
	ids, err := d.findIDs(snapshot, q)
	if err != nil {
		return nil, "", err
	}
	first := min(max(cmp.Or(q.First, DefaultPage), 1), MaxPage)
	if len(ids) > first {
		ids = ids[:first]
		last = ids[first-1]
	}
	for _, id := range ids {
		if id == kg.System {
			page = append(page, *d.options.Self)
			continue
		}
		r, err := systemgraph.Read(snapshot.Match, Graph, subjectOf(id))
		if err != nil {
			return nil, "", err
		}
		page = append(page, *recordOf(subjectOf(id), r))
	}
	return page, last, nil
}

// IDs returns the ids of the registered agents with a capability, sorted.
func (d *Directory) IDs(ctx context.Context, capability string) ([]kg.AgentID, error) {
	snapshot, err := NewService(d.store).openView(ctx)
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	return d.findIDs(snapshot, Query{Capability: capability})
}

// findIDs returns the matching ids after Query.After, sorted.
func (d *Directory) findIDs(snapshot *kg.Snapshot, q Query) (ids []kg.AgentID, err error) {
	patterns := []kg.Pattern{{Predicate: Registered, Graph: Graph}}
	if q.Capability != "" {
		tag := kg.String(q.Capability)
		patterns = []kg.Pattern{
			{Predicate: systemgraph.Property(propCapability), Object: tag, Graph: Graph}, {Predicate: systemgraph.Property(propSkillTag), Object: tag, Graph: Graph},
		}
	}
	for _, p := range patterns {
		subjects, err := systemgraph.Subjects(snapshot.Match, p)
		if err != nil {
			return nil, err
		}
		for _, s := range subjects {
			ids = append(ids, kg.AgentID(s.Value()))
		}
	}
	if self := d.options.Self; self != nil && (q.Capability == "" || self.Registration.Can(q.Capability)) {
		ids = append(ids, kg.System)
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	if q.After != "" {
		at, found := slices.BinarySearch(ids, kg.CanonicalAgent(string(q.After)))
		if found {
			at++
		}
		ids = ids[at:]
	}
	return ids, nil
}

// Register registers an agent, or replaces its registration. It requires the agent, a
// principal that may act for it, its owner or an administrator. Only administrators set
// a status. An existing owner is replaced only by itself or an administrator.
//
// Errors: CodeInvalid; CodeLimitExceeded; CodePermissionDenied.
func (d *Directory) Register(ctx context.Context, by caller.Caller, record Record) (Record, error) {
	return d.writeRecord(ctx, by, record.ID, "agents/register", func(known *Record) (Record, error) {
		if record.Registration == nil {
			record.Registration = &Registration{}
		}
		return record, nil
	})
}

// Update changes the registration of an agent: change is a JSON object whose members
// are merged into the card; null removes a member. It requires the permissions of
// Register.
//
// Errors: those of Register; CodeAgentNotFound.
func (d *Directory) Update(ctx context.Context, by caller.Caller, id kg.AgentID, change []byte) (Record, error) {
	return d.writeRecord(ctx, by, id, "agents/update", func(known *Record) (Record, error) {
		if known == nil || known.Registration == nil {
			return Record{}, errNoAgent()
		}
		return mergeCard(known.toCard(""), change)
	})
}

// CreateTx creates the record and the registration of a new agent, within the update of a
// package that gives it a credential, which decides who may do so.
//
// Errors: CodeInvalid; CodeLimitExceeded; CodePermissionDenied for an agent that has a
// record.
func (d *Directory) CreateTx(tx *kg.Tx, record Record) (now Record, err error) {
	id, err := parseRegistrable(record.ID)
	if err != nil {
		return now, err
	}
	found, err := systemgraph.Read(tx.MatchOwn, Graph, subjectOf(id))
	if err != nil {
		return now, err
	}
	if recordOf(subjectOf(id), found) != nil {
		return now, kg.Errorf(kg.CodePermissionDenied, "agent %s exists already", id).At("id")
	}
	if record.Registration == nil {
		record.Registration = &Registration{}
	}
	by := caller.Caller{Principal: kg.Principal{ID: id}} // the agent itself: it sets no status
	r, err := d.buildRecord(tx, by, id, nil, &record)
	if err != nil {
		return now, err
	}
	if len(record.Roles) > 0 {
		r[propRole] = systemgraph.Values(sortedUnique(record.Roles)...)
	}
	if err := systemgraph.Write(tx, Graph, subjectOf(id), r); err != nil {
		return now, err
	}
	if found, err = systemgraph.Read(tx.MatchOwn, Graph, subjectOf(id)); err != nil {
		return now, err
	}
	now = *recordOf(subjectOf(id), found)
	now.NewlyRegistered = true
	return now, nil
}

// writeRecord replaces the record of an agent by the result of make.
func (d *Directory) writeRecord(ctx context.Context, by caller.Caller, id kg.AgentID, method string, make func(known *Record) (Record, error)) (now Record, err error) {
	id, err = parseRegistrable(id)
	if err != nil {
		return now, err
	}
	err = d.updateAuthorized(ctx, by, id, method, func(tx *kg.Tx, known *Record) error {
		record, err := make(known)
		if err != nil {
			return err
		}
		if record.ID != "" && record.ID != id {
			return kg.Errorf(kg.CodeInvalid, "is the id of another agent").At("id")
		}
		r, err := d.buildRecord(tx, by, id, known, &record)
		if err != nil {
			return err
		}
		if err := systemgraph.Write(tx, Graph, subjectOf(id), r); err != nil {
			return err
		}
		found, err := systemgraph.Read(tx.MatchOwn, Graph, subjectOf(id))
		if err == nil {
			now = *recordOf(subjectOf(id), found)
			now.NewlyRegistered = known == nil || known.Registration == nil
		}
		return err
	})
	return now, err
}

// parseRegistrable returns the canonical id of an agent that can register.
func parseRegistrable(id kg.AgentID) (kg.AgentID, error) {
	id, err := caller.ParseAgent(string(id))
	switch {
	case err != nil:
		return "", kg.AsError(err).At("id")
	case id == kg.System || id == kg.Anonymous:
		return "", kg.Errorf(kg.CodePermissionDenied, "%s cannot be registered", id).At("id")
	}
	return id, nil
}

// updateAuthorized makes an update of an agent if the caller may manage it. known is
// nil if there is no record.
func (d *Directory) updateAuthorized(ctx context.Context, by caller.Caller, id kg.AgentID, method string, do func(tx *kg.Tx, known *Record) error) error {
	agent, err := by.Agent()
	if err != nil {
		return err
	}
	m := kg.Meta{Principal: by.Principal, Actor: by.Actor, Method: method}
	return systemgraph.Update(ctx, d.store, m, func(tx *kg.Tx) error {
		found, err := systemgraph.Read(tx.MatchOwn, Graph, subjectOf(id))
		if err != nil {
			return err
		}
		known := recordOf(subjectOf(id), found)
		if !by.Principal.MayActFor(id) && !by.Principal.IsAdmin() && (known == nil || known.Owner != agent) {
			return kg.Errorf(kg.CodePermissionDenied, "only the agent, its owner and administrators can register it").At("id")
		}
		return do(tx, known)
	})
}

// buildRecord returns the properties that the record should have.
func (d *Directory) buildRecord(tx *kg.Tx, by caller.Caller, id kg.AgentID, known, record *Record) (systemgraph.Record, error) {
	r, err := record.Registration.toRecord()
	if err != nil {
		return nil, err
	}
	if known == nil {
		if err := tx.CheckAgent(id); err != nil {
			return nil, kg.AsError(err).At("id")
		}
		if err := d.checkCapacity(tx); err != nil {
			return nil, err
		}
		r[systemgraph.Type], r[propStatus], r[propSince] = systemgraph.Class(agentClass), systemgraph.Values(string(Active)), []kg.Term{kg.DateTime(tx.Time())}
		known = &Record{Status: Active}
	}
	change := Change{Name: &record.Name}
	if record.Owner != known.Owner {
		agent, _ := by.Agent() // checked before
		if known.Owner != "" && known.Owner != agent && !by.Principal.IsAdmin() {
			if record.Owner != "" {
				return nil, kg.Errorf(kg.CodePermissionDenied, "only the owner and administrators can change the owner").At("owner")
			}
		} else {
			change.Owner = &record.Owner
		}
	}
	if record.Status != "" && record.Status != known.Status {
		if !by.Principal.IsAdmin() {
			return nil, kg.Errorf(kg.CodePermissionDenied, "only administrators can change the status").At("status")
		}
		if record.Status == Suspended && by.Principal.ID == id {
			return nil, kg.Errorf(kg.CodeInvalid, "caller cannot suspend itself").At("status")
		}
		change.Status = &record.Status
	}
	more, err := change.toRecord()
	if err != nil {
		return nil, err
	}
	maps.Copy(r, more)
	now := []kg.Term{kg.DateTime(tx.Time())}
	if known.Registration == nil {
		r[propRegistered] = now
		return r, nil
	}
	stands, err := systemgraph.Read(tx.MatchOwn, Graph, subjectOf(id))
	if err == nil && systemgraph.WouldChange(stands, r) { // a repeated registration changes nothing
		r[propReregistered] = now
	}
	return r, err
}

// checkCapacity returns an error if no further agent can have a record.
func (d *Directory) checkCapacity(tx *kg.Tx) error {
	n := 0
	for _, err := range tx.MatchOwn(kg.Pattern{Predicate: kg.IRI(kg.RDFType), Object: Class, Graph: Graph}) {
		if err != nil {
			return err
		}
		if n++; n >= d.options.MaxAgents {
			return kg.Errorf(kg.CodeLimitExceeded, "server has %d agents on record, which is the limit", d.options.MaxAgents)
		}
	}
	return nil
}

// Deregister ends the registration of an agent and removes its self-description and its
// stored presence. Its id, name and status stay on record. It requires the permissions
// of Register.
//
// Errors: CodeAgentNotFound; CodePermissionDenied; those of
// DirectoryOptions.BeforeDeregister.
func (d *Directory) Deregister(ctx context.Context, by caller.Caller, id kg.AgentID) error {
	id, err := parseRegistrable(id)
	if err != nil {
		return err
	}
	registered := func(_ *kg.Tx, known *Record) error {
		if known == nil || known.Registration == nil {
			return errNoAgent()
		}
		return nil
	}
	// Check the permission first, without writing.
	if err := d.updateAuthorized(ctx, by, id, "agents/deregister", registered); err != nil {
		return err
	}
	if err := d.options.BeforeDeregister(ctx, id); err != nil {
		return err
	}
	err = d.updateAuthorized(ctx, by, id, "agents/deregister", func(tx *kg.Tx, known *Record) error {
		if err := registered(tx, known); err != nil {
			return err
		}
		if err := systemgraph.Write(tx, Graph, subjectOf(id), clearedRegistration()); err != nil {
			return err
		}
		return d.options.DeregisterTx(tx, id)
	})
	if err == nil {
		d.options.AfterDeregister(id)
	}
	return err
}

// Card returns the card of an agent (Card). Every authenticated caller may see it.
//
// Errors: CodeAgentNotFound.
func (d *Directory) Card(ctx context.Context, _ caller.Caller, id kg.AgentID) (json.RawMessage, error) {
	r, err := d.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	return d.CardOf(r), nil
}

// CardOf returns the card of a registered agent.
func (d *Directory) CardOf(r *Record) json.RawMessage {
	presence := ""
	if r.ID != kg.System {
		presence = d.options.Presence(r.ID)
	}
	return r.toCard(presence)
}

// Cards returns the cards of up to first agents after after with a capability ("" for
// any), sorted by id, and the last id if there are more.
func (d *Directory) Cards(ctx context.Context, _ caller.Caller, capability string, after kg.AgentID, first int) (cards []json.RawMessage, last kg.AgentID, err error) {
	page, last, err := d.Find(ctx, Query{Capability: capability, After: after, First: first})
	for i := range page {
		cards = append(cards, d.CardOf(&page[i]))
	}
	return cards, last, err
}
