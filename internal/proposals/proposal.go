package proposals

import (
	"slices"
	"time"

	"koine/kg"
)

// Status is the state of a proposal.
type Status string

// The states. A proposal is pending until it reaches one of the others, which are
// final.
const (
	Pending    Status = "pending"
	Applied    Status = "applied"    // approved, and its patches are in the graph
	Rejected   Status = "rejected"   // by a reviewer
	Withdrawn  Status = "withdrawn"  // by its author
	Expired    Status = "expired"    // not decided in time
	Conflicted Status = "conflicted" // approved, but the patches could not be applied
)

// Statuses lists them all.
var Statuses = []Status{Pending, Applied, Rejected, Withdrawn, Expired, Conflicted}

// Decision is the decision of a reviewer.
type Decision string

// The decisions.
const (
	Approve Decision = "approve"
	Reject  Decision = "reject"
)

// Proposal is an update, or a message, that is or was under review.
type Proposal struct {
	ID     string
	Status Status
	// Author is the principal that requested the update, Actor the agent it acted for.
	Author, Actor kg.AgentID
	// Patches are the patches that the caller may see; Hidden counts the others.
	Patches       []kg.Patch
	Hidden        int
	Justification string
	TaskID        string
	SessionID     string
	MessageID     string
	// Channel is set if the proposal holds the message MessageID itself, with the patches
	// as its facts: the channel in which it will be published. Recipient is the address
	// of the message, "" for everyone in the channel.
	Channel, Recipient string
	// Reason is the reason for the review, Rules the rules that held the update.
	Reason string
	Rules  []string

	RequiredApprovals int
	// ReviewerRoles are the roles that may review, in addition to administrators.
	ReviewerRoles    []string
	Created, Expires time.Time
	// Ended is the time of the final status; zero while pending.
	Ended time.Time
	// Conflict is the reason for which it could not be applied, or for which koine
	// withdrew it.
	Conflict string
	// AppliedIn is the revision of its patches; 0 if none.
	AppliedIn kg.Revision
	Reviews   []Review
	// Revision is the revision of its last change.
	Revision kg.Revision

	bytes       int // stored size of the patches
	authority   authority
	expected    kg.Revision
	hasExpected bool
}

// Review is the decision of one reviewer.
type Review struct {
	Reviewer kg.AgentID // the principal
	Actor    kg.AgentID // the agent that it acted for
	Decision Decision
	Comment  string
	Time     time.Time
}

// authority holds the rights with which the author requested the update.
type authority struct {
	Roles  []string     `json:"roles,omitempty"`
	ActFor []kg.AgentID `json:"actFor,omitempty"`
	Method string       `json:"method,omitempty"`
	Key    string       `json:"key,omitempty"`
}

// authorThen returns the author with the rights of that time.
func (p *Proposal) authorThen() kg.Principal {
	return kg.Principal{ID: p.Author, Roles: p.authority.Roles, ActFor: p.authority.ActFor, Method: p.authority.Method, Key: p.authority.Key}
}

// Approvals counts the principals that have approved.
func (p *Proposal) Approvals() int { return len(p.approvers()) }

func (p *Proposal) approvers() []kg.AgentID {
	var list []kg.AgentID
	for _, r := range p.Reviews {
		if r.Decision == Approve && !slices.Contains(list, r.Reviewer) {
			list = append(list, r.Reviewer)
		}
	}
	return list
}

// statusAt updates the status to the given time: the stored one may be older.
func (p *Proposal) statusAt(now time.Time) *Proposal {
	if p.Status == Pending && !now.Before(p.Expires) {
		p.Status, p.Ended = Expired, p.Expires
	}
	return p
}

// Caller is the caller of a method: the principal, and the agent that it acts for (""
// for itself).
type Caller struct {
	Principal kg.Principal
	Actor     kg.AgentID
}

func (c Caller) actingAgent() kg.AgentID {
	if c.Actor != "" {
		return kg.CanonicalAgent(string(c.Actor))
	}
	return c.Principal.ID
}

// isAuthor reports whether the proposal is the caller's own: the principal and the agent
// it acts for, compared on both sides.
func (c Caller) isAuthor(author, actor kg.AgentID) bool {
	return c.Principal.ID == author || c.Principal.ID == actor || c.actingAgent() == author || c.actingAgent() == actor
}
