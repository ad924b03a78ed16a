package proposals

import (
	"slices"
	"strings"

	"koine/kg"
)

// patchPlace is the predicate and graph of a statement, by which rules hide it.
type patchPlace struct{ predicate, graph kg.Term }

// maxPlaces limits the places stored for one proposal. If a proposal has more and any
// rule hides statements, its pending graph is hidden, and its patches are checked one
// by one.
const maxPlaces = 256

// placesOf lists the distinct places of the patches; nil if there are too many.
func placesOf(patches []kg.Patch) (list []patchPlace) {
	seen := map[patchPlace]bool{}
	for i := range patches {
		q := &patches[i].Quad
		at := patchPlace{q.Predicate, q.Graph}
		if seen[at] {
			continue
		}
		if len(list) == maxPlaces {
			return nil
		}
		seen[at] = true
		list = append(list, at)
	}
	return list
}

// toTerm encodes a place: the predicate, then a space and the graph unless it is the
// default graph. IRIs have no spaces.
func (at patchPlace) toTerm() kg.Term {
	if at.graph == kg.DefaultGraph {
		return kg.String(at.predicate.Value())
	}
	return kg.String(at.predicate.Value() + " " + at.graph.Value())
}

func placeOf(t kg.Term) patchPlace {
	predicate, graph, named := strings.Cut(t.Value(), " ")
	if !named {
		return patchPlace{kg.IRI(predicate), kg.DefaultGraph}
	}
	return patchPlace{kg.IRI(predicate), kg.IRI(graph)}
}

// isHidden reports whether any place of the entry with the predicate, or with any
// predicate for the zero Term, is hidden. An entry without places counts as hidden.
func (e *entry) isHidden(hides func(predicate, graph kg.Term) bool, predicate kg.Term) bool {
	return len(e.about) == 0 || slices.ContainsFunc(e.about, func(at patchPlace) bool {
		return (predicate.IsZero() || predicate == at.predicate) && hides(at.predicate, at.graph)
	})
}

// Hides extends the hiding rules of the next Access to proposals: statements hidden in
// a graph are hidden in the graph of a proposal about that graph.
func (g *Guard) Hides(p kg.Principal) func(predicate, graph kg.Term) bool {
	hides := g.Front.Hides(p)
	if hides == nil {
		return nil
	}
	return func(predicate, graph kg.Term) bool {
		if hides(predicate, graph) {
			return true
		}
		if id, ok := strings.CutPrefix(graph.Value(), kg.PendingGraphPrefix); ok {
			e, known := g.table.get(id)
			return !known || e.isHidden(hides, predicate)
		}
		if id, ok := strings.CutPrefix(graph.Value(), kg.ProposalGraphPrefix); ok && predicate == propPatches {
			e, known := g.table.get(id)
			return !known || e.isHidden(hides, kg.Term{})
		}
		return false
	}
}

// withoutHidden removes the patches that are hidden from the principal.
func (s *Service) withoutHidden(p *Proposal, to kg.Principal) *Proposal {
	hides := kg.Hidden(s.access, to)
	if hides == nil {
		return p
	}
	all := len(p.Patches)
	p.Patches = slices.DeleteFunc(p.Patches, func(patch kg.Patch) bool { return hides(patch.Quad.Predicate, patch.Quad.Graph) })
	p.Hidden = all - len(p.Patches)
	return p
}

// checkSeesAll returns an error unless the caller sees all patches of a proposal.
func (s *Service) checkSeesAll(by Caller, p *Proposal) error {
	hides := kg.Hidden(s.access, by.Principal)
	if hides != nil && slices.ContainsFunc(p.Patches, func(patch kg.Patch) bool { return hides(patch.Quad.Predicate, patch.Quad.Graph) }) {
		return kg.Errorf(kg.CodePermissionDenied, "some patches of the proposal are hidden from you: another reviewer must decide")
	}
	return nil
}
