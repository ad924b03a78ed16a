package review

import (
	"slices"
	"strings"

	"koine/kg"
)

// place is where a statement stands, as far as what is hidden goes by it.
type place struct{ predicate, graph kg.Term }

// maxPlaces bounds the places of one proposal that are kept. What one with more
// would add is shown to nobody as statements, where anything is hidden at all; its
// patches are looked at one by one.
const maxPlaces = 256

// placesOf lists the places of the patches, each once; nil when there are too many.
func placesOf(patches []kg.Patch) (list []place) {
	seen := map[place]bool{}
	for i := range patches {
		q := &patches[i].Quad
		at := place{q.Predicate, q.Graph}
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

// term is how a place is stored: the predicate, and behind a space the graph, if it
// is not the default graph. IRIs have no spaces.
func (at place) term() kg.Term {
	if at.graph == kg.DefaultGraph {
		return kg.String(at.predicate.Value())
	}
	return kg.String(at.predicate.Value() + " " + at.graph.Value())
}

func placeOf(t kg.Term) place {
	predicate, graph, named := strings.Cut(t.Value(), " ")
	if !named {
		return place{kg.IRI(predicate), kg.DefaultGraph}
	}
	return place{kg.IRI(predicate), kg.IRI(graph)}
}

// hides tells whether any of the places that the entry is about, with the predicate
// or with any for the zero Term, is hidden. Of an entry that does not know its
// places all are.
func (e *entry) hides(hides func(predicate, graph kg.Term) bool, predicate kg.Term) bool {
	return len(e.about) == 0 || slices.ContainsFunc(e.about, func(at place) bool {
		return (predicate.IsZero() || predicate == at.predicate) && hides(at.predicate, at.graph)
	})
}

// Hides adds to what the access behind it hides what proposals would make of it:
// what is hidden in a graph is hidden in the graph of a proposal about that graph.
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
			return !known || e.hides(hides, predicate)
		}
		if id, ok := strings.CutPrefix(graph.Value(), kg.ProposalGraphPrefix); ok && predicate == propPatches {
			e, known := g.table.get(id)
			return !known || e.hides(hides, kg.Term{})
		}
		return false
	}
}

// shown is the proposal without the patches that are hidden from the principal.
func (s *Service) shown(p *Proposal, to kg.Principal) *Proposal {
	hides := kg.Hidden(s.access, to)
	if hides == nil {
		return p
	}
	all := len(p.Patches)
	p.Patches = slices.DeleteFunc(p.Patches, func(patch kg.Patch) bool { return hides(patch.Quad.Predicate, patch.Quad.Graph) })
	p.Hidden = all - len(p.Patches)
	return p
}

// seesAll refuses who does not see all that a proposal would do.
func (s *Service) seesAll(by Caller, p *Proposal) error {
	hides := kg.Hidden(s.access, by.Principal)
	if hides != nil && slices.ContainsFunc(p.Patches, func(patch kg.Patch) bool { return hides(patch.Quad.Predicate, patch.Quad.Graph) }) {
		return kg.Errorf(kg.CodePermissionDenied, "some of what it would do is hidden from you: others have to decide about it")
	}
	return nil
}
