package agents

import (
	"slices"
	"strings"
	"time"

	"koine/internal/records"
	"koine/kg"
)

// Graph holds the records.
var Graph = kg.IRI(kg.OwnGraphPrefix + "agents")

// Class is that of each record.
var Class = records.Property(agentClass)

// Status tells whether an agent is let in.
type Status string

// The states.
const (
	Active    Status = "ACTIVE"
	Suspended Status = "SUSPENDED"
)

// UnmarshalText reads a status in upper or lower case.
func (s *Status) UnmarshalText(text []byte) error {
	*s = Status(strings.ToUpper(string(text)))
	return nil
}

// Record is what is known of an agent.
type Record struct {
	ID kg.AgentID
	// Name is what people call it, Owner the agent that answers for it.
	Name  string
	Owner kg.AgentID
	// Roles are those that its credentials have brought so far.
	Roles  []string
	Status Status
	// Since is when the record was made.
	Since time.Time
	// Registration is what it says of itself; nil for one that cannot be asked.
	Registration *Registration
	// NewlyRegistered tells of the result of Register that the agent was not registered before.
	NewlyRegistered bool
}

const (
	agentClass = "Agent"
	propName   = "agentName"
	propOwner  = "agentOwner"
	propRole   = "agentRole"
	propStatus = "agentStatus"
	propSince  = "agentSince"
)

func subjectOf(id kg.AgentID) kg.Term { return kg.IRI(string(id)) }

// recordOf reads a record; nil for one that is none of an agent.
func recordOf(subject kg.Term, r records.Record) *Record {
	if !r.Is(agentClass) {
		return nil
	}
	return &Record{
		ID: kg.AgentID(subject.Value()), Name: r.Text(propName), Owner: kg.AgentID(r.Text(propOwner)),
		Roles: r.Texts(propRole), Status: Status(r.Text(propStatus)), Since: r.Time(propSince),
		Registration: registrationOf(r),
	}
}

// Ensure makes the record of an agent if there is none, and notes roles that are
// new. The packages that give out credentials call it in their own update.
func Ensure(tx *kg.Tx, wish Record) error {
	subject := subjectOf(wish.ID)
	found, err := records.Read(tx.MatchOwn, Graph, subject)
	if err != nil {
		return err
	}
	r := records.Record{}
	known := recordOf(subject, found)
	if known == nil {
		if err := tx.CheckAgent(wish.ID); err != nil {
			return kg.AsError(err).At("agent")
		}
		class, of := records.Class(agentClass)
		r[class], r[propStatus], r[propSince] = of, records.Values(string(Active)), []kg.Term{kg.DateTime(tx.Time())}
		if wish.Name != "" {
			r[propName] = records.Values(wish.Name)
		}
		if wish.Owner != "" {
			r[propOwner] = records.Values(string(wish.Owner))
		}
		known = &Record{}
	}
	roles := slices.Concat(known.Roles, wish.Roles)
	slices.Sort(roles)
	if roles = slices.Compact(roles); len(roles) > len(known.Roles) && len(roles) <= MaxRoles {
		r[propRole] = records.Values(roles...)
	}
	return records.Write(tx, Graph, subject, r)
}

// RolesOf lists the roles of an agent, as the update finds them.
func RolesOf(tx *kg.Tx, id kg.AgentID) ([]string, error) {
	r, err := records.Read(tx.MatchOwn, Graph, subjectOf(id))
	return r.Texts(propRole), err
}

// InRole lists the agents that have a role and are not suspended, as the update
// finds them, in no order.
func InRole(tx *kg.Tx, role string) (out []kg.AgentID, err error) {
	for st, err := range tx.MatchOwn(kg.Pattern{Predicate: records.Property(propRole), Object: kg.String(role), Graph: Graph}) {
		if err != nil {
			return nil, err
		}
		r, err := records.Read(tx.MatchOwn, Graph, st.Subject)
		if err != nil {
			return nil, err
		}
		if known := recordOf(st.Subject, r); known != nil && known.Status != Suspended {
			out = append(out, known.ID)
		}
	}
	return out, nil
}
