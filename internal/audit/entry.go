package audit

import (
	"strings"
	"time"

	"koine/channels/actions"
	"koine/kg"
)

// Kind is the kind of an entry.
type Kind string

// Kinds of commits. Each commit has one kind: that of its most important change, in
// descending order.
const (
	Key      Kind = "KEY"      // a credential was created, changed or revoked
	Policy   Kind = "POLICY"   // the policy of a graph changed
	Proposal Kind = "PROPOSAL" // an update was held, reviewed, withdrawn, or applied after review
	Admin    Kind = "ADMIN"    // another change of a system graph
	Channel  Kind = "CHANNEL"  // a change of a channel, scope or membership
	Message  Kind = "MESSAGE"  // a message was published, or its state changed
	Update   Kind = "UPDATE"   // anything else
)

// Kinds of refusals.
const (
	Denied         Kind = "DENIED"         // permission denied
	Authentication Kind = "AUTHENTICATION" // authentication failed
	RateLimit      Kind = "RATE_LIMIT"     // a rate limit was exceeded
)

// Entry is a commit or a refusal.
type Entry struct {
	Time             time.Time
	Kind             Kind
	Principal, Actor kg.AgentID

	// Commit is set for a commit, without its Changes, which Added and Removed count.
	Commit         *kg.Commit
	Added, Removed int
	// Channels are the effects of the commit on channels, up to
	// channels.MaxAuditActions.
	Channels []actions.Action
	// Refusal is set for a refusal.
	Refusal *Refusal
	// Cursor is the value of Query.After for the entries behind this one.
	Cursor string
}

// Subjects, predicates and graphs of the records in system graphs.
const (
	keySubject     = "urn:koine:key:"
	policyProperty = kg.OwnVocabulary + "graph"
	proposalGraph  = kg.OwnGraphPrefix + "proposal:"
)

var strength = map[Kind]int{Update: 0, Message: 1, Channel: 2, Admin: 3, Proposal: 4, Policy: 5, Key: 6}

func entryOf(c *kg.Commit) Entry {
	e := Entry{Time: c.Time, Kind: Update, Principal: c.Principal, Actor: c.Actor}
	if c.ProposalID != "" {
		e.Kind = Proposal
	}
	for i := range c.Changes {
		change := &c.Changes[i]
		if change.Op == kg.Remove {
			e.Removed++
		} else {
			e.Added++
		}
		if k := kindOf(&change.Quad); strength[k] > strength[e.Kind] {
			e.Kind = k
		}
	}
	e.Channels = actions.Of(c)
	copied := *c
	copied.Changes, copied.ContentHash, copied.IdempotencyKey = nil, [32]byte{}, ""
	e.Commit = &copied
	return e
}

// kindOf returns the kind of a change by its graph, subject and predicate.
func kindOf(q *kg.Quad) Kind {
	graph := q.Graph.Value()
	switch {
	case !strings.HasPrefix(graph, kg.OwnGraphPrefix):
		return Update
	case strings.HasPrefix(graph, proposalGraph):
		return Proposal
	case actions.IsRecordGraph(q.Graph):
		return Channel
	case actions.IsJournalGraph(q.Graph):
		return Message
	case strings.HasPrefix(q.Subject.Value(), keySubject):
		return Key
	case strings.HasPrefix(q.Predicate.Value(), policyProperty):
		return Policy
	}
	return Admin
}
