package audit

import (
	"strings"
	"time"

	"koine/channels"
	"koine/kg"
)

// Kind says what an entry is about.
type Kind string

// The kinds of what was done: each commit has one, that of the strongest thing in
// it, in this order.
const (
	Key      Kind = "KEY"      // a credential was made, changed or revoked
	Policy   Kind = "POLICY"   // who may do what with a graph
	Proposal Kind = "PROPOSAL" // an update was held, reviewed, withdrawn, or applied after review
	Admin    Kind = "ADMIN"    // something else in a graph of koine's own
	Channel  Kind = "CHANNEL"  // a channel or scope, or who is in it
	Message  Kind = "MESSAGE"  // a message was published, or something was noted about one
	Update   Kind = "UPDATE"   // anything else
)

// The kinds of what was refused.
const (
	Denied         Kind = "DENIED"         // the caller may not do it
	Authentication Kind = "AUTHENTICATION" // it is not known who is calling
	RateLimit      Kind = "RATE_LIMIT"     // it was too much
)

// Entry is one line of the list: a commit, or a refusal.
type Entry struct {
	Time             time.Time
	Kind             Kind
	Principal, Actor kg.AgentID

	// Commit is set for what was done, without its Changes; Added and Removed count
	// those.
	Commit         *kg.Commit
	Added, Removed int
	// Channels are what the commit did with channels, up to channels.MaxDeeds.
	Channels []channels.AuditAction
	// Refusal is set for what was not.
	Refusal *Refusal
}

// What koine's own graphs hold about whom.
const (
	keySubject     = "urn:koine:key:"
	policyProperty = kg.OwnVocabulary + "graph"
	proposalGraph  = kg.OwnGraphPrefix + "proposal:"
)

var strength = map[Kind]int{Update: 0, Message: 1, Channel: 2, Admin: 3, Proposal: 4, Policy: 5, Key: 6}

// entryOf is the entry of a commit.
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
	e.Channels = channels.AuditActionsOf(c)
	told := *c
	told.Changes, told.ContentHash, told.IdempotencyKey = nil, [32]byte{}, ""
	e.Commit = &told
	return e
}

func kindOf(q *kg.Quad) Kind {
	graph := q.Graph.Value()
	switch {
	case !strings.HasPrefix(graph, kg.OwnGraphPrefix):
		return Update
	case strings.HasPrefix(graph, proposalGraph):
		return Proposal
	case channels.IsRecordGraph(q.Graph):
		return Channel
	case channels.IsJournalGraph(q.Graph):
		return Message
	case strings.HasPrefix(q.Subject.Value(), keySubject):
		return Key
	case strings.HasPrefix(q.Predicate.Value(), policyProperty):
		return Policy
	}
	return Admin
}

// refusalEntry is the entry of a refusal.
func refusalEntry(r *Refusal) Entry {
	told := *r
	return Entry{Time: r.First, Kind: r.Kind, Principal: r.Principal, Actor: r.Actor, Refusal: &told}
}
