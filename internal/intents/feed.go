package intents

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"sync"

	"koine/channels"
	"koine/channels/message"
	"koine/channels/scope"
	"koine/internal/systemgraph"
	"koine/kg"
)

// FeedQuery selects the intents of a feed: one of Intent, Agent and Portfolio.
type FeedQuery struct {
	// Intent follows an intent: its events, and the messages in its channels and those of its
	// tasks that the caller may read, audited or not.
	Intent scope.ID
	// Agent is the acting agent, and follows the events of the intents that it is assigned to,
	// its assignment included.
	Agent kg.AgentID
	// Portfolio follows the events of the intents in a portfolio that the caller may read.
	Portfolio string
	// After is the position after which the feed begins; nil means now.
	After *kg.Position
}

// FeedEvent is an event of an intent or a message in one of its channels.
type FeedEvent struct {
	Intent scope.ID
	Event  *scope.Event // nil for a message
	// Change is set for a change of state or status; nil for other events.
	Change  *Change
	Message *message.Message // nil for an event
	// Position is the position after the event: the feed resumes there without a gap or a
	// duplicate.
	Position kg.Position
}

// Feed streams the events of intents, in the order of the log. Call Close when done.
type Feed struct {
	service  *Service
	ctx      context.Context
	by       channels.Caller
	query    FeedQuery
	members  *kg.Pattern // matches the statements that put an intent into the feed; nil for one intent
	reader   *channels.ScopeReader
	watcher  *kg.Watcher
	position kg.Position
	// intents are those that are followed as of the last commit that was read. They follow
	// from the log alone, so a resumed feed tells the same.
	intents map[scope.ID]bool
	release func()
}

// Follow follows an intent, an agent or a portfolio. The messages of audited channels are
// told as messages, not as the events that are their copies.
//
// Errors: CodeInvalid unless the query names one of the three; CodePermissionDenied for an
// agent that is not the acting one; CodeScopeNotFound; CodeNotFound for a portfolio;
// CodePositionGone; CodeLimitExceeded for too many open streams; those of kg.Store.Watch.
func (s *Service) Follow(ctx context.Context, by channels.Caller, q FeedQuery) (*Feed, error) {
	f := &Feed{service: s, ctx: ctx, by: by, query: q, intents: map[scope.ID]bool{}}
	if err := f.resolve(); err != nil {
		return nil, err
	}
	f.position = s.store.Head()
	if q.After != nil {
		f.position = *q.After
	}
	if err := s.store.CheckPosition(f.position); err != nil {
		return nil, err
	}
	if err := f.readMembers(); err != nil {
		return nil, err
	}
	var err error
	if f.reader, err = channels.NewScopeReader(ctx, s.channels, by); err != nil {
		return nil, err
	}
	if f.watcher, err = s.store.Watch(ctx, f.filter(), f.position); err != nil {
		f.reader.Close()
		return nil, err
	}
	f.release = sync.OnceFunc(func() { f.watcher.Close(); f.reader.Close() })
	return f, nil
}

// Close stops the feed.
func (f *Feed) Close() { f.release() }

// Position returns the position after the last event that was told.
func (f *Feed) Position() kg.Position { return f.position }

// resolve validates the query.
func (f *Feed) resolve() error {
	agent, err := f.by.ActingAgent()
	if err != nil {
		return err
	}
	q := &f.query
	switch {
	case q.Intent != "" && q.Agent == "" && q.Portfolio == "":
		_, err := f.service.Get(f.ctx, f.by, q.Intent)
		f.intents[q.Intent] = true
		return err
	case q.Agent != "" && q.Intent == "" && q.Portfolio == "":
		if kg.CanonicalAgent(string(q.Agent)) != agent {
			return kg.Errorf(kg.CodePermissionDenied, "only the agent itself follows its intents").At("agent")
		}
		f.members = &kg.Pattern{Predicate: systemgraph.Property("assignedAgent"), Object: kg.IRI(string(agent))}
		return nil
	case q.Portfolio != "" && q.Intent == "" && q.Agent == "":
		p, err := f.service.Portfolios().Get(f.ctx, f.by, q.Portfolio)
		if err != nil {
			return err
		}
		f.members = &kg.Pattern{Predicate: systemgraph.Property("inPortfolio"), Object: p.Entity()}
		return nil
	}
	return kg.Errorf(kg.CodeInvalid, "a feed follows an intent, an agent or a portfolio")
}

// readMembers reads which intents are followed as of the feed's position.
func (f *Feed) readMembers() error {
	if f.members == nil || f.position.Revision == 0 {
		return nil
	}
	snapshot, err := f.service.store.View(f.ctx, kg.View{Principal: kg.SystemPrincipal(), AllGraphs: true, Doubted: true, At: f.position.Revision})
	if kg.CodeOf(err) == kg.CodeRevisionGone {
		return kg.Errorf(kg.CodePositionGone, "the history no longer holds who was assigned at the position")
	}
	if err != nil {
		return err
	}
	defer snapshot.Close()
	for st, err := range snapshot.Match(*f.members) {
		if err != nil {
			return err
		}
		if id, _ := scope.OfGraph(st.Graph); id != "" {
			f.intents[id] = true
		}
	}
	return nil
}

// filter returns the filter of the watcher. It watches as the system principal, and each
// event is checked against the caller's access: access changes often here, and must not end
// the feed. Nor must a quarantine: it does not concern events.
func (f *Feed) filter() kg.Filter {
	var patterns []kg.Pattern
	if f.members != nil {
		patterns = append(patterns, *f.members)
	} else {
		patterns = f.reader.Patterns(f.query.Intent)
	}
	if len(patterns)+2*len(f.intents) <= kg.MaxPatterns {
		for id := range f.intents {
			patterns = append(patterns, kg.Pattern{Predicate: kg.Sequence, Graph: id.EventsGraph()}, kg.Pattern{Predicate: statusOfScope, Graph: id.RecordGraph()})
		}
	} else {
		patterns = append(patterns[:min(len(patterns), kg.MaxPatterns-2)], kg.Pattern{Predicate: kg.Sequence}, kg.Pattern{Predicate: statusOfScope})
	}
	return kg.Filter{Patterns: patterns, View: kg.View{Principal: kg.SystemPrincipal(), AllGraphs: true, Doubted: true}}
}

// All yields the events and waits for more. It ends with CodeScopeNotFound when the caller
// loses access to the intent that it follows, with the context's error, and with CodeClosed
// and CodeResync like a kg.Watcher. It may be called once, from one goroutine.
func (f *Feed) All() iter.Seq2[FeedEvent, error] {
	return func(yield func(FeedEvent, error) bool) {
		for events, err := range f.watcher.Commits() {
			more := true
			if err == nil && len(events) > 0 {
				more, err = f.tellCommit(events, func(e FeedEvent) bool { return yield(e, nil) })
			}
			if err != nil {
				yield(FeedEvent{}, err)
				return
			}
			if !more {
				return
			}
		}
	}
}

// tellCommit tells the effects of a commit on the intents that were followed before it or are
// after it.
func (f *Feed) tellCommit(events []kg.Event, tell func(FeedEvent) bool) (more bool, err error) {
	c, now := events[0].Commit, f.membersAfter(events[0].Commit)
	list, err := f.eventsIn(c, now)
	if err != nil {
		return false, err
	}
	for i, e := range list {
		if e.Position.Revision == f.position.Revision && e.Position.Index <= f.position.Index {
			continue // told before
		}
		if i == len(list)-1 {
			e.Position.Index = kg.EndOfCommit
		}
		f.position = e.Position
		if !tell(e) {
			return false, nil
		}
	}
	if f.members == nil {
		if _, err := f.service.scopes.LevelOf(f.by, f.query.Intent); err != nil {
			return false, err
		}
	}
	f.intents = now
	if slices.ContainsFunc(events, func(e kg.Event) bool { return e.Statement.Predicate != kg.Sequence }) {
		err = f.watcher.Refilter(f.filter())
	}
	return err == nil, err
}

// membersAfter returns the intents that are followed after a commit.
func (f *Feed) membersAfter(c *kg.Commit) map[scope.ID]bool {
	now := f.intents
	for i := range c.Changes {
		ch := &c.Changes[i]
		if f.members == nil || ch.Quad.Predicate != f.members.Predicate || ch.Quad.Object != f.members.Object {
			continue
		}
		id, _ := scope.OfGraph(ch.Quad.Graph)
		next := map[scope.ID]bool{}
		for one := range now {
			next[one] = true
		}
		if ch.Op == kg.Remove {
			delete(next, id)
		} else {
			next[id] = true
		}
		now = next
	}
	return now
}

// eventsIn returns the effects of a commit on the intents that are followed before or after it, in
// the order of its changes. The positions are those of the changes, whatever the caller may
// read.
func (f *Feed) eventsIn(c *kg.Commit, after map[scope.ID]bool) (out []FeedEvent, err error) {
	for i := range c.Changes {
		ch := &c.Changes[i]
		id, _ := scope.OfGraph(ch.Quad.Graph)
		if id == "" || ch.Op != kg.Add || !f.intents[id] && !after[id] {
			continue
		}
		var e *scope.Event
		switch {
		case ch.Quad.Predicate == kg.Sequence && ch.Quad.Graph == id.EventsGraph():
			e, err = f.readEvent(ch, id)
		case ch.Quad.Predicate == statusOfScope && ch.Quad.Graph == id.RecordGraph():
			e = endedElsewhere(c, ch, id)
		default:
			continue
		}
		if err != nil {
			return nil, err
		}
		if e == nil || e.Type == scope.EventMessage {
			continue
		}
		if _, err := f.service.scopes.LevelOf(f.by, id); err != nil {
			continue // no access any more
		}
		change := changeIn(c, id, e)
		if e.Sequence == 0 {
			if err := f.completeEnd(id, change); err != nil {
				return nil, err
			}
		}
		out = append(out, FeedEvent{Intent: id, Event: e, Change: change, Position: f.positionOf(c, i)})
	}
	if f.members != nil {
		return out, nil
	}
	messages, err := f.reader.Messages(f.query.Intent, c)
	if err != nil {
		return nil, err
	}
	for _, m := range messages {
		i := slices.IndexFunc(c.Changes, func(ch kg.Change) bool {
			return ch.Op == kg.Add && ch.Quad.Predicate == kg.Sequence && ch.Quad.Graph == m.Channel.MessagesGraph()
		})
		out = append(out, FeedEvent{Intent: f.query.Intent, Message: m, Position: f.positionOf(c, i)})
	}
	slices.SortStableFunc(out, func(a, b FeedEvent) int { return cmp.Compare(a.Position.Index, b.Position.Index) })
	return out, nil
}

// positionOf returns the position after a change of a commit.
func (f *Feed) positionOf(c *kg.Commit, i int) kg.Position {
	return kg.Position{Epoch: f.position.Epoch, Revision: c.Revision, Index: uint32(i)}
}

// readEvent reads the event that a change numbers; nil without access.
func (f *Feed) readEvent(ch *kg.Change, id scope.ID) (*scope.Event, error) {
	page, err := f.service.scopes.Events(f.ctx, f.by, id, integerOf(ch.Quad.Object), 1)
	if kg.CodeOf(err) == kg.CodeScopeNotFound || err == nil && len(page) == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return page[0], nil
}

// completeEnd sets the status and the version of an intent with a scope that was ended without it:
// its record stays as it was.
func (f *Feed) completeEnd(id scope.ID, change *Change) error {
	return viewPart(f.ctx, f.service.store, f.by, func(snapshot *kg.Snapshot) error {
		it, err := readIntent(snapshot.Match, &scope.Scope{ID: id, Status: scope.Active})
		if err == nil {
			change.OldStatus, change.Version = it.Status, it.Version+1
		}
		return err
	})
}
