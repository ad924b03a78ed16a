package channels

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"koine/channels/channel"
	"koine/channels/internal/journal"
	"koine/channels/internal/vocab"
	"koine/channels/message"
	"koine/kg"
)

// Message returns a message of a channel that the caller can read.
//
// Errors: CodeNotFound, both for a message that does not exist and for one that the
// caller may not read.
func (s *Service) Message(ctx context.Context, by Caller, id message.ID) (*message.Message, error) {
	snapshot, place, err := s.locateMessage(ctx, by, id)
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	list, err := journal.Read(snapshot, place.channel, place.sequence, 1, s.journal.ViewerIn(by, place.agent, place.channel))
	if err != nil {
		return nil, err
	}
	if len(list) == 0 || list[0].ID != id {
		return nil, message.ErrNotFound()
	}
	return list[0], nil
}

// ReadEmbedding returns the embedding of a message that was read for a caller, nil if it has
// none or its content is withheld.
func ReadEmbedding(ctx context.Context, s *Service, m *message.Message) (*kg.Embedding, error) {
	if m.Withheld != "" {
		return nil, nil
	}
	if m.Embedding != nil {
		return m.Embedding, nil
	}
	snapshot, err := s.journal.SystemView(ctx)
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	for st, err := range snapshot.Match(kg.Pattern{Subject: m.ID.Entity(), Predicate: vocab.Parts, Graph: m.ContentGraph()}) {
		if err != nil {
			return nil, err
		}
		return st.Assertions[0].Embedding, nil
	}
	return nil, nil
}

// messageLocation is the location of a message and the agent that requests it.
type messageLocation struct {
	channel  channel.ID
	sequence int64
	agent    kg.AgentID
}

// locateMessage returns the location of a message and a snapshot with the caller's
// view, which the caller must close.
func (s *Service) locateMessage(ctx context.Context, by Caller, id message.ID) (_ *kg.Snapshot, p messageLocation, err error) {
	if p.agent, err = by.ActingAgent(); err != nil {
		return nil, p, err
	}
	if !id.IsValid() {
		return nil, p, message.ErrNotFound()
	}
	all, err := s.journal.SystemView(ctx)
	if err != nil {
		return nil, p, err
	}
	defer all.Close()
	for st, err := range all.Match(kg.Pattern{Subject: id.Entity(), Predicate: kg.Sequence}) {
		if err != nil {
			return nil, p, err
		}
		if of, part := channel.OfGraph(st.Graph); part == channel.JournalPart {
			p.channel, p.sequence = of, vocab.IntegerOf(st.Object)
		}
	}
	if _, _, err := s.table.OpenReadable(ctx, by, p.channel); kg.CodeOf(err) == kg.CodeChannelNotFound || kg.CodeOf(err) == kg.CodePermissionDenied {
		return nil, p, message.ErrNotFound()
	} else if err != nil {
		return nil, p, err
	}
	snapshot, err := s.store.View(ctx, kg.View{Principal: by.ReaderPrincipal(p.agent), AllGraphs: true})
	return snapshot, p, err
}

// Replies returns the messages that reply to a message in sequence order, one page at a
// time. next is "" after the last page. If a message has more than MaxReplies replies,
// only the oldest are returned.
//
// Errors: CodeNotFound as for Message; CodeCursorForeign for a page token of another
// message or caller.
func (s *Service) Replies(ctx context.Context, by Caller, id message.ID, size int, page string) (list []*message.Message, next string, err error) {
	agent, err := by.ActingAgent()
	if err != nil {
		return nil, "", err
	}
	token := pageToken{store: s.store, bound: boundTo("replies", id, agent)}
	at, err := token.open(page)
	if err != nil {
		return nil, "", err
	}
	after, _ := strconv.ParseInt(at, 10, 64) // 0 without a token
	list, _, more, err := s.RepliesAfter(ctx, by, id, size, after)
	if err == nil && more {
		next = token.seal(strconv.FormatInt(list[len(list)-1].Sequence, 10))
	}
	return list, next, err
}

// RepliesAfter is Replies for callers that have cursors of their own: the page begins
// behind the reply with the sequence after. total counts the replies.
func (s *Service) RepliesAfter(ctx context.Context, by Caller, id message.ID, size int, after int64) (list []*message.Message, total int, more bool, err error) {
	snapshot, p, err := s.locateMessage(ctx, by, id)
	if err != nil {
		return nil, 0, false, err
	}
	defer snapshot.Close()
	numbers, err := repliesTo(snapshot, p.channel, id)
	if err != nil {
		return nil, 0, false, err
	}
	total = len(numbers)
	first, _ := slices.BinarySearchFunc(numbers, after, func(n, after int64) int { return cmp.Or(cmp.Compare(n, after), -1) })
	numbers = numbers[first:]
	n, bytes, eyes := min(pageSize(size), len(numbers)), 0, s.journal.ViewerIn(by, p.agent, p.channel)
	for i, number := range numbers[:n] {
		one, err := journal.Read(snapshot, p.channel, number, 1, eyes)
		if err != nil {
			return nil, 0, false, err
		}
		if bytes += one[0].Size(); bytes > message.MaxPageBytes && i > 0 {
			n = i
			break
		}
		list = append(list, one...)
	}
	return list, total, len(numbers) > n, nil
}

// SequenceAt returns the sequence of the channel's last message at a revision, or 0.
//
// Errors: CodeChannelNotFound.
func (s *Service) SequenceAt(ctx context.Context, by Caller, id channel.ID, r kg.Revision) (int64, error) {
	agent, _, err := s.table.OpenReadable(ctx, by, id)
	if err != nil {
		return 0, err
	}
	snapshot, err := s.store.View(ctx, kg.View{Principal: by.ReaderPrincipal(agent), Graphs: []kg.Term{id.MessagesGraph()}})
	if err != nil {
		return 0, err
	}
	defer snapshot.Close()
	count, err := journal.Count(snapshot, id)
	if err != nil {
		return 0, err
	}
	next, err := journal.FirstSince(snapshot, id, count, r+1)
	return next - 1, err
}

// repliesTo returns the sequences of the replies to a message, sorted.
func repliesTo(snapshot *kg.Snapshot, channel channel.ID, id message.ID) (numbers []int64, err error) {
	// Replies addressed to the caller are in partitions, so this does not restrict the
	// graph to the journal.
	for st, err := range snapshot.Match(kg.Pattern{Predicate: vocab.ReplyTo, Object: id.Entity()}) {
		if err != nil {
			return nil, err
		}
		for of, err := range snapshot.Match(kg.Pattern{Subject: st.Subject, Predicate: kg.Sequence, Graph: channel.MessagesGraph()}) {
			if err != nil {
				return nil, err
			}
			numbers = append(numbers, vocab.IntegerOf(of.Object))
		}
		if len(numbers) == MaxReplies {
			break
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}
