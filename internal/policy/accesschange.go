package policy

import "koine/kg"

// policyChange is a change of a graph's policy.
type policyChange struct {
	graph         kg.Term
	before, after *compiledPolicy
}

// ReadChanged reports whether a commit after the revision has changed the principal's
// read access, and up to which revision it knows. The creation of an empty graph with
// its policy does not count, because it had no content to see.
func (ps *Policies) ReadChanged(principal kg.Principal, after kg.Revision) (changed bool, upTo kg.Revision) {
	return ps.recent.Since(after, func(c *policyChange) bool {
		if (c.before == nil || c.before.Deleted) && c.after != nil && c.after.CreatedEmpty && !c.after.Deleted {
			return false
		}
		return (ps.rightOf(&principal, c.graph, c.before) >= kg.Read) != (ps.rightOf(&principal, c.graph, c.after) >= kg.Read)
	})
}
