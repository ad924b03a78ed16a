package graph

import (
	"context"
	"encoding/json"

	"koine/graph/executor"
	"koine/graph/internal/knowledge"
	"koine/graph/internal/views"
	"koine/internal/recall"
	"koine/internal/search"
	"koine/kg"
)

// SearchConnection is a page of the hits of a search.
type SearchConnection struct {
	listPage[SearchHit]
	indexed kg.Revision
}

// IndexedRevision is the newest revision that the index of texts knows.
func (c *SearchConnection) IndexedRevision() int64 { return int64(c.indexed) }

// SearchHit is an entity or a message with words of the query.
type SearchHit struct {
	term knowledge.TermCount
	hit  *search.Hit
}

// Score compares the hits of one answer.
func (h *SearchHit) Score() float64 { return h.hit.Score }

// Entity is the subject of the texts. Those of all hits are loaded together.
func (h *SearchHit) Entity(ctx context.Context, f *executor.Selected) (executor.Value, error) {
	return h.term.Entity(ctx, f)
}

// Matches are the texts with words of the query.
func (h *SearchHit) Matches() []SearchMatch {
	out := make([]SearchMatch, len(h.hit.Matches))
	for i := range h.hit.Matches {
		out[i] = SearchMatch{&h.hit.Matches[i]}
	}
	return out
}

// SearchMatch is a text with words of the query.
type SearchMatch struct{ match *search.Match }

// Predicate is the property that has the text.
func (m *SearchMatch) Predicate() kg.Term { return m.match.Predicate }

// Graph is the graph of the statement, nil for the default graph.
func (m *SearchMatch) Graph() *kg.Term {
	if m.match.Graph == kg.DefaultGraph {
		return nil
	}
	return &m.match.Graph
}

// Text is the text around the first words of the query.
func (m *SearchMatch) Text() string { return m.match.Text }

// Search answers Query.search.
func (*queryRoot) Search(ctx context.Context, query string, first *int, after *Cursor, view *views.ViewInput) (*SearchConnection, error) {
	r := runOf(ctx)
	service := r.engine.deps.Search
	if service == nil {
		return nil, errNoSearch()
	}
	v, err := r.fieldView(view)
	if err != nil {
		return nil, err
	}
	p, err := r.openDomainRange("search", knowledge.PageArgs{First: first, After: after}, search.MaxFirst, query, view)
	if err != nil {
		return nil, err
	}
	if v.Graphs == nil {
		v.AllGraphs = true // messages are in koine's own
	}
	s, err := r.openSnapshot(ctx, v)
	if err != nil {
		return nil, err
	}
	request := search.Request{Query: query, First: p.size + 1}
	if p.begun {
		request.After = new(search.Place)
		if err := json.Unmarshal([]byte(p.key), request.After); err != nil {
			return nil, err
		}
	}
	found, err := service.Search(ctx, s, request)
	if err != nil {
		return nil, kgErrorAt(err, "query")
	}
	hits := found.Hits[:min(len(found.Hits), p.size)]
	terms := &knowledge.TermList{Terms: make([]kg.TermCount, len(hits)), Snapshot: s, View: v}
	i := -1
	page := newListPage(p, hits, len(found.Hits) > p.size, "", placeKey, func(h *search.Hit) SearchHit {
		i++
		terms.Terms[i].Term = h.Subject
		return SearchHit{term: knowledge.TermCount{Iri: h.Subject, List: terms, Index: i}, hit: h}
	})
	page.count = func(context.Context) (int64, bool, error) { return int64(len(hits)), !page.more && !page.begun, nil }
	return &SearchConnection{listPage: *page, indexed: found.Revision}, nil
}

// placeKey is the key of a hit in cursors.
func placeKey(h *search.Hit) string {
	key, err := json.Marshal(h.Place)
	if err != nil {
		panic(err) // numbers and an id
	}
	return string(key)
}

// Recall has the facts about a topic.
type Recall struct {
	answer   recall.Answer
	Revision int64 // of the statements
}

// Text has the facts in lines.
func (a *Recall) Text() string { return a.answer.Text }

// Facts is how many facts are in the text.
func (a *Recall) Facts() int { return a.answer.Facts }

// Left is how many more were found.
func (a *Recall) Left() int { return a.answer.Left }

// Recall answers Query.recall.
func (*queryRoot) Recall(ctx context.Context, topic string, maxTokens *int, view *views.ViewInput) (*Recall, error) {
	r := runOf(ctx)
	e := r.engine
	if e.deps.Search == nil {
		return nil, errNoSearch()
	}
	v, err := r.fieldView(view)
	if err != nil {
		return nil, err
	}
	s, err := r.openSnapshot(ctx, v)
	if err != nil {
		return nil, err
	}
	by := recall.Recaller{Search: e.deps.Search, Prefixes: e.deps.Prefixes, LabelPredicates: e.options.LabelPredicates}
	answer, err := by.Recall(ctx, s, recall.Request{Topic: topic, MaxTokens: deref(maxTokens)})
	if err != nil {
		return nil, err
	}
	return &Recall{answer: answer, Revision: int64(s.Revision())}, r.chargeBytes(len(answer.Text))
}

func errNoSearch() error {
	return kg.Errorf(kg.CodeInvalid, "search is off on this server; koine serve --search on turns it on")
}
