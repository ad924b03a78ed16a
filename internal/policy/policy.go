package policy

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"koine/kg"
)

// Policy says who may do what with a graph. Not to be changed by who gets it.
type Policy struct {
	Graph kg.Term // kg.DefaultGraph, an IRI or a blank node
	// Public lets everybody read.
	Public bool
	// Owners may do everything, writers read and write, readers read.
	Owners, Writers, Readers []Grantee
	// Creator is the principal that created the graph, "" for one that nobody did, or
	// of before this was written down.
	Creator kg.AgentID
	// CreatedEmpty tells that the graph came into being with its policy: it held nothing
	// before.
	CreatedEmpty bool
	// Deleted tells that the graph was deleted. Owners may then ask for the rest
	// of it to be removed, and nothing else.
	Deleted bool
	// Revision made the policy what it is; 0 for one that is the server's default.
	Revision kg.Revision
}

// MaxGrantees bounds each of a policy's lists.
const MaxGrantees = 256

// MaxRoleBytes bounds the name of a role.
const MaxRoleBytes = 128

// Grantee is whom a policy gives a right: the id of an agent, "role:" and the
// name of a role, or Everybody. An agent whose own id begins with "role:" cannot
// be named.
type Grantee string

// Everybody is everyone who is let in at all.
const Everybody Grantee = "*"

const rolePrefix = "role:"

// Agent is the grantee that an agent is.
func Agent(id kg.AgentID) Grantee { return Grantee(kg.CanonicalAgent(string(id))) }

// Role is the grantee that all who have a role are.
func Role(name string) Grantee { return Grantee(rolePrefix + name) }

// ParseGrantee reads a grantee as people write it: a bare id is an agent's.
func ParseGrantee(text string) (Grantee, error) {
	if text == string(Everybody) {
		return Everybody, nil
	}
	if name, is := strings.CutPrefix(text, rolePrefix); is {
		if len(name) > MaxRoleBytes {
			return "", kg.Errorf(kg.CodeLimitExceeded, "the name of a role has at most %d bytes", MaxRoleBytes)
		}
		if name == "" || !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) {
			return "", kg.Errorf(kg.CodeInvalid, "%.60q is not the name of a role", name)
		}
		return Grantee(text), nil
	}
	if text == "" {
		return "", kg.Errorf(kg.CodeInvalid, "an agent id cannot be empty")
	}
	id := kg.CanonicalAgent(text)
	return Grantee(id), id.Valid()
}

// normalise checks a policy and brings its lists into the one form in which they
// are kept.
func (p *Policy) normalise() error {
	for _, part := range [...]struct {
		name string
		list *[]Grantee
	}{{"owners", &p.Owners}, {"writers", &p.Writers}, {"readers", &p.Readers}} {
		out := make([]Grantee, 0, len(*part.list))
		for _, g := range *part.list {
			parsed, err := ParseGrantee(string(g))
			if err != nil {
				return kg.AsError(err).At(part.name)
			}
			out = append(out, parsed)
		}
		slices.Sort(out)
		if out = slices.Compact(out); len(out) > MaxGrantees {
			return kg.Errorf(kg.CodeLimitExceeded, "a policy names at most %d of each kind: give them a role", MaxGrantees).At(part.name)
		}
		*part.list = out
	}
	if slices.Contains(p.Owners, Everybody) {
		return kg.Errorf(kg.CodeInvalid, "not everybody can own a graph: name agents or roles").At("owners")
	}
	return nil
}
