package kg

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Principal is who is calling.
type Principal struct {
	ID    AgentID
	Roles []string
	// ActFor lists the agents that it may act for beside itself; "*" is everybody but koine itself.
	ActFor []AgentID
	// Method says how it was authenticated: MethodOpen, "key", "jwt", or MethodLocal.
	// "" is code inside this process, which is trusted as MethodLocal is.
	Method string
	// Key names the API key that it came with; "" for none. It is no secret.
	Key string
}

// MethodLocal is that of who works on the data directory itself: whoever may open
// its files may do everything.
const MethodLocal = "local"

// MethodOpen is that of a server without credentials, where callers say who they are
// and everybody is an administrator.
const MethodOpen = "open"

// The roles that have a meaning to koine. The last three confine who has no other one:
// see CheckWrite and CheckRead.
const (
	RoleAdmin    = "admin"
	RoleReviewer = "reviewer"
	RoleReader   = "reader"  // reads what its agent may
	RoleMetrics  = "metrics" // reads the server's metrics
	RoleBackup   = "backup"  // takes backups
)

// SystemPrincipal is koine itself where it reads and writes on its own behalf. It
// never comes from outside.
func SystemPrincipal() Principal {
	return Principal{ID: System, Roles: []string{RoleAdmin}, ActFor: []AgentID{Anybody}, Method: MethodLocal}
}

// Anybody, in Principal.ActFor, is every agent.
const Anybody AgentID = "*"

// HasRole tells whether the principal has the role.
func (p Principal) HasRole(role string) bool { return slices.Contains(p.Roles, role) }

// IsAdmin tells whether the principal may do what administrators may: by its role, or
// because it is inside this process or at its files. In open mode everybody is one;
// what is between some agents only asks for MethodOpen too.
func (p Principal) IsAdmin() bool { return p.Trusted() || p.HasRole(RoleAdmin) }

// confined tells whether the principal has roles, and only some of these.
func (p Principal) confined(to ...string) bool {
	if p.Trusted() || len(p.Roles) == 0 {
		return false
	}
	for _, role := range p.Roles {
		if !slices.Contains(to, role) {
			return false
		}
	}
	return true
}

// CheckWrite returns CodePermissionDenied if the principal changes nothing on any path:
// all of its roles are RoleReader, RoleMetrics or RoleBackup. Without roles it may write
// what its agent may.
func (p Principal) CheckWrite() error {
	if !p.confined(RoleReader, RoleMetrics, RoleBackup) {
		return nil
	}
	e := Errorf(CodePermissionDenied, "a credential with no role but %s changes nothing", strings.Join(p.Roles, ", "))
	e.Hint = "Use one without roles, or with another one."
	return e
}

// CheckRead returns CodePermissionDenied if the principal reads nothing: RoleBackup is
// its only role.
func (p Principal) CheckRead() error {
	if !p.confined(RoleBackup) {
		return nil
	}
	return Errorf(CodePermissionDenied, "a credential with no role but %s takes backups and does nothing else", RoleBackup)
}

// CommonRoles lists the roles of a principal whose rights are narrowed to those of a
// further credential: those that both have. Who is confined by either stays confined.
func CommonRoles(p, further Principal) []string {
	out := slices.DeleteFunc(slices.Clone(p.Roles), func(role string) bool { return !slices.Contains(further.Roles, role) })
	narrow := p
	narrow.Roles = out
	if narrow.CheckWrite() == nil && (p.CheckWrite() != nil || further.CheckWrite() != nil) {
		return []string{RoleReader}
	}
	return out
}

// MayActFor tells whether the principal may act in the agent's name. Nobody from
// outside may in that of koine itself, whatever ActFor says: what koine says is
// not put under quarantine.
func (p Principal) MayActFor(agent AgentID) bool {
	if agent == System && !p.Trusted() {
		return false
	}
	return p.ID == agent || p.Trusted() || slices.Contains(p.ActFor, Anybody) || slices.Contains(p.ActFor, agent)
}

// Trusted tells whether the principal is inside this process or at its files.
func (p Principal) Trusted() bool { return p.Method == "" || p.Method == MethodLocal }

// normalise spells the id out.
func (p *Principal) normalise() {
	p.ID = CanonicalAgent(string(p.ID))
	if p.ID == "" {
		p.ID = Anonymous
	}
}

// Anonymous is the caller that gave no name.
const Anonymous AgentID = "agent://anonymous"

// System is koine itself, as the author of what no caller asked for.
const System AgentID = "agent://koine"

// CanonicalAgent is the one spelling under which an agent id is stored,
// compared and hashed: a bare id x and agent://x are the same agent.
func CanonicalAgent(id string) AgentID {
	if id == "" || strings.Contains(id, ":") {
		return AgentID(id)
	}
	return AgentID("agent://" + id)
}

// Valid reports what keeps an agent id from being stored.
func (a AgentID) Valid() error {
	if len(a) > MaxAgentIDBytes {
		return Errorf(CodeLimitExceeded, "an agent id of %d bytes is longer than the %d that are stored", len(a), MaxAgentIDBytes)
	}
	if _, inline := inlineID(agentTerm(a)); inline {
		return Errorf(CodeInvalid, "%s is koine's own word, and no agent", a) // an assertion keeps its source by number
	}
	if err := validIRI(string(a)); err != nil || !utf8.ValidString(string(a)) {
		return Errorf(CodeInvalid, "%q "+agentIDWanted, clip(string(a)))
	}
	return nil
}
