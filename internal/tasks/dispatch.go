package tasks

import (
	"context"
	"sync"

	"koine/internal/records"
	"koine/kg"
)

// dispatch follows all tasks with one watcher, and tells the feeds of an agent what
// concerns it: a watcher for each of thousands of agents would be woken by each task
// of all the others.
type dispatch struct {
	mu    sync.Mutex // guards what follows
	feeds map[kg.AgentID]map[*Feed]bool
	ended error // why there is none any more
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

// concerned are the feeds of either agent.
func (d *dispatch) concerned(agents ...kg.AgentID) (out []*Feed) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, agent := range agents {
		if i > 0 && agent == agents[0] {
			break // who asks itself is told once
		}
		for f := range d.feeds[agent] {
			out = append(out, f)
		}
	}
	return out
}

// follow tells what comes, until the context ends. Where the log cannot be followed,
// the feeds end, and those that begin anew miss nothing.
func (d *dispatch) follow(ctx context.Context, watch func() (*kg.Watcher, error), w *kg.Watcher) {
	for {
		err := d.run(w)
		w.Close()
		if ctx.Err() != nil {
			d.end(kg.Errorf(kg.CodeClosed, "tasks are followed no more"), true)
			return
		}
		d.end(kg.Errorf(kg.CodeResync, "what came is not known: begin anew (%s)", kg.CodeOf(err)), false)
		if w, err = watch(); err != nil {
			d.end(err, true)
			return
		}
	}
}

// run tells what a watcher sees, to its end.
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

// end ends the feeds that there are; for good, all that would come, too.
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

// startDispatch begins to follow, from now on.
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
