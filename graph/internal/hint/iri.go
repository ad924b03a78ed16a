package hint

import (
	"context"
	"fmt"
	"strings"

	"koine/internal/operation"
	"koine/internal/suggest"
	"koine/kg"
)

// splitUnregistered splits an IRI of the form prefix:name with a prefix that is neither
// registered nor a known URI scheme.
func (f *Finder) splitUnregistered(iri string) (prefix, local string, ok bool) {
	prefix, local, ok = strings.Cut(iri, ":")
	return prefix, local, ok && !strings.HasPrefix(local, "//") && f.prefixes.Registrable(prefix) && !f.store.KnowsScheme(prefix)
}

// tellPrefix adds to a hint that the prefix is not registered, with similar
// prefixes.
func tellPrefix(h *operation.Hint, prefixes *kg.Prefixes, prefix, local string) {
	var registered []string
	for _, p := range prefixes.All() {
		registered = append(registered, p.Name)
	}
	h.Message += fmt.Sprintf(": %s is not a registered prefix", prefix)
	near := suggest.Names(prefix, registered, maxNearest)
	if len(near) == 0 {
		return
	}
	h.Message += fmt.Sprintf("; did you mean %s?", strings.Join(near, " or "))
	for _, name := range near {
		h.Nearest = append(h.Nearest, name+":"+local)
	}
}

// entityHint returns a hint about an entity that does not occur and seems to have
// a mistyped prefix. There is no list of entity names to suggest from.
func (g *nameSuggester) entityHint(ctx context.Context, t kg.Term) (h operation.Hint, ok bool) {
	prefix, local, ok := g.finder.splitUnregistered(t.Value())
	if !ok || g.failed {
		return h, false
	}
	err := g.openViews(ctx)
	there := false
	for _, what := range [...]string{"subject", "object", "predicate", "graph"} {
		if err == nil && !there {
			there, err = termOccurs(g.all, what, t)
		}
	}
	if g.failed = err != nil; g.failed || there {
		return h, false
	}
	h.Message = fmt.Sprintf("the graphs that you may read have no IRI %s", t.Value())
	tellPrefix(&h, g.finder.prefixes, prefix, local)
	return h, true
}

// literalHint returns a hint about a text that is compared with literals, occurs
// as none, and is the IRI of an existing entity.
func (g *nameSuggester) literalHint(ctx context.Context, x mention, t kg.Term) (h operation.Hint, ok bool) {
	if g.failed || !t.IsResource() || g.openViews(ctx) != nil {
		return h, false
	}
	there, err := termOccurs(g.all, "subject", t)
	if err == nil && !there {
		there, err = termOccurs(g.all, "object", t)
	}
	if err != nil || !there {
		return h, false
	}
	literals, complete, err := g.all.Literals(x.text)
	if err != nil || !complete {
		return h, false
	}
	for _, l := range literals {
		if there, err := termOccurs(g.all, "object", l); there || err != nil {
			return h, false
		}
	}
	instead := "iri: {eq: …}"
	if x.kind == mentionValue {
		instead = "o"
	}
	h.Message = fmt.Sprintf("%q is compared as a text; for the entity use %s", x.text, instead)
	return h, true
}
