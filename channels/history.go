package channels

import (
	"context"
	"slices"
	"strconv"
	"time"

	"koine/kg"
)

// maxLookedAt bounds how many messages one page looks at to find those that it
// shows: a filter that few pass gives short pages, with a next one.
const maxLookedAt = 5000

// HistoryQuery says which messages are read.
type HistoryQuery struct {
	// PageSize is clamped to 1…MaxPage; DefaultPage when 0. A page ends earlier where
	// its content would be more than MaxPageBytes.
	PageSize  int
	PageToken string
	// Bounds by a sequence or a message are exclusive, bounds by a time inclusive: several
	// messages may be of one millisecond, and a reader that goes on from the time of the
	// last one that it has misses none. SinceSequence and SinceTime are lower bounds; only
	// one of them may be set. Where something within them is no longer kept, that is an error; without a lower
	// bound reading begins with the oldest message that is. BeforeSequence and BeforeTime
	// are upper bounds, again one of them; 0 leaves out nothing. A SinceSequence ahead of
	// the channel is refused, as it is of a stream.
	SinceSequence  *int64 // nil leaves out nothing, and asks for nothing that is gone; 0 for all
	SinceTime      time.Time
	BeforeSequence int64
	BeforeTime     time.Time
	// SinceMessage and BeforeMessage are the same bounds by a message of the channel.
	SinceMessage, BeforeMessage MessageID
	// Authors, if any, leaves out the messages of others.
	Authors []kg.AgentID
	// Recipient, if set, leaves out what is not for this agent: what it wrote, and
	// what is addressed to others alone. What is addressed to a role is for those who
	// had it then, and what is addressed to nobody is for everybody.
	Recipient kg.AgentID
	// The following, where they are set, leave out messages that say otherwise, and
	// those whose content is withheld where it is about the content.
	Interaction Interaction
	ContentType ContentType
	Tag         string
	Thread      string
	Correlation MessageID
	// Status leaves out what is not for the caller, or stands otherwise with it.
	Status ReceiptState
	// Descending gives the newest first.
	Descending bool
}

// History reads messages of a channel in the order of their sequence, a page at a
// time. next is "" behind the last.
//
// Errors: CodeChannelNotFound; CodeInvalid for two lower or upper bounds, and for one
// by a message that is not of the channel; CodePositionGone for what is no longer
// kept, with the oldest number that is; CodeCursorForeign
// for a token that is not of this channel, caller and query.
func (s *Service) History(ctx context.Context, by Caller, id ChannelID, q HistoryQuery) (page []*Message, next string, err error) {
	agent, e, err := s.requireReadable(by, id)
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
	snapshot, err := s.store.View(ctx, kg.View{Principal: by.readerPrincipal(agent), AllGraphs: true})
	if err != nil {
		return nil, "", err
	}
	defer snapshot.Close()
	eyes := s.viewerOf(agent)
	w, err := q.resolveWindow(snapshot, id, at)
	if err != nil {
		return nil, "", err
	}
	admits := q.matches
	if q.Status != "" {
		k, err := markersOf(snapshot.Match, id, agent)
		if err != nil {
			return nil, "", err
		}
		if k.channelClosed, err = s.closedInSnapshot(snapshot, e); err != nil {
			return nil, "", err
		}
		admits = func(m *Message) (bool, error) {
			if ok, err := q.matches(m); !ok || err != nil || !m.isFor(agent) {
				return false, err
			}
			state, err := k.receiptState(m)
			return state == q.Status, err
		}
	}
	page, more, err := w.readPage(snapshot, id, pageSize(q.PageSize), admits, eyes)
	if err == nil && more {
		next = token.seal(strconv.FormatInt(w.at, 10))
	}
	return page, next, err
}

// normalize refuses what cannot be, and brings the authors into one form.
func (q *HistoryQuery) normalize() error {
	switch {
	case q.SinceSequence != nil && *q.SinceSequence < 0 || q.BeforeSequence < 0:
		return kg.Errorf(kg.CodeInvalid, "sequences begin at 1").At("sinceSequence")
	case q.SinceSequence != nil && !q.SinceTime.IsZero():
		return kg.Errorf(kg.CodeInvalid, "sinceSequence and sinceTimestamp exclude each other").At("sinceTimestamp")
	case q.SinceMessage != "" && (q.SinceSequence != nil || !q.SinceTime.IsZero()):
		return kg.Errorf(kg.CodeInvalid, "there is one lower bound").At("sinceMessageId")
	case q.BeforeSequence > 0 && !q.BeforeTime.IsZero():
		return kg.Errorf(kg.CodeInvalid, "there is one upper bound").At("beforeTime")
	case q.BeforeMessage != "" && (q.BeforeSequence > 0 || !q.BeforeTime.IsZero()):
		return kg.Errorf(kg.CodeInvalid, "there is one upper bound").At("beforeMessageId")
	case len(q.Authors) > MaxAuthorIDs:
		return errTooMuch("authorIds", "%d authors are more than the %d that can be asked for", len(q.Authors), MaxAuthorIDs)
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

// matches tells whether the query does not leave the message out.
func (q *HistoryQuery) matches(m *Message) (bool, error) {
	return (len(q.Authors) == 0 || slices.Contains(q.Authors, m.Author)) &&
		(q.Recipient == "" || m.isFor(q.Recipient)) &&
		(q.Interaction == "" || q.Interaction == m.Interaction) &&
		(q.ContentType == "" || q.ContentType == m.ContentType) &&
		(q.Tag == "" || slices.Contains(m.Tags, q.Tag)) &&
		(q.Thread == "" || q.Thread == m.Thread) &&
		(q.Correlation == "" || q.Correlation == m.Correlation), nil
}

// sequenceOf is the number of a message of the channel.
func sequenceOf(snapshot *kg.Snapshot, id ChannelID, m MessageID, field string) (int64, error) {
	for st, err := range snapshot.Match(kg.Pattern{Subject: m.Entity(), Predicate: kg.Sequence, Graph: id.MessagesGraph()}) {
		return integerValue(st.Object), err
	}
	return 0, errNoSuchMessage(field)
}

// historyWindow is the part of a channel that is read: the numbers from low to high, and
// how far reading them has come.
type historyWindow struct {
	low, high  int64
	descending bool
	at         int64 // the last that was looked at
}

// resolveWindow finds the numbers that a query is about, behind the page that ended at at.
func (q *HistoryQuery) resolveWindow(snapshot *kg.Snapshot, id ChannelID, at string) (*historyWindow, error) {
	count, err := countMessages(snapshot, id)
	if err != nil {
		return nil, err
	}
	oldest, err := oldestKept(snapshot, id)
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
	// On every page: what comes last, where the newest come first, may have gone since.
	if field != "" && low < oldest {
		return nil, errEvicted(oldest, field)
	}
	w.low = max(low, oldest)
	w.at = w.low - 1
	if w.descending {
		w.at = w.high + 1
	}
	if at != "" {
		if w.at, err = strconv.ParseInt(at, 10, 64); err != nil {
			return nil, err
		}
		if !w.descending && w.at+1 < oldest {
			return nil, errEvicted(oldest, "pageToken")
		}
	}
	return w, nil
}

// lowerBound is the first number that the lower bound of the query leaves, with the member
// that says so; "" where there is none.
func (q *HistoryQuery) lowerBound(snapshot *kg.Snapshot, id ChannelID, count int64) (from int64, field string, err error) {
	switch {
	case q.SinceMessage != "":
		n, err := sequenceOf(snapshot, id, q.SinceMessage, "sinceMessageId")
		return n + 1, "sinceMessageId", err
	case q.SinceSequence != nil:
		if *q.SinceSequence > count {
			return 0, "", errAhead(count, *q.SinceSequence)
		}
		return *q.SinceSequence + 1, "sinceSequence", nil
	case !q.SinceTime.IsZero():
		from, err := firstNumber(snapshot, id, count, func(a *kg.Assertion) bool { return !a.Time.Before(q.SinceTime) })
		return from, "sinceTimestamp", err
	}
	return 1, "", nil
}

// upperBound is the last number that the upper bound of the query leaves.
func (q *HistoryQuery) upperBound(snapshot *kg.Snapshot, id ChannelID, count int64) (int64, error) {
	switch {
	case q.BeforeMessage != "":
		n, err := sequenceOf(snapshot, id, q.BeforeMessage, "beforeMessageId")
		return n - 1, err
	case q.BeforeSequence > 0:
		return min(count, q.BeforeSequence-1), nil
	case !q.BeforeTime.IsZero():
		from, err := firstNumber(snapshot, id, count, func(a *kg.Assertion) bool { return a.Time.After(q.BeforeTime) })
		return from - 1, err
	}
	return count, nil
}

// readPage reads up to n messages that are admitted, and up to MaxPageBytes. more tells that
// there may be others.
func (w *historyWindow) readPage(snapshot *kg.Snapshot, id ChannelID, n int, admits func(*Message) (bool, error), by viewer) (page []*Message, more bool, err error) {
	size := 0
	for looked := 0; looked < maxLookedAt && len(page) < n; {
		atOnce := n
		if w.descending { // what does not fit is read in vain
			atOnce = min(n, DefaultPage)
		}
		from, count := w.nextRun(atOnce)
		if count == 0 {
			return page, false, nil
		}
		list, _, err := readRun(snapshot, id, from, count, w.descending, by)
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
				if size += m.size(); size > MaxPageBytes && len(page) > 0 {
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

// nextRun is the next run of numbers to look at, of at most n.
func (w *historyWindow) nextRun(n int) (from int64, count int) {
	if w.descending {
		high := w.at - 1
		from = max(w.low, high-int64(n)+1)
		return from, int(max(0, high-from+1))
	}
	from = w.at + 1
	return from, int(max(0, min(int64(n), w.high-from+1)))
}
