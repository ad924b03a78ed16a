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

// planParts plans an object that holds lists and scalars. plan plans a field.
func (p *Planner) planParts(l *listPlans, set ast.SelectionSet, implementors []string, plan func(partFieldPlan, graphql.CollectedField) error) (fields []partField, err error) {
	err = p.EachField(set, implementors, func(f graphql.CollectedField, key []byte) error {
		fields = append(fields, partField{key: key, name: f.Name})
		return plan(partFieldPlan{p, l, &fields[len(fields)-1]}, f)
	})
	return fields, err
}

// partFieldPlan plans a list of an object that holds lists.
type partFieldPlan struct {
	planner *Planner
	lists   *listPlans
	field   *partField
}

func (b partFieldPlan) planEntities(f graphql.CollectedField) error {
	plan, err := b.planner.planEntity(f.Selections)
	b.field.list = len(b.lists.entities)
	b.lists.entities = append(b.lists.entities, plan)
	return err
}

func (b partFieldPlan) planStatements(f graphql.CollectedField) error {
	plan, err := b.planner.planStatement(f.Selections)
	b.field.list = len(b.lists.statements)
	b.lists.statements = append(b.lists.statements, plan)
	return err
}

// pathFieldPlan plans a field of a GraphPath.
type pathFieldPlan struct{ partFieldPlan }

func planPathField(b partFieldPlan, f graphql.CollectedField) error {
	return pathFieldPlan{b}.planNamed(f)
}

// pathLeaves appends the scalars of a GraphPath.
type pathLeaves struct{ length int }

func (v pathLeaves) appendLength(b []byte) []byte { return scalar.AppendUint(b, uint64(v.length)) }

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
	if out.fields, err = r.planParts(&of, r.field.Selections, GraphPathImplementors, planPathField); err != nil {
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
				w.B = pathLeaves{n}.appendNamed(w.B, f.name)
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
