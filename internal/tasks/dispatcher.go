package tasks

import (
	"context"
	"sync"

	"koine/internal/records"
	"koine/kg"
)

// dispatch follows all tasks with one watcher and notifies the feeds of the agents
// concerned. A watcher for each of thousands of agents would wake for every task of all
// the others.
type dispatch struct {
	mu    sync.Mutex // guards feeds and ended
	feeds map[kg.AgentID]map[*Feed]bool
	ended error // why no feed can be added; nil while running
}

func newDispatch() *dispatch { return &dispatch{feeds: map[kg.AgentID]map[*Feed]bool{}} }

func (d *dispatch) add(f *Feed) error {
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

func (d *dispatch) remove(f *Feed) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.feeds[f.agent], f)
	if len(d.feeds[f.agent]) == 0 {
		delete(d.feeds, f.agent)
	}
}

// concerned lists the feeds of the agents.
func (d *dispatch) concerned(agents ...kg.AgentID) (out []*Feed) {
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

// follow notifies the feeds until the context ends. If the log cannot be followed, it
// ends all feeds; feeds that start afterwards miss nothing.
func (d *dispatch) follow(ctx context.Context, watch func() (*kg.Watcher, error), w *kg.Watcher) {
	for {
		err := d.run(w)
		w.Close()
		if ctx.Err() != nil {
			d.end(kg.Errorf(kg.CodeClosed, "the service is closed"), true)
			return
		}
		d.end(kg.Errorf(kg.CodeResync, "events were lost (%s): start a new feed", kg.CodeOf(err)), false)
		if w, err = watch(); err != nil {
			d.end(err, true)
			return
		}
	}
}

// run notifies the feeds of the events of a watcher until it ends.
func (d *dispatch) run(w *kg.Watcher) error {
	for e, err := range w.Events() {
		if err != nil {
			return err
		}
		if err := d.tell(&e); err != nil {
			return err
		}
	}
	return nil
}

// end ends all feeds. With forGood it also refuses new ones.
func (d *dispatch) end(err error, forGood bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if forGood {
		d.ended = err
	}
	for _, feeds := range d.feeds {
		for f := range feeds {
			f.end(err)
		}
	}
}

func (d *dispatch) tell(e *kg.Event) error {
	graph := e.Statement.Graph
	creator, handler, ours := pairOf(graph)
	if !ours {
		return nil
	}
	if e.Statement.Predicate == records.Property(propMail) {
		for _, f := range d.concerned(kg.AgentID(e.Statement.Object.Value())) {
			f.tell(note{at: e.Position, letter: e.Statement.Subject})
		}
		return nil
	}
	feeds := d.concerned(creator, handler)
	if len(feeds) == 0 {
		return nil
	}
	id := idOf(e.Statement.Subject)
	events, err := eventsIn(e.Commit, id, graph)
	for _, f := range feeds {
		f.tell(note{at: e.Position, task: id, events: events})
	}
	return err
}

// startDispatch follows the tasks from the present on.
func (s *Service) startDispatch(ctx context.Context) error {
	view := kg.View{Principal: kg.SystemPrincipal(), AllGraphs: true}
	watch := func() (*kg.Watcher, error) {
		return s.store.Watch(s.desk.ctx, kg.Filter{View: view, Ops: []kg.Op{kg.Add}, Patterns: []kg.Pattern{
			{Predicate: records.Property(propVersion)}, {Predicate: records.Property(propMail)},
		}}, s.store.Head())
	}
	w, err := watch()
	if err != nil {
		return err
	}
	s.desk.done.Go(func() { s.dispatch.follow(s.desk.ctx, watch, w) })
	return ctx.Err()
}
