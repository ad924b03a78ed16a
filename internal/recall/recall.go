// Package recall answers a topic with facts, as lines of text for a language model: it
// searches by words, gathers the statements of the entities found, and writes them within a
// budget of tokens.
package recall

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"koine/internal/compact"
	"koine/internal/query"
	"koine/internal/search"
	"koine/kg"
)

// The bounds of a request and of its reads.
const (
	MinTokens     = 50
	DefaultTokens = 1_000
	MaxTokens     = 50_000

	maxSubjects   = 20    // found by words
	maxRead       = 5_000 // of which the facts are chosen; the order of the index is not that of terms
	maxFacts      = 200   // of one subject, and again as many that have it as their object
	maxInner      = 20    // of a blank node in the place of an object
	maxNeighbours = 20    // of the first subject
	maxDepth      = 3     // blank nodes in a row
)

// The relevance of facts, as parts of the score of the subject that was found.
const (
	ofSubject   = 1.0
	ofPointers  = 0.5  // facts that have the subject as their object
	ofNeighbour = 0.25 // facts about the objects of the first subject
)

// Recaller recalls from a store.
type Recaller struct {
	Search *search.Service
	// Prefixes shorten the names in texts.
	Prefixes *kg.Prefixes
	// LabelPredicates are the properties that give an entity its label, the preferred first.
	LabelPredicates []string
}

// Request asks for the facts about a topic.
type Request struct {
	Topic string // words, or the name of an entity
	// MaxTokens bounds the text, as compact.Tokens counts. 0 stands for DefaultTokens.
	MaxTokens int
}

// Answer has the facts about a topic.
type Answer struct {
	// Text has the facts as package compact writes them. Its last line says if there are more.
	Text string
	// Facts is how many there are in the text, and Left how many were found beyond.
	Facts, Left int
	// Indexed is the revision up to which texts are searched.
	Indexed kg.Revision
}

// Recall answers a request under a snapshot. The same snapshot and index give the same text.
//
// Errors: CodeInvalid for a topic without words and for MaxTokens out of its bounds.
func (r *Recaller) Recall(ctx context.Context, s *kg.Snapshot, q Request) (Answer, error) {
	if q.MaxTokens = cmp.Or(q.MaxTokens, DefaultTokens); q.MaxTokens < MinTokens || q.MaxTokens > MaxTokens {
		return Answer{}, kg.Errorf(kg.CodeInvalid, "maxTokens is %d; it must be from %d to %d", q.MaxTokens, MinTokens, MaxTokens).At("maxTokens")
	}
	g := &gathering{recaller: r, snapshot: s, seen: map[kg.Quad]bool{}, labels: map[kg.Term]string{}}
	if named, err := r.Prefixes.Resource(q.Topic); err == nil {
		if err := g.addSubject(ctx, named, 1, true); err != nil {
			return Answer{}, err
		}
	}
	var a Answer
	if len(g.groups) == 0 {
		page, err := r.Search.Search(ctx, s, search.Request{Query: q.Topic, First: maxSubjects})
		if err != nil {
			return Answer{}, kg.AsError(err).At("topic")
		}
		a.Indexed = page.Revision
		for i := range page.Hits {
			if err := g.addSubject(ctx, page.Hits[i].Subject, page.Hits[i].Score, i == 0); err != nil {
				return Answer{}, err
			}
		}
	}
	facts := g.factsInOrder()
	w := compact.Write(facts, compact.Options{Prefixes: r.Prefixes, MaxTokens: q.MaxTokens, More: func(left int) string {
		return fmt.Sprintf("%d more facts; recall with a larger maxTokens or a narrower topic", left)
	}})
	a.Text, a.Facts, a.Left = w.Text, w.Facts, len(facts)-w.Facts
	return a, nil
}

// gathering collects groups of facts.
type gathering struct {
	recaller *Recaller
	snapshot *kg.Snapshot
	groups   []group
	seen     map[kg.Quad]bool
	labels   map[kg.Term]string
	depth    int // of blank nodes around statements
}

// group is facts with the same relevance.
type group struct {
	relevance float64
	facts     []compact.Fact
}

// factsInOrder returns the facts, the most relevant first.
func (g *gathering) factsInOrder() (facts []compact.Fact) {
	slices.SortStableFunc(g.groups, func(a, b group) int { return cmp.Compare(b.relevance, a.relevance) })
	for _, group := range g.groups {
		facts = append(facts, group.facts...)
	}
	return facts
}

// addSubject adds the facts about a subject, those that have it as their object, and, with
// neighbours, those about its objects.
func (g *gathering) addSubject(ctx context.Context, subject kg.Term, score float64, neighbours bool) error {
	own, err := g.addGroup(ctx, kg.Pattern{Subject: subject}, maxFacts, score*ofSubject)
	if err == nil {
		_, err = g.addGroup(ctx, kg.Pattern{Object: subject}, maxFacts, score*ofPointers)
	}
	if err != nil || !neighbours {
		return err
	}
	seen := map[kg.Term]bool{subject: true}
	for i := range own {
		t := own[i].Object.Term
		if t.Kind() != kg.KindIRI || own[i].Predicate.Term.Value() == kg.RDFType || seen[t] || len(seen) > maxNeighbours {
			continue
		}
		seen[t] = true
		if _, err := g.addGroup(ctx, kg.Pattern{Subject: t}, maxInner, score*ofNeighbour); err != nil {
			return err
		}
	}
	return nil
}

// addGroup adds the statements that match a pattern, with those about the blank nodes among
// their objects and subjects.
func (g *gathering) addGroup(ctx context.Context, p kg.Pattern, most int, relevance float64) ([]compact.Fact, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	list, err := g.statements(p, most)
	if err != nil {
		return nil, err
	}
	var facts []compact.Fact
	for i := range list {
		if facts, err = g.addStatement(facts, &list[i]); err != nil {
			return nil, err
		}
	}
	if len(facts) > 0 {
		g.groups = append(g.groups, group{relevance, facts})
	}
	return facts, nil
}

// addStatement adds a statement. A blank node is named by nothing else, so its statements
// come with it.
func (g *gathering) addStatement(facts []compact.Fact, st *kg.Statement) ([]compact.Fact, error) {
	if g.seen[st.Quad] {
		return facts, nil
	}
	g.seen[st.Quad] = true
	if st.Subject.Kind() == kg.KindBlank {
		var err error
		if facts, err = g.addAround(facts, kg.Pattern{Object: st.Subject}); err != nil {
			return facts, err
		}
	}
	f, err := g.factOf(st)
	if err != nil {
		return facts, err
	}
	facts = append(facts, f)
	if st.Object.Kind() == kg.KindBlank {
		return g.addAround(facts, kg.Pattern{Subject: st.Object})
	}
	return facts, nil
}

// addAround adds the statements around a blank node.
func (g *gathering) addAround(facts []compact.Fact, p kg.Pattern) ([]compact.Fact, error) {
	if g.depth == maxDepth {
		return facts, nil
	}
	g.depth++
	defer func() { g.depth-- }()
	list, err := g.statements(p, maxInner)
	for i := range list {
		if err == nil {
			facts, err = g.addStatement(facts, &list[i])
		}
	}
	return facts, err
}

// statements returns up to most statements: labels first, then classes, then the rest
// in the order of their terms, and those of one graph and subject together. Of those with one
// predicate, blank nodes with the fewest statements come first, so that they share a line.
func (g *gathering) statements(p kg.Pattern, most int) (list []kg.Statement, err error) {
	for st, err := range g.snapshot.Match(p) {
		if err != nil {
			return nil, err
		}
		if list = append(list, st); len(list) == maxRead {
			break
		}
	}
	inner := map[kg.Term]int{}
	for i := range list {
		node := list[i].Object
		if node.Kind() != kg.KindBlank {
			continue
		}
		for _, err := range g.snapshot.Match(kg.Pattern{Subject: node}) {
			if err != nil {
				return nil, err
			}
			if inner[node]++; inner[node] == maxInner {
				break
			}
		}
	}
	slices.SortStableFunc(list, func(a, b kg.Statement) int {
		return cmp.Or(a.Graph.Compare(b.Graph), a.Subject.Compare(b.Subject), cmp.Compare(g.rankOf(a.Predicate), g.rankOf(b.Predicate)),
			a.Predicate.Compare(b.Predicate), cmp.Compare(inner[a.Object], inner[b.Object]), a.Object.Compare(b.Object))
	})
	return list[:min(len(list), most)], nil
}

func (g *gathering) rankOf(predicate kg.Term) int {
	if i := slices.Index(g.recaller.LabelPredicates, predicate.Value()); i >= 0 {
		return i
	}
	if predicate.Value() == kg.RDFType {
		return len(g.recaller.LabelPredicates)
	}
	return len(g.recaller.LabelPredicates) + 1
}

// uuidNames begins the names that say nothing: a predicate with one is shown with its label.
const uuidNames = "urn:uuid:"

// factOf returns a statement as a fact. Its sources are shown where somebody is not certain.
func (g *gathering) factOf(st *kg.Statement) (f compact.Fact, err error) {
	f = compact.Fact{Graph: st.Graph, Subject: compact.Ref{Term: st.Subject}, Predicate: compact.Ref{Term: st.Predicate}, Object: compact.Ref{Term: st.Object}}
	if st.Object.IsResource() && st.Predicate.Value() != kg.RDFType {
		if f.Object.Label, err = g.labelOf(st.Object); err != nil {
			return f, err
		}
	}
	if strings.HasPrefix(st.Predicate.Value(), uuidNames) {
		if f.Predicate.Label, err = g.labelOf(st.Predicate); err != nil {
			return f, err
		}
	}
	if f.Certainty, f.HasCertainty = st.Certainty(); f.HasCertainty {
		for _, a := range st.Assertions {
			f.Sources = append(f.Sources, a.Source)
		}
		slices.Sort(f.Sources)
	}
	if len(st.Assertions) == 1 {
		f.Validity = st.Assertions[0].Validity
	}
	return f, nil
}

// labelOf returns the label of an entity, "" for none.
func (g *gathering) labelOf(t kg.Term) (string, error) {
	if label, ok := g.labels[t]; ok {
		return label, nil
	}
	var found []query.Candidate
	id, known, err := g.snapshot.ID(t)
	if err != nil {
		return "", err
	}
	for rank, predicate := range g.recaller.LabelPredicates {
		of, ok, err := g.snapshot.ID(kg.IRI(predicate))
		if err != nil {
			return "", err
		}
		if !known || !ok {
			continue
		}
		for row, err := range g.snapshot.MatchIDs(kg.IDPattern{Subject: id, Predicate: of}, nil) {
			if err != nil {
				return "", err
			}
			if found = append(found, query.Candidate{Row: row, Rank: rank}); len(found) == maxFacts {
				break
			}
		}
	}
	label, err := query.BestLabel(g.snapshot, found, []string{"en"})
	if err == nil && !label.IsZero() {
		g.labels[t] = label.Value()
	} else {
		g.labels[t] = ""
	}
	return g.labels[t], err
}
