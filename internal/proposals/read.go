package proposals

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"koine/internal/systemgraph"
	"koine/kg"
)

// readProposal reads a proposal with its reviews, and with its patches if patches is set; nil
// if it does not exist.
func readProposal(match systemgraph.Matcher, id string, patches bool) (*Proposal, error) {
	p := &Proposal{ID: id}
	graph := graphOf(id)
	var pieces []string
	reviews := map[kg.Term]*Review{}
	found := false
	for s, err := range match(kg.Pattern{Graph: graph}) {
		if err != nil {
			return nil, err
		}
		p.Revision = max(p.Revision, s.Revision())
		switch {
		case s.Subject != graph:
			if reviews[s.Subject] == nil {
				reviews[s.Subject] = &Review{}
			}
			reviews[s.Subject].setProperty(s.Predicate, s.Object)
		case s.Predicate == propPatches:
			if patches {
				pieces = append(pieces, s.Object.Value())
				p.bytes += len(s.Object.Value())
			}
		default:
			found = true
			if err := p.setProperty(s.Predicate, s.Object); err != nil {
				return nil, err
			}
		}
	}
	if !found {
		return nil, nil
	}
	for _, r := range reviews {
		p.Reviews = append(p.Reviews, *r)
	}
	slices.SortFunc(p.Reviews, func(a, b Review) int { return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Reviewer, b.Reviewer)) })
	slices.Sort(p.Rules)
	slices.Sort(p.ReviewerRoles)
	if !patches {
		return p, nil
	}
	var err error
	p.Patches, err = decodePatches(pieces)
	return p, err
}

// readPending reads a proposal, without its patches, that has not ended.
func readPending(tx *kg.Tx, id string) (*Proposal, error) {
	p, err := readProposal(tx.MatchOwn, id, false)
	switch {
	case err != nil:
		return nil, err
	case p == nil:
		return nil, errNotFound(id)
	case p.statusAt(tx.Time()).Status != Pending:
		return nil, errClosed(p)
	}
	return p, nil
}

func (p *Proposal) setProperty(property, object kg.Term) (err error) {
	text := object.Value()
	switch property {
	case propStatus:
		p.Status = Status(text)
	case propAuthor:
		p.Author = kg.AgentID(text)
	case propActor:
		p.Actor = kg.AgentID(text)
	case propAuthority:
		err = json.Unmarshal([]byte(text), &p.authority)
	case propCreated:
		p.Created = timeOf(object)
	case propExpires:
		p.Expires = timeOf(object)
	case propEnded:
		p.Ended = timeOf(object)
	case propRequired:
		p.RequiredApprovals, err = strconv.Atoi(text)
	case propReviewerRole:
		p.ReviewerRoles = append(p.ReviewerRoles, text)
	case propRule:
		p.Rules = append(p.Rules, text)
	case propReason:
		p.Reason = text
	case propJustification:
		p.Justification = text
	case propTask:
		p.TaskID = text
	case propSession:
		p.SessionID = text
	case propMessage:
		p.MessageID = text
	case propChannel:
		p.Channel = text
	case propRecipient:
		p.Recipient = text
	case propConflict:
		p.Conflict = text
	case propAppliedIn:
		p.AppliedIn, err = parseRevision(text)
	case propExpected:
		p.expected, err = parseRevision(text)
		p.hasExpected = true
	}
	if err != nil {
		return kg.Errorf(kg.CodeInternal, "the property %s of a proposal cannot be read: %w", property, err)
	}
	return nil
}

func (r *Review) setProperty(property, object kg.Term) {
	switch property {
	case propReviewer:
		r.Reviewer = kg.AgentID(object.Value())
	case propReviewerActor:
		r.Actor = kg.AgentID(object.Value())
	case propDecision:
		r.Decision = Decision(object.Value())
	case propComment:
		r.Comment = object.Value()
	case propReviewed:
		r.Time = timeOf(object)
	}
}

func parseRevision(text string) (kg.Revision, error) {
	n, err := strconv.ParseUint(text, 10, 64)
	return kg.Revision(n), err
}

func timeOf(t kg.Term) time.Time {
	at, _ := t.DateTimeValue()
	return at.UTC()
}
