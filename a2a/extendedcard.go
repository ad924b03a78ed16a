package a2a

import (
	"context"

	"koine/kg"
)

// extendedCard is GetExtendedAgentCard and agent/getAuthenticatedExtendedCard: the card
// in the form of the one version only, without a key that it does not know. Cards of
// other agents announce none, for which 1.0 has a wider error than 0.3.
func (h *Handler) extendedCard(_ context.Context, v version, c *call) (any, error) {
	switch {
	case h.agent != kg.System && v.name == version1.name:
		return nil, newError(codeUnsupported, "This agent has no extended agent card", details{})
	case h.agent != kg.System || h.options.Card == nil:
		return nil, newError(codeNoExtendedCard, "There is no extended agent card", details{})
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
