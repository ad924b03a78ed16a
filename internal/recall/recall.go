// Package recall answers a topic with facts, as lines of text for a language model: it
// searches by words, gathers the statements of the entities found, and writes them within a
// budget of tokens.
package recall

import (
	"cmp"
	"context"
	"fmt"
	"slices"

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

	maxSubjects = 20  // found by words
	maxFacts    = 200 // of one subject, and again as many that have it as their object
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
		if err := g.addSubject(ctx, named); err != nil {
			return Answer{}, err
		}
	}
	var a Answer
	if len(g.facts) == 0 {
		page, err := r.Search.Search(ctx, s, search.Request{Query: q.Topic, First: maxSubjects})
		if err != nil {
			return Answer{}, kg.AsError(err).At("topic")
		}
		a.Indexed = page.Revision
		for i := range page.Hits {
			if err := g.addSubject(ctx, page.Hits[i].Subject); err != nil {
				return Answer{}, err
			}
		}
	}
	w := compact.Write(g.facts, compact.Options{Prefixes: r.Prefixes, MaxTokens: q.MaxTokens, More: func(left int) string {
		return fmt.Sprintf("%d more facts; recall with a larger maxTokens or a narrower topic", left)
	}})
	a.Text, a.Facts, a.Left = w.Text, w.Facts, len(g.facts)-w.Facts
	return a, nil
}

// gathering collects facts, the most relevant first.
type gathering struct {
	recaller *Recaller
	snapshot *kg.Snapshot
	facts    []compact.Fact
	seen     map[kg.Quad]bool
	labels   map[kg.Term]string
}

// addSubject adds the statements of a subject, and then those that have it as their object.
func (g *gathering) addSubject(ctx context.Context, subject kg.Term) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, p := range []kg.Pattern{{Subject: subject}, {Object: subject}} {
		list, err := g.statements(p)
		if err != nil {
			return err
		}
		for i := range list {
			if g.seen[list[i].Quad] {
				continue
			}
			g.seen[list[i].Quad] = true
			f, err := g.factOf(&list[i])
			if err != nil {
				return err
			}
			g.facts = append(g.facts, f)
		}
	}
	return nil
}

// statements returns up to maxFacts statements: labels first, then classes, then the rest in
// the order of their terms, and those of one graph and subject together.
func (g *gathering) statements(p kg.Pattern) (list []kg.Statement, err error) {
	for st, err := range g.snapshot.Match(p) {
		if err != nil {
			return nil, err
		}
		if list = append(list, st); len(list) == maxFacts {
			break
		}
	}
	slices.SortStableFunc(list, func(a, b kg.Statement) int {
		return cmp.Or(a.Graph.Compare(b.Graph), a.Subject.Compare(b.Subject), cmp.Compare(g.rankOf(a.Predicate), g.rankOf(b.Predicate)),
			a.Predicate.Compare(b.Predicate), a.Object.Compare(b.Object))
	})
	return list, nil
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

// factOf returns a statement as a fact. Its sources are shown where somebody is not certain.
func (g *gathering) factOf(st *kg.Statement) (f compact.Fact, err error) {
	f = compact.Fact{Graph: st.Graph, Subject: compact.Ref{Term: st.Subject}, Predicate: compact.Ref{Term: st.Predicate}, Object: compact.Ref{Term: st.Object}}
	if st.Object.IsResource() && st.Predicate.Value() != kg.RDFType {
		if f.Object.Label, err = g.labelOf(st.Object); err != nil {
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
