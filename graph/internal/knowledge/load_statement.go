package knowledge

import (
	"slices"

	"koine/kg"
)

// loadStatements loads the statements of rows.
func (l *loader) loadStatements(plan *statementPlan, rows []kg.Row) ([]statementNode, error) {
	ids, err := l.viewIDs(plan.ids)
	if err != nil {
		return nil, err
	}
	nodes := make([]statementNode, len(rows))
	for i, row := range rows {
		n := &nodes[i]
		n.plan, n.ids = plan, ids
		size, err := l.readStatement(plan, row, &n.statement)
		if err != nil {
			return nil, err
		}
		if err := l.run.ChargeBytes(size); err != nil {
			return nil, err
		}
	}
	return nodes, l.linkEntities(plan, nodes, rows)
}

// readStatement reads the parts of the statement that the plan shows, and
// returns their size.
func (l *loader) readStatement(plan *statementPlan, row kg.Row, to *kg.Statement) (size int, err error) {
	for _, part := range [...]struct {
		shown uint8
		id    kg.ID
		term  *kg.Term
	}{
		{showsSubject, row.Subject, &to.Subject}, {showsPredicate, row.Predicate, &to.Predicate},
		{showsObject, row.Object, &to.Object}, {showsGraph, row.Graph, &to.Graph},
	} {
		if plan.terms&part.shown == 0 {
			continue
		}
		if *part.term, err = l.snapshot.Term(part.id); err != nil {
			return size, err
		}
		size += len(part.term.Value())
	}
	if plan.assertions {
		to.Assertions, err = l.snapshot.Assertions(row)
		for _, a := range to.Assertions {
			size += len(a.Source) + a.ContentBytes()
		}
	}
	return size, err
}

// linkEntities loads the entities that the statements show, one batch for each field.
// rows is nil for statements that came without ids.
func (l *loader) linkEntities(plan *statementPlan, nodes []statementNode, rows []kg.Row) error {
	links := make([]*entityNode, len(nodes)*len(plan.fields))
	for i := range nodes {
		nodes[i].links, links = links[:len(plan.fields)], links[len(plan.fields):]
	}
	for i := range plan.fields {
		f := &plan.fields[i]
		if f.kind == statementEvidence || f.kind == statementTasks {
			if err := l.loadOrigins(plan, i, nodes); err != nil {
				return err
			}
		}
		if f.kind == statementAssertions && slices.ContainsFunc(f.assertions, func(f RecordField) bool { return f.reads }) {
			for k := range nodes {
				if err := l.readSources(f, &nodes[k].statement); err != nil {
					return err
				}
			}
		}
		if f.entity == nil {
			continue
		}
		entities, err := l.loadSome(f.entity, len(nodes), func(k int) (entityRef, bool, error) { return l.endEntity(f, &nodes[k], rows, k) })
		if err != nil {
			return err
		}
		for k, e := range entities {
			nodes[k].links[i] = e
		}
	}
	return nil
}

// endEntity returns the entity of a statement that the field shows, false for a
// literal.
func (l *loader) endEntity(f *statementField, n *statementNode, rows []kg.Row, k int) (ref entityRef, ok bool, err error) {
	if f.kind == statementObject && !n.statement.Object.IsResource() {
		return ref, false, nil
	}
	if rows == nil {
		t := n.statement.Subject
		switch f.kind {
		case statementObject:
			t = n.statement.Object
		case statementPredicateEntity:
			t = n.statement.Predicate
		}
		if l.snapshot == nil {
			return entityRef{name: t}, true, nil
		}
		ref, err = l.newEntityRef(t)
		return ref, true, err
	}
	switch f.kind {
	case statementObject:
		return entityRef{rows[k].Object, n.statement.Object}, true, nil
	case statementPredicateEntity:
		return entityRef{id: rows[k].Predicate}, true, nil
	}
	return entityRef{id: rows[k].Subject}, true, nil
}

// loadOrigins loads, for one field of all statements, the messages or the tasks of
// the commits that made their assertions.
func (l *loader) loadOrigins(plan *statementPlan, field int, nodes []statementNode) error {
	f := &plan.fields[field]
	for i := range nodes {
		n := &nodes[i]
		text, err := l.render(func(w *writer) error { return l.reader.Objects.WriteOrigins(w, f.origins, f.page, &n.statement) })
		if err != nil {
			return err
		}
		if err := l.run.ChargeBytes(len(text.json)); err != nil {
			return err
		}
		if n.texts == nil {
			n.texts = make(map[int]fragment, 1)
		}
		n.texts[field] = text
	}
	return nil
}
