package names

import (
	"cmp"
	"slices"
	"strings"

	"koine/kg"
)

// Unknown is a prefix or IRI scheme in a document that the store does not know, with
// the number of its uses.
type Unknown struct {
	Prefix string `json:"prefix"`
	Count  uint64 `json:"count"`
	// Example is one of the IRIs, Nearest are similar known names.
	Example string   `json:"example"`
	Nearest []string `json:"nearest,omitempty"`
}

// Limits of a Census.
const (
	maxCounted = 1000 // distinct prefixes counted
	maxTold    = 20   // prefixes reported
)

// Known is the part of kg.Store that knows names.
type Known interface {
	KnowsScheme(name string) bool
	Prefixes() *kg.Prefixes
	KeptSchemes() []string
}

// Census counts the names of a document that the store does not know. Loaded data has
// foreign names, so they are counted and not refused.
type Census struct {
	store   Known
	known   string
	unknown map[string]*Unknown
}

// NewCensus returns a census of a document for a store.
func NewCensus(store Known) *Census { return &Census{store: store, unknown: map[string]*Unknown{}} }

// Add counts the names of a statement.
func (c *Census) Add(q *kg.Quad) {
	for _, t := range [...]*kg.Term{&q.Subject, &q.Predicate, &q.Object, &q.Graph} {
		iri := iriOf(*t)
		if iri == "" || c.known != "" && strings.HasPrefix(iri, c.known) {
			continue
		}
		scheme, _, ok := strings.Cut(iri, ":")
		if !ok {
			continue
		}
		if c.store.KnowsScheme(scheme) {
			c.known = iri[:len(scheme)+1]
			continue
		}
		u := c.unknown[scheme]
		if u == nil {
			if len(c.unknown) == maxCounted {
				continue
			}
			u = &Unknown{Prefix: clipText(scheme), Example: clipText(iri), Nearest: nearestTo(c.store, iri, scheme)}
			c.unknown[strings.Clone(scheme)] = u
		}
		u.Count++
	}
}

// Unknown returns the unknown names, the most used first.
func (c *Census) Unknown() (out []Unknown) {
	for _, u := range c.unknown {
		out = append(out, *u)
	}
	slices.SortFunc(out, func(a, b Unknown) int { return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Prefix, b.Prefix)) })
	return out[:min(len(out), maxTold)]
}
