package channels

import (
	"context"
	"iter"

	"koine/channels/channel"
	"koine/channels/internal/journal"
	"koine/channels/internal/vocab"
	"koine/channels/message"
	"koine/kg"
)

// streamPage is the number of messages that a replay reads at a time, up to
// MaxPageBytes.
const streamPage = 200

// Stream streams the messages of a channel. Call Close when done.
type Stream struct {
	service *Service
	by      Caller
	agent   kg.AgentID
	id      channel.ID
	ctx     context.Context
	last    int64 // sequence of the last yielded message
	watcher *kg.Watcher
	release func()
}

// Stream follows a channel after the sequence since, or from now on if since is nil.
// When it returns, no later message can be missed.
//
// Errors: CodeChannelNotFound; CodeInvalid for a sequence ahead of the channel;
// CodePositionGone for one before the oldest retained message; CodeLimitExceeded for
// too many open streams; those of kg.Store.Watch. The stream ends with CodePositionGone
// if it lags so far behind that its next message was evicted.
func (s *Service) Stream(ctx context.Context, by Caller, id channel.ID, since *int64) (*Stream, error) {
	agent, _, err := s.table.OpenReadable(ctx, by, id)
	if err != nil {
		return nil, err
	}
	st := &Stream{service: s, by: by, agent: agent, id: id, ctx: ctx}
	if st.release, err = s.openStream(by, id); err != nil {
		return nil, err
	}
	head, oldest, err := st.startWatch()
	st.last = head
	if err == nil && since != nil {
		switch st.last = *since; {
		case *since < 0 || *since > head:
			err = message.ErrAhead(head, *since)
		case *since+1 < oldest:
			err = message.ErrEvicted(oldest, "sinceSequence")
		}
	}
	if err != nil {
		st.Close()
		return nil, err
	}
	return st, nil
}

// startWatch starts the watcher after the present state. It returns the number of
// messages and the sequence of the oldest retained one.
func (st *Stream) startWatch() (head, oldest int64, err error) {
	graph := st.id.MessagesGraph()
	view := kg.View{Principal: st.by.ReaderPrincipal(st.agent), Graphs: []kg.Term{graph}}
	snapshot, err := st.service.store.View(st.ctx, view)
	if err != nil {
		return 0, 0, err
	}
	defer snapshot.Close()
	if head, err = journal.Count(snapshot, st.id); err != nil {
		return 0, 0, err
	}
	if oldest, err = journal.OldestKept(snapshot, st.id); err != nil {
		return 0, 0, err
	}
	// The filter includes changes of the channel's record and bans: a deleted channel
	// has no further message at which the stream would notice.
	record := st.id.RecordGraph()
	view.Graphs = []kg.Term{graph, record, kg.SystemGraph}
	filter := kg.Filter{View: view, Patterns: []kg.Pattern{
		{Predicate: kg.Sequence, Graph: graph}, {Predicate: vocab.Version, Graph: record},
		{Predicate: vocab.Banned, Graph: record}, {Predicate: vocab.Banned, Object: kg.IRI(string(st.agent)), Graph: kg.SystemGraph},
	}}
	st.watcher, err = st.service.store.Watch(st.ctx, filter, snapshot.Position())
	return head, oldest, err
}

// Since returns the sequence after which the stream starts. It is valid before Messages
// is called.
func (st *Stream) Since() int64 { return st.last }

// Close stops the stream.
func (st *Stream) Close() {
	if st.watcher != nil {
		st.watcher.Close()
	}
	st.release()
}

// Messages yields the messages in sequence order without gaps, and waits for more. It
// ends with the context's error; with CodeChannelClosed after the last message of a
// closed channel; with CodeChannelNotFound when the agent can no longer read the
// channel; with CodeClosed and CodeResync like a kg.Watcher. It may be called once,
// from one goroutine.
func (st *Stream) Messages() iter.Seq2[*message.Message, error] {
	return func(yield func(*message.Message, error) bool) {
		tell := func(m *message.Message) bool {
			if m.Sequence <= st.last {
				return true // already replayed
			}
			st.last = m.Sequence
			return yield(m, nil)
		}
		for {
			more, err := st.replayStored(tell)
			if err == nil && more {
				more, err = st.streamLive(tell)
			}
			if kg.CodeOf(err) == kg.CodeAccessChanged {
				err = st.restartWatch()
			}
			switch {
			case err != nil:
				yield(nil, err)
				return
			case !more:
				return
			}
		}
	}
}

// replayStored yields the stored messages.
func (st *Stream) replayStored(tell func(*message.Message) bool) (more bool, err error) {
	for {
		if err := st.checkRead(); err != nil {
			return false, err
		}
		closed := st.service.isClosed(st.id) // must precede reading the messages
		list, cut, err := st.readPage()
		if err != nil {
			return false, err
		}
		for _, m := range list {
			if m.Sequence != st.last+1 {
				return false, kg.Errorf(kg.CodeInternal, "message %d of a channel follows message %d", m.Sequence, st.last)
			}
			if !tell(m) {
				return false, nil
			}
		}
		if len(list) < streamPage && !cut {
			if closed {
				return false, channel.ErrClosed()
			}
			return true, nil
		}
	}
}

// readPage reads the next messages; cut reports that there certainly are more.
func (st *Stream) readPage() (list []*message.Message, cut bool, err error) {
	snapshot, err := st.openView()
	if err != nil {
		return nil, false, err
	}
	defer snapshot.Close()
	if oldest, err := journal.OldestKept(snapshot, st.id); err != nil {
		return nil, false, err
	} else if st.last+1 < oldest {
		return nil, false, message.ErrEvicted(oldest, "sinceSequence")
	}
	return journal.ReadRun(snapshot, st.id, st.last+1, streamPage, false, st.currentViewer())
}

// streamLive yields new messages.
func (st *Stream) streamLive(tell func(*message.Message) bool) (more bool, err error) {
	for e, err := range st.watcher.Events() {
		if err != nil {
			return true, err
		}
		m, err := st.service.journal.MessageIn(e.Commit, st.id, st.currentViewer())
		if err != nil {
			return false, err
		}
		if m == nil && journal.ClosedInCommit(e.Commit, st.id) {
			return false, channel.ErrClosed()
		}
		if m == nil || m.Sequence <= st.last {
			continue
		}
		if m.Sequence != st.last+1 {
			return false, kg.Errorf(kg.CodeInternal, "message %d of a channel follows message %d", m.Sequence, st.last)
		}
		if err := st.checkRead(); err != nil {
			return false, err
		}
		if st.service.journal.MayDiffer(m) { // retracted, evicted or answered
			if m, err = st.service.journal.Reread(st.ctx, m, st.currentViewer()); err != nil {
				return false, err
			}
			if m.Withheld == message.Evicted {
				return false, st.evictedError()
			}
		}
		if !tell(m) {
			return false, nil
		}
	}
	return false, nil
}

// evictedError returns the error for a stream if its next message was evicted.
func (st *Stream) evictedError() error {
	snapshot, err := st.openView()
	if err != nil {
		return err
	}
	defer snapshot.Close()
	oldest, err := journal.OldestKept(snapshot, st.id)
	if err != nil {
		return err
	}
	return message.ErrEvicted(oldest, "sinceSequence")
}

// openView returns a snapshot with the agent's view.
func (st *Stream) openView() (*kg.Snapshot, error) {
	return st.service.store.View(st.ctx, kg.View{Principal: st.by.ReaderPrincipal(st.agent), AllGraphs: true})
}

// currentViewer returns the agent as a viewer of the channel.
func (st *Stream) currentViewer() message.Viewer {
	return st.service.journal.ViewerIn(st.by, st.agent, st.id)
}

// checkRead returns an error if the agent can no longer read the channel.
func (st *Stream) checkRead() error {
	_, _, err := st.service.table.RequireReadable(st.by, st.id)
	return err
}

// restartWatch restarts the watcher after a change of access that does not concern this
// channel.
func (st *Stream) restartWatch() error {
	if err := st.checkRead(); err != nil {
		return err
	}
	st.watcher.Close()
	_, _, err := st.startWatch()
	return err
}
