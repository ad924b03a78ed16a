package push

import (
	"net/url"
	"strings"
	"sync/atomic"

	"koine/kg"
)

const graphPrefix = kg.JournalGraphPrefix + "push:"

// graphOf is the graph of an agent's configurations.
func graphOf(agent kg.AgentID) kg.Term { return kg.IRI(graphPrefix + url.QueryEscape(string(agent))) }

// ownerOf is whose configurations are in a graph; not ok for a graph without any.
func ownerOf(graph kg.Term) (agent kg.AgentID, ok bool) {
	rest, ok := strings.CutPrefix(graph.Value(), graphPrefix)
	if !ok {
		return "", false
	}
	name, err := url.QueryUnescape(rest)
	if err != nil {
		return "", true // somebody else's name for a graph of ours: nobody's
	}
	return kg.AgentID(name), true
}

// Guard is the access to the graphs of configurations, in front of the access to all
// else (kg.Options.Access).
type Guard struct{ next kg.Access }

// NewGuard puts the access to configurations in front of another.
func NewGuard(next kg.Access) *Guard { return &Guard{next} }

// Allowed answers for the graphs of configurations: who set them and administrators
// read them, in open mode who set them only, and nobody but this package writes them.
func (g *Guard) Allowed(p kg.Principal, graph kg.Term, right kg.Right) bool {
	owner, ok := ownerOf(graph)
	if !ok {
		return g.next.Allowed(p, graph, right)
	}
	if right != kg.Discover && right != kg.Read {
		return p.Trusted()
	}
	return p.Trusted() || p.ID == owner || isAdministrator(p)
}

func isAdministrator(p kg.Principal) bool {
	return p.HasRole(kg.RoleAdmin) && p.Method != kg.MethodOpen
}

// ReadChanged passes on: whose a configuration is never changes (kg.AccessChanges).
func (g *Guard) ReadChanged(p kg.Principal, after kg.Revision) (changed bool, upTo kg.Revision) {
	return kg.ChangesOf(g.next).ReadChanged(p, after)
}

// Version is that of the access behind it.
func (g *Guard) Version() *atomic.Uint64 { return kg.VersionOf(g.next) }

// Unwrap is the access behind it.
func (g *Guard) Unwrap() kg.Access { return g.next }

// Hides passes on what the access behind it hides.
func (g *Guard) Hides(p kg.Principal) func(predicate, graph kg.Term) bool {
	if h, ok := g.next.(kg.Hider); ok {
		return h.Hides(p)
	}
	return nil
}
