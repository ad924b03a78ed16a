package review

import (
	"slices"
	"time"

	"koine/kg"
)

// Status is where a proposal is.
type Status string

// The states. A proposal is pending until it is in one of the others, for good.
const (
	Pending    Status = "pending"
	Applied    Status = "applied"    // approved, and its patches are in the graph
	Rejected   Status = "rejected"   // by a reviewer
	Withdrawn  Status = "withdrawn"  // by its author
	Expired    Status = "expired"    // nobody decided in time
	Conflicted Status = "conflicted" // approved, but the graph of then did not take it
)

// Statuses lists them all.
var Statuses = []Status{Pending, Applied, Rejected, Withdrawn, Expired, Conflicted}

// Decision is what a reviewer says.
type Decision string

// The decisions.
const (
	Approve Decision = "approve"
	Reject  Decision = "reject"
)

// Proposal is an update under review, or one that was.
type Proposal struct {
	ID     string
	Status Status
	// Author is the principal that asked for the update, Actor the agent that it
	// acted for.
	Author, Actor kg.AgentID
	// Patches that the caller may see; Hidden counts the others.
	Patches       []kg.Patch
	Hidden        int
	Justification string
	TaskID        string
	SessionID     string
	MessageID     string
	// Reason is why it is held, Rules what holds it.
	Reason string
	Rules  []string

	RequiredApprovals int
	// ReviewerRoles are those that may review beside administrators.
	ReviewerRoles    []string
	Created, Expires time.Time
	// Ended is when it got its last status; zero while it is pending.
	Ended time.Time
	// Conflict says why it could not be applied, or why koine withdrew it.
	Conflict string
	// AppliedIn is the revision with its patches; 0 if there is none.
	AppliedIn kg.Revision
	Reviews   []Review
	// Revision that last changed it.
	Revision kg.Revision

	bytes       int // of the patches, as they are stored
	authority   authority
	expected    kg.Revision
	hasExpected bool
}

// Review is what one reviewer said.
type Review struct {
	Reviewer kg.AgentID // the principal
	Actor    kg.AgentID // the agent that it acted for
	Decision Decision
	Comment  string
	Time     time.Time
}

// authority is with which rights the author asked.
type authority struct {
	Roles  []string     `json:"roles,omitempty"`
	ActFor []kg.AgentID `json:"actFor,omitempty"`
	Method string       `json:"method,omitempty"`
	Key    string       `json:"key,omitempty"`
}

// principal is the author with the rights that it had.
func (p *Proposal) principal() kg.Principal {
	return kg.Principal{ID: p.Author, Roles: p.authority.Roles, ActFor: p.authority.ActFor, Method: p.authority.Method, Key: p.authority.Key}
}

// Approvals counts the principals that have approved it.
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

// at makes the status that of a moment: what is written down may be older.
func (p *Proposal) at(now time.Time) *Proposal {
	if p.Status == Pending && !now.Before(p.Expires) {
		p.Status, p.Ended = Expired, p.Expires
	}
	return p
}

// Caller is who asks: the principal, and the agent that it acts for ("" for
// itself).
type Caller struct {
	Principal kg.Principal
	Actor     kg.AgentID
}

func (c Caller) actor() kg.AgentID {
	if c.Actor != "" {
		return kg.CanonicalAgent(string(c.Actor))
	}
	return c.Principal.ID
}

// wrote tells whether the proposal is the caller's own: the principal and the
// agent it acts for, compared on both sides.
func (c Caller) wrote(author, actor kg.AgentID) bool {
	return c.Principal.ID == author || c.Principal.ID == actor || c.actor() == author || c.actor() == actor
}
