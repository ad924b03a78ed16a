package graph

import (
	"context"
	"encoding/json"
	"hash/maphash"
	"iter"
	"slices"
	"sync/atomic"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/message"
	"koine/channels/scope"
	"koine/graph/executor"
	"koine/graph/internal/knowledge"
	"koine/internal/operation"
	"koine/internal/recent"
	"koine/kg"
)

// messageSource is the source of a Stream of the messages of one or more
// channels.
type messageSource struct {
	ownSource
	deliveries iter.Seq2[channels.Delivery, error]
	// matches leaves out messages; nil for none.
	matches     func(*message.Message) bool
	closeStream func()
	// sentPosition is the position after the last message that was sent.
	sentPosition atomic.Pointer[kg.Position]
	// current is the message of the event being yielded.
	current *message.Message
	changes *messageChanges
}

// Events yields an event for each message.
func (s *messageSource) Events() iter.Seq2[operation.Event, error] {
	return func(yield func(operation.Event, error) bool) {
		for d, err := range s.deliveries {
			if err != nil {
				yield(operation.Event{}, err)
				return
			}
			s.current = d.Message
			if s.matches != nil && !s.matches(d.Message) {
				s.sentPosition.Store(&d.Position)
				continue
			}
			if !yield(operation.Event{Changes: s.changes.changesOf(d.Message, d.Position), Position: d.Position}, nil) {
				return
			}
			s.sentPosition.Store(&d.Position)
		}
	}
}

// eventOf represents a message by the statement with its sequence number. at
// is the position after it.
func eventOf(m *message.Message, at kg.Position) operation.Event {
	q := kg.Quad{Subject: m.ID.Entity(), Predicate: kg.Sequence, Object: kg.Integer(m.Sequence), Graph: m.Channel.MessagesGraph()}
	return ownEvent(kg.Add, q, &kg.Commit{Revision: m.Revision, Time: m.Time, Principal: m.Author, Actor: m.Author, MessageID: string(m.ID)}, at)
}

// Position is the position after the last message that was sent, or the zero
// Position if none is known.
func (s *messageSource) Position() kg.Position {
	return deref(s.sentPosition.Load())
}

// Close ends the stream of messages.
func (s *messageSource) Close() { s.closeStream() }

// messageChanges keeps the changes by which the last messages are represented: the streams of a
// channel are woken together.
type messageChanges struct {
	last *recent.Values[sentMessage, []kg.Event]
}

func newMessageChanges() *messageChanges {
	return &messageChanges{recent.New[sentMessage, []kg.Event](sharedChanges)}
}

// changesOf returns the changes of an event, which must not be changed.
func (c *messageChanges) changesOf(m *message.Message, at kg.Position) []kg.Event {
	key := sentMessage{m, at}
	changes, ok := c.last.Find(uint64(at.Revision), key)
	if ok {
		return changes
	}
	changes = eventOf(m, at).Changes
	if sizeOfMessage(m) <= maxSharedMessage {
		c.last.Keep(uint64(at.Revision), key, changes)
	}
	return changes
}

// messageEvent is the content of subscriptions to messages.
type messageEvent struct {
	field   *executor.Selected
	source  *messageSource
	results *messageResults // nil if the events are not shared
}

// messageResults keeps the last results of one selection: the streams of a channel are woken
// together, and the first writes a message for all.
//
// A result is given for the same message as an object. Package channels has one object for all
// readers who see the same of a message, and another for each who sees less.
type messageResults = recent.Values[sentMessage, json.RawMessage]

type sentMessage struct {
	message *message.Message
	at      kg.Position
}

// Bounds of the messages that are shared. A place holds the message with its result.
const (
	sharedSelections  = 64
	sharedMessages    = 4        // of a selection
	sharedChanges     = 16       // messages with their changes
	maxSharedDocument = 16 << 10 // the document and the variables of a selection, in bytes
	maxSharedMessage  = 64 << 10 // the content of a message, in bytes
)

// FindResult serves knowledge.SharedContent.
func (c *messageEvent) FindResult(e *operation.Event) json.RawMessage {
	if c.results == nil {
		return nil
	}
	data, _ := c.results.Find(uint64(e.Position.Revision), sentMessage{c.source.current, e.Position})
	return data
}

// KeepResult serves knowledge.SharedContent.
func (c *messageEvent) KeepResult(e *operation.Event, data json.RawMessage) bool {
	if c.results == nil || sizeOfMessage(c.source.current) > maxSharedMessage {
		return false
	}
	c.results.Keep(uint64(e.Position.Revision), sentMessage{c.source.current, e.Position}, data)
	return true
}

// messageSelections has the results of the selections that were subscribed to last. It is safe for
// concurrent use.
type messageSelections struct {
	seed maphash.Seed
	last *recent.Values[messageSelection, *messageResults]
}

// messageSelection names the selection of an operation: with equal variables the same document
// selects the same.
type messageSelection struct {
	schema              *servedSchema
	document, operation string // its text, and the operation's name
	variables           string // as JSON
}

func newMessageSelections() messageSelections {
	return messageSelections{maphash.MakeSeed(), recent.New[messageSelection, *messageResults](sharedSelections)}
}

// resultsOf returns the results of the selection of an operation, nil if they depend on more than
// the message.
func (s *messageSelections) resultsOf(r *run, opCtx *graphql.OperationContext) *messageResults {
	if !showsMessageOnly(opCtx.Operation.SelectionSet) {
		return nil
	}
	variables, err := json.Marshal(opCtx.Variables)
	if err != nil || len(opCtx.RawQuery)+len(opCtx.OperationName)+len(variables) > maxSharedDocument {
		return nil
	}
	selection := messageSelection{r.schema, opCtx.RawQuery, opCtx.OperationName, string(variables)}
	return s.last.FindOrKeep(maphash.Comparable(s.seed, selection), selection, recent.New[sentMessage, json.RawMessage](sharedMessages))
}

// ownFields has the fields whose values are those of the message itself, by type: they need neither
// the store nor the reader.
var ownFields = map[string][]string{
	"Subscription":     {"messagePublished"},
	"MessagePublished": {"message", "sequence", "position"},
	"Message": {"id", "channelId", "author", "authorId", "sequence", "time", "revision", "private", "parts", "text", "metadata", "withheldReason",
		"artifactRefs", "idempotencyKey", "messageType", "contentType", "format", "tags", "recipient", "recipients", "recipientIds",
		"correlationId", "expiresAt", "replyToId", "threadId", "proposalId", "factCount"},
	"Agent":    {"id"},
	"Progress": {"revision", "position"},
	"Resync":   {"reason", "oldest"},
}

// showsMessageOnly reports whether a selection has only fields of ownFields.
func showsMessageOnly(set ast.SelectionSet) bool {
	for _, selection := range set {
		inner := ast.SelectionSet(nil)
		switch s := selection.(type) {
		case *ast.Field:
			if s.Name != "__typename" && (s.ObjectDefinition == nil || !slices.Contains(ownFields[s.ObjectDefinition.Name], s.Name)) {
				return false
			}
			inner = s.SelectionSet
		case *ast.InlineFragment:
			inner = s.SelectionSet
		case *ast.FragmentSpread:
			inner = s.Definition.SelectionSet
		}
		if !showsMessageOnly(inner) {
			return false
		}
	}
	return true
}

func (c *messageEvent) Write(w *writer, t *knowledge.EventWriter, e *operation.Event) error {
	return writePublished(w, t, c.field, c.source.current, e.Position)
}

// writePublished writes a MessagePublished.
func writePublished(w *writer, t *knowledge.EventWriter, f *executor.Selected, m *message.Message, at kg.Position) error {
	position := t.FormatPosition(at)
	return w.Object(f.On(messagePublishedObject), &MessagePublished{Message: messageOf(m), Sequence: m.Sequence, Position: &position})
}

// MessagePublished establishes Subscription.messagePublished.
func (*subscriptionRoot) MessagePublished(ctx context.Context, f *executor.Selected, args *subscriptionMessagePublishedArgs) (*Stream, error) {
	open, err := args.openSource()
	if err != nil {
		return nil, err
	}
	matches, err := runOf(ctx).messageMatcher(args.Where.Matching)
	if err != nil {
		return nil, err
	}
	return subscribeMessages(ctx, f, args.Resume, func(o *subscriptionSetup, s *messageSource) error {
		s.matches = matches
		if err := open(o, s); err != nil {
			return inSource(err)
		}
		return nil
	})
}

// openSource returns the function that opens the source that is asked for.
func (args *subscriptionMessagePublishedArgs) openSource() (open func(*subscriptionSetup, *messageSource) error, err error) {
	where, given := args.Where, 0
	if where.ChannelID != nil {
		given++
		open = func(o *subscriptionSetup, s *messageSource) error {
			return s.openChannel(o, channel.ID(*where.ChannelID), args.SinceSequence)
		}
	}
	if where.ScopeID != nil {
		given++
		open = feedOf(func(o *subscriptionSetup, from *kg.Position) (*channels.Feed, error) {
			return o.service.StreamScope(o.streamCtx, o.by, scope.ID(*where.ScopeID), from)
		})
	}
	if deref(where.Inbox) {
		given++
		open = feedOf(func(o *subscriptionSetup, from *kg.Position) (*channels.Feed, error) {
			return o.service.StreamInbox(o.streamCtx, o.by, from)
		})
	}
	if deref(where.Joined) {
		given++
		open = feedOf(func(o *subscriptionSetup, from *kg.Position) (*channels.Feed, error) {
			return o.service.StreamAll(o.streamCtx, o.by, from)
		})
	}
	switch {
	case given != 1:
		return nil, kg.Errorf(kg.CodeInvalid, "where must have exactly one of channelId, scopeId, inbox: true and joined: true").At("where")
	case args.SinceSequence == nil:
	case args.Resume != nil:
		return nil, kg.Errorf(kg.CodeInvalid, "resume and sinceSequence are mutually exclusive").At("resume")
	case where.ChannelID == nil:
		e := kg.Errorf(kg.CodeInvalid, "sinceSequence needs where: {channelId}, because sequence numbers are those of one channel").At("sinceSequence")
		e.Hint = "To start elsewhere, pass a position as resume."
		return nil, e
	}
	return open, nil
}

// messageMatcher returns the condition of a filter, nil for none.
func (r *run) messageMatcher(where *MessageFilter) (func(*message.Message) bool, error) {
	if where == nil {
		return nil, nil
	}
	var q channels.HistoryQuery
	err := r.applyMessageFilter(&q, where)
	if err == nil {
		var matches func(*message.Message) bool
		if matches, err = q.Filter(); err == nil {
			return matches, nil
		}
	}
	return nil, kg.AsError(err).At("matching").At("where")
}

// inSource places an error about the source in the argument `where`.
func inSource(err error) error {
	if e := kg.AsError(err); e.Field == "channelId" || e.Field == "scopeId" {
		return e.At("where")
	}
	return err
}

// openChannel opens the messages of a channel after a sequence number or the start.
func (s *messageSource) openChannel(o *subscriptionSetup, id channel.ID, since *int64) (err error) {
	if o.start.Start != operation.DefaultStart {
		given := since
		if since, err = s.startSequence(o.streamCtx, o, id); err != nil {
			return err
		}
		if err := s.checkStart(o.streamCtx, o, id, given, since); err != nil {
			return err
		}
	} else if since == nil {
		head := s.store.Head()
		s.sentPosition.Store(&head)
	}
	stream, err := o.service.Stream(o.streamCtx, o.by, id, since)
	if err != nil {
		return err
	}
	s.closeStream, s.deliveries = stream.Close, func(yield func(channels.Delivery, error) bool) {
		for m, err := range stream.Messages() {
			d := channels.Delivery{Message: m}
			if err == nil {
				d.Position = endOf(s.store, m.Revision)
			}
			if !yield(d, err) {
				return
			}
		}
	}
	return nil
}

// feedOf returns the function that opens a feed of several channels. Events come in
// the order of the log, with ordinary positions.
func feedOf(feed func(*subscriptionSetup, *kg.Position) (*channels.Feed, error)) func(*subscriptionSetup, *messageSource) error {
	return func(o *subscriptionSetup, s *messageSource) error {
		from, told := o.startPosition()
		from = wholeCommit(from)
		opened, err := feed(o, &from)
		if err != nil {
			return err
		}
		s.closeStream, s.deliveries = opened.Close, opened.Messages()
		s.sentPosition.Store(told)
		return nil
	}
}

// wholeCommit moves a position within a commit to the beginning of the commit.
// A commit publishes at most one message, so readers of messages stand between
// commits.
func wholeCommit(p kg.Position) kg.Position {
	if p.Index == kg.EndOfCommit || p.Revision == 0 {
		return p
	}
	return kg.Position{Epoch: p.Epoch, Revision: p.Revision - 1, Index: kg.EndOfCommit}
}

// subscribeMessages establishes a subscription to messages. open opens the stream.
func subscribeMessages(ctx context.Context, f *executor.Selected, resume *Position, open func(*subscriptionSetup, *messageSource) error) (*Stream, error) {
	return subscribeChannels(ctx, f, resume, func(o *subscriptionSetup) (knowledge.EventContent, knowledge.Source, error) {
		r := runOf(ctx)
		s := &messageSource{ownSource: ownSource{o.store}, changes: r.engine.messageChanges}
		results := r.engine.messages.resultsOf(r, graphql.GetOperationContext(ctx))
		return &messageEvent{field: o.field, source: s, results: results}, s, open(o, s)
	})
}

// checkStart returns an error if the request's start differs from the sequence
// given in the operation. since is the request's start as a sequence, nil for
// messages from now on.
func (s *messageSource) checkStart(ctx context.Context, o *subscriptionSetup, id channel.ID, given, since *int64) error {
	if given == nil || o.start.SetBy == "" {
		return nil
	}
	if since == nil {
		newest, err := o.service.SequenceAt(ctx, o.by, id, s.store.Head().Revision)
		if err != nil {
			return err
		}
		since = &newest
	}
	if *since == *given {
		return nil
	}
	e := kg.Errorf(kg.CodeInvalid, "the stream would start after message %d, and sinceSequence starts after message %d: pass one of them", *since, *given).At(o.start.SetBy)
	e.Hint = "To start after a sequence number, omit the other start, or use channels/stream."
	return e
}

// startSequence returns the sequence number after which a start lies, nil for messages
// from now on.
func (s *messageSource) startSequence(ctx context.Context, o *subscriptionSetup, id channel.ID) (*int64, error) {
	var number int64
	start := o.start
	switch start.Start {
	case operation.Latest:
		head := s.store.Head()
		s.sentPosition.Store(&head)
		return nil, nil
	case operation.After:
		// Messages are read from the channel, not from the log, so the log may
		// begin later.
		if start.After.Epoch != s.store.Epoch() || start.After.Compare(s.store.Head()) > 0 {
			if err := s.store.CheckPosition(start.After); err != nil {
				return nil, err
			}
		}
		told := start.After.Revision
		if start.After.Index != kg.EndOfCommit && told > 0 {
			told-- // the commit was not sent completely
		}
		var err error
		if number, err = o.service.SequenceAt(ctx, o.by, id, told); err != nil {
			return nil, err
		}
		s.sentPosition.Store(&start.After)
	}
	return &number, nil
}
