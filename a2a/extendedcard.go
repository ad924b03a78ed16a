package a2a

import (
	"context"

	"koine/kg"
)

// extendedCard is GetExtendedAgentCard and agent/getAuthenticatedExtendedCard: the card
// in the form of the one version only, without a key that it does not know.
func (h *Handler) extendedCard(_ context.Context, v version, c *call) (any, error) {
	if h.options.Card == nil || h.agent != kg.System {
		return nil, newError(codeNoExtendedCard, "There is no extended agent card", details{Reason: "EXTENDED_AGENT_CARD_NOT_CONFIGURED", listed: true})
	}
	o := *h.options.Card
	o.Strict = true
	card := NewCard(o, o.base(c.http))
	if v.name == version1.name {
		return card.in1(), nil
	}
	return card.in03(), nil
}

// in1 leaves out what only 0.3 knows.
func (c Card) in1() Card {
	c.URL, c.ProtocolVersion, c.PreferredTransport, c.Extended = "", "", "", false
	c.SecuritySchemes = eachScheme(c.SecuritySchemes, func(s SecurityScheme) SecurityScheme {
		return SecurityScheme{HTTP: s.HTTP, APIKey: s.APIKey}
	})
	return c
}

// in03 leaves out what only 1.0 knows.
func (c Card) in03() Card {
	c.SupportedInterfaces, c.Capabilities.Extended = nil, false
	c.SecuritySchemes = eachScheme(c.SecuritySchemes, func(s SecurityScheme) SecurityScheme {
		s.HTTP, s.APIKey = nil, nil
		return s
	})
	return c
}

func eachScheme(schemes map[string]SecurityScheme, of func(SecurityScheme) SecurityScheme) map[string]SecurityScheme {
	out := map[string]SecurityScheme{}
	for name, s := range schemes {
		out[name] = of(s)
	}
	return out
}
