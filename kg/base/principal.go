package base

import (
	"iter"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Principal is the authenticated caller.
type Principal struct {
	ID    AgentID
	Roles []string
	// ActFor lists the agents that the principal may act for beside itself; Anybody stands
	// for all agents except koine itself.
	ActFor []AgentID
	// Method is the method of authentication: MethodOpen, "key", "jwt" or MethodLocal. ""
	// is code in this process, which is trusted like MethodLocal.
	Method string
	// Key is the name of the API key of the request, "" for none. It is not secret.
	Key string
}

// MethodLocal is the Method of a principal that opens the data directory itself: access to
// its files gives all rights.
const MethodLocal = "local"

// MethodOpen is the Method on a server without credentials, on which callers choose their
// name and everybody is an administrator.
const MethodOpen = "open"

// The roles that koine interprets. The last three confine a principal without another role:
// see CheckWrite and CheckRead.
const (
	RoleAdmin    = "admin"
	RoleReviewer = "reviewer"
	RoleReader   = "reader"  // has the read rights of its agent
	RoleMetrics  = "metrics" // reads the server's metrics
	RoleBackup   = "backup"  // takes backups
)

// SystemPrincipal returns the principal for reads and writes by koine itself. It never comes
// from outside.
func SystemPrincipal() Principal {
	return Principal{ID: System, Roles: []string{RoleAdmin}, ActFor: []AgentID{Anybody}, Method: MethodLocal}
}

// Anybody in Principal.ActFor stands for every agent.
const Anybody AgentID = "*"

// HasRole reports whether the principal has the role.
func (p Principal) HasRole(role string) bool { return slices.Contains(p.Roles, role) }

// IsAdmin reports whether the principal has the rights of an administrator: by its role,
// or because it is in this process or has access to the files. In open mode everybody is
// an administrator; operations that are private to some agents check MethodOpen as well.
func (p Principal) IsAdmin() bool { return p.Trusted() || p.HasRole(RoleAdmin) }

// confinedTo reports whether the principal has at least one role, and none outside the
// list.
func (p Principal) confinedTo(to ...string) bool {
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

// CheckWrite returns CodePermissionDenied if the principal may not write at all: each of
// its roles is RoleReader, RoleMetrics or RoleBackup. Without roles it may write what its
// agent may.
func (p Principal) CheckWrite() error {
	if !p.confinedTo(RoleReader, RoleMetrics, RoleBackup) {
		return nil
	}
	e := Errorf(CodePermissionDenied, "a credential with no role but %s changes nothing", strings.Join(p.Roles, ", "))
	e.Hint = "Use a credential without roles, or with another role."
	return e
}

// CheckRead returns CodePermissionDenied if the principal may not read at all: RoleBackup
// is its only role.
func (p Principal) CheckRead() error {
	if !p.confinedTo(RoleBackup) {
		return nil
	}
	return Errorf(CodePermissionDenied, "a credential with no role but %s takes backups and does nothing else", RoleBackup)
}

// CommonRoles returns the roles of a principal whose rights are restricted to those of a
// further credential: the roles that both have. If either is confined to reading, the
// result is as well.
func CommonRoles(p, further Principal) []string {
	out := slices.DeleteFunc(slices.Clone(p.Roles), func(role string) bool { return !slices.Contains(further.Roles, role) })
	narrow := p
	narrow.Roles = out
	if narrow.CheckWrite() == nil && (p.CheckWrite() != nil || further.CheckWrite() != nil) {
		return []string{RoleReader}
	}
	return out
}

// MayActFor reports whether the principal may act for the agent. Callers from outside may
// never act for koine itself, regardless of ActFor, because koine's assertions are exempt
// from quarantine.
func (p Principal) MayActFor(agent AgentID) bool {
	if agent == System && !p.Trusted() {
		return false
	}
	return p.ID == agent || p.Trusted() || slices.Contains(p.ActFor, Anybody) || slices.Contains(p.ActFor, agent)
}

// Trusted reports whether the principal is in this process or has access to the files.
func (p Principal) Trusted() bool { return p.Method == "" || p.Method == MethodLocal }

// Normalise replaces the id by its canonical form, Anonymous if it is empty.
func (p *Principal) Normalise() {
	p.ID = CanonicalAgent(string(p.ID))
	if p.ID == "" {
		p.ID = Anonymous
	}
}

// Anonymous is the agent of callers without a name.
const Anonymous AgentID = "agent://anonymous"

// System is koine itself, as the author of commits that no caller requested.
const System AgentID = "agent://koine"

// CanonicalAgent returns the form in which an agent id is stored, compared and hashed: a bare
// id x and agent://x are the same agent.
func CanonicalAgent(id string) AgentID {
	if id == "" || strings.Contains(id, ":") {
		return AgentID(id)
	}
	return AgentID("agent://" + id)
}

// Valid returns an error if the agent id cannot be stored.
func (a AgentID) Valid() error {
	if len(a) > MaxAgentIDBytes {
		return Errorf(CodeLimitExceeded, "an agent id of %d bytes is longer than the %d that are stored", len(a), MaxAgentIDBytes)
	}
	if _, inline := InlineID(AgentTerm(a)); inline {
		return Errorf(CodeInvalid, "%s is reserved by koine and cannot be an agent", a) // assertions store their source by number
	}
	if err := validIRI(string(a)); err != nil || !utf8.ValidString(string(a)) {
		return Errorf(CodeInvalid, "%q "+agentIDWanted, Clip(string(a)))
	}
	return nil
}

const agentScheme = "agent://"

// agentIDWanted is the end of the error message about an invalid agent id.
const agentIDWanted = "is not an agent id: use letters, digits and - . _ ~ @ +, or an IRI of a scheme in use"

// reservedIDs are the prefixes of ids that do not name agents.
var reservedIDs = []string{"urn:koine:", "chan:direct:"}

// WellFormed returns CodeInvalid unless the id is valid for a new agent: letters, digits
// and - . _ ~ @ + after agent://, without a slash, or an IRI with an authority or of a
// scheme in use; in the composed form of Unicode (NFC), and without invisible or direction
// characters. Ids of koine's own things are refused. It is stricter than Valid, because
// stores hold older ids.
func (a AgentID) WellFormed() error {
	if err := a.Valid(); err != nil {
		return err
	}
	for _, reserved := range reservedIDs {
		if len(a) >= len(reserved) && strings.EqualFold(string(a[:len(reserved)]), reserved) {
			return Errorf(CodeInvalid, "%+q is not an agent id: %s is reserved by koine", Clip(string(a)), reserved)
		}
	}
	ok := norm.NFC.IsNormalString(string(a))
	if name, bare := strings.CutPrefix(string(a), agentScheme); bare {
		ok = ok && strings.Trim(name, ".") != "" && !strings.ContainsFunc(name, notInName)
	} else {
		scheme, rest, _ := strings.Cut(string(a), ":")
		ok = ok && (IsScheme(scheme) || strings.HasPrefix(rest, "//")) && !strings.ContainsFunc(rest, isMisleading)
	}
	if !ok {
		e := Errorf(CodeInvalid, "%+q "+agentIDWanted, Clip(string(a)))
		e.Hint = "Compose accents (NFC), and remove marks of direction."
		return e
	}
	return nil
}

// notInName reports whether a character is not allowed in an agent's name.
func notInName(r rune) bool {
	return !unicode.In(r, unicode.L, unicode.M, unicode.Nd) && !strings.ContainsRune("-._~@+", r)
}

// isMisleading reports whether a character is invisible or changes the appearance of
// others: control and format characters, including direction marks, and variation
// selectors.
func isMisleading(r rune) bool {
	return unicode.In(r, unicode.C, unicode.Z, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// NamesAgent reports whether the agent has a record, a key to act for it, or a role in a
// channel. All writers of these check the id first, so that a malformed id has them only
// from before ids were checked.
func NamesAgent(match func(Pattern) iter.Seq2[Statement, error], id AgentID) (bool, error) {
	patterns := []Pattern{
		{Subject: AgentTerm(id), Graph: agentsGraph},
		{Predicate: IRI(OwnVocabulary + "keyActFor"), Object: String(string(id)), Graph: SystemGraph},
	}
	for _, property := range [...]string{"channelOwner", "channelModerator", "channelMember", "channelObserver"} {
		patterns = append(patterns, Pattern{Predicate: IRI(OwnVocabulary + property), Object: AgentTerm(id)})
	}
	for _, p := range patterns {
		for _, err := range match(p) {
			return err == nil, err
		}
	}
	return false, nil
}

// agentsGraph holds the records of agents (package agents).
var agentsGraph = IRI(OwnGraphPrefix + "agents")

// AgentTerm returns the dictionary term of an agent.
func AgentTerm(a AgentID) Term { return IRI(string(a)) }
