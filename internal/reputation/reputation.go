// Package reputation computes the score of an agent from the statements about its
// work, as far as the reader may see it: two readers may see different scores, and the
// score of a reader is that of a store that holds only data that the reader may read.
//
// Statements about an agent by itself, its owner, or another agent of its owner do not
// count. The score is
//
//	100 * (good + 1) / (good + bad + 2), rounded
//
// where good are the completed tasks, the requests answered in time and the facts that
// others confirm, and bad are the failed tasks, the requests that expired, the facts that
// others contradict, the retracted messages, BanWeight for each ban and MuteWeight for
// each mute. It is absent below MinEvents.
//
// Nothing is kept: every score is read from the graph.
package reputation

import (
	"context"
	"math"
	"slices"
	"time"

	"koine/channels/channel"
	"koine/channels/message"
	"koine/internal/agents"
	"koine/internal/caller"
	"koine/internal/systemgraph"
	"koine/kg"
)

// The numbers of the formula.
const (
	MinEvents  = 10
	BanWeight  = 5
	MuteWeight = 2
	// MaxLooked bounds the tasks, requests and messages that count, each: the newest ones. It
	// bounds the restrictions too, and the statements that are compared with a fact.
	MaxLooked = 2000
	// MaxScanned bounds the tasks, requests and messages among which the newest are found,
	// each. The newest are not known beyond.
	MaxScanned = 50_000
)

// Counts are the events of an agent.
type Counts struct {
	TasksCompleted    int `json:"tasks_completed"`
	TasksFailed       int `json:"tasks_failed"`
	RequestsAnswered  int `json:"requests_answered"`
	RequestsExpired   int `json:"requests_expired"`
	FactsConfirmed    int `json:"facts_confirmed"`
	FactsContradicted int `json:"facts_contradicted"`
	MessagesRetracted int `json:"messages_retracted"`
	Bans              int `json:"bans"`
	Mutes             int `json:"mutes"`
}

func (c *Counts) good() int { return c.TasksCompleted + c.RequestsAnswered + c.FactsConfirmed }

func (c *Counts) bad() int {
	return c.TasksFailed + c.RequestsExpired + c.FactsContradicted + c.MessagesRetracted + BanWeight*c.Bans + MuteWeight*c.Mutes
}

// Events returns the number of events.
func (c *Counts) Events() int {
	return c.good() + c.TasksFailed + c.RequestsExpired + c.FactsContradicted + c.MessagesRetracted + c.Bans + c.Mutes
}

// Score returns the score, from 0 to 100. ok is false below MinEvents.
func (c *Counts) Score() (score int, ok bool) {
	good, bad := float64(c.good()), float64(c.bad())
	return int(math.Round(100 * (good + 1) / (good + bad + 2))), c.Events() >= MinEvents
}

// Reputation is the reputation of an agent as a reader sees it.
type Reputation struct {
	Score *int // nil below MinEvents
	Counts
	// Partial reports that not all events count, because of MaxLooked or MaxScanned.
	Partial bool
	// Since is the time at which the record of the agent was created.
	Since time.Time
}

// Store is the part of kg.Store that the service needs.
type Store interface {
	systemgraph.Store
	Commit(ctx context.Context, p kg.Principal, r kg.Revision) (*kg.Commit, error)
}

// Service computes reputations. Its methods may be called concurrently.
type Service struct {
	store       Store
	looked, all int // MaxLooked and MaxScanned; smaller in tests
}

// New returns a service.
func New(store Store) *Service { return &Service{store, MaxLooked, MaxScanned} }

// Of returns the reputation of an agent as the caller may see it. A caller without a name
// is the anonymous agent.
func (s *Service) Of(ctx context.Context, by caller.Caller, agent kg.AgentID) (*Reputation, error) {
	reader := kg.Anonymous
	var err error
	if by.Principal.Method != caller.MethodNone {
		if reader, err = by.Agent(); err != nil {
			return nil, err
		}
	}
	snapshot, err := s.store.View(ctx, kg.View{Principal: by.Reader(reader), AllGraphs: true})
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	c := &counter{ctx: ctx, service: s, snapshot: snapshot, agent: agent, owners: map[kg.AgentID]kg.AgentID{}}
	record, err := agents.NewService(s.store).Get(ctx, agent)
	if err != nil {
		return nil, err
	}
	out := &Reputation{}
	if record != nil {
		c.owners[agent] = record.Owner
		out.Since = record.Since
	}
	for _, count := range []func() error{c.countTasks, c.countRequests, c.countMessages, c.countRestrictions} {
		if err := count(); err != nil {
			return nil, err
		}
	}
	out.Counts, out.Partial = c.counts, c.partial
	if score, ok := out.Counts.Score(); ok {
		out.Score = &score
	}
	return out, nil
}

// counter counts the events of one agent in one snapshot.
type counter struct {
	ctx      context.Context
	service  *Service
	snapshot *kg.Snapshot
	agent    kg.AgentID
	owners   map[kg.AgentID]kg.AgentID
	counts   Counts
	partial  bool
}

// isInsider reports whether statements of the other agent about the agent do not count.
func (c *counter) isInsider(other kg.AgentID) (bool, error) {
	if other == c.agent || other == kg.System {
		return true, nil
	}
	owner, known := c.owners[other]
	if !known {
		record, err := agents.NewService(c.service.store).Get(c.ctx, other)
		if err != nil {
			return false, err
		}
		if record != nil {
			owner = record.Owner
		}
		c.owners[other] = owner
	}
	mine := c.owners[c.agent]
	return other == mine || owner == c.agent || owner != "" && owner == mine, nil
}

// newest calls fn for the MaxLooked newest of the first MaxScanned statements of a pattern,
// by the age of their subjects, newest first.
func (c *counter) newest(p kg.Pattern, fn func(st *kg.Statement) error) error {
	ids, known, err := c.snapshot.PatternIDs(p)
	if err != nil || !known {
		return err
	}
	var rows []kg.Row
	for row, err := range c.snapshot.MatchIDs(ids, nil) {
		if err != nil {
			return err
		}
		if len(rows) == c.service.all {
			c.partial = true
			break
		}
		rows = append(rows, row)
	}
	// The id of an entity is greater than those of the entities before it.
	slices.SortFunc(rows, func(a, b kg.Row) int { return b.Subject.Compare(a.Subject) })
	if len(rows) > c.service.looked {
		c.partial, rows = true, rows[:c.service.looked]
	}
	for _, row := range rows {
		st, err := c.snapshot.Statement(row)
		if err == nil {
			err = fn(&st)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// each calls fn for the statements of a pattern, at most MaxLooked.
func (c *counter) each(p kg.Pattern, fn func(st *kg.Statement) error) error {
	n := 0
	for st, err := range c.snapshot.Match(p) {
		if err != nil {
			return err
		}
		if n++; n > c.service.looked {
			c.partial = true
			return nil
		}
		if err := fn(&st); err != nil {
			return err
		}
	}
	return nil
}

func (c *counter) me() kg.Term { return kg.IRI(string(c.agent)) }

// countTasks counts the tasks that others gave to the agent.
func (c *counter) countTasks() error {
	return c.newest(kg.Pattern{Predicate: systemgraph.Property("taskHandler"), Object: c.me()}, func(st *kg.Statement) error {
		if !kg.IsOwnGraph(st.Graph) {
			return nil // anybody may write that
		}
		task, err := systemgraph.Read(c.snapshot.Match, st.Graph, st.Subject)
		if err != nil {
			return err
		}
		if insider, err := c.isInsider(kg.AgentID(task.Text("taskCreator"))); insider || err != nil {
			return err
		}
		switch task.Text("taskState") {
		case "COMPLETED":
			c.counts.TasksCompleted++
		case "FAILED":
			c.counts.TasksFailed++
		}
		return nil
	})
}

// messageOf reads the message of a statement of a journal; nil for other statements.
func (c *counter) messageOf(st *kg.Statement) (*message.Message, error) {
	id, part := channel.OfGraph(st.Graph)
	if part != channel.JournalPart {
		return nil, nil
	}
	return message.Read(c.snapshot.Match, id, message.IDOf(st.Subject))
}

// countRequests counts the requests that others sent to the agent alone.
func (c *counter) countRequests() error {
	return c.newest(kg.Pattern{Predicate: systemgraph.Property("recipient"), Object: c.me()}, func(st *kg.Statement) error {
		m, err := c.messageOf(st)
		if m == nil || err != nil || m.Interaction != message.Request || len(m.Recipients) != 1 {
			return err
		}
		if insider, err := c.isInsider(m.Author); insider || err != nil {
			return err
		}
		switch {
		case m.Answered != "":
			c.counts.RequestsAnswered++
		case m.HasExpired(c.snapshot.View().Now):
			c.counts.RequestsExpired++
		}
		return nil
	})
}

// countMessages counts the retracted messages of the agent, and the facts of its messages
// that others confirm or contradict.
func (c *counter) countMessages() error {
	return c.newest(kg.Pattern{Predicate: systemgraph.Property("author"), Object: c.me()}, func(st *kg.Statement) error {
		m, err := c.messageOf(st)
		if m == nil || err != nil {
			return err
		}
		if m.RetractedBy != "" {
			c.counts.MessagesRetracted++
		}
		if m.FactCount == 0 {
			return nil
		}
		commit, err := c.service.store.Commit(c.ctx, c.snapshot.View().Principal, st.Assertions[0].Revision)
		switch kg.CodeOf(err) {
		case "":
		case kg.CodeRevisionGone, kg.CodeNotFound:
			return nil // the log no longer has it
		default:
			return err
		}
		for i := range commit.Changes {
			change := &commit.Changes[i]
			_, part := channel.OfGraph(change.Quad.Graph)
			if change.Op == kg.Add && (part == channel.FactsPart || !kg.IsOwnGraph(change.Quad.Graph)) {
				if err := c.countFact(change.Quad); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// countFact counts a fact of the agent that still stands.
func (c *counter) countFact(q kg.Quad) error {
	mine, theirs, err := c.sourcesOf(kg.Pattern{Subject: q.Subject, Predicate: q.Predicate, Object: q.Object}, kg.Term{})
	if err != nil || !mine {
		return err
	}
	if theirs {
		c.counts.FactsConfirmed++
		return nil
	}
	functional := kg.Pattern{Subject: q.Predicate, Predicate: kg.IRI(kg.RDFType), Object: kg.IRI("http://www.w3.org/2002/07/owl#FunctionalProperty")}
	if _, found, err := systemgraph.First(c.snapshot.Match, functional); err != nil || !found {
		return err
	}
	_, theirs, err = c.sourcesOf(kg.Pattern{Subject: q.Subject, Predicate: q.Predicate}, q.Object)
	if theirs {
		c.counts.FactsContradicted++
	}
	return err
}

// sourcesOf reports whether the agent, and whether others, assert a statement of the
// pattern with an object that is not the one to ignore.
func (c *counter) sourcesOf(p kg.Pattern, ignored kg.Term) (mine, theirs bool, err error) {
	err = c.each(p, func(st *kg.Statement) error {
		if st.Object == ignored {
			return nil
		}
		for i := range st.Assertions {
			source := st.Assertions[i].Source
			mine = mine || source == c.agent
			insider, err := c.isInsider(source)
			if err != nil {
				return err
			}
			theirs = theirs || !insider
		}
		return nil
	})
	return mine, theirs, err
}

// countRestrictions counts the bans and mutes that stand.
func (c *counter) countRestrictions() error {
	for name, n := range map[string]*int{"channelBanned": &c.counts.Bans, "channelMuted": &c.counts.Mutes} {
		err := c.each(kg.Pattern{Predicate: systemgraph.Property(name), Object: c.me()}, func(st *kg.Statement) error {
			if kg.IsOwnGraph(st.Graph) {
				*n++
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
