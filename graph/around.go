package graph

import (
	"context"
	"fmt"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"koine/internal/operation"
	"koine/internal/query/path"
	"koine/kg"
)

// listPlans are the plans of all fields `entities` and `statements` in one object.
type listPlans struct {
	entities   []*entityPlan
	statements []*statementPlan
}

// planList plans a field `entities` or `statements` and returns its index.
func (p *planner) planList(l *listPlans, f graphql.CollectedField) (i int, err error) {
	err = p.inList(func() error {
		if f.Name == "entities" {
			plan, err := p.planEntity(f.Selections)
			l.entities, i = append(l.entities, plan), len(l.entities)
			return err
		}
		plan, err := p.planStatement(f.Selections)
		l.statements, i = append(l.statements, plan), len(l.statements)
		return err
	})
	return i, err
}

// loadedLists are the loaded elements of lists.
type loadedLists struct {
	run        *run
	entities   [][]*entityNode   // per plan
	statements [][]statementNode // per plan
}

func (l *loader) loadLists(of *listPlans, ids []kg.ID, rows []kg.Row) (*loadedLists, error) {
	out := &loadedLists{run: l.run}
	refs := make([]entityRef, len(ids))
	for i, id := range ids {
		refs[i].id = id
	}
	for _, plan := range of.entities {
		nodes, err := l.loadEntities(plan, refs)
		if err != nil {
			return nil, err
		}
		out.entities = append(out.entities, nodes)
	}
	for _, plan := range of.statements {
		nodes, err := l.loadStatements(plan, rows)
		if err != nil {
			return nil, err
		}
		out.statements = append(out.statements, nodes)
	}
	return out, nil
}

// appendList writes the elements with indexes in [from, to).
func (l *loadedLists) appendList(b []byte, from, to int, element func(b []byte, k int) []byte) []byte {
	b = append(b, '[')
	for k := from; k < to; k++ {
		if k > from {
			b = append(b, ',')
		}
		b = l.run.inElement(k-from, func() []byte { return element(b, k) })
	}
	return append(b, ']')
}

// inElement writes an element of a list that no budget cuts. Lists inside of
// it may be cut, so the cutter has to know the element's index.
func (r *run) inElement(k int, write func() []byte) []byte {
	c := r.cutter
	if c == nil {
		return write()
	}
	c.indexes = append(c.indexes, k)
	defer func() { c.indexes = c.indexes[:len(c.indexes)-1] }()
	return write()
}

func (l *loadedLists) entityWriter(selection int) func(b []byte, k int) []byte {
	return func(b []byte, k int) []byte { return l.entities[selection][k].write(b) }
}

func (l *loadedLists) statementWriter(selection int) func(b []byte, k int) []byte {
	return func(b []byte, k int) []byte { return l.statements[selection][k].write(b) }
}

// pathEdges reads the arguments `predicates` and `direction`.
func (l Limits) pathEdges(args map[string]any) path.Edges {
	e := path.Edges{Statements: l.Reads, Direction: argumentOf[path.Direction](args, "direction")}
	if list, ok := args["predicates"].([]kg.Term); ok && list != nil {
		e.Predicates = list
	}
	return e
}

// partField is a field of an object that holds lists.
type partField struct {
	key  []byte
	name string
	list int // index of the list, for entities and statements
}

// planParts plans an object that holds lists and the named scalars.
func (p *planner) planParts(l *listPlans, set ast.SelectionSet, implementors []string, scalars ...string) (fields []partField, err error) {
	err = p.eachField(set, implementors, func(f graphql.CollectedField, key []byte) (err error) {
		field := partField{key: key, name: f.Name}
		switch f.Name {
		case "__typename":
		case "entities", "statements":
			field.list, err = p.planList(l, f)
		default:
			err = unplannedField(f)
			for _, name := range scalars {
				if f.Name == name {
					err = nil
				}
			}
		}
		fields = append(fields, field)
		return err
	})
	return fields, err
}

// appendParts writes the object. value writes its scalars and lists.
func appendParts(b []byte, fields []partField, typename string, value func(b []byte, f *partField) []byte) []byte {
	return appendFields(b, fields, func(b []byte, _ int, f *partField) []byte {
		if b = append(b, f.key...); f.name == "__typename" {
			return appendString(b, typename)
		}
		return value(b, f)
	})
}

// readShortestPaths answers Query.shortestPaths.
func readShortestPaths(ctx context.Context, from, to kg.Term, maxDepth, k int, view *ViewInput) error {
	r, err := beginReading(ctx, view)
	if err != nil {
		return err
	}
	var of listPlans
	var fields []partField
	if err := r.inList(func() (err error) {
		fields, err = r.planParts(&of, r.field.Selections, graphPathImplementors, "length")
		return err
	}); err != nil {
		return err
	}
	l, err := r.openLoader()
	if err != nil {
		return err
	}
	routes, ids, rows, deeper, err := l.findRoutes(from, to, r.run.engine.limits.pathEdges(r.args), maxDepth, k)
	if err != nil {
		return err
	}
	if deeper {
		r.run.noteDepth(r.field.Alias, maxDepth)
	}
	all, err := l.loadLists(&of, ids, rows)
	if err != nil {
		return err
	}
	return r.storeAnswer(func(b []byte) []byte {
		entity, statement := 0, 0
		b = all.appendList(b, 0, len(routes), func(b []byte, i int) []byte {
			n := len(routes[i])
			b = appendParts(b, fields, "GraphPath", func(b []byte, f *partField) []byte {
				switch f.name {
				case "entities":
					return all.appendList(b, entity, entity+n+1, all.entityWriter(f.list))
				case "statements":
					return all.appendList(b, statement, statement+n, all.statementWriter(f.list))
				}
				return appendUint(b, uint64(n))
			})
			entity, statement = entity+n+1, statement+n
			return b
		})
		return b
	})
}

// findRoutes finds the paths. The entities and the statements of all of them come
// back in one slice each.
func (l *loader) findRoutes(from, to kg.Term, e path.Edges, maxDepth, k int) (routes []path.Route, ids []kg.ID, rows []kg.Row, deeper bool, err error) {
	a, err := l.newEntityRef(from)
	if err != nil {
		return nil, nil, nil, false, err
	}
	z, err := l.newEntityRef(to)
	if err != nil {
		return nil, nil, nil, false, err
	}
	for _, end := range []entityRef{a, z} { // searching at all would reveal an entity that the view does not show
		if there, err := l.showsEntity(end); err != nil || !there {
			return nil, nil, nil, false, err
		}
	}
	if routes, deeper, err = path.Shortest(l.snapshot, a.id, z.id, e, maxDepth, k); err != nil {
		return nil, nil, nil, false, err
	}
	for _, route := range routes {
		ids = append(ids, a.id)
		for _, step := range route {
			ids, rows = append(ids, step.To()), append(rows, step.Row)
		}
	}
	return routes, ids, rows, deeper, nil
}

// noteDepth adds a hint that a path search ended at its maximal depth.
func (r *run) noteDepth(field string, maxDepth int) {
	h := operation.Hint{Path: ast.Path{ast.PathName(field)}}
	h.Message = fmt.Sprintf("no path has at most %d statements (maxDepth), but a longer one may exist", maxDepth)
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.notedHints) < operation.MaxHints {
		r.notedHints = append(r.notedHints, h)
	}
}
