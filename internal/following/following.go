// Package following keeps which agents follow which: one statement of the follower's for
// each, in the graph Graph, which every authenticated caller can read. The feed of an
// agent has the publications of the followed ones, as far as the agent may read it.
//
// Nothing is kept in memory: every answer is read from the graph and the log.
package following

import (
	"context"
	"errors"
	"slices"
	"time"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/message"
	"koine/internal/caller"
	"koine/internal/systemgraph"
	"koine/kg"
)

// Graph is the graph of the statements.
var Graph = kg.IRI(kg.OwnGraphPrefix + "follows")

// follows is the property: the follower follows the object.
var follows = systemgraph.Property("follows")

// Limits.
const (
	MaxFollowed = 1000 // agents that one agent follows
	DefaultPage = 50
	MaxPage     = 200
	// MaxCommits bounds the commits that are examined for a page of a feed.
	MaxCommits = 10_000
)

// Store is the part of kg.Store that the service needs.
type Store interface {
	systemgraph.Store
	Head() kg.Position
	ReadLog(context.Context, kg.Filter, kg.LogRange) (*kg.LogReader, error)
}

// Messages reads messages as the caller may see them (channels.Service).
type Messages interface {
	Message(ctx context.Context, by channels.Caller, id message.ID) (*message.Message, error)
}

// Service follows agents. Its methods may be called concurrently.
type Service struct {
	store    Store
	messages Messages
}

// New returns a service.
func New(store Store, messages Messages) *Service { return &Service{store, messages} }

func entity(id kg.AgentID) kg.Term { return kg.IRI(string(id)) }

// Follow records that the caller follows an agent. Following again has no effect. The
// caller of Follow checks that there is such an agent.
//
// Errors: CodeInvalid for itself; CodeLimitExceeded; CodePermissionDenied.
func (s *Service) Follow(ctx context.Context, by caller.Caller, whom kg.AgentID) error {
	return s.change(ctx, by, whom, "agents/follow", func(tx *kg.Tx, agent kg.AgentID) error {
		if agent == whom {
			return kg.Errorf(kg.CodeInvalid, "an agent cannot follow itself").At("id")
		}
		n, known := 0, false
		for st, err := range tx.MatchOwn(kg.Pattern{Subject: entity(agent), Predicate: follows, Graph: Graph}) {
			if err != nil {
				return err
			}
			n, known = n+1, known || st.Object == entity(whom)
		}
		if known {
			return nil
		}
		if n >= MaxFollowed {
			return kg.Errorf(kg.CodeLimitExceeded, "%s follows %d agents, which is the limit", agent, n).At("id")
		}
		return tx.ApplyOwn(kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: entity(agent), Predicate: follows, Object: entity(whom), Graph: Graph}})
	})
}

// Unfollow removes the statement. It is not an error if there is none.
func (s *Service) Unfollow(ctx context.Context, by caller.Caller, whom kg.AgentID) error {
	return s.change(ctx, by, whom, "agents/unfollow", func(tx *kg.Tx, agent kg.AgentID) error {
		return systemgraph.Remove(tx, kg.Pattern{Subject: entity(agent), Predicate: follows, Object: entity(whom), Graph: Graph})
	})
}

func (s *Service) change(ctx context.Context, by caller.Caller, whom kg.AgentID, method string, do func(*kg.Tx, kg.AgentID) error) error {
	agent, err := by.Agent()
	if err != nil {
		return err
	}
	if err := by.Principal.CheckWrite(); err != nil {
		return err
	}
	if err := whom.Valid(); err != nil {
		return kg.AsError(err).At("id")
	}
	m := kg.Meta{Principal: by.Principal, Actor: by.Actor, Method: method}
	return systemgraph.Update(ctx, s.store, m, func(tx *kg.Tx) error { return do(tx, agent) })
}

// Forget removes the follows of the agent and those by others, in the update that
// deregisters it.
func Forget(tx *kg.Tx, agent kg.AgentID) error {
	return errors.Join(
		systemgraph.Remove(tx, kg.Pattern{Subject: entity(agent), Predicate: follows, Graph: Graph}),
		systemgraph.Remove(tx, kg.Pattern{Predicate: follows, Object: entity(agent), Graph: Graph}),
	)
}

// Followers returns up to first agents that follow the agent, sorted by id, after one,
// and whether there are more.
func (s *Service) Followers(ctx context.Context, by caller.Caller, agent, after kg.AgentID, first int) ([]kg.AgentID, bool, error) {
	list, err := s.list(ctx, by, kg.Pattern{Predicate: follows, Object: entity(agent), Graph: Graph}, func(q kg.Quad) kg.Term { return q.Subject })
	return pageOf(list, after, first, err)
}

// Following returns the agents that the agent follows, as Followers does.
func (s *Service) Following(ctx context.Context, by caller.Caller, agent, after kg.AgentID, first int) ([]kg.AgentID, bool, error) {
	list, err := s.list(ctx, by, kg.Pattern{Subject: entity(agent), Predicate: follows, Graph: Graph}, func(q kg.Quad) kg.Term { return q.Object })
	return pageOf(list, after, first, err)
}

// list reads one side of the statements under the caller's rights.
func (s *Service) list(ctx context.Context, by caller.Caller, p kg.Pattern, side func(kg.Quad) kg.Term) (list []kg.AgentID, err error) {
	reader, err := readerOf(by)
	if err != nil {
		return nil, err
	}
	snapshot, err := s.store.View(ctx, kg.View{Principal: reader, Graphs: []kg.Term{Graph}})
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	for st, err := range snapshot.Match(p) {
		if err != nil {
			return nil, err
		}
		list = append(list, kg.AgentID(side(st.Quad).Value()))
	}
	slices.Sort(list)
	return list, nil
}

func readerOf(by caller.Caller) (kg.Principal, error) {
	agent, err := by.Agent()
	if err != nil {
		return kg.Principal{}, err
	}
	return by.Reader(agent), nil
}

func pageOf(list []kg.AgentID, after kg.AgentID, first int, err error) ([]kg.AgentID, bool, error) {
	if err != nil {
		return nil, false, err
	}
	at, found := slices.BinarySearch(list, after)
	if found {
		at++
	}
	list = list[at:]
	if len(list) > first {
		return list[:first], true, nil
	}
	return list, false, nil
}

// Item is a message or a fact of a followed agent.
type Item struct {
	Agent   kg.AgentID
	Time    time.Time
	Message *message.Message // nil for a fact
	Fact    *kg.Quad         // nil for a message
}

// FeedQuery selects a page of a feed.
type FeedQuery struct {
	// After is the position behind which the page begins; the zero Position selects the
	// newest page.
	After    kg.Position
	PageSize int // clamped to 1…MaxPage; DefaultPage if 0
}

// Feed returns the messages and facts of the agents that the caller follows, in the
// order of the log, as far as the caller may read it now, and the position behind it. A
// page may be short, or even empty, while more is set.
//
// Errors: CodePositionGone.
func (s *Service) Feed(ctx context.Context, by caller.Caller, q FeedQuery) (page []Item, next kg.Position, more bool, err error) {
	agent, err := by.Agent()
	if err != nil {
		return nil, next, false, err
	}
	followed, err := s.list(ctx, by, kg.Pattern{Subject: entity(agent), Predicate: follows, Graph: Graph}, func(q kg.Quad) kg.Term { return q.Object })
	if err != nil {
		return nil, next, false, err
	}
	size := q.PageSize
	if size == 0 {
		size = DefaultPage
	}
	size = min(max(size, 1), MaxPage)
	head := s.store.Head()
	part := kg.LogRange{After: q.After, Until: head, Commits: MaxCommits}
	if q.After == (kg.Position{}) {
		part.After, part.Backward = kg.Position{Epoch: head.Epoch, Index: kg.EndOfCommit}, true
	}
	next = head
	if len(followed) == 0 {
		return nil, next, false, nil
	}
	filter := kg.Filter{
		Ops: []kg.Op{kg.Add}, View: kg.View{Principal: by.Reader(agent), AllGraphs: true},
		Keep: func(st kg.Statement) bool { return isOfFeed(&st, followed) },
	}
	log, err := s.store.ReadLog(ctx, filter, part)
	if err != nil {
		return nil, next, false, err
	}
	for e, err := range log.Events() {
		if err != nil {
			return nil, next, false, err
		}
		item, err := s.itemOf(ctx, by, &e)
		if err != nil {
			return nil, next, false, err
		}
		if item != nil {
			page = append(page, *item)
		}
		if len(page) == size {
			if !part.Backward {
				return page, e.Position, e.Position.Compare(head) < 0, nil
			}
			break
		}
	}
	if part.Backward {
		slices.Reverse(page)
		return page, head, false, nil
	}
	return page, log.Reached(), !log.Done(), nil
}

var author = systemgraph.Property("author")

// isOfFeed reports whether a statement is the author of a message, or a fact, of one of
// the agents.
func isOfFeed(st *kg.Statement, of []kg.AgentID) bool {
	if !slices.ContainsFunc(st.Assertions, func(a kg.Assertion) bool {
		_, found := slices.BinarySearch(of, a.Source)
		return found
	}) {
		return false
	}
	_, part := channel.OfGraph(st.Graph)
	switch part {
	case channel.JournalPart:
		return st.Predicate == author
	case channel.FactsPart:
		return true
	}
	return !kg.IsOwnGraph(st.Graph)
}

// itemOf returns the item of an event; nil if the caller may not read it any more.
func (s *Service) itemOf(ctx context.Context, by caller.Caller, e *kg.Event) (*Item, error) {
	item := &Item{Agent: e.Statement.Assertions[0].Source, Time: e.Commit.Time}
	if _, part := channel.OfGraph(e.Statement.Graph); part != channel.JournalPart {
		item.Fact = &e.Statement.Quad
		return item, nil
	}
	m, err := s.messages.Message(ctx, channels.Caller{Principal: by.Principal, Actor: by.Actor}, message.IDOf(e.Statement.Subject))
	if kg.CodeOf(err) == kg.CodeNotFound {
		return nil, nil
	}
	item.Message = m
	return item, err
}
