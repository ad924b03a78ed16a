package channels

import (
	"context"
	"iter"
	"time"

	"koine/channels/channel"
	"koine/channels/internal/access"
	"koine/channels/internal/vocab"
	"koine/channels/message"
	"koine/kg"
)

// ControlKind is the kind of a channel change.
type ControlKind string

// Kinds of channel changes.
const (
	ChannelCreated    ControlKind = "created"
	MemberJoined      ControlKind = "joined"
	MemberLeft        ControlKind = "left"
	MemberRoleChanged ControlKind = "role"
	ChannelUpdated    ControlKind = "updated" // settings: Control.Changes
	ChannelClosed     ControlKind = "closed"  // the channel accepts no more messages
	ChannelDeleted    ControlKind = "deleted" // the last event of the channel
)

// Control is a change of a channel as recorded in the log.
type Control struct {
	Channel channel.ID
	Kind    ControlKind
	// Agent and Role are set for the member kinds: the member, and its new role or, for
	// MemberLeft, its last one.
	Agent kg.AgentID
	Role  channel.Role
	// By is the agent that made the change.
	By kg.AgentID
	// Version is the version of the channel after the change.
	Version  int64
	Time     time.Time
	Revision kg.Revision
	// Changes are the settings that a ChannelUpdated changed, sorted by name.
	Changes []channel.SettingChange
}

// Event is a message or a change of a channel.
type Event struct {
	Message *message.Message // nil for a change
	Control *Control         // nil for a message
	// Position resumes the stream after the event.
	Position kg.Position
}

// Events streams the messages and the changes of a channel in log order. Call Close
// when done.
type Events struct {
	service  *Service
	by       Caller
	agent    kg.AgentID
	id       channel.ID
	ctx      context.Context
	position kg.Position // after the last yielded event
	watcher  *kg.Watcher
	release  func()
}

// StreamEvents follows a channel like Stream and also reports its changes: members that
// join, leave, or change their role, and updates, closing, and deletion of the channel.
// It starts after the position from; nil means now, and the zero Position means the
// creation of the channel.
//
// Errors: those of Stream; CodePositionGone for a position of another log, or for one
// before the start of the retained log.
func (s *Service) StreamEvents(ctx context.Context, by Caller, id channel.ID, from *kg.Position) (*Events, error) {
	agent, e, err := s.table.OpenReadable(ctx, by, id)
	if err != nil {
		return nil, err
	}
	ev := &Events{service: s, by: by, agent: agent, id: id, ctx: ctx}
	if ev.position, err = s.eventsStart(ctx, id, from); err != nil {
		return nil, err
	}
	if ev.release, err = s.openStream(by, id); err != nil {
		return nil, err
	}
	if err = ev.startWatch(e); err != nil {
		ev.release()
		return nil, err
	}
	return ev, nil
}

// eventsStart returns the position after which events are yielded.
func (s *Service) eventsStart(ctx context.Context, id channel.ID, from *kg.Position) (kg.Position, error) {
	head := s.store.Head()
	switch {
	case from == nil:
		return head, nil
	case *from != (kg.Position{}):
		return *from, s.store.CheckPosition(*from)
	}
	snapshot, err := s.journal.SystemView(ctx)
	if err != nil {
		return head, err
	}
	defer snapshot.Close()
	for st, err := range snapshot.Match(kg.Pattern{Subject: id.Entity(), Predicate: vocab.Type, Graph: id.RecordGraph()}) {
		if err != nil {
			return head, err
		}
		return kg.Position{Epoch: head.Epoch, Revision: st.Assertions[0].Revision - 1, Index: kg.EndOfCommit}, nil
	}
	return head, nil // a direct channel before its first message
}

// startWatch starts the watcher. It watches as the system principal, and each commit is
// checked against the agent's access: membership changes often here, and must not end
// the stream of agents that keep their access. Nor must a quarantine: it does not concern
// records and messages.
func (ev *Events) startWatch(e *access.Entry) (err error) {
	record := ev.id.RecordGraph()
	patterns := []kg.Pattern{
		{Predicate: kg.Sequence, Graph: ev.id.MessagesGraph()}, {Graph: record},
		{Predicate: vocab.Banned, Object: kg.IRI(string(ev.agent)), Graph: kg.SystemGraph},
	}
	for _, of := range e.Scopes() {
		patterns = append(patterns, kg.Pattern{Graph: of.RecordGraph()})
	}
	// If the position is inside a commit, the watch starts before that commit.
	from := ev.position
	if from.Index != kg.EndOfCommit && from.Revision > 0 {
		from = kg.Position{Epoch: from.Epoch, Revision: from.Revision - 1, Index: kg.EndOfCommit}
	}
	ev.watcher, err = ev.service.store.Watch(ev.ctx, kg.Filter{Patterns: patterns, View: kg.View{Principal: kg.SystemPrincipal(), AllGraphs: true, Doubted: true}}, from)
	return err
}

// Close stops the stream.
func (ev *Events) Close() {
	ev.watcher.Close()
	ev.release()
}

// All yields the events and waits for more. It ends as Stream.Messages does. It may be
// called once, from one goroutine.
func (ev *Events) All() iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for seen, err := range ev.watcher.Commits() {
			more := false
			if err == nil {
				more, err = ev.yieldCommit(seen[0].Commit, func(e Event) bool { return yield(e, nil) })
			}
			if err != nil {
				yield(Event{}, err)
			}
			if !more {
				return
			}
		}
	}
}

// yieldCommit yields the events of a commit.
func (ev *Events) yieldCommit(c *kg.Commit, yield func(Event) bool) (more bool, err error) {
	list, err := ev.commitEvents(c)
	if err != nil {
		return false, err
	}
	for i, e := range list {
		e.Position = kg.Position{Epoch: ev.position.Epoch, Revision: c.Revision, Index: uint32(i)}
		if i == len(list)-1 {
			e.Position.Index = kg.EndOfCommit
		}
		if c.Revision == ev.position.Revision && uint32(i) <= ev.position.Index {
			continue // yielded before
		}
		deleted := e.Control != nil && e.Control.Kind == ChannelDeleted
		switch allowed := ev.checkRead(); {
		case allowed != nil && !ev.endedByDeletion():
			return false, allowed
		case allowed != nil && !deleted:
			continue // the channel is already deleted
		case !yield(e):
			return false, nil
		}
		if deleted {
			return false, channel.ErrNotFound()
		}
	}
	if err := ev.checkRead(); err != nil && !ev.endedByDeletion() {
		return false, err
	}
	return true, nil
}

// checkRead returns an error if the agent can no longer read the channel.
func (ev *Events) checkRead() error {
	_, _, err := ev.service.table.RequireReadable(ev.by, ev.id)
	return err
}

// endedByDeletion reports whether the channel was deleted while the agent could read
// it. The agent then receives the deletion event, but no earlier event any more.
func (ev *Events) endedByDeletion() bool {
	e := ev.service.table.Get(ev.id)
	return e != nil && e.Deleted && access.IsReadable(e.BeforeDeletion.AsPrincipal(ev.by.ReaderPrincipal(ev.agent)), ev.agent)
}

// commitEvents lists the events of a commit: the channel's changes, then its message.
func (ev *Events) commitEvents(c *kg.Commit) (list []Event, err error) {
	for _, control := range controlsInCommit(c, ev.id) {
		list = append(list, Event{Control: &control})
	}
	m, err := ev.service.journal.MessageIn(c, ev.id, ev.service.journal.ViewerIn(ev.by, ev.agent, ev.id))
	if err == nil && m != nil {
		if ev.checkRead() != nil {
			return append(list, Event{Message: m}), nil // yieldCommit drops it
		}
		// The log still has content that was retracted since.
		if m, err = ev.service.journal.Reread(ev.ctx, m, ev.service.journal.ViewerIn(ev.by, ev.agent, ev.id)); err == nil {
			list = append(list, Event{Message: m})
		}
	}
	return list, err
}

// controlsInCommit lists the changes of a channel in a commit.
func controlsInCommit(c *kg.Commit, id channel.ID) (list []Control) {
	record := Control{Channel: id, By: c.Actor, Time: c.Time, Revision: c.Revision}
	was, is := map[kg.AgentID]channel.Role{}, map[kg.AgentID]channel.Role{}
	var agents []kg.AgentID
	kinds := map[ControlKind]bool{}
	settings := channel.SettingChanges{}
	for i := range c.Changes {
		ch := &c.Changes[i]
		if ch.Quad.Graph != id.RecordGraph() || ch.Quad.Subject != id.Entity() {
			continue
		}
		stands := len(ch.After) > 0
		switch role := channel.RoleOf(ch.Quad.Predicate); {
		case role != "":
			agent := kg.AgentID(ch.Quad.Object.Value())
			if was[agent] == "" && is[agent] == "" {
				agents = append(agents, agent)
			}
			if stands {
				is[agent] = role
			} else {
				was[agent] = role
			}
		case ch.Quad.Predicate == vocab.Type:
			kinds[ChannelCreated] = true
		case ch.Quad.Predicate == vocab.Closed && stands:
			kinds[ChannelClosed] = true
		case ch.Quad.Predicate == vocab.Deleted:
			kinds[ChannelDeleted] = true
		case ch.Quad.Predicate == vocab.Version && stands:
			record.Version = vocab.IntegerOf(ch.Quad.Object)
		case settings.Add(ch):
			kinds[ChannelUpdated] = true
		}
	}
	add := func(kind ControlKind, agent kg.AgentID, role channel.Role) {
		one := record
		one.Kind, one.Agent, one.Role = kind, agent, role
		list = append(list, one)
	}
	if kinds[ChannelDeleted] {
		add(ChannelDeleted, "", "")
		return list
	}
	if kinds[ChannelCreated] {
		add(ChannelCreated, "", "")
	}
	for _, agent := range agents {
		switch {
		case was[agent] == "":
			add(MemberJoined, agent, is[agent])
		case is[agent] == "":
			add(MemberLeft, agent, was[agent])
		case is[agent] != was[agent]:
			add(MemberRoleChanged, agent, is[agent])
		}
	}
	if kinds[ChannelUpdated] && !kinds[ChannelCreated] {
		add(ChannelUpdated, "", "")
		list[len(list)-1].Changes = settings.List()
	}
	if kinds[ChannelClosed] {
		add(ChannelClosed, "", "")
	}
	return list
}
