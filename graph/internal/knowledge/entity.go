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
		field := entityField{key: key}
		if err := p.planEntityField(plan, f, &field); err != nil {
			failed := p.failAlone(f, err)
			if failed == nil {
				return err
			}
			field = entityField{key: key, kind: entityFailed, failed: failed}
		}
		plan.fields = append(plan.fields, field)
		return nil
	})
	return plan, err
}

func (p *Planner) planEntityField(plan *entityPlan, f graphql.CollectedField, field *entityField) error {
	switch f.Name {
	case "__typename":
		return nil
	case "id":
		field.kind, plan.named, plan.ids = entityID, true, true
		return nil
	case "iri":
		field.kind, plan.named = entityName, true
		return nil
	}
	plan.reads = true
	switch f.Name {
	case "types":
		field.kind = entityTypes
		plan.wantPredicate(query.RDFType, 0)
	case "label":
		args, err := coerceArgs(p, f, CoerceEntityLabelArgs)
		field.kind, field.langs = entityLabel, query.LowerAll(args.Lang)
		for rank, predicate := range p.run.Reader.Labels {
			plan.wantPredicate(predicate, rank)
		}
		return err
	case "value", "values":
		return p.planEntityValue(plan, f, field)
	case "out", "in":
		return p.planEntityStatements(f, field)
	case "degree":
		args, err := coerceArgs(p, f, CoerceEntityDegreeArgs)
		field.kind, field.direction = entityDegree, args.Direction
		return err
	case "predicates":
		var err error
		field.kind = entityPredicates
		field.counts, err = p.planCounts(f)
		return err
	case "history":
		return p.planEntityHistory(f, field)
	case "follow":
		return p.planEntityFollow(f, field)
	case "neighborhood":
		return p.planEntityNeighborhood(f, field)
	case "asChannel":
		field.kind, field.typed = entityAsChannel, p.SelectedField(f)
	case "asMessage":
		field.kind, field.typed = entityAsMessage, p.SelectedField(f)
	case "asTask":
		field.kind, field.typed = entityAsTask, p.SelectedField(f)
	default:
		return UnplannedField(f)
	}
	return nil
}

func (p *Planner) planEntityStatements(f graphql.CollectedField, field *entityField) (err error) {
	field.kind, field.direction = entityStatements, path.Out
	if f.Name == "in" {
		field.direction = path.In
	}
	args, err := coerceArgs(p, f, CoerceEntityOutArgs) // field in has the same ones
	if err != nil {
		return err
	}
	field.page, err = p.planStatementConnection(f, statementListArgs{Where: args.Where, Page: PageArgs{args.First, args.After, args.Last, args.Before}})
	return err
}

// wantPredicate notes that the field being planned needs the predicate's statements.
func (plan *entityPlan) wantPredicate(predicate kg.Term, rank int) {
	i := slices.Index(plan.wanted, predicate)
	if i < 0 {
		i = len(plan.wanted)
		plan.wanted = append(plan.wanted, predicate)
		plan.uses = append(plan.uses, nil)
	}
	plan.uses[i] = append(plan.uses[i], use{len(plan.fields), rank})
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
