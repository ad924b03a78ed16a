package agents

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"koine/internal/caller"
	"koine/internal/records"
	"koine/kg"
)

// Directory is where agents that can be asked register, and where they are looked for.
// Its methods may be called concurrently.
type Directory struct {
	store   records.Store
	options DirectoryOptions
}

// DirectoryOptions are those of a Directory. The zero value is one that works.
type DirectoryOptions struct {
	// Self is koine, in the directory like others; nil leaves it out.
	Self *Record
	// MaxAgents bounds the agents with a record; 0 is MaxAgents. An agent that has one
	// may always register.
	MaxAgents int
	// Presence says whether an agent is there; nil says nothing.
	Presence func(kg.AgentID) string
	// DeregisterTx is part of the commit by which an agent deregisters.
	DeregisterTx func(*kg.Tx, kg.AgentID) error
	// BeforeDeregister is called before that: what it does may be repeated, and an error of it is one
	// of Deregister.
	BeforeDeregister func(context.Context, kg.AgentID) error
	// AfterDeregister is called behind that commit.
	AfterDeregister func(kg.AgentID)
}

// NewDirectory works on the records in the store.
func NewDirectory(store records.Store, o DirectoryOptions) *Directory {
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

// Bounds on pages.
const (
	DefaultPage = 50
	MaxPage     = 100
)

// Caller is who asks, for those who do not carry one in a context.
type Caller = caller.Caller

// Query says which agents are looked for.
type Query struct {
	// Capability is a capability of theirs, or the id or a tag of a skill; "" is any.
	Capability string
	// After is the Last of the page before. First is how many, clamped to 1…MaxPage; 0
	// is DefaultPage.
	After kg.AgentID
	First int
}

// Get gives a registered agent.
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

// Find gives registered agents in the order of their ids, and the last of them where
// there are more.
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
		r, err := records.Read(snapshot.Match, Graph, subjectOf(id))
		if err != nil {
			return nil, "", err
		}
		page = append(page, *recordOf(subjectOf(id), r))
	}
	return page, last, nil
}

// findIDs gives the ids behind that where the page begins, in order.
func (d *Directory) findIDs(snapshot *kg.Snapshot, q Query) (ids []kg.AgentID, err error) {
	patterns := []kg.Pattern{{Predicate: Registered, Graph: Graph}}
	if q.Capability != "" {
		tag := kg.String(q.Capability)
		patterns = []kg.Pattern{
			{Predicate: records.Property(propCapability), Object: tag, Graph: Graph}, {Predicate: records.Property(propSkillTag), Object: tag, Graph: Graph},
		}
	}
	for _, p := range patterns {
		for st, err := range snapshot.Match(p) {
			if err != nil {
				return nil, err
			}
			ids = append(ids, kg.AgentID(st.Subject.Value()))
		}
	}
	if self := d.options.Self; self != nil && (q.Capability == "" || self.Registration.Can(q.Capability)) {
		ids = append(ids, kg.System)
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	if q.After != "" {
		at, there := slices.BinarySearch(ids, kg.CanonicalAgent(string(q.After)))
		if there {
			at++
		}
		ids = ids[at:]
	}
	return ids, nil
}

// Register makes an agent one that can be asked, or says all that is said of it anew.
// The agent itself may, who may act for it, its owner and administrators. A status is
// theirs to say; an owner, once there is one, its own or theirs.
//
// Errors: CodeInvalid; CodeLimitExceeded; CodePermissionDenied.
func (d *Directory) Register(ctx context.Context, by caller.Caller, wish Record) (Record, error) {
	return d.writeRecord(ctx, by, wish.ID, "agents/register", func(known *Record) (Record, error) {
		if wish.Registration == nil {
			wish.Registration = &Registration{}
		}
		return wish, nil
	})
}

// Update changes some of what is said of a registered agent: the members of an object
// are put into its card, and null takes one away. Who may register it may.
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

// writeRecord makes of what is known of an agent what it is to be.
func (d *Directory) writeRecord(ctx context.Context, by caller.Caller, id kg.AgentID, method string, make func(known *Record) (Record, error)) (now Record, err error) {
	id, err = parseRegistrable(id)
	if err != nil {
		return now, err
	}
	err = d.updateAuthorized(ctx, by, id, method, func(tx *kg.Tx, known *Record) error {
		wish, err := make(known)
		if err != nil {
			return err
		}
		if wish.ID != "" && wish.ID != id {
			return kg.Errorf(kg.CodeInvalid, "is another agent's").At("id")
		}
		r, err := d.buildRecord(tx, by, id, known, &wish)
		if err != nil {
			return err
		}
		if err := records.Write(tx, Graph, subjectOf(id), r); err != nil {
			return err
		}
		found, err := records.Read(tx.MatchOwn, Graph, subjectOf(id))
		if err == nil {
			now = *recordOf(subjectOf(id), found)
			now.NewlyRegistered = known == nil || known.Registration == nil
		}
		return err
	})
	return now, err
}

// parseRegistrable is the id of an agent that may register.
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

// updateAuthorized is an update about an agent by who may make it. known is nil for one without
// a record.
func (d *Directory) updateAuthorized(ctx context.Context, by caller.Caller, id kg.AgentID, method string, do func(tx *kg.Tx, known *Record) error) error {
	agent, err := by.Agent()
	if err != nil {
		return err
	}
	m := kg.Meta{Principal: by.Principal, Actor: by.Actor, Method: method}
	return records.Update(ctx, d.store, m, func(tx *kg.Tx) error {
		found, err := records.Read(tx.MatchOwn, Graph, subjectOf(id))
		if err != nil {
			return err
		}
		known := recordOf(subjectOf(id), found)
		if !by.Principal.MayActFor(id) && !by.Principal.IsAdmin() && (known == nil || known.Owner != agent) {
			return kg.Errorf(kg.CodePermissionDenied, "an agent is registered by itself, its owner or an administrator").At("id")
		}
		return do(tx, known)
	})
}

// buildRecord are those of the record that an agent is to have.
func (d *Directory) buildRecord(tx *kg.Tx, by caller.Caller, id kg.AgentID, known, wish *Record) (records.Record, error) {
	r, err := wish.Registration.toRecord()
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
		class, of := records.Class(agentClass)
		r[class], r[propStatus], r[propSince] = of, records.Values(string(Active)), []kg.Term{kg.DateTime(tx.Time())}
		known = &Record{Status: Active}
	}
	change := Change{Name: &wish.Name}
	if wish.Owner != known.Owner {
		agent, _ := by.Agent() // asked before
		if known.Owner != "" && known.Owner != agent && !by.Principal.IsAdmin() {
			if wish.Owner != "" {
				return nil, kg.Errorf(kg.CodePermissionDenied, "another owner is for the owner or an administrator to say").At("owner")
			}
		} else {
			change.Owner = &wish.Owner
		}
	}
	if wish.Status != "" && wish.Status != known.Status {
		if !by.Principal.IsAdmin() {
			return nil, kg.Errorf(kg.CodePermissionDenied, "who is let in is for administrators to say").At("status")
		}
		if wish.Status == Suspended && by.Principal.ID == id {
			return nil, kg.Errorf(kg.CodeInvalid, "you cannot suspend yourself").At("status")
		}
		change.Status = &wish.Status
	}
	more, err := change.toRecord()
	if err != nil {
		return nil, err
	}
	for name, objects := range more {
		r[name] = objects
	}
	now := []kg.Term{kg.DateTime(tx.Time())}
	if known.Registration == nil {
		r[propRegistered] = now
		return r, nil
	}
	stands, err := records.Read(tx.MatchOwn, Graph, subjectOf(id))
	if err == nil && records.WouldChange(stands, r) { // what is said again changes nothing
		r[propReregistered] = now
	}
	return r, err
}

// checkCapacity tells whether one more agent may have a record.
func (d *Directory) checkCapacity(tx *kg.Tx) error {
	n := 0
	for _, err := range tx.MatchOwn(kg.Pattern{Predicate: kg.IRI(kg.RDFType), Object: Class, Graph: Graph}) {
		if err != nil {
			return err
		}
		if n++; n >= d.options.MaxAgents {
			return kg.Errorf(kg.CodeLimitExceeded, "there are %d agents on record already", d.options.MaxAgents)
		}
	}
	return nil
}

// Deregister ends that an agent can be asked. What it said of itself goes, and so does
// what is written down of its presence; that it has been here, its name and whether it
// is suspended stay on record. Who may register it may.
//
// Errors: CodeAgentNotFound; CodePermissionDenied; those of DirectoryOptions.Left.
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
	// Once to know whether it may be, which writes nothing.
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
		if err := records.Write(tx, Graph, subjectOf(id), clearedRegistration()); err != nil {
			return err
		}
		return d.options.DeregisterTx(tx, id)
	})
	if err == nil {
		d.options.AfterDeregister(id)
	}
	return err
}

// Card is what is known of an agent as JSON (Card). Everybody who is let in may see it.
//
// Errors: CodeAgentNotFound.
func (d *Directory) Card(ctx context.Context, _ caller.Caller, id kg.AgentID) (json.RawMessage, error) {
	r, err := d.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	return d.CardOf(r), nil
}

// CardOf is the card of a registered agent.
func (d *Directory) CardOf(r *Record) json.RawMessage {
	presence := ""
	if r.ID != kg.System {
		presence = d.options.Presence(r.ID)
	}
	return r.toCard(presence)
}

// Cards are those of up to first agents behind after that have a capability, or of any
// for "", in the order of their ids, and the last of them where there are more.
func (d *Directory) Cards(ctx context.Context, _ caller.Caller, capability string, after kg.AgentID, first int) (cards []json.RawMessage, last kg.AgentID, err error) {
	page, last, err := d.Find(ctx, Query{Capability: capability, After: after, First: first})
	for i := range page {
		cards = append(cards, d.CardOf(&page[i]))
	}
	return cards, last, err
}
