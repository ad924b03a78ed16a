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
	"koine/internal/systemgraph"
	"koine/kg"
)

// Limits of leases.
const (
	MaxLeases            = 1000 // of an intent that have not been released
	MaxLeaseScopeRunes   = 256
	DefaultLeaseDuration = 5 * time.Minute
	MaxLeaseDuration     = 24 * time.Hour
)

// Types of the events that Leases appends. A lease that expires is released with the reason
// expired, because OpenIntent knows no other type for it.
const (
	EventLeaseAcquired = "lease_acquired"
	EventLeaseReleased = "lease_released"

	reasonExpired = "expired"
)

// Lease is the exclusive right of an agent to work on a part of an intent, for a time.
type Lease struct {
	ID     string // a UUID
	Intent scope.ID
	// Scope names the part, such as "research". There is one lease for it at a time.
	Scope      string
	Agent      kg.AgentID
	AcquiredAt time.Time
	// ExpiresAt is the time from which the lease no longer holds. The release is recorded soon
	// after, or by an acquisition in the intent before that.
	ExpiresAt time.Time
}

// IsExpired reports whether the lease no longer holds at the time.
func (l *Lease) IsExpired(at time.Time) bool { return !at.Before(l.ExpiresAt) }

// HeldError is part of the error of Leases.Acquire (errors.As) and has the lease that holds.
type HeldError struct{ Lease Lease }

func (e *HeldError) Error() string { return "the scope is leased" }

const (
	leasesPart  = "leases"
	leasePrefix = "urn:koine:lease:"
	leaseClass  = "Lease"
)

// Entity returns the lease as an entity of the graph.
func (l *Lease) Entity() kg.Term { return kg.IRI(leasePrefix + l.ID) }

func (l *Lease) toRecord() systemgraph.Record {
	return systemgraph.Record{
		systemgraph.Type: systemgraph.Class(leaseClass), "leaseScope": systemgraph.Values(l.Scope), "leaseHolder": {kg.IRI(string(l.Agent))},
		"leaseAcquiredAt": {kg.DateTime(l.AcquiredAt)}, "leaseExpiresAt": {kg.DateTime(l.ExpiresAt)},
	}
}

func leaseOf(intent scope.ID, subject kg.Term, r systemgraph.Record) Lease {
	return Lease{
		ID: strings.TrimPrefix(subject.Value(), leasePrefix), Intent: intent, Scope: r.Text("leaseScope"), Agent: kg.AgentID(r.Text("leaseHolder")),
		AcquiredAt: r.Time("leaseAcquiredAt"), ExpiresAt: r.Time("leaseExpiresAt"),
	}
}

// readLeases returns the leases of an intent that have not been released, by the time at
// which they were acquired.
func readLeases(match systemgraph.Matcher, intent scope.ID) ([]Lease, error) {
	var out []Lease
	err := readPart(match, intent.PartGraph(leasesPart), leaseClass, func(subject kg.Term, r systemgraph.Record) {
		out = append(out, leaseOf(intent, subject, r))
	})
	slices.SortFunc(out, func(a, b Lease) int {
		if c := a.AcquiredAt.Compare(b.AcquiredAt); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	return out, err
}

// Leases manages the leases of intents. Its methods may be called concurrently.
type Leases struct {
	store  *kg.Store
	scopes *channels.Scopes
	now    func() time.Time
	bounds *bounds
}

// Acquire leases a part of an intent to the acting agent until the duration ends;
// DefaultLeaseDuration if it is 0. It requires the level scope.Write.
//
// Errors: CodeLeaseHeld with a HeldError while another lease holds, the agent's own
// included; CodeScopeEnded; CodeInvalid; CodeLimitExceeded above MaxLeases; those of
// channels.Scopes.Change.
func (s *Leases) Acquire(ctx context.Context, by channels.Caller, intent scope.ID, part string, duration time.Duration) (*Lease, error) {
	agent, err := by.ActingAgent()
	if err != nil {
		return nil, err
	}
	if part == "" {
		return nil, kg.Errorf(kg.CodeInvalid, "scope is empty").At("scope")
	}
	if err := checkText("scope", part, MaxLeaseScopeRunes); err != nil {
		return nil, err
	}
	if duration, err = leaseDuration(duration); err != nil {
		return nil, err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	l := &Lease{ID: id.String(), Intent: intent, Scope: part, Agent: agent}
	_, err = s.scopes.Change(ctx, by, intent, scope.Write, "leases/acquire", func(tx *kg.Tx, sc *scope.Scope) error {
		if sc.Ended() {
			return scope.ErrEnded(sc.Status)
		}
		held, err := readLeases(tx.MatchOwn, intent)
		if err != nil {
			return err
		}
		n := 0
		for i := range held {
			h := &held[i]
			switch {
			case h.IsExpired(tx.Time()):
				if err := release(tx, h, agent); err != nil {
					return err
				}
				continue
			case h.Scope == part:
				e := kg.Errorf(kg.CodeLeaseHeld, "scope is leased to %s until %s", h.Agent, h.ExpiresAt.UTC().Format(time.RFC3339)).At("scope")
				e.Err = &HeldError{*h}
				return e
			}
			n++
		}
		if n >= s.bounds.Leases {
			return kg.Errorf(kg.CodeLimitExceeded, "intent has the maximum of %d leases", s.bounds.Leases)
		}
		l.AcquiredAt, l.ExpiresAt = tx.Time(), tx.Time().Add(duration)
		if err := systemgraph.WriteOver(tx, intent.PartGraph(leasesPart), l.Entity(), nil, l.toRecord()); err != nil {
			return err
		}
		return appendEvent(tx, intent, EventLeaseAcquired, agent, map[string]any{"scope": part, "lease_id": l.ID})
	})
	if err != nil {
		return nil, err
	}
	return l, nil
}

// leaseDuration returns the duration of a lease, or an error if it is out of bounds.
func leaseDuration(d time.Duration) (time.Duration, error) {
	switch {
	case d == 0:
		return DefaultLeaseDuration, nil
	case d < time.Second || d > MaxLeaseDuration:
		return 0, kg.Errorf(kg.CodeInvalid, "duration must be between 1 and %d seconds", int(MaxLeaseDuration.Seconds())).At("durationSeconds")
	}
	return d, nil
}

// release removes a lease and appends the event: that of its expiry, by koine, if it has
// expired.
func release(tx *kg.Tx, l *Lease, by kg.AgentID) error {
	if err := l.remove(tx); err != nil {
		return err
	}
	data := map[string]any{"scope": l.Scope, "lease_id": l.ID, "agent_id": bareName(l.Agent)}
	if l.IsExpired(tx.Time()) {
		by, data["reason"] = kg.System, reasonExpired
	}
	return appendEvent(tx, l.Intent, EventLeaseReleased, by, data)
}

// remove removes a lease.
func (l *Lease) remove(tx *kg.Tx) error {
	return systemgraph.Remove(tx, kg.Pattern{Subject: l.Entity(), Graph: l.Intent.PartGraph(leasesPart)})
}

// Renew makes a lease of the acting agent hold until the duration from now ends.
//
// Errors: CodeNotFound if the agent holds no such lease, or it has expired; those of
// Acquire.
func (s *Leases) Renew(ctx context.Context, by channels.Caller, intent scope.ID, lease string, duration time.Duration) (*Lease, error) {
	duration, err := leaseDuration(duration)
	if err != nil {
		return nil, err
	}
	return s.change(ctx, by, intent, lease, "leases/renew", func(tx *kg.Tx, l *Lease) error {
		l.ExpiresAt = tx.Time().Add(duration)
		return systemgraph.Write(tx, intent.PartGraph(leasesPart), l.Entity(), l.toRecord())
	})
}

// Release ends a lease of the acting agent.
//
// Errors: CodeNotFound if the agent holds no such lease, or it has expired; those of
// channels.Scopes.Change.
func (s *Leases) Release(ctx context.Context, by channels.Caller, intent scope.ID, lease string) (*Lease, error) {
	return s.change(ctx, by, intent, lease, "leases/release", func(tx *kg.Tx, l *Lease) error {
		return release(tx, l, l.Agent)
	})
}

// change applies fn to a lease that the acting agent holds. A lease of another agent is
// reported as not found.
func (s *Leases) change(ctx context.Context, by channels.Caller, intent scope.ID, lease, method string, fn func(*kg.Tx, *Lease) error) (*Lease, error) {
	agent, err := by.ActingAgent()
	if err != nil {
		return nil, err
	}
	var l Lease
	_, err = s.scopes.Change(ctx, by, intent, scope.Write, method, func(tx *kg.Tx, sc *scope.Scope) error {
		subject := (&Lease{ID: lease}).Entity()
		r, err := systemgraph.Read(tx.MatchOwn, intent.PartGraph(leasesPart), subject)
		if err != nil {
			return err
		}
		if l = leaseOf(intent, subject, r); r == nil || l.Agent != agent || l.IsExpired(tx.Time()) || sc.Ended() {
			return kg.Errorf(kg.CodeNotFound, "lease not found").At("leaseId")
		}
		return fn(tx, &l)
	})
	if err != nil {
		return nil, err
	}
	return &l, nil
}

// List returns the leases of an intent that hold now, by the time at which they were
// acquired; at most MaxLeases.
//
// Errors: CodeScopeNotFound.
func (s *Leases) List(ctx context.Context, by channels.Caller, intent scope.ID) ([]Lease, error) {
	sc, err := s.scopes.Get(ctx, by, intent)
	if err != nil || sc.Ended() { // an intent takes its leases with it
		return nil, err
	}
	var list []Lease
	err = viewPart(ctx, s.store, by, func(snapshot *kg.Snapshot) (err error) {
		list, err = readLeases(snapshot.Match, intent)
		return err
	})
	now := s.now()
	return slices.DeleteFunc(list, func(l Lease) bool { return l.IsExpired(now) }), err
}

// ReleaseAgent releases all leases of an agent, one intent at a time. It serves protocols in
// which agents deregister, and may be repeated.
func (s *Leases) ReleaseAgent(ctx context.Context, agent kg.AgentID) error {
	snapshot, err := s.store.View(ctx, kg.View{Principal: kg.SystemPrincipal(), AllGraphs: true})
	if err != nil {
		return err
	}
	held, err := systemgraph.Quads(snapshot.Match, kg.Pattern{Predicate: systemgraph.Property("leaseHolder"), Object: kg.IRI(string(agent))})
	snapshot.Close()
	if err != nil {
		return err
	}
	for _, q := range held {
		id, _ := scope.OfGraph(q.Graph)
		err := systemgraph.Update(ctx, s.store, kg.Meta{Principal: kg.SystemPrincipal(), Actor: agent, Method: "leases/releaseAgent"}, func(tx *kg.Tx) error {
			r, err := systemgraph.Read(tx.MatchOwn, q.Graph, q.Subject)
			if err != nil || r == nil { // released meanwhile
				return err
			}
			l := leaseOf(id, q.Subject, r)
			return release(tx, &l, agent)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// appendEvent appends an event to the log of an intent.
func appendEvent(tx *kg.Tx, intent scope.ID, kind string, actor kg.AgentID, data map[string]any) error {
	raw, err := json.Marshal(data)
	if err != nil {
		return err
	}
	_, err = (&scope.Event{Scope: intent, Type: kind, Actor: actor, Data: raw}).AppendTo(tx)
	return err
}
