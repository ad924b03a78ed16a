package policy

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"strings"

	"github.com/google/uuid"

	"koine/internal/systemgraph"
	"koine/kg"
)

// Graphs creates, changes and deletes graphs on behalf of callers. It is safe for
// concurrent use.
type Graphs struct {
	*Policies
	store *kg.Store
}

// NewGraphs returns the Graphs of a store with policies as part of its Access.
func NewGraphs(store *kg.Store, policies *Policies) *Graphs { return &Graphs{policies, store} }

// Creation describes a graph to create. Unset fields default to Options.NewGraphs;
// without owners, the caller is the owner.
type Creation struct {
	// Graph is the name of the graph; the zero Term requests a generated name. Callers
	// other than administrators can only use names under their own id.
	Graph                    kg.Term
	Public                   *bool
	Owners, Writers, Readers []Grantee
}

// Create creates a graph and returns its policy. Repeated with the same idempotency
// key, it returns the same graph.
//
// Errors: CodePermissionDenied if the caller may not use the name; CodeReserved for a
// name reserved for koine; CodeInvalid if the graph exists, or was deleted by other
// owners; CodeLimitExceeded if the caller has created Options.MaxGraphs graphs.
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
	if err := p.normalize(); err != nil {
		return Policy{}, kg.Receipt{}, err
	}
	if known := g.table.Load().find(p.Graph); known.canRecreate(&m.Principal) && !m.DryRun {
		if known.Creator != m.Principal.ID {
			if err := g.checkQuota(&m.Principal); err != nil {
				return Policy{}, kg.Receipt{}, err
			}
		}
		// This also removes statements left by an interrupted deletion or by an older
		// version.
		unused := func() bool { return g.table.Load().find(p.Graph).canRecreate(&m.Principal) }
		if _, err := g.store.DropGraph(ctx, kg.Meta{Principal: m.Principal, Actor: m.Actor}, p.Graph, kg.DropOptions{Still: unused, Anew: true}); err != nil {
			return Policy{}, kg.Receipt{}, err
		}
	}
	receipt, err := g.commitUpdate(ctx, m, func(tx *kg.Tx) error {
		known := g.table.Load().find(p.Graph)
		switch {
		case known == nil:
		case known.canRecreate(&m.Principal):
			if known.Creator != m.Principal.ID { // otherwise it is counted already
				if err := g.checkQuota(&m.Principal); err != nil {
					return err
				}
			}
			p.CreatedEmpty, p.Creator = true, m.Principal.ID
			return writeRecreated(tx, p)
		case known.Deleted:
			return kg.Errorf(kg.CodeInvalid, "graph %s was deleted: only its former owners and administrators can create it again", p.Graph).At("graph")
		default:
			return kg.Errorf(kg.CodeInvalid, "graph %s already exists", p.Graph).At("graph")
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

// checkName returns an error if the principal may not create a graph with this name.
func (g *Graphs) checkName(principal *kg.Principal, graph kg.Term) error {
	switch {
	case graph.IsZero():
		return nil
	case graph == kg.DefaultGraph:
		return kg.Errorf(kg.CodeInvalid, "the default graph already exists")
	case graph.Kind() != kg.KindIRI:
		return kg.Errorf(kg.CodeInvalid, "graph name must be an IRI; a graph named by a blank node is created by its first statement")
	case kg.IsOwnGraph(graph):
		return errReservedName()
	case principal.IsAdmin() || ownerByName(graph) == principal.ID:
		return graph.Valid()
	}
	e := kg.Errorf(kg.CodePermissionDenied, "graph name is outside of the caller's namespace")
	e.Hint = "omit the name to get a generated one"
	if prefix := prefixOf(principal.ID); prefix != "" {
		e.Hint = "use a name that begins with " + prefix + ", or omit the name to get a generated one"
	}
	return e
}

func errReservedName() *kg.Error {
	return kg.Errorf(kg.CodeReserved, "names that begin with %s are reserved for koine", kg.OwnGraphPrefix)
}

// nameFor returns the graph's name, or a generated one for the zero Term: the same one
// for the same idempotency key.
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

// setIfGiven replaces the list unless given is nil.
func setIfGiven(list *[]Grantee, given []Grantee) {
	if given != nil {
		*list = given
	}
}

// PolicyUpdate is a change of a policy. Nil fields are unchanged.
type PolicyUpdate struct {
	Graph                    kg.Term
	Public                   *bool
	Owners, Writers, Readers []Grantee
}

// Set changes the policy of a graph.
//
// Errors: CodeGraphNotFound if the graph does not exist or the caller cannot read it;
// CodePermissionDenied if the caller is not an owner.
func (g *Graphs) Set(ctx context.Context, m kg.Meta, a PolicyUpdate) (Policy, kg.Receipt, error) {
	if kg.IsOwnGraph(a.Graph) {
		return Policy{}, kg.Receipt{}, errReservedName().At("graph")
	}
	if a.Public == nil && a.Owners == nil && a.Writers == nil && a.Readers == nil {
		return Policy{}, kg.Receipt{}, kg.Errorf(kg.CodeInvalid, "nothing to change: give visibility, owners, writers or readers")
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
			return kg.Errorf(kg.CodeInvalid, "owners must not be empty: name another owner, or delete the graph").At("owners")
		}
		return Write(tx, p)
	})
	if receipt.Replayed {
		p, _ = g.PolicyOf(a.Graph)
	}
	return p, receipt, err
}

// checkManage returns an error unless the caller is an owner of the graph.
func (g *Graphs) checkManage(tx *kg.Tx, graph kg.Term) error {
	principal, p := tx.Meta().Principal, g.table.Load().find(graph)
	level := g.rightOf(&principal, graph, p)
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
		return kg.Errorf(kg.CodePermissionDenied, "only an owner of the graph %s can do this", graph).At("graph")
	}
	return nil
}

// errNoGraph is the error of an update of a graph that does not exist.
func errNoGraph(graph kg.Term) error {
	return kg.Errorf(kg.CodeGraphNotFound, "there is no graph %s", graph).At("graph")
}

func hasStatements(tx *kg.Tx, graph kg.Term) (bool, error) {
	_, found, err := systemgraph.First(tx.MatchOwn, kg.Pattern{Graph: graph})
	return found, err
}

// commitUpdate makes one commit. It returns an error if the update is not accepted.
func (g *Graphs) commitUpdate(ctx context.Context, m kg.Meta, fn func(*kg.Tx) error) (kg.Receipt, error) {
	receipt, err := g.store.Update(ctx, m, fn)
	if v := receipt.Verdict; err == nil && v.Outcome != kg.Accepted {
		err = kg.Errorf(kg.CodeConstraintViolation, "%s", strings.TrimSuffix(v.Reason+": "+v.Details, ": "))
	}
	return receipt, err
}

// requestMeta returns m with the canonical principal and the content hash of the
// request.
func requestMeta(m kg.Meta, method string, graph kg.Term, parts ...any) kg.Meta {
	m.Principal.ID = kg.CanonicalAgent(string(m.Principal.ID))
	if m.IdempotencyKey != "" {
		text, _ := json.Marshal(append(parts, method, graph.String())) // cannot fail for strings
		m.ContentHash = sha256.Sum256(text)
	}
	return m
}
