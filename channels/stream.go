package channels

import (
	"context"
	"iter"

	"koine/kg"
)

// streamPage is how many messages a replay reads at a time, of MaxPageBytes at most.
const streamPage = 200

// Stream is a channel as it goes on. Close it when done.
type Stream struct {
	service *Service
	by      Caller
	agent   kg.AgentID
	id      ChannelID
	ctx     context.Context
	last    int64 // the number of the last message that was told
	watcher *kg.Watcher
	release func()
}

// Stream follows a channel from behind a sequence on, or, where since is nil, from
// now on. When it returns, nothing behind that can be missed any more.
//
// Errors: CodeChannelNotFound; CodeInvalid for a sequence that is ahead of the
// channel; CodePositionGone for one in front of what is left of it; CodeLimitExceeded
// for one stream too many; those of kg.Store.Watch. The stream ends with
// CodePositionGone when it is so far behind that what comes next is no longer kept.
func (s *Service) Stream(ctx context.Context, by Caller, id ChannelID, since *int64) (*Stream, error) {
	agent, _, err := s.requireReadable(by, id)
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
			err = errAhead(head, *since)
		case *since+1 < oldest:
			err = errEvicted(oldest, "sinceSequence")
		}
	}
	if err != nil {
		st.Close()
		return nil, err
	}
	return st, nil
}

// startWatch begins to watch behind what stands now, and says how many messages there are
// and which is the oldest that is left.
func (st *Stream) startWatch() (head, oldest int64, err error) {
	graph := st.id.MessagesGraph()
	view := kg.View{Principal: st.by.readerPrincipal(st.agent), Graphs: []kg.Term{graph}}
	snapshot, err := st.service.store.View(st.ctx, view)
	if err != nil {
		return 0, 0, err
	}
	defer snapshot.Close()
	if head, err = countMessages(snapshot, st.id); err != nil {
		return 0, 0, err
	}
	if oldest, err = oldestKept(snapshot, st.id); err != nil {
		return 0, 0, err
	}
	// The channel's own changes wake it too, and bans: one that is deleted has no
	// message any more at which the stream would find out.
	record := st.id.RecordGraph()
	view.Graphs = []kg.Term{graph, record, kg.SystemGraph}
	filter := kg.Filter{View: view, Patterns: []kg.Pattern{
		{Predicate: kg.Sequence, Graph: graph}, {Predicate: propVersion, Graph: record},
		{Predicate: propBanned, Graph: record}, {Predicate: propBanned, Object: kg.IRI(string(st.agent)), Graph: kg.SystemGraph},
	}}
	st.watcher, err = st.service.store.Watch(st.ctx, filter, snapshot.Position())
	return head, oldest, err
}

// Since is the sequence behind which the stream begins. It is asked before Messages.
func (st *Stream) Since() int64 { return st.last }

// Close ends the stream.
func (st *Stream) Close() {
	if st.watcher != nil {
		st.watcher.Close()
	}
	st.release()
}

// Messages yields the messages in the order of their sequence, without a gap, and
// waits for more. It ends with the context's error; with CodeChannelClosed behind the
// last of a channel that is closed; with CodeChannelNotFound when
// the agent may not read the channel any more; with CodeClosed and CodeResync as a
// kg.Watcher does. It is used once, from one goroutine.
func (st *Stream) Messages() iter.Seq2[*Message, error] {
	return func(yield func(*Message, error) bool) {
		tell := func(m *Message) bool {
			if m.Sequence <= st.last {
				return true // was replayed
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

// replayStored tells what stands.
func (st *Stream) replayStored(tell func(*Message) bool) (more bool, err error) {
	for {
		if err := st.checkRead(); err != nil {
			return false, err
		}
		closed := st.service.isClosed(st.id) // before the messages are read
		list, cut, err := st.readPage()
		if err != nil {
			return false, err
		}
		for _, m := range list {
			if m.Sequence != st.last+1 {
				return false, kg.Errorf(kg.CodeInternal, "message %d of a channel comes after %d", m.Sequence, st.last)
			}
			if !tell(m) {
				return false, nil
			}
		}
		if len(list) < streamPage && !cut {
			if closed {
				return false, errChannelClosed()
			}
			return true, nil
		}
	}
}

// readPage reads the next messages; cut tells that there are others for sure.
func (st *Stream) readPage() (list []*Message, cut bool, err error) {
	snapshot, err := st.openView()
	if err != nil {
		return nil, false, err
	}
	defer snapshot.Close()
	if oldest, err := oldestKept(snapshot, st.id); err != nil {
		return nil, false, err
	} else if st.last+1 < oldest {
		return nil, false, errEvicted(oldest, "sinceSequence")
	}
	return readRun(snapshot, st.id, st.last+1, streamPage, false, st.service.viewerOf(st.agent))
}

// streamLive tells what comes.
func (st *Stream) streamLive(tell func(*Message) bool) (more bool, err error) {
	for e, err := range st.watcher.Events() {
		if err != nil {
			return true, err
		}
		m, err := st.service.decoded.messageIn(e.Commit, st.id, st.service.viewerOf(st.agent))
		if err != nil {
			return false, err
		}
		if m == nil && closedInCommit(e.Commit, st.id) {
			return false, errChannelClosed()
		}
		if m == nil || m.Sequence <= st.last {
			continue
		}
		if m.Sequence != st.last+1 {
			return false, kg.Errorf(kg.CodeInternal, "message %d of a channel comes after %d", m.Sequence, st.last)
		}
		if err := st.checkRead(); err != nil {
			return false, err
		}
		if st.service.revised.mayDiffer(m) { // taken back or answered
			if m, err = st.service.rereadMessage(st.ctx, m, st.agent); err != nil {
				return false, err
			}
			if m.Withheld == Evicted {
				return false, st.evictedError()
			}
		}
		if !tell(m) {
			return false, nil
		}
	}
	return false, nil
}

// evictedError is the error where what comes next is no longer kept.
func (st *Stream) evictedError() error {
	snapshot, err := st.openView()
	if err != nil {
		return err
	}
	defer snapshot.Close()
	oldest, err := oldestKept(snapshot, st.id)
	if err != nil {
		return err
	}
	return errEvicted(oldest, "sinceSequence")
}

// openView reads the channel as the agent sees it now.
func (st *Stream) openView() (*kg.Snapshot, error) {
	return st.service.store.View(st.ctx, kg.View{Principal: st.by.readerPrincipal(st.agent), AllGraphs: true})
}

// checkRead asks whether the agent may still read the channel.
func (st *Stream) checkRead() error {
	_, _, err := st.service.requireReadable(st.by, st.id)
	return err
}

// restartWatch begins anew behind what was told, where what changed is not this channel.
func (st *Stream) restartWatch() error {
	if err := st.checkRead(); err != nil {
		return err
	}
	st.watcher.Close()
	_, _, err := st.startWatch()
	return err
}
