// Package actions lists the effects of a commit on channels: it reads the commit and nothing
// else. Begin with Of.
package actions

import (
	"koine/channels/channel"
	"koine/channels/internal/vocab"
	"koine/channels/message"
	"koine/channels/scope"
	"koine/kg"
)

// Kind is the kind of an action.
type Kind string

// Kinds of actions.
const (
	Created             Kind = "created"
	Updated             Kind = "updated" // any part of the channel's record
	Deleted             Kind = "deleted"
	MemberAdded         Kind = "memberAdded" // added, or given another role
	MemberRemoved       Kind = "memberRemoved"
	Overseen            Kind = "overseen" // by an agent that takes no part and reads from now on
	Published           Kind = "published"
	MessageStateChanged Kind = "noted" // a receipt, retraction, expiry or other later statement about a message
)

// Max bounds the actions that AuditActionsOf returns for one commit.
const Max = 100

// Action is one effect of a commit on a channel.
type Action struct {
	Kind    Kind
	Channel channel.ID
	// Message is the message of Published and MessageStateChanged; "" for other kinds.
	Message message.ID
	// Member is the agent of MemberAdded, MemberRemoved and Overseen; "" for other kinds.
	Member kg.AgentID
}

// Of lists the effects of a commit on channels, in the order of its
// changes, without duplicates. It reads only the commit: if the commit was filtered for
// a reader, the result covers the visible part.
func Of(c *kg.Commit) []Action {
	a := actionCollector{seen: map[Action]bool{}}
	for i := range c.Changes {
		ch := &c.Changes[i]
		switch id, part := channel.OfGraph(ch.Quad.Graph); part {
		case channel.RecordPart:
			if ch.Quad.Subject == id.Entity() {
				a.addRecordChange(id, ch)
			}
		case channel.JournalPart, channel.PartitionPart, channel.ReceiptPart:
			a.addMessageChange(id, ch)
		}
	}
	return a.withoutImplied()
}

// actionCollector collects the actions of a commit without duplicates.
type actionCollector struct {
	list []Action
	seen map[Action]bool
}

func (a *actionCollector) add(act Action) {
	if !a.seen[act] {
		a.seen[act] = true
		a.list = append(a.list, act)
	}
}

// addRecordChange adds a change of a channel's record.
func (a *actionCollector) addRecordChange(id channel.ID, ch *kg.Change) {
	added := len(ch.After) > 0
	switch q := &ch.Quad; {
	case q.Predicate == vocab.Type && added:
		a.add(Action{Kind: Created, Channel: id})
	case q.Predicate == vocab.Deleted && added:
		a.add(Action{Kind: Deleted, Channel: id})
	case channel.RoleOf(q.Predicate) != "" && added:
		a.add(Action{Kind: MemberAdded, Channel: id, Member: kg.AgentID(q.Object.Value())})
	case channel.RoleOf(q.Predicate) != "":
		a.add(Action{Kind: MemberRemoved, Channel: id, Member: kg.AgentID(q.Object.Value())})
	case q.Predicate == vocab.Overseer && added:
		a.add(Action{Kind: Overseen, Channel: id, Member: kg.AgentID(q.Object.Value())})
	case q.Predicate != vocab.Version:
		a.add(Action{Kind: Updated, Channel: id})
	}
}

// addMessageChange adds a change of a statement about a message.
func (a *actionCollector) addMessageChange(id channel.ID, ch *kg.Change) {
	m := message.IDIn(ch.Quad.Subject)
	if m == "" {
		return
	}
	kind := MessageStateChanged
	if ch.Quad.Predicate == kg.Sequence {
		kind = Published
	}
	a.add(Action{Kind: kind, Channel: id, Message: m})
}

// withoutImplied returns the actions without those that another action implies: the
// initial settings and members of a created channel, the members of a deleted one, the
// removal of the old role of a member that got another, and the initial state of a
// published message.
func (a *actionCollector) withoutImplied() (out []Action) {
	for _, act := range a.list {
		also := func(kind Kind) bool {
			other := act
			other.Kind = kind
			if kind == Created || kind == Deleted {
				other.Member = ""
			}
			return a.seen[other]
		}
		switch act.Kind {
		case Updated, MemberAdded:
			if also(Created) || also(Deleted) {
				continue
			}
		case MemberRemoved:
			if also(Deleted) || also(MemberAdded) {
				continue
			}
		case MessageStateChanged:
			if also(Published) {
				continue
			}
		}
		if out = append(out, act); len(out) == Max {
			break
		}
	}
	return out
}

// IsRecordGraph reports whether a graph is the record of a channel or of a scope.
func IsRecordGraph(graph kg.Term) bool {
	_, part := channel.OfGraph(graph)
	_, ofScope := scope.OfGraph(graph)
	return part == channel.RecordPart || ofScope
}

// IsJournalGraph reports whether a graph holds messages, receipts, or events of a
// scope.
func IsJournalGraph(graph kg.Term) bool {
	_, part := channel.OfGraph(graph)
	scope, record := scope.OfGraph(graph)
	return part == channel.JournalPart || part == channel.PartitionPart || part == channel.CopyPart || part == channel.ReceiptPart || scope != "" && !record
}
