package push

import (
	"net/url"
	"strings"
	"sync/atomic"

	"koine/kg"
)

const graphPrefix = kg.JournalGraphPrefix + "push:"

// graphOf returns the graph of an agent's configurations.
func graphOf(agent kg.AgentID) kg.Term { return kg.IRI(graphPrefix + url.QueryEscape(string(agent))) }

// ownerOf returns the owner of a graph of configurations; ok is false for other graphs.
func ownerOf(graph kg.Term) (agent kg.AgentID, ok bool) {
	rest, ok := strings.CutPrefix(graph.Value(), graphPrefix)
	if !ok {
		return "", false
	}
	name, err := url.QueryUnescape(rest)
	if err != nil {
		return "", true // a malformed name has no owner
	}
	return kg.AgentID(name), true
}

// Guard is the access control for the graphs of configurations, in front of the access
// control for all other graphs (kg.Governor.Access).
type Guard struct{ next kg.Access }

// NewGuard returns a Guard in front of next.
func NewGuard(next kg.Access) *Guard { return &Guard{next} }

// Allowed decides access to the graphs of configurations. Their owner and
// administrators can read them, in open mode only the owner. Only this package writes
// them.
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

// ReadChanged passes the call on, because the owner of a configuration never changes
// (kg.AccessChanges).
func (g *Guard) ReadChanged(p kg.Principal, after kg.Revision) (changed bool, upTo kg.Revision) {
	return kg.ChangesOf(g.next).ReadChanged(p, after)
}

// Version returns the version of the next access control.
func (g *Guard) Version() *atomic.Uint64 { return kg.VersionOf(g.next) }

// Unwrap returns the next access control.
func (g *Guard) Unwrap() kg.Access { return g.next }

// Hides returns the predicates and graphs that the next access control hides.
func (g *Guard) Hides(p kg.Principal) func(predicate, graph kg.Term) bool {
	if h, ok := g.next.(kg.Hider); ok {
		return h.Hides(p)
	}
	return nil
}
