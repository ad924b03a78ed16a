package proposals

import (
	"slices"
	"strings"

	"koine/internal/systemgraph"
	"koine/kg"
)

// findPending returns the pending proposal with the same patches, author and message, "" for
// none. Only a caller that handles the message of a held update (kg.Meta.WhenHeld)
// submits it again.
func findPending(tx *kg.Tx, h *kg.HeldUpdate, pieces []string) (id string, err error) {
	if h.Meta.MessageID == "" || h.Meta.WhenHeld == nil {
		return "", nil
	}
	with, err := systemgraph.Quads(tx.MatchOwn, kg.Pattern{Predicate: propMessage, Object: kg.String(h.Meta.MessageID)})
	if err != nil {
		return "", err
	}
	for _, q := range with {
		one, ok := strings.CutPrefix(q.Subject.Value(), kg.ProposalGraphPrefix)
		if !ok || q.Subject != q.Graph {
			continue
		}
		p, err := readProposal(tx.MatchOwn, one, false)
		if err != nil {
			return "", err
		}
		if p == nil || p.statusAt(tx.Time()).Status != Pending || p.Author != h.Meta.Principal.ID || p.Actor != h.Meta.Actor {
			continue
		}
		if same, err := hasPatches(tx, one, pieces); err != nil || same {
			return one, err
		}
	}
	return "", nil
}

// hasPatches reports whether the proposal has exactly these patches.
func hasPatches(tx *kg.Tx, id string, pieces []string) (bool, error) {
	quads, err := systemgraph.Quads(tx.MatchOwn, kg.Pattern{Subject: graphOf(id), Predicate: propPatches, Graph: graphOf(id)})
	if err != nil {
		return false, err
	}
	var has []string
	for i := range quads {
		has = append(has, quads[i].Object.Value())
	}
	return slices.Equal(slices.Sorted(slices.Values(has)), slices.Sorted(slices.Values(pieces))), nil
}
