package policy

import "koine/kg"

// policyChange is what became of one graph's policy.
type policyChange struct {
	graph         kg.Term
	before, after *compiledPolicy
}

// ReadChanged tells whether what the principal may read has changed in a commit
// behind the revision, and up to which revision it looked. A graph that came into
// being with its policy changes nothing: there was nothing to be seen of it.
func (ps *Policies) ReadChanged(who kg.Principal, after kg.Revision) (changed bool, upTo kg.Revision) {
	return ps.recent.Since(after, func(c *policyChange) bool {
		if (c.before == nil || c.before.Deleted) && c.after != nil && c.after.CreatedEmpty && !c.after.Deleted {
			return false
		}
		return (ps.rightOf(&who, c.graph, c.before) >= kg.Read) != (ps.rightOf(&who, c.graph, c.after) >= kg.Read)
	})
}
