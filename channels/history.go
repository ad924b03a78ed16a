package channels

import (
	"context"
	"slices"
	"strconv"
	"time"

	"koine/channels/channel"
	"koine/channels/internal/access"
	"koine/channels/internal/check"
	"koine/channels/internal/journal"
	"koine/channels/message"
	"koine/channels/receipts"
	"koine/kg"
)

// maxLookedAt bounds the messages scanned for one page: a selective filter yields short
// pages with a next token.
const maxLookedAt = 5000

// HistoryQuery selects the messages to read.
type HistoryQuery struct {
	// PageSize is clamped to 1…MaxPage; DefaultPage if 0. A page ends earlier if its
	// content exceeds MaxPageBytes.
	PageSize  int
	PageToken string
	// Bounds by sequence or message are exclusive, bounds by time inclusive: several
	// messages may share a millisecond, and a reader that resumes from the time of its
	// last message misses none. SinceSequence and SinceTime are lower bounds,
	// BeforeSequence and BeforeTime upper bounds; at most one of each may be set. A
	// lower bound before the oldest retained message is an error; without a lower
	// bound, reading begins with the oldest retained message. A SinceSequence ahead of
	// the channel is rejected, as in Stream.
	SinceSequence  *int64 // nil starts at the oldest retained message; 0 requires all
	SinceTime      time.Time
	BeforeSequence int64
	BeforeTime     time.Time
	// SinceMessage and BeforeMessage are the same bounds, given by a message of the
	// channel.
	SinceMessage, BeforeMessage message.ID
	// Authors, if not empty, excludes messages of other authors.
	Authors []kg.AgentID
	// Recipient, if set, excludes messages that are not for this agent: its own, and
	// those addressed only to others. A message to a role is for the agents that had
	// the role when it was published. A message without an address is for everyone.
	Recipient kg.AgentID
	// The following filters, if set, exclude messages with other values. A message
	// without visible content does not match filters on its content.
	Interaction message.Interaction
	ContentType message.ContentType
	Tag         string
	Thread      string
	Correlation message.ID
	// Status excludes messages that are not for the caller, and those with another
	// receipt state.
	Status receipts.State
	// Among, if set, returns messages of the channel that the snapshot shows, of which only
	// those with visible content are read: those that have words, for example. It is for
	// HistoryPage: the tokens of History do not know it.
	Among func(context.Context, *kg.Snapshot) ([]message.ID, error)
	// Descending returns the newest messages first.
	Descending bool
	// Behind is the sequence of the message behind which the page of HistoryPage begins,
	// in its direction; 0 for the first page. History sets it from PageToken.
	Behind int64
}

// History returns messages of a channel in sequence order, one page at a time. next is
// "" after the last page.
//
// Errors: CodeChannelNotFound; CodeInvalid for two lower or two upper bounds, and for a
// message bound that is not in the channel; CodePositionGone, with the oldest retained
// sequence, for a lower bound before it; CodeCursorForeign for a page token of another
// channel, caller or query.
func (s *Service) History(ctx context.Context, by Caller, id channel.ID, q HistoryQuery) (page []*message.Message, next string, err error) {
	agent, e, err := s.table.OpenReadable(ctx, by, id)
	if err != nil {
		return nil, "", err
	}
	if err := q.normalize(); err != nil {
		return nil, "", err
	}
	token := pageToken{store: s.store, bound: boundTo("channels/history", id, agent, q.SinceSequence, q.SinceTime.UnixMilli(), q.BeforeSequence, q.Authors, q.Descending,
		q.SinceMessage, q.BeforeMessage, q.BeforeTime.UnixMilli(), q.Recipient, q.Interaction, q.ContentType, q.Tag, q.Thread, q.Correlation, q.Status)}
	at, err := token.open(q.PageToken)
	if err != nil {
		return nil, "", err
	}
	if at != "" {
		if q.Behind, err = strconv.ParseInt(at, 10, 64); err != nil {
			return nil, "", err
		}
	}
	h, err := s.openHistory(ctx, by, agent, e, id, &q)
	if err != nil {
		return nil, "", err
	}
	page, end, more, err := h.readPage(id, q.PageSize)
	if err == nil && more {
		next = token.seal(strconv.FormatInt(end, 10))
	}
	return page, next, err
}

// HistoryPage is History for callers that have cursors of their own: the page begins
// behind the message with the sequence HistoryQuery.Behind, and end is the sequence
// behind which the next page begins if there are more.
func (s *Service) HistoryPage(ctx context.Context, by Caller, id channel.ID, q HistoryQuery) (page []*message.Message, end int64, more bool, err error) {
	h, err := s.checkHistory(ctx, by, id, &q)
	if err != nil {
		return nil, 0, false, err
	}
	return h.readPage(id, q.PageSize)
}

// CountHistory counts the messages that the query selects, on all pages. exact is false
// if it ended after maxLookedAt messages that had to be read.
func (s *Service) CountHistory(ctx context.Context, by Caller, id channel.ID, q HistoryQuery) (n int64, exact bool, err error) {
	q.Behind = 0
	h, err := s.checkHistory(ctx, by, id, &q)
	if err != nil {
		return 0, false, err
	}
	defer h.snapshot.Close()
	w := h.window
	if q.selectsAll() {
		return max(0, w.high-w.low+1), true, nil
	}
	for looked := 0; looked < maxLookedAt; {
		from, count := w.nextRun(DefaultPage)
		if count == 0 {
			return n, true, nil
		}
		list, _, err := journal.ReadRun(h.snapshot, id, from, count, w.descending, h.eyes)
		if err != nil {
			return 0, false, err
		}
		if len(list) == 0 {
			return n, true, nil
		}
		looked += len(list)
		for _, m := range list {
			ok, err := h.admits(m)
			if err != nil {
				return 0, false, err
			}
			if ok {
				n++
			}
			w.moveTo(m.Sequence)
		}
	}
	_, left := w.nextRun(1)
	return n, left == 0, nil
}

// openedHistory is a query resolved against a snapshot, which the caller closes.
type openedHistory struct {
	snapshot *kg.Snapshot
	window   *historyWindow
	admits   func(*message.Message) (bool, error)
	eyes     message.Viewer
}

// readPage reads a page and closes the snapshot. end is the sequence at which it ended.
func (h *openedHistory) readPage(id channel.ID, size int) (page []*message.Message, end int64, more bool, err error) {
	defer h.snapshot.Close()
	page, more, err = h.window.readPage(h.snapshot, id, pageSize(size), h.admits, h.eyes)
	return page, h.window.at, more, err
}

// checkHistory checks the caller and the query, and opens the history.
func (s *Service) checkHistory(ctx context.Context, by Caller, id channel.ID, q *HistoryQuery) (h openedHistory, err error) {
	agent, e, err := s.table.OpenReadable(ctx, by, id)
	if err != nil {
		return h, err
	}
	if err := q.normalize(); err != nil {
		return h, err
	}
	return s.openHistory(ctx, by, agent, e, id, q)
}

// openHistory resolves a normalized query of an agent that may read the channel.
func (s *Service) openHistory(ctx context.Context, by Caller, agent kg.AgentID, e *access.Entry, id channel.ID, q *HistoryQuery) (h openedHistory, err error) {
	snapshot, err := s.store.View(ctx, kg.View{Principal: by.ReaderPrincipal(agent), AllGraphs: true})
	if err != nil {
		return h, err
	}
	h = openedHistory{snapshot: snapshot, eyes: s.journal.ViewerIn(by, agent, id), admits: q.matches}
	defer func() {
		if err != nil {
			snapshot.Close()
		}
	}()
	if h.window, err = q.resolveWindow(snapshot, id); err != nil {
		return h, err
	}
	if q.Among != nil {
		if h.window.among, err = sequencesOf(ctx, snapshot, id, q.Among); err != nil {
			return h, err
		}
	}
	if q.Status != "" {
		k, err := receipts.MarkersOf(snapshot.Match, id, agent)
		if err != nil {
			return h, err
		}
		if k.ChannelClosed, err = s.journal.ClosedInSnapshot(snapshot, e); err != nil {
			return h, err
		}
		h.admits = func(m *message.Message) (bool, error) {
			if ok, err := q.matches(m); !ok || err != nil || !m.IsFor(agent) {
				return false, err
			}
			state, err := k.ReceiptState(m)
			return state == q.Status, err
		}
	}
	return h, nil
}

// sequencesOf returns the sequences of messages of a channel, in order.
func sequencesOf(ctx context.Context, snapshot *kg.Snapshot, id channel.ID, find func(context.Context, *kg.Snapshot) ([]message.ID, error)) ([]int64, error) {
	found, err := find(ctx, snapshot)
	if err != nil {
		return nil, err
	}
	list := make([]int64, 0, len(found))
	for _, m := range found {
		n, err := journal.SequenceOf(snapshot, id, m, "messageId")
		if err != nil {
			return nil, err
		}
		list = append(list, n)
	}
	slices.Sort(list)
	return list, nil
}

// selectsAll reports whether no filter excludes messages within the bounds.
func (q *HistoryQuery) selectsAll() bool {
	return len(q.Authors) == 0 && q.Recipient == "" && q.Interaction == "" && q.ContentType == "" && q.Tag == "" && q.Thread == "" && q.Correlation == "" && q.Status == "" && q.Among == nil
}

// normalize validates the query and brings the authors into canonical form.
func (q *HistoryQuery) normalize() error {
	switch {
	case q.SinceSequence != nil && *q.SinceSequence < 0 || q.BeforeSequence < 0:
		return kg.Errorf(kg.CodeInvalid, "sinceSequence and beforeSequence must not be negative").At("sinceSequence")
	case q.SinceSequence != nil && !q.SinceTime.IsZero():
		return kg.Errorf(kg.CodeInvalid, "sinceSequence and sinceTimestamp are mutually exclusive").At("sinceTimestamp")
	case q.SinceMessage != "" && (q.SinceSequence != nil || !q.SinceTime.IsZero()):
		return kg.Errorf(kg.CodeInvalid, "sinceMessageId excludes sinceSequence and sinceTimestamp").At("sinceMessageId")
	case q.BeforeSequence > 0 && !q.BeforeTime.IsZero():
		return kg.Errorf(kg.CodeInvalid, "beforeSequence and beforeTime are mutually exclusive").At("beforeTime")
	case q.BeforeMessage != "" && (q.BeforeSequence > 0 || !q.BeforeTime.IsZero()):
		return kg.Errorf(kg.CodeInvalid, "beforeMessageId excludes beforeSequence and beforeTime").At("beforeMessageId")
	case len(q.Authors) > MaxAuthorIDs:
		return check.TooMuch("authorIds", "authorIds has %d authors; the limit is %d", len(q.Authors), MaxAuthorIDs)
	}
	authors := make([]kg.AgentID, 0, len(q.Authors))
	for _, a := range q.Authors {
		authors = append(authors, kg.CanonicalAgent(string(a)))
	}
	slices.Sort(authors)
	q.Authors = slices.Compact(authors)
	if q.Recipient != "" {
		q.Recipient = kg.CanonicalAgent(string(q.Recipient))
	}
	return nil
}

// Filter returns the conditions of the query that do not change after a message was
// published, for streams of messages.
func (q HistoryQuery) Filter() (func(*message.Message) bool, error) {
	if q.Status != "" {
		return nil, kg.Errorf(kg.CodeInvalid, "status changes after a message was published and cannot be followed").At("status")
	}
	if err := q.normalize(); err != nil {
		return nil, err
	}
	return func(m *message.Message) bool {
		ok, _ := q.matches(m)
		return ok
	}, nil
}

// matches reports whether the message passes the filters of the query.
func (q *HistoryQuery) matches(m *message.Message) (bool, error) {
	return (q.Among == nil || m.Withheld == "") &&
		(len(q.Authors) == 0 || slices.Contains(q.Authors, m.Author)) &&
		(q.Recipient == "" || m.IsFor(q.Recipient)) &&
		(q.Interaction == "" || q.Interaction == m.Interaction) &&
		(q.ContentType == "" || q.ContentType == m.ContentType) &&
		(q.Tag == "" || slices.Contains(m.Tags, q.Tag)) &&
		(q.Thread == "" || q.Thread == m.Thread) &&
		(q.Correlation == "" || q.Correlation == m.Correlation), nil
}

// historyWindow is the range of sequences to read and the progress of reading it.
type historyWindow struct {
	low, high  int64
	descending bool
	at         int64 // the last sequence read
	// among, if not nil, has the sequences that are read, in order.
	among []int64
}

// resolveWindow returns the range that the query selects, behind Behind.
func (q *HistoryQuery) resolveWindow(snapshot *kg.Snapshot, id channel.ID) (*historyWindow, error) {
	count, err := journal.Count(snapshot, id)
	if err != nil {
		return nil, err
	}
	oldest, err := journal.OldestKept(snapshot, id)
	if err != nil {
		return nil, err
	}
	w := &historyWindow{descending: q.Descending}
	low, field, err := q.lowerBound(snapshot, id, count)
	if err != nil {
		return nil, err
	}
	if w.high, err = q.upperBound(snapshot, id, count); err != nil {
		return nil, err
	}
	// This is checked on every page: with the newest first, the last pages may have
	// been evicted since.
	if field != "" && low < oldest {
		return nil, message.ErrEvicted(oldest, field)
	}
	w.low = max(low, oldest)
	w.at = w.low - 1
	if w.descending {
		w.at = w.high + 1
	}
	if q.Behind != 0 {
		if w.at = q.Behind; !w.descending && w.at+1 < oldest {
			return nil, message.ErrEvicted(oldest, "pageToken")
		}
	}
	return w, nil
}

// lowerBound returns the first sequence within the lower bound and the field of the
// request that sets it, or "" if none does.
func (q *HistoryQuery) lowerBound(snapshot *kg.Snapshot, id channel.ID, count int64) (from int64, field string, err error) {
	switch {
	case q.SinceMessage != "":
		n, err := journal.SequenceOf(snapshot, id, q.SinceMessage, "sinceMessageId")
		return n + 1, "sinceMessageId", err
	case q.SinceSequence != nil:
		if *q.SinceSequence > count {
			return 0, "", message.ErrAhead(count, *q.SinceSequence)
		}
		return *q.SinceSequence + 1, "sinceSequence", nil
	case !q.SinceTime.IsZero():
		from, err := journal.FirstNumber(snapshot, id, count, func(a *kg.Assertion) bool { return !a.Time.Before(q.SinceTime) })
		return from, "sinceTimestamp", err
	}
	return 1, "", nil
}

// upperBound returns the last sequence within the upper bound.
func (q *HistoryQuery) upperBound(snapshot *kg.Snapshot, id channel.ID, count int64) (int64, error) {
	switch {
	case q.BeforeMessage != "":
		n, err := journal.SequenceOf(snapshot, id, q.BeforeMessage, "beforeMessageId")
		return n - 1, err
	case q.BeforeSequence > 0:
		return min(count, q.BeforeSequence-1), nil
	case !q.BeforeTime.IsZero():
		from, err := journal.FirstNumber(snapshot, id, count, func(a *kg.Assertion) bool { return a.Time.After(q.BeforeTime) })
		return from - 1, err
	}
	return count, nil
}

// readPage reads up to n matching messages, up to MaxPageBytes. more reports that there
// may be others.
func (w *historyWindow) readPage(snapshot *kg.Snapshot, id channel.ID, n int, admits func(*message.Message) (bool, error), by message.Viewer) (page []*message.Message, more bool, err error) {
	size := 0
	for looked := 0; looked < maxLookedAt && len(page) < n; {
		atOnce := n
		if w.descending { // messages that exceed the page are read in vain
			atOnce = min(n, DefaultPage)
		}
		from, count := w.nextRun(atOnce)
		if count == 0 {
			return page, false, nil
		}
		list, _, err := journal.ReadRun(snapshot, id, from, count, w.descending, by)
		if err != nil {
			return nil, false, err
		}
		if w.descending {
			slices.Reverse(list)
		}
		looked += len(list)
		for _, m := range list {
			if len(page) == n {
				break
			}
			ok, err := admits(m)
			if err != nil {
				return nil, false, err
			}
			if ok {
				if size += m.Size(); size > message.MaxPageBytes && len(page) > 0 {
					return page, true, nil
				}
				page = append(page, m)
			}
			w.at = m.Sequence
		}
		if len(list) == 0 {
			return page, false, nil
		}
	}
	_, left := w.nextRun(1)
	return page, left > 0, nil
}

// moveTo notes that the messages up to the sequence were read, in the direction of the
// window.
func (w *historyWindow) moveTo(sequence int64) {
	if w.descending {
		w.at = min(w.at, sequence)
	} else {
		w.at = max(w.at, sequence)
	}
}

// nextRun returns the next run of sequences to read, at most n.
func (w *historyWindow) nextRun(n int) (from int64, count int) {
	if w.among != nil {
		return w.nextAmong(n)
	}
	if w.descending {
		high := w.at - 1
		from = max(w.low, high-int64(n)+1)
		return from, int(max(0, high-from+1))
	}
	from = w.at + 1
	return from, int(max(0, min(int64(n), w.high-from+1)))
}

// nextAmong is nextRun for a window that has the sequences to read.
func (w *historyWindow) nextAmong(n int) (from int64, count int) {
	if w.descending {
		i, _ := slices.BinarySearch(w.among, w.at)
		for ; i > 0 && count < n && w.among[i-1] >= w.low && (count == 0 || w.among[i-1] == from-1); i-- {
			from, count = w.among[i-1], count+1
		}
		return from, count
	}
	i, _ := slices.BinarySearch(w.among, w.at+1)
	for ; i < len(w.among) && count < n && w.among[i] <= w.high && (count == 0 || w.among[i] == from+int64(count)); i++ {
		if count == 0 {
			from = w.among[i]
		}
		count++
	}
	return from, count
}
