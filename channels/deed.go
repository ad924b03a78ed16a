package channels

import "koine/kg"

// AuditActionKind says what was done with a channel.
type AuditActionKind string

// The kinds.
const (
	Created             AuditActionKind = "created"
	Updated             AuditActionKind = "updated" // name, topic, metadata, rights, or whatever else is in its record
	Deleted             AuditActionKind = "deleted"
	MemberAdded         AuditActionKind = "memberAdded" // or given another role
	MemberRemoved       AuditActionKind = "memberRemoved"
	Published           AuditActionKind = "published"
	MessageStateChanged AuditActionKind = "noted" // something about a message: a receipt, that it was retracted or has expired
)

// MaxAuditActions bounds what DeedsOf tells of one commit.
const MaxAuditActions = 100

// AuditAction is one thing that a commit did with a channel.
type AuditAction struct {
	Kind    AuditActionKind
	Channel ChannelID
	// Message is what was published, or noted about; "" for other kinds.
	Message MessageID
	// Member is who was added or removed; "" for other kinds.
	Member kg.AgentID
}

// AuditActionsOf tells what a commit did with channels, in the order of its changes, each
// thing once. It reads the commit alone: from one of which the reader sees a part,
// it tells that part.
func AuditActionsOf(c *kg.Commit) []AuditAction {
	a := actionCollector{seen: map[AuditAction]bool{}}
	for i := range c.Changes {
		ch := &c.Changes[i]
		switch id, part := channelOfGraph(ch.Quad.Graph); part {
		case recordPart:
			if ch.Quad.Subject == id.Entity() {
				a.addRecordChange(id, ch)
			}
		case journalPart, partitionPart, receiptPart:
			a.addMessageChange(id, ch)
		}
	}
	return a.withoutImplied()
}

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

// addRecordChange takes in a change of a channel's record.
func (a *actionCollector) addRecordChange(id ChannelID, ch *kg.Change) {
	there := len(ch.After) > 0
	switch q := &ch.Quad; {
	case q.Predicate == rdfType && there:
		a.add(AuditAction{Kind: Created, Channel: id})
	case q.Predicate == propDeleted && there:
		a.add(AuditAction{Kind: Deleted, Channel: id})
	case roleOf(q.Predicate) != "" && there:
		a.add(AuditAction{Kind: MemberAdded, Channel: id, Member: kg.AgentID(q.Object.Value())})
	case roleOf(q.Predicate) != "":
		a.add(AuditAction{Kind: MemberRemoved, Channel: id, Member: kg.AgentID(q.Object.Value())})
	case q.Predicate != propVersion:
		a.add(AuditAction{Kind: Updated, Channel: id})
	}
}

// addMessageChange takes in a change of what is known about a message.
func (a *actionCollector) addMessageChange(id ChannelID, ch *kg.Change) {
	m := messageIDIn(ch.Quad.Subject)
	if m == "" {
		return
	}
	kind := MessageStateChanged
	if ch.Quad.Predicate == kg.Sequence {
		kind = Published
	}
	a.add(AuditAction{Kind: kind, Channel: id, Message: m})
}

// withoutImplied leaves out what another action says already: of a channel that was made what
// it was made with, of one that was deleted who was in it, of who got another role
// that the old one went, and of a message that was published what it is.
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
