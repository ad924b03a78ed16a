package policy

import (
	"slices"

	"koine/kg"
)

// draft is a policy under construction from statements.
type draft struct {
	Policy
	visible bool // has a visibility, without which there is no policy
}

func newDraft(p *Policy, graph kg.Term) *draft {
	if p == nil {
		return &draft{Policy: Policy{Graph: graph}}
	}
	d := &draft{Policy: *p, visible: true}
	d.Owners, d.Writers, d.Readers = slices.Clone(p.Owners), slices.Clone(p.Writers), slices.Clone(p.Readers)
	return d
}

// applyStatement adds a statement, or removes it if it does not stand.
func (d *draft) applyStatement(predicate, object kg.Term, stands bool, r kg.Revision) {
	d.Revision = max(d.Revision, r)
	switch predicate {
	case visibility:
		if stands {
			d.Public, d.visible = object == public, true
		} else if (object == public) == d.Public {
			d.Public, d.visible = false, false
		}
	case owner:
		d.Owners = updateGrantees(d.Owners, Grantee(object.Value()), stands)
	case writer:
		d.Writers = updateGrantees(d.Writers, Grantee(object.Value()), stands)
	case reader:
		d.Readers = updateGrantees(d.Readers, Grantee(object.Value()), stands)
	case creator:
		if id := kg.AgentID(object.Value()); stands {
			d.Creator = id
		} else if d.Creator == id {
			d.Creator = ""
		}
	case createdEmpty:
		d.CreatedEmpty = stands
	case deleted:
		d.Deleted = stands
	}
}

// updateGrantees adds a grantee to a sorted list, or removes it if it does not stand.
func updateGrantees(list []Grantee, g Grantee, stands bool) []Grantee {
	i, found := slices.BinarySearch(list, g)
	switch {
	case stands && !found:
		return slices.Insert(list, i, g)
	case !stands && found:
		return slices.Delete(list, i, i+1)
	}
	return list
}

// toPolicy returns the policy, or nil if there is none.
func (d *draft) toPolicy() *Policy {
	if !d.visible && !d.Deleted {
		return nil
	}
	p := d.Policy
	return &p
}

func isPolicyPredicate(predicate kg.Term) bool { return slices.Contains(predicates[:], predicate) }
