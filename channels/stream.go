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
	agent, _, err := s.see(by, id)
	if err != nil {
		return nil, err
	}
	st := &Stream{service: s, by: by, agent: agent, id: id, ctx: ctx}
	if st.release, err = s.openStream(by, id); err != nil {
		return nil, err
	}
	head, oldest, err := st.start()
	st.last = head
	if err == nil && since != nil {
		switch st.last = *since; {
		case *since < 0 || *since > head:
			err = errAhead(head, *since)
		case *since+1 < oldest:
			err = errGone(oldest, "sinceSequence")
		}
	}
	if err != nil {
		st.Close()
		return nil, err
	}
	return st, nil
}

// start begins to watch behind what stands now, and says how many messages there are
// and which is the oldest that is left.
func (st *Stream) start() (head, oldest int64, err error) {
	graph := st.id.MessagesGraph()
	view := kg.View{Principal: st.by.reader(st.agent), Graphs: []kg.Term{graph}}
	snapshot, err := st.service.store.View(st.ctx, view)
	if err != nil {
		return 0, 0, err
	}
	defer snapshot.Close()
	if head, err = countMessages(snapshot, st.id); err != nil {
		return 0, 0, err
	}
	if oldest, err = oldestLeft(snapshot, st.id); err != nil {
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
			more, err := st.replay(tell)
			if err == nil && more {
				more, err = st.live(tell)
			}
			if kg.CodeOf(err) == kg.CodeAccessChanged {
				err = st.again()
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

// replay tells what stands.
func (st *Stream) replay(tell func(*Message) bool) (more bool, err error) {
	for {
		if err := st.allowed(); err != nil {
			return false, err
		}
		closed := st.service.isClosed(st.id) // before the messages are read
		list, cut, err := st.page()
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

// page reads the next messages; cut tells that there are others for sure.
func (st *Stream) page() (list []*Message, cut bool, err error) {
	snapshot, err := st.view()
	if err != nil {
		return nil, false, err
	}
	defer snapshot.Close()
	if oldest, err := oldestLeft(snapshot, st.id); err != nil {
		return nil, false, err
	} else if st.last+1 < oldest {
		return nil, false, errGone(oldest, "sinceSequence")
	}
	return readRun(snapshot, st.id, st.last+1, streamPage, false, st.service.reading(st.agent))
}

// live tells what comes.
func (st *Stream) live(tell func(*Message) bool) (more bool, err error) {
	for e, err := range st.watcher.Events() {
		if err != nil {
			return true, err
		}
		m, err := st.service.decoded.message(e.Commit, st.id, st.service.reading(st.agent))
		if err != nil {
			return false, err
		}
		if m == nil && closedIn(e.Commit, st.id) {
			return false, errChannelClosed()
		}
		if m == nil || m.Sequence <= st.last {
			continue
		}
		if m.Sequence != st.last+1 {
			return false, kg.Errorf(kg.CodeInternal, "message %d of a channel comes after %d", m.Sequence, st.last)
		}
		if err := st.allowed(); err != nil {
			return false, err
		}
		if st.service.revised.changed(m) { // taken back or answered
			if m, err = st.service.reread(st.ctx, m, st.agent); err != nil {
				return false, err
			}
			if m.Withheld == Evicted {
				return false, st.gone()
			}
		}
		if !tell(m) {
			return false, nil
		}
	}
	return false, nil
}

// gone is the error where what comes next is no longer kept.
func (st *Stream) gone() error {
	snapshot, err := st.view()
	if err != nil {
		return err
	}
	defer snapshot.Close()
	oldest, err := oldestLeft(snapshot, st.id)
	if err != nil {
		return err
	}
	return errGone(oldest, "sinceSequence")
}

// view reads the channel as the agent sees it now.
func (st *Stream) view() (*kg.Snapshot, error) {
	return st.service.store.View(st.ctx, kg.View{Principal: st.by.reader(st.agent), AllGraphs: true})
}

// allowed asks whether the agent may still read the channel.
func (st *Stream) allowed() error {
	_, _, err := st.service.see(st.by, st.id)
	return err
}

// again begins anew behind what was told, where what changed is not this channel.
func (st *Stream) again() error {
	if err := st.allowed(); err != nil {
		return err
	}
	st.watcher.Close()
	_, _, err := st.start()
	return err
}
