package knowledge

import (
	"slices"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"koine/graph/executor"
	"koine/graph/internal/scalar"
	"koine/graph/internal/views"
	"koine/internal/query"
	"koine/internal/query/path"
	"koine/kg"
)

// entityPlan is the plan of a selection set on entities.
type entityPlan struct {
	fields []entityField
	// wanted are the predicates whose statements the fields need. uses lists,
	// for each of them, the fields that need it and their rank.
	wanted []kg.Term
	uses   [][]use
	named  bool // some field shows the IRI
	ids    bool // some field shows the id
	reads  bool // some field needs the store
}

type use struct{ field, rank int }

type entityKind uint8

const (
	entityTypename entityKind = iota
	entityID
	entityName // iri
	// The kinds from here on need the store.
	entityTypes
	entityLabel
	entityValue
	entityValues
	entityStatements // out, in
	entityDegree
	entityPredicates
	entityHistory
	entityFollow
	entityAround // neighborhood
	entityAsChannel
	entityAsMessage
	entityAsTask
	entityFailed
)

type entityField struct {
	kind      entityKind
	failed    *fieldError // set if the field cannot be planned
	key       []byte
	langs     []string
	first     int
	direction path.Direction // of degree; OUT or IN for statements
	page      *connection
	history   *changeList
	way       *path.Path // for follow, and for value and values at its end
	around    *aroundPlan
	counts    []countField       // of predicates
	typed     *executor.Selected // asChannel, asMessage or asTask
}

func (p *Planner) planEntity(set ast.SelectionSet) (*entityPlan, error) {
	n := len(set) + len(p.run.Reader.Labels)
	plan := &entityPlan{fields: make([]entityField, 0, len(set)), wanted: make([]kg.Term, 0, n), uses: make([][]use, 0, n)}
	err := p.EachField(set, EntityImplementors, func(f graphql.CollectedField, key []byte) error {
		plan.fields = append(plan.fields, entityField{key: key})
		field := &plan.fields[len(plan.fields)-1]
		if err := (entityFieldPlan{p, plan, field}).planNamed(f); err != nil {
			failed := p.failAlone(f, err)
			if failed == nil {
				return err
			}
			*field = entityField{key: key, kind: entityFailed, failed: failed}
		}
		plan.reads = plan.reads || field.kind > entityName
		return nil
	})
	return plan, err
}

// entityFieldPlan plans a field of an entity. It has a method for each, which the
// generated planNamed calls.
type entityFieldPlan struct {
	planner *Planner
	plan    *entityPlan
	field   *entityField // the last one of the plan
}

func (b entityFieldPlan) planID(graphql.CollectedField) error {
	b.field.kind, b.plan.named, b.plan.ids = entityID, true, true
	return nil
}

func (b entityFieldPlan) planIri(graphql.CollectedField) error {
	b.field.kind, b.plan.named = entityName, true
	return nil
}

func (b entityFieldPlan) planTypes(graphql.CollectedField) error {
	b.field.kind = entityTypes
	b.plan.wantPredicate(query.RDFType, 0)
	return nil
}

func (b entityFieldPlan) planLabel(f graphql.CollectedField) error {
	args, err := coerceArgs(b.planner, f, CoerceEntityLabelArgs)
	if err != nil {
		return err
	}
	b.field.kind, b.field.langs = entityLabel, query.LowerAll(args.Lang)
	for rank, predicate := range b.planner.run.Reader.Labels {
		b.plan.wantPredicate(predicate, rank)
	}
	return nil
}

func (b entityFieldPlan) planOut(f graphql.CollectedField) error {
	args, err := coerceArgs(b.planner, f, CoerceEntityOutArgs)
	if err != nil {
		return err
	}
	return b.planStatements(f, path.Out, args)
}

func (b entityFieldPlan) planIn(f graphql.CollectedField) error {
	args, err := coerceArgs(b.planner, f, CoerceEntityInArgs)
	if err != nil {
		return err
	}
	return b.planStatements(f, path.In, (*EntityOutArgs)(args))
}

func (b entityFieldPlan) planStatements(f graphql.CollectedField, direction path.Direction, args *EntityOutArgs) (err error) {
	b.field.kind, b.field.direction = entityStatements, direction
	b.field.page, err = b.planner.planStatementConnection(f, statementListArgs{Where: args.Where, Page: PageArgs{args.First, args.After, args.Last, args.Before}})
	return err
}

func (b entityFieldPlan) planDegree(f graphql.CollectedField) error {
	args, err := coerceArgs(b.planner, f, CoerceEntityDegreeArgs)
	if err != nil {
		return err
	}
	b.field.kind, b.field.direction = entityDegree, args.Direction
	return nil
}

func (b entityFieldPlan) planPredicates(f graphql.CollectedField) (err error) {
	b.field.kind = entityPredicates
	b.field.counts, err = b.planner.planCounts(f)
	return err
}

func (b entityFieldPlan) planAsChannel(f graphql.CollectedField) error {
	return b.planTyped(f, entityAsChannel)
}

func (b entityFieldPlan) planAsMessage(f graphql.CollectedField) error {
	return b.planTyped(f, entityAsMessage)
}

func (b entityFieldPlan) planAsTask(f graphql.CollectedField) error {
	return b.planTyped(f, entityAsTask)
}

func (b entityFieldPlan) planTyped(f graphql.CollectedField, kind entityKind) error {
	b.field.kind, b.field.typed = kind, b.planner.SelectedField(f)
	return nil
}

// wantPredicate notes that the field being planned needs the predicate's statements.
func (plan *entityPlan) wantPredicate(predicate kg.Term, rank int) {
	i := slices.Index(plan.wanted, predicate)
	if i < 0 {
		i = len(plan.wanted)
		plan.wanted = append(plan.wanted, predicate)
		plan.uses = append(plan.uses, nil)
	}
	plan.uses[i] = append(plan.uses[i], use{len(plan.fields) - 1, rank})
}

// entityNode is a loaded entity.
type entityNode struct {
	plan  *entityPlan
	ref   entityRef
	batch *entityBatch
	slots []slot // one for each of the plan's fields
	found bool   // a statement with the entity was seen while loading
}

// slot is the loaded content of a field: a range of the batch's arena, or a
// page.
type slot struct {
	from, to int
	page     *page
}

// entityBatch is the data shared by entities that were loaded together.
type entityBatch struct {
	arena   []byte
	arounds map[slotKey]*aroundNode // the neighborhoods; most entities have none
	ids     *views.IDs              // nil if no field shows an id
	// errs are the errors of the fields whose texts are in the arena; most
	// batches have none.
	errs map[slotKey]gqlerror.List
}

// slotKey is a field of a node.
type slotKey struct {
	node  *entityNode
	field int
}

func (batch *entityBatch) keepErrors(n *entityNode, field int, errs gqlerror.List) {
	if len(errs) == 0 {
		return
	}
	if batch.errs == nil {
		batch.errs = map[slotKey]gqlerror.List{}
	}
	batch.errs[slotKey{n, field}] = errs
}

func (n *entityNode) write(w *writer) {
	scalar.WriteFields(w, n.plan.fields, func(i int, f *entityField) {
		w.EnterField(f.key)
		switch f.kind {
		case entityTypename:
			w.B = append(w.B, `"Entity"`...)
		case entityID:
			w.B = n.batch.ids.AppendEntity(w.B, n.ref.name)
		case entityName:
			w.B = scalar.AppendName(w.B, n.ref.name)
		case entityStatements, entityHistory, entityFollow:
			n.slots[i].page.write(w)
		case entityAround:
			n.batch.arounds[slotKey{n, i}].write(w)
		case entityFailed:
			f.failed.write(w)
		default:
			w.B = append(w.B, n.batch.arena[n.slots[i].from:n.slots[i].to]...)
			if n.batch.errs != nil {
				w.AddErrors(n.batch.errs[slotKey{n, i}])
			}
		}
		w.LeaveField()
	})
}

// Write writes the entity.
func (n *entityNode) Write(w *executor.Writer) error {
	n.write(w)
	return nil
}
