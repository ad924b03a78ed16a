package policy

import (
	"context"
	"strings"
	"sync/atomic"

	"koine/internal/records"
	"koine/kg"
)

// Policies answers who may do what, from the newest policies. It is a kg.Access,
// safe for concurrent use, and takes no lock to answer.
type Policies struct {
	options  Options
	table    atomic.Pointer[table]
	version  atomic.Uint64 // moves on behind each change of the table
	recent   records.RecentChanges[policyChange]
	creators creatorCounts
	mirror   records.Mirror
}

// New makes policies that know of none yet: see Load.
func New(o Options) *Policies {
	p := &Policies{options: o.withDefaults()}
	p.table.Store(new(table))
	return p
}

// Load reads the policies that the store holds. It is called once, when the store
// is open and before anybody else uses it: Follow does the rest.
func (ps *Policies) Load(ctx context.Context, store *kg.Store) error {
	return ps.mirror.Load(ctx, store, func(_ kg.Revision, facts []records.Fact) {
		drafts, first := map[kg.Term]*draft{}, map[kg.Term]kg.Revision{}
		for _, f := range facts {
			d, known := ps.applyFact(drafts, f), first[graphOf(f.Subject)]
			if known == 0 || f.Since < known {
				first[d.Graph] = f.Since
			}
		}
		var last kg.Revision // in which one was changed
		for graph, d := range drafts {
			if !d.CreatedEmpty || d.Revision != first[graph] {
				last = max(last, d.Revision)
			}
		}
		ps.publishDrafts(drafts)
		ps.recent.Forget(last)
	}, statementsOfPolicies...)
}

// Follow is kg.Options.OnSystemChange: it takes a commit in.
func (ps *Policies) Follow(c *kg.Commit) {
	ps.mirror.Follow(c, func(at kg.Revision, facts []records.Fact) {
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

// applyFact takes a statement into the draft of its graph's policy.
func (ps *Policies) applyFact(drafts map[kg.Term]*draft, f records.Fact) *draft {
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

// publishDrafts puts what the drafts come to into the table.
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

// Version moves on with every change (kg.VersionedAccess).
func (ps *Policies) Version() *atomic.Uint64 { return &ps.version }

// rightOf is the greatest right of the principal in a graph with this policy, nil
// for none.
func (ps *Policies) rightOf(who *kg.Principal, graph kg.Term, p *compiledPolicy) kg.Right {
	admin := who.IsAdmin()
	switch {
	case who.ID == kg.System && who.Method == kg.MethodLocal:
		return kg.Manage
	case p != nil && p.Deleted:
		return 0
	case admin:
		return kg.Manage
	case p != nil:
		return p.rightOf(who)
	case kg.IsOwnGraph(graph):
		return systemGraphRight(graph)
	case graph == kg.DefaultGraph:
		return ps.options.DefaultGraph.maxRight()
	}
	switch ownerByName(graph) {
	case "":
		return ps.options.NewGraphs.maxRight()
	case who.ID:
		return kg.Manage
	}
	return 0
}

// systemGraphRight is what everybody may do with a graph of koine's own.
func systemGraphRight(graph kg.Term) kg.Right {
	if graph == agentsGraph || graph == presenceGraph || graph == shapesGraph {
		return kg.Read
	}
	return 0
}

var (
	agentsGraph = kg.IRI(kg.OwnGraphPrefix + "agents")
	// presenceGraph says who of them is there (package presence).
	presenceGraph = kg.IRI(kg.JournalGraphPrefix + "presence")
	shapesGraph   = kg.IRI(kg.OwnGraphPrefix + "shapes")
)

// ownerByName is the agent that a graph belongs to by its name, "" for none:
// agent://dora of agent://dora/notes. It is never an agent whose id has a "/" in
// it, nor one with an id such as "https:": then a name would belong to several,
// or half the world to one.
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

// prefixOf is what the names of an agent's own graphs begin with, "" if it has
// none.
func prefixOf(agent kg.AgentID) string {
	prefix := string(agent) + "/"
	if ownerByName(kg.IRI(prefix+"x")) != agent {
		return ""
	}
	return prefix
}

// PolicyOf is the policy of a graph: its own, or what holds without one. stored tells
// which. That there is a policy does not mean that the graph holds anything.
func (ps *Policies) PolicyOf(graph kg.Term) (p Policy, stored bool) {
	if p := ps.table.Load().find(graph); p != nil {
		return p.Policy, true
	}
	return ps.byDefault(graph), false
}

// byDefault is what holds of a graph without a policy.
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

// Rights lists what the principal may do with a graph that is there.
func (ps *Policies) Rights(who kg.Principal, graph kg.Term) (out []kg.Right) {
	level := ps.rightOf(&who, graph, ps.table.Load().find(graph))
	for _, right := range [...]kg.Right{kg.Discover, kg.Read, kg.Write, kg.Manage} {
		if level >= right {
			out = append(out, right)
		}
	}
	return out
}

// Discoverable lists the graphs with a policy that the principal may discover, in no
// order.
func (ps *Policies) Discoverable(who kg.Principal) (out []kg.Term) {
	ps.table.Load().each(func(p *compiledPolicy) {
		if !p.Deleted && ps.rightOf(&who, p.Graph, p) >= kg.Discover {
			out = append(out, p.Graph)
		}
	})
	return out
}
