package knowledge

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"koine/graph/internal/scalar"
	"koine/graph/internal/views"
	"koine/internal/query"
	"koine/internal/query/path"
	"koine/internal/query/valuespace"
	"koine/kg"
)

// loader reads the data of plans from one snapshot.
type loader struct {
	ctx      context.Context // the operation's context; a loader does not outlive it
	run      *Run
	snapshot *kg.Snapshot
	reader   *Reader
	view     kg.View    // as requested: At is 0 if no revision was named
	made     *views.IDs // the ids in that view; nil until an id is shown
}

func newLoader(ctx context.Context, r *Run, s *kg.Snapshot, view kg.View) *loader {
	return &loader{ctx: ctx, run: r, snapshot: s, reader: r.Reader, view: view}
}

// viewIDs returns the ids of the loader's view, nil if shown is false.
func (l *loader) viewIDs(shown bool) (ids *views.IDs, err error) {
	if shown && l.made == nil {
		l.made, err = l.idsIn(l.view)
	}
	if !shown {
		return nil, err
	}
	return l.made, err
}

// idsIn returns the ids of a view at the loader's evaluation time.
func (l *loader) idsIn(view kg.View) (*views.IDs, error) {
	now := view.Now
	if l.snapshot != nil {
		now = l.snapshot.View().Now
	}
	c := views.CanonicalView(view, now)
	return c.IDs()
}

// entityRef names an entity to load by its id, and by its name if that is
// known. A term that is not in the dictionary has no id.
type entityRef struct {
	id   kg.ID
	name kg.Term
}

func (l *loader) newEntityRef(t kg.Term) (entityRef, error) {
	id, _, err := l.snapshot.ID(t)
	return entityRef{id, t}, err
}

// loadEntities loads the entities of refs and returns their nodes in the same
// order. Duplicates are read once, and all are read in the order of the index.
func (l *loader) loadEntities(plan *entityPlan, refs []entityRef) ([]*entityNode, error) {
	out := make([]*entityNode, len(refs))
	nodes := make([]entityNode, 0, len(refs))
	ids, err := l.viewIDs(plan.ids)
	if err != nil {
		return nil, err
	}
	batch := &entityBatch{ids: ids}
	order := indexOrder(refs)
	for k := range refs {
		i, before := k, k-1
		if order != nil {
			i = order[k]
		}
		if order != nil && k > 0 {
			before = order[k-1]
		}
		if k > 0 && refs[i].sameEntity(&refs[before]) {
			out[i] = out[before]
			continue
		}
		nodes = append(nodes, entityNode{plan: plan, batch: batch, ref: refs[i]})
		out[i] = &nodes[len(nodes)-1]
	}
	return out, l.loadFields(plan, nodes, batch)
}

// loadSome loads the entities that ref names for the numbers below n, and
// returns a node for each number, nil if ref names none.
func (l *loader) loadSome(plan *entityPlan, n int, ref func(k int) (entityRef, bool, error)) ([]*entityNode, error) {
	var refs []entityRef
	var at []int
	for k := range n {
		r, ok, err := ref(k)
		if err != nil {
			return nil, err
		}
		if ok {
			refs, at = append(refs, r), append(at, k)
		}
	}
	nodes, err := l.loadEntities(plan, refs)
	if len(refs) == n || err != nil {
		return nodes, err
	}
	out := make([]*entityNode, n)
	for i, node := range nodes {
		out[at[i]] = node
	}
	return out, nil
}

// readName reads the entity's name unless it is known.
func (l *loader) readName(r *entityRef) (err error) {
	if r.name.IsZero() {
		r.name, err = l.snapshot.Term(r.id)
	}
	return err
}

// sameEntity reports whether two refs name one entity.
func (r *entityRef) sameEntity(of *entityRef) bool {
	return r.id == of.id && (r.id != kg.ID{} || r.name == of.name)
}

// indexOrder returns the refs' order by id, nil if they are in that order.
func indexOrder(refs []entityRef) []int {
	compare := func(a, b *entityRef) int {
		if c := a.id.Compare(b.id); c != 0 || a.id != (kg.ID{}) {
			return c
		}
		return a.name.Compare(b.name)
	}
	sorted := true
	for i := 1; i < len(refs) && sorted; i++ {
		sorted = compare(&refs[i-1], &refs[i]) <= 0
	}
	if sorted {
		return nil
	}
	order := make([]int, len(refs))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return compare(&refs[a], &refs[b]) })
	return order
}

func (l *loader) loadFields(plan *entityPlan, nodes []entityNode, batch *entityBatch) error {
	w, err := query.ResolveWanted(plan.wanted, l.predicateID)
	if err != nil {
		return err
	}
	slots := make([]slot, len(nodes)*len(plan.fields))
	g := l.gatherEntities(plan, &w)
	defer g.close()
	for i := range nodes {
		n := &nodes[i]
		n.slots, slots = slots[:len(plan.fields):len(plan.fields)], slots[len(plan.fields):]
		if plan.named || plan.reads {
			if err := l.readName(&n.ref); err != nil {
				return err
			}
		}
		before := len(batch.arena)
		if plan.reads {
			if err := l.readFields(n, g); err != nil {
				return err
			}
		}
		size := len(batch.arena) - before
		if plan.ids {
			size += batch.ids.EntityIDBytes()
		}
		if i == 0 { // estimate for the others
			batch.arena = slices.Grow(batch.arena, min(size*len(nodes)*5/4, maxGuess))
		}
		if err := l.run.ChargeBytes(size + len(n.ref.name.Value())); err != nil {
			return err
		}
	}
	for i := range plan.fields {
		var err error
		switch plan.fields[i].kind {
		case entityStatements:
			err = l.loadStatementPages(plan, i, nodes)
		case entityHistory:
			err = l.loadHistories(plan, i, nodes)
		case entityFollow:
			err = l.loadFollowed(plan, i, nodes)
		case entityAround:
			err = l.loadNeighborhoods(plan, i, nodes, batch)
		case entityValue, entityValues:
			if plan.fields[i].way != nil {
				err = l.valuesAt(plan, i, nodes, batch)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// maxGuess bounds the bytes preallocated from an estimate.
const maxGuess = 1 << 20

// gathered holds the statements for the fields of one entity. The memory is
// reused for the next entity.
type gathered struct {
	*query.Gatherer
	node    *entityNode
	byField [][]query.Candidate // for each field
	terms   []kg.Term
	// degrees and asserted, which reads assertions, are nil until needed.
	degrees  *query.Degrees
	asserted *kg.Sweep
}

func (l *loader) gatherEntities(plan *entityPlan, w *query.Wanted) *gathered {
	g := &gathered{byField: make([][]query.Candidate, len(plan.fields))}
	if plan.reads {
		g.Gatherer = query.NewGatherer(l.snapshot, w, g.addRow)
	}
	return g
}

// addRow gives a statement to the fields that want its predicate.
func (g *gathered) addRow(wanted int, row *kg.Row) error {
	n := g.node
	n.found = true
	for _, u := range n.plan.uses[wanted] {
		// The same triple in another graph is adjacent.
		if c := g.byField[u.field]; len(c) > 0 && sameTriple(&c[len(c)-1].Row, row) && n.plan.fields[u.field].kind != entityValue {
			continue
		}
		g.byField[u.field] = append(g.byField[u.field], query.Candidate{Row: *row, Rank: u.rank})
	}
	return nil
}

func (g *gathered) close() {
	if g.Gatherer != nil {
		g.Gatherer.Close()
	}
	if g.degrees != nil {
		g.degrees.Close()
	}
	if g.asserted != nil {
		g.asserted.Close()
	}
}

// readFields loads all of an entity except its pages.
func (l *loader) readFields(n *entityNode, g *gathered) error {
	g.node = n
	for i := range g.byField {
		g.byField[i] = g.byField[i][:0]
	}
	if n.ref.id != (kg.ID{}) {
		if err := g.Gather(n.ref.id); err != nil {
			return err
		}
	}
	for i := range n.plan.fields {
		from := len(n.batch.arena)
		b, err := l.appendField(n, i, g, g.byField[i], n.batch.arena)
		if err != nil {
			return err
		}
		n.batch.arena = b
		n.slots[i].from, n.slots[i].to = from, len(b)
	}
	return nil
}

func sameTriple(a, b *kg.Row) bool {
	return a.Subject == b.Subject && a.Predicate == b.Predicate && a.Object == b.Object
}

// appendField writes the value of a field that is not a page.
func (l *loader) appendField(n *entityNode, field int, g *gathered, found []query.Candidate, b []byte) ([]byte, error) {
	f := &n.plan.fields[field]
	switch f.kind {
	case entityTypes:
		return l.appendTypes(g, found, b)
	case entityLabel:
		return l.appendLabel(found, f.langs, b)
	case entityValue:
		return l.appendBestValue(g, found, b)
	case entityValues:
		return l.appendValues(g, found, f.first, b)
	case entityDegree:
		return l.appendDegree(g, n.ref.id, f.direction, b)
	case entityPredicates:
		text, err := l.appendPredicates(g, n.ref.id, f.counts, b)
		n.batch.keepErrors(n, field, text.errs)
		return text.json, err
	case entityAsChannel, entityAsMessage, entityAsTask:
		text, err := l.render(func(w *writer) error { return l.reader.Objects.WriteTyped(w, f.typed, n.ref.name) })
		n.batch.keepErrors(n, field, text.errs)
		return append(b, text.json...), err
	}
	return b, nil
}

// decodeObjects decodes the objects. The result is valid until the next call.
func (l *loader) decodeObjects(g *gathered, found []query.Candidate) ([]kg.Term, error) {
	g.terms = g.terms[:0]
	for i := range found {
		t, err := l.snapshot.Term(found[i].Row.Object)
		if err != nil {
			return nil, err
		}
		g.terms = append(g.terms, t)
	}
	return g.terms, nil
}

func (l *loader) appendTypes(g *gathered, found []query.Candidate, b []byte) ([]byte, error) {
	terms, err := l.decodeObjects(g, found)
	if err != nil {
		return b, err
	}
	terms = slices.DeleteFunc(terms, kg.Term.IsLiteral)
	if len(terms) > 1 {
		slices.SortFunc(terms, kg.Term.Compare)
		terms = slices.Compact(terms)
	}
	b = append(b, '[')
	for i, t := range terms {
		if i > 0 {
			b = append(b, ',')
		}
		b = scalar.AppendName(b, t)
	}
	return append(b, ']'), nil
}

// appendBestValue chooses the value with the greatest certainty, then the newest, then
// the smallest.
func (l *loader) appendBestValue(g *gathered, found []query.Candidate, b []byte) ([]byte, error) {
	if len(found) == 0 {
		return append(b, "null"...), nil
	}
	if len(found) == 1 {
		return l.appendTermOf(b, found[0].Row.Object)
	}
	statements, err := l.assertedOf(g, &found[0].Row, len(found))
	if err != nil || len(statements) == 0 {
		return append(b, "null"...), err
	}
	best := slices.MinFunc(statements, func(s, t kg.Statement) int {
		cs, _ := s.Certainty()
		ct, _ := t.Certainty()
		return cmp.Or(cmp.Compare(ct, cs), t.RecordedAt().Compare(s.RecordedAt()), cmp.Compare(t.Revision(), s.Revision()), valuespace.OrderTerms(s.Object, t.Object))
	})
	return scalar.AppendValue(b, best.Object), nil
}

// assertedOf reads the n statements with the row's subject and predicate
// again, with their assertions. Most properties have one value and do not need
// this.
func (l *loader) assertedOf(g *gathered, row *kg.Row, n int) ([]kg.Statement, error) {
	if g.asserted == nil {
		g.asserted = l.snapshot.SweepAsserted()
	}
	list := make([]kg.Statement, 0, n)
	for g.asserted.Seek(kg.IDPattern{Subject: row.Subject, Predicate: row.Predicate}, nil); g.asserted.Next(); {
		s, err := l.snapshot.Statement(*g.asserted.Row())
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, g.asserted.Err()
}

// appendTermOf writes the value of a literal or the name of an entity.
func (l *loader) appendTermOf(b []byte, id kg.ID) ([]byte, error) {
	if n, ok := kg.IntegerOf(id); ok {
		return strconv.AppendInt(b, n, 10), nil
	}
	t, err := l.snapshot.Term(id)
	return scalar.AppendValue(b, t), err
}

func (l *loader) appendValues(g *gathered, found []query.Candidate, first int, b []byte) ([]byte, error) {
	if len(found) == 1 && first > 0 {
		b, err := l.appendTermOf(append(b, '['), found[0].Row.Object)
		return append(b, ']'), err
	}
	terms, err := l.decodeObjects(g, found)
	if err != nil || len(terms) == 0 {
		return append(b, "[]"...), err
	}
	slices.SortFunc(terms, valuespace.OrderTerms)
	b = append(b, '[')
	shown := map[string]bool{} // "chat"@en and "chat"@fr are one value here
	for _, t := range terms {
		from := len(b)
		if from > 0 && b[from-1] != '[' {
			b = append(b, ',')
		}
		at := len(b)
		b = scalar.AppendValue(b, t)
		if shown[string(b[at:])] || len(shown) == first {
			b = b[:from]
			continue
		}
		shown[string(b[at:])] = true
	}
	return append(b, ']'), nil
}

func (l *loader) appendDegree(g *gathered, id kg.ID, d path.Direction, b []byte) ([]byte, error) {
	if id == (kg.ID{}) {
		return append(b, '0'), nil
	}
	if g.degrees == nil {
		g.degrees = query.NewDegrees(l.snapshot)
	}
	n, err := g.degrees.Count(id, d)
	return scalar.AppendUint(b, n), err
}

func (l *loader) appendLabel(found []query.Candidate, langs []string, b []byte) ([]byte, error) {
	t, err := query.BestLabel(l.snapshot, found, langs)
	if err != nil || t.IsZero() {
		return append(b, "null"...), err
	}
	return scalar.AppendString(b, t.Value()), nil
}
