package policy

import (
	"context"
	"strings"
	"sync/atomic"

	"github.com/google/uuid"

	"koine/internal/systemgraph"
	"koine/kg"
)

// Policies evaluates the newest policies. It is a kg.Access, safe for concurrent use,
// and takes no lock to answer.
type Policies struct {
	options  Options
	table    atomic.Pointer[table]
	version  atomic.Uint64 // incremented after each change of the table
	recent   systemgraph.RecentChanges[policyChange]
	creators creatorCounts
	mirror   systemgraph.Mirror
}

// New returns Policies without any policy. Call Load before use.
func New(o Options) *Policies {
	p := &Policies{options: o.withDefaults()}
	p.table.Store(new(table))
	return p
}

// Load reads the policies from the store. It must be called once, after the store is
// opened and before any other use; Follow applies later changes.
func (ps *Policies) Load(ctx context.Context, store *kg.Store) error {
	return ps.mirror.Load(ctx, store, func(_ kg.Revision, facts []systemgraph.Fact) {
		drafts, first := map[kg.Term]*draft{}, map[kg.Term]kg.Revision{}
		for _, f := range facts {
			d, known := ps.applyFact(drafts, f), first[graphOf(f.Subject)]
			if known == 0 || f.Since < known {
				first[d.Graph] = f.Since
			}
		}
		var last kg.Revision // of the last change to an existing policy
		for graph, d := range drafts {
			if !d.CreatedEmpty || d.Revision != first[graph] {
				last = max(last, d.Revision)
			}
		}
		ps.publishDrafts(drafts)
		ps.recent.AssumeChangedUpTo(last)
	}, statementsOfPolicies...)
}

// Follow applies a commit (kg.Governor.OnSystemChange).
func (ps *Policies) Follow(c *kg.Commit) {
	ps.mirror.Follow(c, func(at kg.Revision, facts []systemgraph.Fact) {
		drafts := map[kg.Term]*draft{}
		for _, f := range facts {
			ps.applyFact(drafts, f)
		}
		before, after := ps.publishDrafts(drafts)
		changes := make([]policyChange, 0, len(drafts))
		for graph := range drafts {
			changes = append(changes, policyChange{graph: graph, before: before.find(graph), after: after.find(graph)})
		}
		ps.recent.Add(at, changes...)
	}, statementsOfPolicies...)
}

// applyFact adds a statement to the draft of its graph's policy.
func (ps *Policies) applyFact(drafts map[kg.Term]*draft, f systemgraph.Fact) *draft {
	graph := graphOf(f.Subject)
	d := drafts[graph]
	if d == nil {
		d = newDraft(nil, graph)
		if known := ps.table.Load().find(graph); known != nil {
			d = newDraft(&known.Policy, graph)
		}
		drafts[graph] = d
	}
	d.applyStatement(f.Predicate, f.Object, f.Exists, f.Since)
	return d
}

// publishDrafts replaces the policies of the drafts in the table.
func (ps *Policies) publishDrafts(drafts map[kg.Term]*draft) (before, after *table) {
	before = ps.table.Load()
	changed := make(map[kg.Term]*Policy, len(drafts))
	for graph, d := range drafts {
		changed[graph] = d.toPolicy()
	}
	after = before.withPolicies(changed)
	for graph := range changed {
		ps.creators.applyChange(before.find(graph), after.find(graph))
	}
	ps.table.Store(after)
	if len(drafts) > 0 {
		ps.version.Add(1)
	}
	return before, after
}

// Allowed implements kg.Access.
func (ps *Policies) Allowed(p kg.Principal, graph kg.Term, right kg.Right) bool {
	return ps.rightOf(&p, graph, ps.table.Load().find(graph)) >= right
}

// Version is incremented with every change (kg.VersionedAccess).
func (ps *Policies) Version() *atomic.Uint64 { return &ps.version }

// rightOf returns the highest right of the principal in a graph with this policy, which
// may be nil.
func (ps *Policies) rightOf(principal *kg.Principal, graph kg.Term, p *compiledPolicy) kg.Right {
	admin := principal.IsAdmin()
	switch {
	case principal.ID == kg.System && principal.Method == kg.MethodLocal:
		return kg.Manage
	case p != nil && p.Deleted:
		return 0
	case admin:
		return kg.Manage
	case p != nil:
		return p.rightOf(principal)
	case kg.IsOwnGraph(graph):
		return systemGraphRight(graph)
	case graph == kg.DefaultGraph:
		return ps.options.DefaultGraph.maxRight()
	}
	switch ownerByName(graph) {
	case "":
		return ps.options.NewGraphs.maxRight()
	case principal.ID:
		return kg.Manage
	}
	return 0
}

// systemGraphRight returns the right of everyone in a system graph.
func systemGraphRight(graph kg.Term) kg.Right {
	if graph == agentsGraph || graph == followsGraph || graph == presenceGraph || graph == shapesGraph || graph == portfoliosGraph {
		return kg.Read
	}
	return 0
}

var (
	agentsGraph = kg.IRI(kg.OwnGraphPrefix + "agents")
	// followsGraph is the graph of package following.
	followsGraph = kg.IRI(kg.OwnGraphPrefix + "follows")
	// presenceGraph is the graph of package presence.
	presenceGraph = kg.IRI(kg.JournalGraphPrefix + "presence")
	shapesGraph   = kg.IRI(kg.OwnGraphPrefix + "shapes")
	// portfoliosGraph is the graph of package intents.
	portfoliosGraph = kg.IRI(kg.OwnGraphPrefix + "portfolios")
)

// ownerByName returns the agent that a graph belongs to by its name, or "":
// agent://dora for agent://dora/notes. It never returns an agent whose id contains a
// "/", or an id such as "https:", because then a name could belong to several agents,
// or a large part of all names to one.
func ownerByName(graph kg.Term) kg.AgentID {
	name := graph.Value()
	from := 0
	switch {
	case strings.HasPrefix(name, agentScheme):
		from = len(agentScheme)
	case !strings.HasPrefix(name, "did:"):
		return ""
	}
	n := strings.IndexByte(name[from:], '/')
	if n <= 0 || from+n+1 == len(name) {
		return ""
	}
	return kg.AgentID(name[:from+n])
}

const agentScheme = "agent://"

// prefixOf returns the prefix of the names of an agent's own graphs, or "" if it has
// none.
func prefixOf(agent kg.AgentID) string {
	prefix := string(agent) + "/"
	if ownerByName(kg.IRI(prefix+"x")) != agent {
		return ""
	}
	return prefix
}

// PolicyOf returns the policy of a graph: the stored one, or the default. stored
// reports which. A stored policy does not imply that the graph has statements.
func (ps *Policies) PolicyOf(graph kg.Term) (p Policy, stored bool) {
	if p := ps.table.Load().find(graph); p != nil {
		return p.Policy, true
	}
	return ps.byDefault(graph), false
}

// byDefault returns the policy of a graph without a stored one.
func (ps *Policies) byDefault(graph kg.Term) Policy {
	switch agent := ownerByName(graph); {
	case kg.IsOwnGraph(graph):
		return Policy{Graph: graph, Public: systemGraphRight(graph) >= kg.Read}
	case graph == kg.DefaultGraph:
		return ps.options.DefaultGraph.defaultPolicy(graph)
	case agent != "":
		return Policy{Graph: graph, Owners: []Grantee{Grantee(agent)}}
	}
	return ps.options.NewGraphs.defaultPolicy(graph)
}

// Rights lists the rights of the principal in an existing graph.
func (ps *Policies) Rights(principal kg.Principal, graph kg.Term) (out []kg.Right) {
	level := ps.rightOf(&principal, graph, ps.table.Load().find(graph))
	for _, right := range [...]kg.Right{kg.Discover, kg.Read, kg.Write, kg.Manage} {
		if level >= right {
			out = append(out, right)
		}
	}
	return out
}

// Discoverable lists the graphs with a policy that the principal can discover, in no
// particular order.
func (ps *Policies) Discoverable(principal kg.Principal) (out []kg.Term) {
	ps.table.Load().each(func(p *compiledPolicy) {
		if !p.Deleted && ps.rightOf(&principal, p.Graph, p) >= kg.Discover {
			out = append(out, p.Graph)
		}
	})
	return out
}

// NewName generates the name of a graph that the principal may create by writing to it:
// any name if it may create all graphs, otherwise one below its own id. ok is false if
// the principal has no namespace of its own.
func (ps *Policies) NewName(principal kg.Principal) (graph kg.Term, ok bool) {
	principal.ID = kg.CanonicalAgent(string(principal.ID))
	graph = kg.IRI("urn:uuid:" + uuid.NewString())
	if ps.Allowed(principal, graph, kg.Create) {
		return graph, true
	}
	prefix := prefixOf(principal.ID)
	return kg.IRI(prefix + uuid.NewString()), prefix != ""
}

// CanRecreate reports whether the graph was deleted and the principal may create it
// again with Create.
func (ps *Policies) CanRecreate(principal kg.Principal, graph kg.Term) bool {
	principal.ID = kg.CanonicalAgent(string(principal.ID))
	return ps.table.Load().find(graph).canRecreate(&principal)
}

// Exists reports whether the graph has a policy that lets the principal read it. Such a
// graph exists even without statements.
func (ps *Policies) Exists(principal kg.Principal, graph kg.Term) bool {
	p := ps.table.Load().find(graph)
	return p != nil && ps.rightOf(&principal, graph, p) >= kg.Read
}

// policyChange is a change of a graph's policy.
type policyChange struct {
	graph         kg.Term
	before, after *compiledPolicy
}

// ReadChanged reports whether a commit after the revision has changed the principal's
// read access, and up to which revision it knows. The creation of an empty graph with
// its policy does not count, because it had no content to see.
func (ps *Policies) ReadChanged(principal kg.Principal, after kg.Revision) (changed bool, upTo kg.Revision) {
	return ps.recent.Since(after, func(c *policyChange) bool {
		if (c.before == nil || c.before.Deleted) && c.after != nil && c.after.CreatedEmpty && !c.after.Deleted {
			return false
		}
		return (ps.rightOf(&principal, c.graph, c.before) >= kg.Read) != (ps.rightOf(&principal, c.graph, c.after) >= kg.Read)
	})
}
