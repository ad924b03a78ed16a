package channels

import (
	"koine/channels/channel"
	"koine/channels/internal/vocab"
	"koine/channels/message"
	"koine/channels/scope"
	"koine/kg"
)

// AuditActionKind is the kind of an audit action.
type AuditActionKind string

// Kinds of audit actions.
const (
	Created             AuditActionKind = "created"
	Updated             AuditActionKind = "updated" // any part of the channel's record
	Deleted             AuditActionKind = "deleted"
	MemberAdded         AuditActionKind = "memberAdded" // added, or given another role
	MemberRemoved       AuditActionKind = "memberRemoved"
	Published           AuditActionKind = "published"
	MessageStateChanged AuditActionKind = "noted" // a receipt, retraction, expiry or other later statement about a message
)

// MaxAuditActions bounds the actions that AuditActionsOf returns for one commit.
const MaxAuditActions = 100

// AuditAction is one effect of a commit on a channel.
type AuditAction struct {
	Kind    AuditActionKind
	Channel channel.ID
	// Message is the message of Published and MessageStateChanged; "" for other kinds.
	Message message.ID
	// Member is the member of MemberAdded and MemberRemoved; "" for other kinds.
	Member kg.AgentID
}

// AuditActionsOf lists the effects of a commit on channels, in the order of its
// changes, without duplicates. It reads only the commit: if the commit was filtered for
// a reader, the result covers the visible part.
func AuditActionsOf(c *kg.Commit) []AuditAction {
	a := actionCollector{seen: map[AuditAction]bool{}}
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
	list []AuditAction
	seen map[AuditAction]bool
}

func (a *actionCollector) add(act AuditAction) {
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
		a.add(AuditAction{Kind: Created, Channel: id})
	case q.Predicate == vocab.Deleted && added:
		a.add(AuditAction{Kind: Deleted, Channel: id})
	case channel.RoleOf(q.Predicate) != "" && added:
		a.add(AuditAction{Kind: MemberAdded, Channel: id, Member: kg.AgentID(q.Object.Value())})
	case channel.RoleOf(q.Predicate) != "":
		a.add(AuditAction{Kind: MemberRemoved, Channel: id, Member: kg.AgentID(q.Object.Value())})
	case q.Predicate != vocab.Version:
		a.add(AuditAction{Kind: Updated, Channel: id})
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
	a.add(AuditAction{Kind: kind, Channel: id, Message: m})
}

// withoutImplied returns the actions without those that another action implies: the
// initial settings and members of a created channel, the members of a deleted one, the
// removal of the old role of a member that got another, and the initial state of a
// published message.
func (a *actionCollector) withoutImplied() (out []AuditAction) {
	for _, act := range a.list {
		also := func(kind AuditActionKind) bool {
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
		if out = append(out, act); len(out) == MaxAuditActions {
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
	return part == channel.JournalPart || part == channel.PartitionPart || part == channel.ReceiptPart || scope != "" && !record
}
