package policy

import (
	"slices"
	"strings"

	"koine/kg"
)

// compiledPolicy is a policy in a form that is fast to evaluate.
type compiledPolicy struct {
	Policy
	everybody kg.Right
	agents    []granted // in descending order of rights
	roles     []granted
}

// granted is a name and its right.
type granted struct {
	name  string
	right kg.Right
}

// compile returns the policy in a form that is fast to evaluate.
func (p *Policy) compile() *compiledPolicy {
	r := &compiledPolicy{Policy: *p}
	if p.Public {
		r.everybody = kg.Read
	}
	for _, part := range [...]struct {
		list  []Grantee
		right kg.Right
	}{{p.Owners, kg.Manage}, {p.Writers, kg.Create}, {p.Readers, kg.Read}} { // writers may also create the graph by writing to it
		for _, g := range part.list {
			if g == Everybody {
				r.everybody = max(r.everybody, part.right)
			} else if name, is := strings.CutPrefix(string(g), rolePrefix); is {
				r.roles = append(r.roles, granted{name, part.right})
			} else {
				r.agents = append(r.agents, granted{string(g), part.right})
			}
		}
	}
	return r
}

// rightOf returns the highest right that the policy grants to the principal, 0 for
// none.
func (r *compiledPolicy) rightOf(principal *kg.Principal) kg.Right {
	if r.Deleted {
		return 0
	}
	level := r.everybody
	for i := range r.agents {
		if r.agents[i].name == string(principal.ID) {
			level = max(level, r.agents[i].right)
			break
		}
	}
	for i := range r.roles {
		if r.roles[i].right > level && principal.HasRole(r.roles[i].name) {
			level = r.roles[i].right
		}
	}
	return level
}

// canRecreate reports whether the graph was deleted and the principal may create it
// again.
func (r *compiledPolicy) canRecreate(principal *kg.Principal) bool {
	return r != nil && r.Deleted && (principal.IsAdmin() || r.isOwnedBy(principal))
}

// isOwnedBy reports whether the principal is an owner, even of a deleted graph.
func (r *compiledPolicy) isOwnedBy(principal *kg.Principal) bool {
	alive := r.Policy
	alive.Deleted = false
	return slices.Contains(alive.Owners, Grantee(principal.ID)) || alive.compile().rightOf(principal) == kg.Manage
}
