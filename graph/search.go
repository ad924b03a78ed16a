package graph

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"koine/channels/channel"
	"koine/channels/message"
	"koine/graph/executor"
	"koine/graph/internal/knowledge"
	"koine/graph/internal/scalar"
	"koine/graph/internal/views"
	"koine/internal/changefeed"
	"koine/internal/operation"
	"koine/internal/query"
	"koine/internal/query/pattern"
	"koine/internal/recall"
	"koine/internal/search"
	"koine/kg"
)

// SearchConnection is a page of the hits of a search.
type SearchConnection struct {
	listPage[SearchHit]
	indexed  kg.Revision
	building bool
	history  bool
	service  *search.Service
	snapshot *kg.Snapshot
	request  search.Request
}

// IndexedRevision is the newest revision that the index of texts knows.
func (c *SearchConnection) IndexedRevision() int64 { return int64(c.indexed) }

// Facets counts all hits by properties.
func (c *SearchConnection) Facets(ctx context.Context, by []SearchFacetKey, first int) ([]SearchFacet, error) {
	keys := make([]search.FacetKey, len(by))
	for i, k := range by {
		keys[i] = search.FacetKey(slices.Index(AllSearchFacetKey, k))
	}
	counts, err := c.service.Count(ctx, c.snapshot, c.request, keys, first)
	if err != nil {
		return nil, err
	}
	out := make([]SearchFacet, len(by))
	for i := range out {
		out[i] = SearchFacet{by[i], counts.Exact, &counts.Facets[i]}
	}
	return out, nil
}

// countHits counts all hits.
func (c *SearchConnection) countHits(ctx context.Context) (int64, bool, error) {
	counts, err := c.service.Count(ctx, c.snapshot, c.request, nil, 1)
	return int64(counts.Hits), counts.Exact, err
}

// SearchFacet has the numbers of hits by one property.
type SearchFacet struct {
	By    SearchFacetKey
	Exact bool
	facet *search.Facet
}

// Distinct is the number of values.
func (f *SearchFacet) Distinct() int { return f.facet.Distinct }

// Values are the most frequent values.
func (f *SearchFacet) Values() []SearchFacetValue {
	out := make([]SearchFacetValue, len(f.facet.Values))
	for i := range out {
		out[i] = SearchFacetValue{&f.facet.Values[i]}
	}
	return out
}

// SearchFacetValue is a value with its number of hits.
type SearchFacetValue struct{ value *search.FacetValue }

// Iri is a class, a predicate, or a graph that is not the default graph.
func (v *SearchFacetValue) Iri() *kg.Term {
	if v.value.Name != "" || v.value.Term == kg.DefaultGraph {
		return nil
	}
	return &v.value.Term
}

// NodeID is the id of a channel or an agent. A field named id would let clients cache counts of
// different searches as one object.
func (v *SearchFacetValue) NodeID() *string { return nilIfEmpty(v.value.Name) }

// Count is the number of hits.
func (v *SearchFacetValue) Count() int { return v.value.Count }

// Building reports whether the index of texts is being built anew.
func (c *SearchConnection) Building() bool { return c.building }

// History reports whether texts that went since the view's revision were searched.
func (c *SearchConnection) History() bool { return c.history }

// SearchHit is an entity or a message with words of the query.
type SearchHit struct {
	term knowledge.TermCount
	hit  *search.Hit
}

// Score compares the hits of one answer.
func (h *SearchHit) Score() float64 { return h.hit.Score }

// WordScore is the score by words, if vectors have scores too.
func (h *SearchHit) WordScore() *float64 { return h.hit.WordScore }

// Similarity is that of the nearest vector.
func (h *SearchHit) Similarity() *float64 { return h.hit.Similarity }

// Time is that of the newest matching assertion.
func (h *SearchHit) Time() time.Time { return h.hit.Time }

// Entity is the subject of the texts. Those of all hits are loaded together.
func (h *SearchHit) Entity(ctx context.Context, f *executor.Selected) (executor.Value, error) {
	return h.term.Entity(ctx, f)
}

// Message is the message that the subject is, nil if it is none.
func (h *SearchHit) Message(ctx context.Context) (*Message, error) {
	return messageIfAny(ctx, message.IDOf(h.hit.Subject))
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

// Removed reports whether the statement went after the view's revision.
func (m *SearchMatch) Removed() bool { return m.match.Removed }

// Text is the text around the first words of the query.
func (m *SearchMatch) Text() string { return m.match.Text() }

// Pieces make up the text. Every second one is a word of the query.
func (m *SearchMatch) Pieces() []string { return m.match.Pieces }

// Search answers Query.search.
func (*queryRoot) Search(ctx context.Context, query string, near *NearInput, filter *SearchFilter, order SearchOrder, first *int, after *Cursor, view *views.ViewInput) (*SearchConnection, error) {
	r := runOf(ctx)
	service := r.engine.deps.Search
	if service == nil {
		return nil, errNoSearch()
	}
	v, err := r.fieldView(view)
	if err != nil {
		return nil, err
	}
	p, err := r.openDomainRange("search", knowledge.PageArgs{First: first, After: after}, search.MaxFirst, query, near, filter, order, view)
	if err != nil {
		return nil, err
	}
	if v.Graphs == nil {
		v.AllGraphs, v.WithoutPending = true, !v.IncludePending // messages are in koine's own
	}
	s, err := r.openSnapshot(ctx, v)
	if err != nil {
		return nil, err
	}
	request := search.Request{Past: v.At != 0, Query: query, Filter: r.searchFilter(filter, v), First: p.size + 1}
	if near != nil {
		request.Near = &search.Near{Model: deref(near.Model), Vector: near.Vector, Like: deref(near.Like)}
		if near.Metric == NearMetricDot {
			request.Near.Metric = search.Dot
		}
	}
	if order == SearchOrderTime {
		request.Order = search.ByTime
	}
	if view != nil && view.MinRevision != nil {
		request.MinRevision = *view.MinRevision
	}
	if p.begun {
		request.After = new(search.Place)
		if err := json.Unmarshal([]byte(p.key), request.After); err != nil {
			return nil, err
		}
	}
	found, err := service.Search(ctx, s, request)
	if err != nil {
		return nil, r.searchError(ctx, err)
	}
	hits := found.Hits[:min(len(found.Hits), p.size)]
	terms := &knowledge.TermList{Terms: make([]kg.TermCount, len(hits)), Snapshot: s, View: v}
	i := -1
	page := newListPage(p, hits, len(found.Hits) > p.size, "", placeKey, func(h *search.Hit) SearchHit {
		i++
		terms.Terms[i].Term = h.Subject
		return SearchHit{term: knowledge.TermCount{Iri: h.Subject, List: terms, Index: i}, hit: h}
	})
	c := &SearchConnection{listPage: *page, indexed: found.Revision, building: found.Building, history: found.History, service: service, snapshot: s, request: request}
	c.count = c.countHits
	if near != nil { // everything with a vector is a hit
		c.count = func(context.Context) (int64, bool, error) { return int64(len(hits)), !page.more && !page.begun, nil }
	}
	return c, nil
}

// searchFilter returns a filter of the domain.
func (r *run) searchFilter(in *SearchFilter, v kg.View) (out search.Filter) {
	if in == nil {
		return out
	}
	out = search.Filter{Classes: in.Classes, Predicates: in.Predicates, AssertionFilter: search.AssertionFilter{
		Recorded: kg.TimeSpan{From: deref(in.Since), Until: deref(in.Until)}, MinCertainty: deref(in.MinCertainty),
	}}
	if in.Graphs != nil {
		out.Graphs = make([]kg.Term, len(in.Graphs))
		for i, g := range in.Graphs {
			if out.Graphs[i] = kg.DefaultGraph; g != nil {
				out.Graphs[i] = *g
			}
		}
	}
	if in.ChannelIds != nil {
		out.Channels = make([]channel.ID, len(in.ChannelIds))
		for i, id := range in.ChannelIds {
			out.Channels[i] = channel.ID(id)
		}
	}
	if in.AuthorIds != nil {
		out.Authors = make([]kg.AgentID, len(in.AuthorIds))
		for i, id := range in.AuthorIds {
			out.Authors[i] = kg.CanonicalAgent(id)
		}
	}
	if in.Match != nil {
		out.Match = &search.MatchFilter{
			Var: in.Match.Var, Pattern: in.Match.Pattern,
			Compiler: query.Compiler{Labels: r.Reader.Labels, Prefixes: r.Reader.Prefixes, Texts: r.engine.textsIn(v)}, Limits: r.engine.limits.PatternLimits(),
		}
	}
	return out
}

// searchError places an error of a search at its argument.
func (r *run) searchError(ctx context.Context, err error) error {
	err = r.TellPrefixed(ctx, err)
	if e := kg.AsError(err); e.Field == "" && e.Code != kg.CodeTimeout {
		return e.At("query")
	}
	return err
}

// textsIn returns a function for the sources of texts in patterns. The view has a revision if it is one
// of the past.
func (e *Engine) textsIn(v kg.View) query.TextSources {
	return func(text string, predicates []kg.Term) (pattern.TextSource, error) {
		if e.deps.Search == nil {
			return nil, errNoSearch()
		}
		return e.deps.Search.Source(text, search.Filter{Predicates: predicates}, v.At != 0)
	}
}

// placeKey is the key of a hit in cursors.
func placeKey(h *search.Hit) string {
	key, err := json.Marshal(h.Place)
	if err != nil {
		panic(err) // numbers and an id
	}
	return string(key)
}

// NewSearchHit is an entity or a message that came to have words of the query.
type NewSearchHit struct{ SearchHit }

// searchEvent is the content and the subject of Subscription.searchChanged.
type searchEvent struct {
	follower *search.Follower
	view     kg.View
	maxHits  int // of an event of the snapshot
	fields   []searchEventField
	// current are the hits of the snapshot's part being sent.
	current []search.Hit
}

// searchEventField is a field of a SearchChange.
type searchEventField struct {
	key    []byte
	name   string
	hits   *executor.Selected
	commit []knowledge.RecordField
}

// SearchChanged establishes Subscription.searchChanged.
func (*subscriptionRoot) SearchChanged(ctx context.Context, f *executor.Selected, args *subscriptionSearchChangedArgs) (*Stream, error) {
	return knowledge.SubscribeTo(ctx, f, args.Resume, args.View, func(p *knowledge.Planner, field ast.SelectionSet) (knowledge.EventContent, changefeed.Subject, error) {
		r := runOf(ctx)
		if r.engine.deps.Search == nil {
			return nil, nil, errNoSearch()
		}
		follower, err := r.engine.deps.Search.NewFollower(args.Query, r.searchFilter(args.Filter, p.View))
		if err != nil {
			return nil, nil, err
		}
		c := &searchEvent{follower: follower, view: p.View, maxHits: r.engine.limits.SnapshotRows}
		if c.view.Graphs == nil {
			c.view.AllGraphs = true // messages are in koine's own
		}
		err = p.EachField(field, knowledge.SearchChangeImplementors, func(f graphql.CollectedField, key []byte) error {
			c.fields = append(c.fields, searchEventField{key: key, name: f.Name})
			return searchChangeFieldPlan{p, &c.fields[len(c.fields)-1]}.planNamed(f)
		})
		return c, c, err
	})
}

// searchChangeFieldPlan plans a field of a SearchChange.
type searchChangeFieldPlan struct {
	planner *knowledge.Planner
	field   *searchEventField
}

func (b searchChangeFieldPlan) planHits(f graphql.CollectedField) error {
	b.field.hits = b.planner.SelectedField(f)
	return nil
}

func (b searchChangeFieldPlan) planCommit(f graphql.CollectedField) (err error) {
	b.field.commit, err = b.planner.PlanCommit(f.Selections)
	return err
}

// searchChangeLeaves appends the scalars of a SearchChange.
type searchChangeLeaves struct{ proposalChangeLeaves }

// View is the view of the hits.
func (c *searchEvent) View() kg.View { return c.view }

// Begin returns the filter.
func (c *searchEvent) Begin(context.Context, *kg.Store, kg.Position) (kg.Filter, error) {
	return kg.Filter{View: c.view, Replacements: true}, nil
}

// Changes yields the commits. Most of them make no hit.
func (c *searchEvent) Changes(_ context.Context, _ *kg.Store, w *kg.Watcher) iter.Seq2[operation.Event, error] {
	return changefeed.Commits(w)
}

// Current yields an event for each part of the hits.
func (c *searchEvent) Current(ctx context.Context, s *kg.Snapshot) iter.Seq2[operation.Event, error] {
	return func(yield func(operation.Event, error) bool) {
		var example *kg.Statement // for protocols with events about statements
		var failed error
		err := changefeed.MarkLast(c.snapshotParts(ctx, s), func(part []search.Hit, last bool) bool {
			if c.current == nil {
				if example, failed = changefeed.FirstStatement(s, kg.Pattern{Subject: part[0].Subject}); failed != nil {
					return false
				}
			}
			c.current = part
			return yield(operation.Event{Snapshot: true, SnapshotEnd: last, Statement: example}, nil)
		})
		if err = cmp.Or(err, failed); err != nil {
			yield(operation.Event{}, err)
		}
	}
}

func (c *searchEvent) snapshotParts(ctx context.Context, s *kg.Snapshot) iter.Seq2[[]search.Hit, error] {
	return func(yield func([]search.Hit, error) bool) {
		var part []search.Hit
		for hit, err := range c.follower.Hits(ctx, s) {
			if err != nil {
				yield(nil, err)
				return
			}
			if part = append(part, hit); len(part) == c.maxHits {
				if !yield(part, nil) {
					return
				}
				part = nil
			}
		}
		if len(part) > 0 {
			yield(part, nil)
		}
	}
}

// Write writes the new hits, nothing for none.
func (c *searchEvent) Write(w *writer, t *knowledge.EventWriter, e *operation.Event) error {
	if e.Snapshot {
		return c.writeHits(w, t, e, t.Snapshot(), c.current)
	}
	if !c.follower.MayMakeHits(e.Changes[0].Commit) {
		return nil
	}
	view := c.view
	view.At = e.Position.Revision
	after, err := t.Run.OpenSnapshot(t.Ctx, view)
	if err != nil {
		return err
	}
	var before *kg.Snapshot
	if view.At--; view.At > 0 {
		if before, err = t.Run.OpenSnapshot(t.Ctx, view); err != nil {
			return err
		}
	}
	list, err := c.follower.NewHits(t.Ctx, before, after, e.Changes[0].Commit)
	if errors.Is(err, context.DeadlineExceeded) {
		return knowledge.ResyncError(e, "it takes too long")
	}
	if err != nil || len(list) == 0 {
		return err
	}
	// Protocols with events about statements tell those of the hits.
	of := func(change kg.Event) bool {
		return slices.ContainsFunc(list, func(h search.Hit) bool { return h.Subject == change.Statement.Quad.Subject })
	}
	if slices.ContainsFunc(e.Changes, of) {
		e.Changes = slices.DeleteFunc(slices.Clone(e.Changes), func(change kg.Event) bool { return !of(change) })
	}
	return c.writeHits(w, t, e, after, list)
}

func (c *searchEvent) writeHits(w *writer, t *knowledge.EventWriter, e *operation.Event, s *kg.Snapshot, list []search.Hit) (err error) {
	terms := &knowledge.TermList{Terms: make([]kg.TermCount, len(list)), Snapshot: s, View: s.View()}
	for i := range list {
		terms.Terms[i].Term = list[i].Subject
	}
	scalar.WriteFields(w, c.fields, func(_ int, f *searchEventField) {
		w.EnterField(f.key)
		switch f.name {
		case "__typename":
			w.B = append(w.B, `"SearchChange"`...)
		case "hits":
			selected := f.hits.On(newSearchHitObject)
			scalar.WriteList(w, len(list), func(i int) {
				err = cmp.Or(err, w.Object(selected, &NewSearchHit{SearchHit{knowledge.TermCount{Iri: list[i].Subject, List: terms, Index: i}, &list[i]}}))
			})
		case "commit":
			err = cmp.Or(err, t.Run.WriteCommitOf(w, e, f.commit))
		default:
			w.B = searchChangeLeaves{proposalChangeLeaves{t.Run.Reader.Store, e}}.appendNamed(w.B, f.name)
		}
		w.LeaveField()
	})
	return err
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
