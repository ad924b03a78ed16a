package agents

import (
	"slices"
	"strings"
	"time"

	"koine/internal/systemgraph"
	"koine/kg"
)

// Graph is the graph of the records.
var Graph = kg.IRI(kg.OwnGraphPrefix + "agents")

// Class is the class of the records.
var Class = systemgraph.Property(agentClass)

// Status determines whether an agent is admitted.
type Status string

// States.
const (
	Active    Status = "ACTIVE"
	Suspended Status = "SUSPENDED"
)

// UnmarshalText parses a status, ignoring case.
func (s *Status) UnmarshalText(text []byte) error {
	*s = Status(strings.ToUpper(string(text)))
	return nil
}

// Record is the record of an agent.
type Record struct {
	ID kg.AgentID
	// Name is the display name. Owner is the agent that is responsible for this one.
	Name  string
	Owner kg.AgentID
	// Roles are the roles that its credentials have brought so far.
	Roles  []string
	Status Status
	// Since is the time at which the record was created.
	Since time.Time
	// Registration is the self-description; nil if the agent is not registered.
	Registration *Registration
	// NewlyRegistered is set in the result of Register if the agent was not registered
	// before.
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

// recordOf converts a stored record; nil if it is not that of an agent.
func recordOf(subject kg.Term, r systemgraph.Record) *Record {
	if !r.Is(agentClass) {
		return nil
	}
	return &Record{
		ID: kg.AgentID(subject.Value()), Name: r.Text(propName), Owner: kg.AgentID(r.Text(propOwner)),
		Roles: r.Texts(propRole), Status: Status(r.Text(propStatus)), Since: r.Time(propSince),
		Registration: registrationOf(r),
	}
}

// Ensure creates the record of an agent if there is none, and adds new roles. Packages
// that issue credentials call it within their update.
func Ensure(tx *kg.Tx, record Record) error {
	subject := subjectOf(record.ID)
	found, err := systemgraph.Read(tx.MatchOwn, Graph, subject)
	if err != nil {
		return err
	}
	r := systemgraph.Record{}
	known := recordOf(subject, found)
	if known == nil {
		if err := tx.CheckAgent(record.ID); err != nil {
			return kg.AsError(err).At("agent")
		}
		r[systemgraph.Type], r[propStatus], r[propSince] = systemgraph.Class(agentClass), systemgraph.Values(string(Active)), []kg.Term{kg.DateTime(tx.Time())}
		r[propName], r[propOwner] = systemgraph.Text(record.Name), systemgraph.Text(string(record.Owner))
		known = &Record{}
	}
	if roles := sortedUnique(slices.Concat(known.Roles, record.Roles)); len(roles) > len(known.Roles) && len(roles) <= MaxRoles {
		r[propRole] = systemgraph.Values(roles...)
	}
	return systemgraph.Write(tx, Graph, subject, r)
}

// RolesOf returns the roles of an agent as of the update.
func RolesOf(tx *kg.Tx, id kg.AgentID) ([]string, error) {
	r, err := systemgraph.Read(tx.MatchOwn, Graph, subjectOf(id))
	return r.Texts(propRole), err
}

// InRole returns the agents with a role that are not suspended, as of the update, in no
// particular order.
func InRole(tx *kg.Tx, role string) ([]kg.AgentID, error) { return agentsWith(tx, propRole, role) }

// RegisteredAs returns the agents that registered with a role and are not suspended, as of
// the update, in no particular order. The role is what they say of themselves: it grants no
// rights.
func RegisteredAs(tx *kg.Tx, role string) ([]kg.AgentID, error) {
	return agentsWith(tx, propDuty, role)
}

// agentsWith returns the agents with a text in a property that are not suspended.
func agentsWith(tx *kg.Tx, property, text string) (out []kg.AgentID, err error) {
	for st, err := range tx.MatchOwn(kg.Pattern{Predicate: systemgraph.Property(property), Object: kg.String(text), Graph: Graph}) {
		if err != nil {
			return nil, err
		}
		r, err := systemgraph.Read(tx.MatchOwn, Graph, st.Subject)
		if err != nil {
			return nil, err
		}
		if known := recordOf(st.Subject, r); known != nil && known.Status != Suspended {
			out = append(out, known.ID)
		}
	}
	return out, nil
}
