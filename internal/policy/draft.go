package policy

import (
	"slices"

	"koine/kg"
)

// draft is a policy while it is put together from statements.
type draft struct {
	Policy
	visible bool // its visibility is said: without that there is no policy
}

func draftOf(p *Policy, graph kg.Term) *draft {
	if p == nil {
		return &draft{Policy: Policy{Graph: graph}}
	}
	d := &draft{Policy: *p, visible: true}
	d.Owners, d.Writers, d.Readers = slices.Clone(p.Owners), slices.Clone(p.Writers), slices.Clone(p.Readers)
	return d
}

// note takes in that a statement stands, or no longer does, since the revision.
func (d *draft) note(predicate, object kg.Term, stands bool, r kg.Revision) {
	d.Revision = max(d.Revision, r)
	switch predicate {
	case visibility:
		if stands {
			d.Public, d.visible = object == public, true
		} else if (object == public) == d.Public {
			d.Public, d.visible = false, false
		}
	case owner:
		d.Owners = noted(d.Owners, Grantee(object.Value()), stands)
	case writer:
		d.Writers = noted(d.Writers, Grantee(object.Value()), stands)
	case reader:
		d.Readers = noted(d.Readers, Grantee(object.Value()), stands)
	case maker:
		if id := kg.AgentID(object.Value()); stands {
			d.Maker = id
		} else if d.Maker == id {
			d.Maker = ""
		}
	case made:
		d.Made = stands
	case deleted:
		d.Deleted = stands
	}
}

func noted(list []Grantee, g Grantee, stands bool) []Grantee {
	i, there := slices.BinarySearch(list, g)
	switch {
	case stands && !there:
		return slices.Insert(list, i, g)
	case !stands && there:
		return slices.Delete(list, i, i+1)
	}
	return list
}

// policy is what the statements come to, nil when they are none.
func (d *draft) policy() *Policy {
	if !d.visible && !d.Deleted {
		return nil
	}
	p := d.Policy
	return &p
}

// isPolicy tells whether a statement with the predicate may be one of a policy.
func isPolicy(predicate kg.Term) bool { return slices.Contains(predicates[:], predicate) }
