package policy

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"koine/kg"
)

// Policy grants rights in a graph. Callers must not modify it.
type Policy struct {
	Graph kg.Term // kg.DefaultGraph, an IRI or a blank node
	// Public lets everyone read.
	Public bool
	// Owners have all rights, writers read and write, readers read.
	Owners, Writers, Readers []Grantee
	// Creator is the principal that created the graph; "" if it was not created
	// explicitly or before creators were recorded.
	Creator kg.AgentID
	// CreatedEmpty means that the graph had no statements before it got its policy.
	CreatedEmpty bool
	// Deleted means that the graph was deleted. Its owners may only repeat the
	// deletion, to remove remaining statements, or create the graph again.
	Deleted bool
	// Revision is the revision of the last change of the policy; 0 for a default
	// policy.
	Revision kg.Revision
}

// MaxGrantees is the maximum length of each list of a policy.
const MaxGrantees = 256

// MaxRoleBytes is the maximum length of a role name.
const MaxRoleBytes = 128

// Grantee is the holder of a right: the id of an agent, "role:" and the name of a role,
// or Everybody. An agent id that begins with "role:" cannot be a grantee.
type Grantee string

// Everybody is the grantee of every authenticated caller.
const Everybody Grantee = "*"

const rolePrefix = "role:"

// Agent returns the grantee for an agent.
func Agent(id kg.AgentID) Grantee { return Grantee(kg.CanonicalAgent(string(id))) }

// ParseGrantee parses a grantee as users write it: a bare id is an agent's.
func ParseGrantee(text string) (Grantee, error) {
	if text == string(Everybody) {
		return Everybody, nil
	}
	if name, is := strings.CutPrefix(text, rolePrefix); is {
		if len(name) > MaxRoleBytes {
			return "", kg.Errorf(kg.CodeLimitExceeded, "role name has more than %d bytes", MaxRoleBytes)
		}
		if name == "" || !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) {
			return "", kg.Errorf(kg.CodeInvalid, "role name %.60q is empty, not UTF-8, or contains white space", name)
		}
		return Grantee(text), nil
	}
	if text == "" {
		return "", kg.Errorf(kg.CodeInvalid, "agent id is empty")
	}
	id := kg.CanonicalAgent(text)
	return Grantee(id), id.Valid()
}

// normalize validates a policy and brings its lists into canonical form.
func (p *Policy) normalize() error {
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
			return kg.Errorf(kg.CodeLimitExceeded, "policy has more than %d grantees of one kind: grant the right to a role", MaxGrantees).At(part.name)
		}
		*part.list = out
	}
	if slices.Contains(p.Owners, Everybody) {
		return kg.Errorf(kg.CodeInvalid, "owners cannot include everyone: name agents or roles").At("owners")
	}
	return nil
}
