package a2a

import (
	"context"

	"koine/kg"
)

// extendedCard handles GetExtendedAgentCard and agent/getAuthenticatedExtendedCard: the
// card in the form of one version only. The cards of other agents announce none, for
// which 1.0 has a more general error than 0.3.
func (h *Handler) extendedCard(_ context.Context, v version, c *call) (any, error) {
	switch {
	case h.agent != kg.System && v.name == version1.name:
		return nil, newError(codeUnsupported, "This agent has no extended agent card", details{})
	case h.agent != kg.System || h.options.Card == nil:
		return nil, newError(codeNoExtendedCard, "The extended agent card is not configured", details{})
	}
	o := *h.options.Card
	o.Only = CardVersion(v.name)
	card := NewCard(o, o.baseURL(c.http))
	if v == version03HTTP { // its security schemes have the form that 1.0 kept
		o.Only = Version1
		card.SecuritySchemes = NewCard(o, o.baseURL(c.http)).SecuritySchemes
	}
	return card, nil
}
