package knowledge

import (
	"cmp"
	"strconv"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"koine/graph/executor"
	"koine/graph/internal/scalar"
	"koine/graph/internal/views"
	"koine/graph/limit"
	"koine/kg"
)

// The terms that the fields of a statement need.
const (
	showsSubject = 1 << iota
	showsPredicate
	showsObject
	showsGraph
)

// statementPlan is the plan of a selection set on statements.
type statementPlan struct {
	fields     []statementField
	terms      uint8 // shows… bits
	assertions bool
	ids        bool // some field shows the id
}

type statementKind uint8

const (
	statementTypename statementKind = iota
	statementID
	statementSubject
	statementPredicate
	statementPredicateEntity
	statementObject
	statementGraph
	statementCertainty
	statementAssertedBy
	statementAssertions
	statementRecordedAt
	statementRevision
	statementPending
	statementEvidence
	statementTasks
	statementFailed
)

type statementField struct {
	kind       statementKind
	failed     *fieldError // set if the field cannot be planned
	key        []byte
	entity     *entityPlan   // for subject, predicateEntity, and an object that is an entity
	literal    []scalarField // for an object that is a literal
	assertions []RecordField
	origins    *executor.Selected // evidence or tasks
	page       PageArgs           // of the origins
}

func (p *Planner) planStatement(set ast.SelectionSet) (*statementPlan, error) {
	plan := &statementPlan{}
	err := p.EachField(set, StatementImplementors, func(f graphql.CollectedField, key []byte) error {
		plan.fields = append(plan.fields, statementField{key: key})
		field := &plan.fields[len(plan.fields)-1]
		if err := (statementFieldPlan{p, plan, field}).planNamed(f); err != nil {
			failed := p.failAlone(f, err)
			if failed == nil {
				return err
			}
			*field = statementField{key: key, kind: statementFailed, failed: failed}
		}
		return nil
	})
	return plan, err
}

// statementFieldPlan plans a field of a statement. It has a method for each, which
// the generated planNamed calls.
type statementFieldPlan struct {
	planner *Planner
	plan    *statementPlan
	field   *statementField // the last one of the plan
}

func (b statementFieldPlan) planID(graphql.CollectedField) error {
	b.plan.ids = true
	return b.planTerms(statementID, showsSubject|showsPredicate|showsObject|showsGraph)
}

func (b statementFieldPlan) planSubject(f graphql.CollectedField) error {
	return b.planEntity(f, statementSubject)
}

func (b statementFieldPlan) planPredicate(graphql.CollectedField) error {
	return b.planTerms(statementPredicate, showsPredicate)
}

func (b statementFieldPlan) planPredicateEntity(f graphql.CollectedField) error {
	return b.planEntity(f, statementPredicateEntity)
}

func (b statementFieldPlan) planObject(f graphql.CollectedField) (err error) {
	b.field.kind = statementObject
	b.plan.terms |= showsObject
	b.field.entity, b.field.literal, err = b.planner.planTerm(f)
	return err
}

func (b statementFieldPlan) planGraph(graphql.CollectedField) error {
	return b.planTerms(statementGraph, showsGraph)
}

func (b statementFieldPlan) planPending(graphql.CollectedField) error {
	return b.planTerms(statementPending, showsGraph)
}

func (b statementFieldPlan) planCertainty(graphql.CollectedField) error {
	return b.planAssertionsOf(statementCertainty)
}

func (b statementFieldPlan) planAssertedBy(graphql.CollectedField) error {
	return b.planAssertionsOf(statementAssertedBy)
}

func (b statementFieldPlan) planAssertions(f graphql.CollectedField) (err error) {
	b.field.assertions, err = b.planner.planRecord(f.Selections, AssertionImplementors)
	return cmp.Or(err, b.planAssertionsOf(statementAssertions))
}

func (b statementFieldPlan) planRecordedAt(graphql.CollectedField) error {
	return b.planAssertionsOf(statementRecordedAt)
}

func (b statementFieldPlan) planRevision(graphql.CollectedField) error {
	return b.planAssertionsOf(statementRevision)
}

func (b statementFieldPlan) planEvidence(f graphql.CollectedField) error {
	args, err := coerceArgs(b.planner, f, CoerceStatementEvidenceArgs)
	if err != nil {
		return err
	}
	return b.planOrigins(f, statementEvidence, PageArgs{First: args.First, After: args.After})
}

func (b statementFieldPlan) planTasks(f graphql.CollectedField) error {
	args, err := coerceArgs(b.planner, f, CoerceStatementTasksArgs)
	if err != nil {
		return err
	}
	return b.planOrigins(f, statementTasks, PageArgs{First: args.First, After: args.After})
}

// planTerms plans a field that shows these terms of the statement.
func (b statementFieldPlan) planTerms(kind statementKind, shows uint8) error {
	b.field.kind = kind
	b.plan.terms |= shows
	return nil
}

func (b statementFieldPlan) planEntity(f graphql.CollectedField, kind statementKind) (err error) {
	b.field.kind = kind
	b.field.entity, err = b.planner.planEntity(f.Selections)
	return err
}

// planAssertionsOf plans a field that shows the statement's assertions.
func (b statementFieldPlan) planAssertionsOf(kind statementKind) error {
	b.field.kind, b.plan.assertions = kind, true
	return nil
}

// planOrigins plans a list of messages or tasks of the commits of the statement's
// assertions.
func (b statementFieldPlan) planOrigins(f graphql.CollectedField, kind statementKind, page PageArgs) error {
	b.plan.assertions = true
	b.field.kind, b.field.origins, b.field.page = kind, b.planner.SelectedField(f), page
	_, err := b.planner.run.Reader.Limits.CheckFirst(page.First, limit.DefaultPageSize)
	return err
}

// statementNode is a loaded statement.
type statementNode struct {
	plan      *statementPlan
	statement kg.Statement
	ids       *views.IDs       // nil if no field shows an id
	links     []*entityNode    // the entity of each of the plan's fields, nil for none
	texts     map[int]fragment // the texts of the plan's fields that have one
}

func (n *statementNode) write(w *writer) {
	s := &n.statement
	scalar.WriteFields(w, n.plan.fields, func(i int, f *statementField) {
		w.EnterField(f.key)
		switch f.kind {
		case statementTypename:
			w.B = append(w.B, `"Statement"`...)
		case statementID:
			w.B = scalar.AppendString(w.B, n.ids.StatementID(s.Quad))
		case statementSubject, statementPredicateEntity:
			n.links[i].write(w)
		case statementPredicate:
			w.B = scalar.AppendName(w.B, s.Predicate)
		case statementObject:
			if n.links[i] != nil {
				n.links[i].write(w)
			} else {
				w.B = appendLiteral(w.B, s.Object, f.literal)
			}
		case statementGraph:
			w.B = scalar.AppendGraph(w.B, s.Graph)
		case statementEvidence, statementTasks:
			w.B = append(w.B, n.texts[i].json...)
			w.AddErrors(n.texts[i].errs)
		case statementFailed:
			f.failed.write(w)
		case statementPending:
			w.B = strconv.AppendBool(w.B, kg.IsPendingGraph(s.Graph))
		case statementAssertions:
			writeAssertions(w, s.Assertions, f.assertions)
		default:
			w.B = f.appendAssertions(w.B, s)
		}
		w.LeaveField()
	})
}

// Write writes the statement.
func (n *statementNode) Write(w *executor.Writer) error {
	n.write(w)
	return nil
}

// statementNodes are the loaded statements of a list.
type statementNodes []statementNode

func (list statementNodes) write(w *writer) {
	scalar.WriteList(w, len(list), func(i int) { list[i].write(w) })
}

func (f *statementField) appendAssertions(b []byte, s *kg.Statement) []byte {
	switch f.kind {
	case statementCertainty:
		certainty, known := s.Certainty()
		return scalar.AppendCertainty(b, certainty, known)
	case statementAssertedBy:
		return scalar.AppendList(b, s.Assertions, func(b []byte, a *kg.Assertion) []byte { return scalar.AppendString(b, string(a.Source)) })
	case statementRecordedAt:
		return scalar.AppendTime(b, s.RecordedAt())
	case statementRevision:
		return scalar.AppendUint(b, uint64(s.Revision()))
	}
	return append(b, "null"...)
}

func appendLiteral(b []byte, t kg.Term, fields []scalarField) []byte {
	return appendObject(b, fields, "Literal", literalLeaves{t}.appendNamed)
}

// literalLeaves appends the fields of a Literal.
type literalLeaves struct{ term kg.Term }

func (v literalLeaves) appendValue(b []byte) []byte { return scalar.AppendValue(b, v.term) }

func (v literalLeaves) appendLexical(b []byte) []byte {
	return scalar.AppendString(b, v.term.Value())
}

func (v literalLeaves) appendDatatype(b []byte) []byte {
	return scalar.AppendString(b, v.term.Datatype())
}

func (v literalLeaves) appendLanguage(b []byte) []byte { return appendOptional(b, v.term.Lang()) }

func writeAssertions(w *writer, list []kg.Assertion, fields []RecordField) {
	scalar.WriteList(w, len(list), func(i int) {
		v := assertionLeaves{&list[i]}
		writeRecord(w, fields, "Assertion", v.appendNamed, v.agentNamed, v.appendObjectNamed)
	})
}

// readSources reads the records of the sources that a field shows of a statement.
func (l *loader) readSources(f *statementField, s *kg.Statement) error {
	for i := range s.Assertions {
		if err := l.run.readAgents(l.ctx, f.assertions, assertionLeaves{&s.Assertions[i]}.agentNamed); err != nil {
			return err
		}
	}
	return nil
}

// assertionLeaves appends the fields of an Assertion.
type assertionLeaves struct{ of *kg.Assertion }

func (v assertionLeaves) agentSource() kg.AgentID { return v.of.Source }

func (v assertionLeaves) appendSourceID(b []byte) []byte {
	return scalar.AppendString(b, string(v.of.Source))
}

func (v assertionLeaves) appendCertainty(b []byte) []byte {
	return scalar.AppendCertainty(b, v.of.Certainty, v.of.HasCertainty)
}

func (v assertionLeaves) appendRecordedAt(b []byte) []byte { return scalar.AppendTime(b, v.of.Time) }

func (v assertionLeaves) appendValidFrom(b []byte) []byte {
	return scalar.AppendTimeOrNull(b, v.of.Validity.From)
}

func (v assertionLeaves) appendValidTo(b []byte) []byte {
	return scalar.AppendTimeOrNull(b, v.of.Validity.Until)
}

func (v assertionLeaves) appendRevision(b []byte) []byte {
	return strconv.AppendUint(b, uint64(v.of.Revision), 10)
}

func (v assertionLeaves) appendProvenance(b []byte) []byte {
	if v.of.Provenance == nil {
		return append(b, "null"...)
	}
	return append(b, v.of.Provenance...)
}

func (v assertionLeaves) appendEmbedding(b []byte, fields []scalarField) []byte {
	if v.of.Embedding == nil {
		return append(b, "null"...)
	}
	return appendObject(b, fields, "Embedding", embeddingLeaves{v.of.Embedding}.appendNamed)
}

// embeddingLeaves appends the fields of an Embedding.
type embeddingLeaves struct{ of *kg.Embedding }

func (v embeddingLeaves) appendModel(b []byte) []byte { return scalar.AppendString(b, v.of.Model) }

func (v embeddingLeaves) appendDimension(b []byte) []byte {
	return scalar.AppendInt(b, v.of.Dimension())
}

func (v embeddingLeaves) appendVector(b []byte) []byte {
	return scalar.AppendVector(b, v.of.Vector)
}
