package policy

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"strings"

	"github.com/google/uuid"

	"koine/kg"
)

// Graphs makes, changes and deletes graphs, in the name of whoever asks for it.
// It is safe for concurrent use.
type Graphs struct {
	*Policies
	store *kg.Store
}

// NewGraphs makes it over the store that has these policies as its Access.
func NewGraphs(store *kg.Store, policies *Policies) *Graphs { return &Graphs{policies, store} }

// Creation is a graph that is to come into being. What is not said is as
// Options.NewGraphs has it; its maker is an owner where none is named.
type Creation struct {
	// Graph is its name; the zero Term has one made up. Agents name graphs under
	// their own id only.
	Graph                    kg.Term
	Public                   *bool
	Owners, Writers, Readers []Grantee
}

// Create lets a graph come into being and says how it is called. With an
// idempotency key the same call gives the same graph. CodePermissionDenied says
// that the name is not the caller's to give, CodeReserved that it is koine's own,
// CodeInvalid that the graph is there already or was one of others that they deleted,
// and CodeLimitExceeded that the caller has created Options.MaxMade already.
func (g *Graphs) Create(ctx context.Context, m kg.Meta, c Creation) (Policy, kg.Receipt, error) {
	m = requestMeta(m, "create", c.Graph, c.Public, c.Owners, c.Writers, c.Readers)
	if err := g.checkName(&m.Principal, c.Graph); err != nil {
		return Policy{}, kg.Receipt{}, kg.AsError(err).At("graph")
	}
	p := g.options.NewGraphs.defaultPolicy(g.nameFor(&m, c.Graph))
	if c.Public != nil {
		p.Public = *c.Public
	}
	setIfGiven(&p.Owners, c.Owners)
	setIfGiven(&p.Writers, c.Writers)
	setIfGiven(&p.Readers, c.Readers)
	if len(p.Owners) == 0 {
		p.Owners = []Grantee{Grantee(m.Principal.ID)}
	}
	if err := p.normalise(); err != nil {
		return Policy{}, kg.Receipt{}, err
	}
	if known := g.table.Load().find(p.Graph); known.canRecreate(&m.Principal) && !m.DryRun {
		if known.Creator != m.Principal.ID {
			if err := g.checkQuota(&m.Principal); err != nil {
				return Policy{}, kg.Receipt{}, err
			}
		}
		// This also removes what a deletion left behind that was cut short, or made by an
		// older koine.
		if _, err := g.store.BeginGraphAnew(ctx, kg.Meta{Principal: m.Principal, Actor: m.Actor}, p.Graph, func() bool {
			return g.table.Load().find(p.Graph).canRecreate(&m.Principal)
		}); err != nil {
			return Policy{}, kg.Receipt{}, err
		}
	}
	receipt, err := g.commitUpdate(ctx, m, func(tx *kg.Tx) error {
		known := g.table.Load().find(p.Graph)
		switch {
		case known == nil:
		case known.canRecreate(&m.Principal):
			if known.Creator != m.Principal.ID { // else it is counted already
				if err := g.checkQuota(&m.Principal); err != nil {
					return err
				}
			}
			p.CreatedEmpty, p.Creator = true, m.Principal.ID
			return writeRecreated(tx, p)
		case known.Deleted:
			return kg.Errorf(kg.CodeInvalid, "there was a graph %s, which was deleted: only who owned it, and administrators, make it again", p.Graph).At("graph")
		default:
			return kg.Errorf(kg.CodeInvalid, "there is a graph %s already", p.Graph).At("graph")
		}
		held, err := hasStatements(tx, p.Graph)
		if err != nil {
			return err
		}
		if err := g.checkQuota(&m.Principal); err != nil {
			return err
		}
		p.CreatedEmpty, p.Creator = !held, m.Principal.ID
		return Write(tx, p)
	})
	return p, receipt, err
}

// checkName tells whether the caller may let a graph of this name come into being.
func (g *Graphs) checkName(who *kg.Principal, graph kg.Term) error {
	switch {
	case graph.IsZero():
		return nil
	case graph == kg.DefaultGraph:
		return kg.Errorf(kg.CodeInvalid, "the default graph is there already")
	case graph.Kind() != kg.KindIRI:
		return kg.Errorf(kg.CodeInvalid, "a graph that is created is named by an IRI; one that is named by a blank node comes into being with its first statement")
	case kg.IsOwnGraph(graph):
		return errReservedName()
	case who.IsAdmin() || ownerByName(graph) == who.ID:
		return graph.Valid()
	}
	e := kg.Errorf(kg.CodePermissionDenied, "you may not name a graph so")
	e.Hint = "without a name, one is made up"
	if prefix := prefixOf(who.ID); prefix != "" {
		e.Hint = "names that begin with " + prefix + " are yours; without a name, one is made up"
	}
	return e
}

func errReservedName() *kg.Error {
	return kg.Errorf(kg.CodeReserved, "names that begin with %s are koine's own", kg.OwnGraphPrefix)
}

// nameFor is the graph's name, a made-up one for the zero Term: the same for the
// same idempotency key.
func (g *Graphs) nameFor(m *kg.Meta, graph kg.Term) kg.Term {
	if !graph.IsZero() {
		return graph
	}
	id := uuid.New()
	if m.IdempotencyKey != "" {
		id = uuid.NewSHA1(uuid.UUID(g.store.Epoch()), []byte("graph\x00"+string(m.Principal.ID)+"\x00"+m.IdempotencyKey))
	}
	return kg.IRI("urn:uuid:" + id.String())
}

// setIfGiven puts a list that was said in the place of one; nil was not said.
func setIfGiven(list *[]Grantee, said []Grantee) {
	if said != nil {
		*list = said
	}
}

// PolicyUpdate is what is to become of a policy. What is nil stays as it is.
type PolicyUpdate struct {
	Graph                    kg.Term
	Public                   *bool
	Owners, Writers, Readers []Grantee
}

// Set changes the policy of a graph. CodeGraphNotFound says that there is none,
// or none that the caller may read, CodePermissionDenied that the caller is no
// owner.
func (g *Graphs) Set(ctx context.Context, m kg.Meta, a PolicyUpdate) (Policy, kg.Receipt, error) {
	if kg.IsOwnGraph(a.Graph) {
		return Policy{}, kg.Receipt{}, errReservedName().At("graph")
	}
	if a.Public == nil && a.Owners == nil && a.Writers == nil && a.Readers == nil {
		return Policy{}, kg.Receipt{}, kg.Errorf(kg.CodeInvalid, "say what is to change: visibility, owners, writers or readers")
	}
	m = requestMeta(m, "set", a.Graph, a.Public, a.Owners, a.Writers, a.Readers)
	var p Policy
	receipt, err := g.commitUpdate(ctx, m, func(tx *kg.Tx) error {
		if err := g.checkManage(tx, a.Graph); err != nil {
			return err
		}
		p, _ = g.PolicyOf(a.Graph)
		if a.Public != nil {
			p.Public = *a.Public
		}
		setIfGiven(&p.Owners, a.Owners)
		setIfGiven(&p.Writers, a.Writers)
		setIfGiven(&p.Readers, a.Readers)
		if len(p.Owners) == 0 && !m.Principal.IsAdmin() {
			return kg.Errorf(kg.CodeInvalid, "a graph keeps an owner: name another one first, or delete it").At("owners")
		}
		return Write(tx, p)
	})
	if receipt.Replayed {
		p, _ = g.PolicyOf(a.Graph)
	}
	return p, receipt, err
}

// checkManage refuses what only an owner of a graph may do with it.
func (g *Graphs) checkManage(tx *kg.Tx, graph kg.Term) error {
	who, p := tx.Meta().Principal, g.table.Load().find(graph)
	level := g.rightOf(&who, graph, p)
	if level >= kg.Read && p == nil && graph != kg.DefaultGraph {
		held, err := hasStatements(tx, graph)
		if err != nil {
			return err
		}
		if !held {
			level = 0
		}
	}
	switch {
	case level < kg.Read:
		return errNoGraph(graph)
	case level < kg.Manage:
		return kg.Errorf(kg.CodePermissionDenied, "only an owner of the graph %s may do that", graph).At("graph")
	}
	return nil
}

// errNoGraph is as that of an update of a graph that is not there.
func errNoGraph(graph kg.Term) error {
	return kg.Errorf(kg.CodeGraphNotFound, "there is no graph %s", graph).At("graph")
}

// hasStatements tells whether any statement stands in the graph.
func hasStatements(tx *kg.Tx, graph kg.Term) (bool, error) {
	for _, err := range tx.MatchOwn(kg.Pattern{Graph: graph}) {
		return err == nil, err
	}
	return false, nil
}

// commitUpdate makes one commit, and an error of one that was judged and not made.
func (g *Graphs) commitUpdate(ctx context.Context, m kg.Meta, fn func(*kg.Tx) error) (kg.Receipt, error) {
	receipt, err := g.store.Update(ctx, m, fn)
	if v := receipt.Verdict; err == nil && v.Outcome != kg.Accepted {
		err = kg.Errorf(kg.CodeConstraintViolation, "%s", strings.TrimSuffix(v.Reason+": "+v.Details, ": "))
	}
	return receipt, err
}

// requestMeta is the Meta with the principal spelled out, and what is asked for as its
// content.
func requestMeta(m kg.Meta, what string, graph kg.Term, parts ...any) kg.Meta {
	m.Principal.ID = kg.CanonicalAgent(string(m.Principal.ID))
	if m.IdempotencyKey != "" {
		text, _ := json.Marshal(append(parts, what, graph.String())) // texts and lists of them
		m.ContentHash = sha256.Sum256(text)
	}
	return m
}
