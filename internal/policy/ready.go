package policy

import (
	"slices"
	"strings"

	"koine/kg"
)

// compiledPolicy is a policy in the form that is asked.
type compiledPolicy struct {
	Policy
	everybody kg.Right
	agents    []granted // whom the policy names, the greatest right of each first
	roles     []granted
}

// granted is the right that a name has.
type granted struct {
	name  string
	right kg.Right
}

func (p *Policy) compile() *compiledPolicy {
	r := &compiledPolicy{Policy: *p}
	if p.Public {
		r.everybody = kg.Read
	}
	for _, part := range [...]struct {
		list  []Grantee
		right kg.Right
	}{{p.Owners, kg.Manage}, {p.Writers, kg.Create}, {p.Readers, kg.Read}} { // what writers may write they may let be
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

// rightOf is the greatest right that the policy gives the principal, 0 for none.
func (r *compiledPolicy) rightOf(who *kg.Principal) kg.Right {
	if r.Deleted {
		return 0
	}
	level := r.everybody
	for i := range r.agents {
		if r.agents[i].name == string(who.ID) {
			level = max(level, r.agents[i].right)
			break
		}
	}
	for i := range r.roles {
		if r.roles[i].right > level && who.HasRole(r.roles[i].name) {
			level = r.roles[i].right
		}
	}
	return level
}

// canRecreate tells whether the principal may make the graph again, which was deleted.
func (r *compiledPolicy) canRecreate(who *kg.Principal) bool {
	return r != nil && r.Deleted && (who.IsAdmin() || r.isOwnedBy(who))
}

// isOwnedBy tells whether the principal is an owner, of a deleted graph too.
func (r *compiledPolicy) isOwnedBy(who *kg.Principal) bool {
	alive := r.Policy
	alive.Deleted = false
	return slices.Contains(alive.Owners, Grantee(who.ID)) || alive.compile().rightOf(who) == kg.Manage
}
