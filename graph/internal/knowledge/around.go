package knowledge

import (
	"context"
	"fmt"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"koine/graph/executor"
	"koine/graph/internal/scalar"
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
func (p *Planner) planList(l *listPlans, f graphql.CollectedField) (i int, err error) {
	if f.Name == "entities" {
		plan, err := p.planEntity(f.Selections)
		l.entities, i = append(l.entities, plan), len(l.entities)
		return i, err
	}
	plan, err := p.planStatement(f.Selections)
	l.statements, i = append(l.statements, plan), len(l.statements)
	return i, err
}

// loadedLists are the loaded elements of lists.
type loadedLists struct {
	entities   [][]*entityNode   // per plan
	statements [][]statementNode // per plan
}

func (l *loader) loadLists(of *listPlans, ids []kg.ID, rows []kg.Row) (*loadedLists, error) {
	out := &loadedLists{}
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

// writeList writes a field with n elements. k returns the index of the i-th.
func (l *loadedLists) writeList(w *writer, f *partField, n int, k func(i int) int) {
	scalar.WriteList(w, n, func(i int) {
		if f.name == "entities" {
			l.entities[f.list][k(i)].write(w)
		} else {
			l.statements[f.list][k(i)].write(w)
		}
	})
}

// partField is a field of an object that holds lists.
type partField struct {
	key  []byte
	name string
	list int // index of the list, for entities and statements
}

// planParts plans an object that holds lists and the named scalars.
func (p *Planner) planParts(l *listPlans, set ast.SelectionSet, implementors []string, scalars ...string) (fields []partField, err error) {
	err = p.EachField(set, implementors, func(f graphql.CollectedField, key []byte) (err error) {
		field := partField{key: key, name: f.Name}
		switch f.Name {
		case "__typename":
		case "entities", "statements":
			field.list, err = p.planList(l, f)
		default:
			err = UnplannedField(f)
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

// writeParts writes the object. value writes its scalars and lists.
func writeParts(w *writer, fields []partField, typename string, value func(f *partField)) {
	scalar.WriteFields(w, fields, func(_ int, f *partField) {
		w.EnterField(f.key)
		if f.name == "__typename" {
			w.B = scalar.AppendString(w.B, typename)
		} else {
			value(f)
		}
		w.LeaveField()
	})
}

// routeList is the loaded field shortestPaths.
type routeList struct {
	fields []partField
	routes []path.Route
	*loadedLists
}

// ShortestPaths answers Query.shortestPaths.
func (*Query) ShortestPaths(ctx context.Context, f *executor.Selected, args *QueryShortestPathsArgs) (executor.Value, error) {
	r, err := beginReading(ctx, f, args.View, nil)
	if err != nil {
		return nil, err
	}
	var of listPlans
	out := &routeList{}
	if out.fields, err = r.planParts(&of, r.field.Selections, GraphPathImplementors, "length"); err != nil {
		return nil, err
	}
	l, err := r.openLoader()
	if err != nil {
		return nil, err
	}
	edges := r.run.Reader.Limits.PathEdges(args.Predicates, args.Direction)
	routes, ids, rows, deeper, err := l.findRoutes(args.From, args.To, edges, args.MaxDepth, args.K)
	if err != nil {
		return nil, err
	}
	if deeper {
		r.run.noteDepth(r.field.Alias, args.MaxDepth)
	}
	out.routes = routes
	if out.loadedLists, err = l.loadLists(&of, ids, rows); err != nil {
		return nil, err
	}
	return r.answer(out), nil
}

// Write writes the list.
func (l *routeList) Write(w *executor.Writer) error {
	entity, statement := 0, 0
	scalar.WriteList(w, len(l.routes), func(i int) {
		n := len(l.routes[i])
		writeParts(w, l.fields, "GraphPath", func(f *partField) {
			switch f.name {
			case "entities":
				l.writeList(w, f, n+1, func(k int) int { return entity + k })
			case "statements":
				l.writeList(w, f, n, func(k int) int { return statement + k })
			default:
				w.B = scalar.AppendUint(w.B, uint64(n))
			}
		})
		entity, statement = entity+n+1, statement+n
	})
	return nil
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
func (r *Run) noteDepth(field string, maxDepth int) {
	h := operation.Hint{Path: ast.Path{ast.PathName(field)}}
	h.Message = fmt.Sprintf("no path has at most %d statements (maxDepth), but a longer one may exist", maxDepth)
	if len(r.NotedHints) < operation.MaxHints {
		r.NotedHints = append(r.NotedHints, h)
	}
}
