package tasks

import (
	"context"
	"sync"

	"koine/internal/systemgraph"
	"koine/kg"
)

// dispatcher follows all tasks with one watcher and notifies the feeds of the agents
// concerned. A watcher for each of thousands of agents would wake for every task of all
// the others.
type dispatcher struct {
	mu    sync.Mutex // guards feeds and ended
	feeds map[kg.AgentID]map[*Feed]bool
	ended error // why no feed can be added; nil while running
}

func newDispatcher() *dispatcher { return &dispatcher{feeds: map[kg.AgentID]map[*Feed]bool{}} }

func (d *dispatcher) addFeed(f *Feed) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended != nil {
		return d.ended
	}
	if d.feeds[f.agent] == nil {
		d.feeds[f.agent] = map[*Feed]bool{}
	}
	d.feeds[f.agent][f] = true
	return nil
}

func (d *dispatcher) removeFeed(f *Feed) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.feeds[f.agent], f)
	if len(d.feeds[f.agent]) == 0 {
		delete(d.feeds, f.agent)
	}
}

func (d *dispatcher) feedsOf(agents ...kg.AgentID) (out []*Feed) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, agent := range agents {
		if i > 0 && agent == agents[0] {
			break // an agent that is both creator and handler is notified once
		}
		for f := range d.feeds[agent] {
			out = append(out, f)
		}
	}
	return out
}

// followLog notifies the feeds until the context ends. If the log cannot be followed, it
// ends all feeds; feeds that start afterwards miss nothing.
func (d *dispatcher) followLog(ctx context.Context, watch func() (*kg.Watcher, error), w *kg.Watcher) {
	for {
		err := d.run(w)
		w.Close()
		if ctx.Err() != nil {
			d.endFeeds(kg.Errorf(kg.CodeClosed, "the service is closed"), true)
			return
		}
		d.endFeeds(kg.Errorf(kg.CodeResync, "events were lost (%s): start a new feed", kg.CodeOf(err)), false)
		if w, err = watch(); err != nil {
			d.endFeeds(err, true)
			return
		}
	}
}

// run notifies the feeds of the events of a watcher until it ends.
func (d *dispatcher) run(w *kg.Watcher) error {
	for e, err := range w.Events() {
		if err != nil {
			return err
		}
		if err := d.notifyFeeds(&e); err != nil {
			return err
		}
	}
	return nil
}

// endFeeds ends all feeds. With forGood it also refuses new ones.
func (d *dispatcher) endFeeds(err error, forGood bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if forGood {
		d.ended = err
	}
	for _, feeds := range d.feeds {
		for f := range feeds {
			f.endWith(err)
		}
	}
}

func (d *dispatcher) notifyFeeds(e *kg.Event) error {
	graph := e.Statement.Graph
	creator, handler, ours := pairOf(graph)
	if !ours {
		return nil
	}
	if e.Statement.Predicate == systemgraph.Property(propMail) {
		for _, f := range d.feedsOf(kg.AgentID(e.Statement.Object.Value())) {
			f.enqueue(notification{at: e.Position, letter: e.Statement.Subject})
		}
		return nil
	}
	feeds := d.feedsOf(creator, handler)
	if len(feeds) == 0 {
		return nil
	}
	id := IDOf(e.Statement.Subject)
	events, err := eventsIn(e.Commit, id, graph)
	for _, f := range feeds {
		f.enqueue(notification{at: e.Position, task: id, events: events})
	}
	return err
}

// startDispatch follows the tasks from the present on.
func (s *Service) startDispatch(ctx context.Context) error {
	view := kg.View{Principal: kg.SystemPrincipal(), AllGraphs: true}
	watch := func() (*kg.Watcher, error) {
		return s.store.Watch(s.pool.group.Context(), kg.Filter{View: view, Ops: []kg.Op{kg.Add}, Patterns: []kg.Pattern{
			{Predicate: systemgraph.Property(propVersion)}, {Predicate: systemgraph.Property(propMail)},
		}}, s.store.Head())
	}
	w, err := watch()
	if err != nil {
		return err
	}
	s.pool.group.Start("dispatch tasks", func(ctx context.Context) error { s.dispatch.followLog(ctx, watch, w); return nil })
	return ctx.Err()
}
