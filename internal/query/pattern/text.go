package pattern

import (
	"context"
	"fmt"
	"hash/fnv"
	"iter"
	"slices"

	"koine/kg"
)

// Text binds a variable to each of the resources that a source finds, once.
type Text struct {
	Var    string
	Score  string // variable for the score, an xsd:double; "" for none
	Source TextSource
}

// TextSource finds resources by other means than the index of statements, such as by the words
// of their texts.
type TextSource interface {
	// Find returns the hits in a snapshot.
	Find(ctx context.Context, s *kg.Snapshot, u TextUse) (TextHits, error)
	// String describes the source in explanations.
	String() string
}

// TextUse is a use of hits.
type TextUse struct {
	Scores  bool // scores are read
	Resumed bool // the hits continue those of an earlier evaluation if they have the same state
}

// TextHits are the resources that a source finds in a snapshot.
type TextHits interface {
	// Estimate returns about how many there are, and among how many texts. Both follow from
	// the texts that the snapshot may show.
	Estimate() (hits, texts uint64)
	// Scan yields all in a stable order, from one on; the zero ID is before all.
	Scan(from kg.ID) iter.Seq2[TextHit, error]
	// Hit returns the hit of a resource, and false if there is none.
	Hit(id kg.ID) (TextHit, bool, error)
	// State is equal for hits that are equal, whenever they were found.
	State() uint64
}

// TextHit is a resource with its score.
type TextHit struct {
	ID    kg.ID
	Score float64
}

func (t *Text) String() string { return fmt.Sprintf("?%s text %s", t.Var, t.Source) }

// variableNames returns the variables of the text.
func (t *Text) variableNames() []string {
	if t.Score == "" {
		return []string{t.Var}
	}
	return []string{t.Var, t.Score}
}

func (c *checker) checkText(t *Text) error {
	if c.countedTexts++; c.countedTexts > c.limits.Texts {
		return tooMany("texts", c.limits.Texts)
	}
	if t.Var == t.Score {
		return kg.Errorf(kg.CodeInvalid, "one variable cannot have both the entity and its score").At("score")
	}
	for _, name := range t.variableNames() {
		if err := c.countVariable(name); err != nil {
			return err
		}
	}
	return nil
}

// boundText is a text bound to a snapshot.
type boundText struct {
	source    *Text
	hits      TextHits
	slot      int
	score     int // slot, -1 for none
	variables slots
}

// openTexts finds the hits of all texts of a group, and returns their state.
func (b *builder) openTexts(ctx context.Context, root *Group, resumed bool) (state []byte, err error) {
	h := fnv.New64a()
	b.hits = map[*Text]TextHits{}
	var open func(g *Group) error
	open = func(g *Group) error {
		for i := range g.Texts {
			t := &g.Texts[i]
			hits, err := t.Source.Find(ctx, b.snapshot, TextUse{t.Score != "", resumed})
			if err != nil {
				return err
			}
			b.hits[t] = hits
			fmt.Fprintf(h, "%x ", hits.State())
		}
		for _, list := range slices.Concat(g.Unions, [][]Group{g.Optional, g.NotExists}) {
			for i := range list {
				if err := open(&list[i]); err != nil {
					return err
				}
			}
		}
		return nil
	}
	if err := open(root); err != nil || len(b.hits) == 0 {
		return nil, err
	}
	return h.Sum(nil), nil
}

func (b *builder) bindText(t *Text, own map[string]int) *boundText {
	out := &boundText{source: t, hits: b.hits[t], slot: own[t.Var], score: -1}
	out.variables.add(out.slot)
	if t.Score != "" {
		out.score = own[t.Score]
		out.variables.add(out.score)
	}
	return out
}

// The cost of a hit, which is tested in the snapshot, and of a test whether a resource is one.
const (
	hitCost  = 1.0
	testCost = 4.0
)

// estimateText estimates the rows of a text per input row, and the cost of finding them.
func (e *estimator) estimateText(t *boundText, bound *slots) (rows, cost float64) {
	hits, texts := t.hits.Estimate()
	if bound.has(t.slot) {
		return min(1, float64(hits)/max(1, float64(texts))), testCost
	}
	return float64(hits), testCost + hitCost*float64(hits)
}

func (g *groupPlanner) addText(t *boundText) {
	rows, _ := g.estimator.estimateText(t, &g.bound)
	s := &step{kind: textStep, text: t, tests: g.bound.has(t.slot)}
	g.rows *= rows
	g.bound.addAll(&t.variables)
	g.addStep(s)
}

// textOp passes a row on for each hit, or tests whether the resource of the row is one.
type textOp struct {
	m    *execution
	step *step
	next op
	// outermost is set if cursors consist of this op's hits.
	outermost bool
}

func (o *textOp) processRow() bool {
	o.step.runs++
	if !o.m.countSeek() {
		return false
	}
	t := o.step.text
	at := &o.m.row[t.slot]
	if !at.IsZero() {
		if !o.m.countStatement(o.step) {
			return false
		}
		hit, ok, err := t.hits.Hit(*at)
		if o.m.err = err; err != nil || !ok {
			return err == nil
		}
		return o.passHit(hit)
	}
	defer func() { o.m.row[t.slot] = kg.ID{} }()
	var from kg.ID
	if o.outermost && o.m.outer.from != nil {
		from = o.m.outer.from.Subject
	}
	for hit, err := range t.hits.Scan(from) {
		if o.m.err = err; err != nil || !o.m.countStatement(o.step) || !o.m.countSeek() {
			return false
		}
		o.m.row[t.slot] = hit.ID
		if o.outermost {
			o.m.outer.beginRow(&kg.IDQuad{Subject: hit.ID, Predicate: hit.ID, Object: hit.ID, Graph: hit.ID}, false)
		}
		if !o.passHit(hit) {
			return false
		}
	}
	return true
}

// passHit binds the score and passes the row on.
func (o *textOp) passHit(hit TextHit) bool {
	slot := o.step.text.score
	if slot < 0 {
		return o.m.countRow(o.step) && o.next.processRow()
	}
	score, err := o.m.idOf(kg.Double(hit.Score))
	if err != nil {
		o.m.err = err
		return false
	}
	if had := o.m.row[slot]; !had.IsZero() {
		return had != score || o.m.countRow(o.step) && o.next.processRow()
	}
	o.m.row[slot] = score
	more := o.m.countRow(o.step) && o.next.processRow()
	o.m.row[slot] = kg.ID{}
	return more
}

// idOf returns the id of a term, which the store need not know.
func (m *execution) idOf(t kg.Term) (kg.ID, error) {
	id, known, err := m.snapshot.ID(t)
	if err == nil && !known {
		id, err = m.snapshot.LocalID(t)
	}
	return id, err
}
