package graph

import (
	"context"
	"encoding/json"
	"iter"
	"strconv"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"koine/internal/changefeed"
	"koine/internal/operation"
	"koine/internal/proposals"
	"koine/kg"
)

// proposalEvent is the content of Subscription.proposalChanged.
type proposalEvent struct {
	fields  []proposalEventField
	reviews Reviews
	by      proposals.Caller
}

// proposalEventField is a field of a ProposalChange. part has the selected
// fields of `proposal`, and of `reviews` inside of it.
type proposalEventField struct {
	key    []byte
	name   string
	part   []proposalEventField
	commit []scalarField
}

// followProposals establishes Subscription.proposalChanged.
func followProposals(ctx context.Context, id *string, resume *Position) error {
	return subscribeTo(ctx, resume, nil, func(p *planner, field ast.SelectionSet) (eventContent, changefeed.Subject, error) {
		service, by, err := p.run.reviewService()
		if err != nil {
			return nil, nil, err
		}
		content := &proposalEvent{reviews: service, by: by}
		content.fields, err = p.planProposalChange(field)
		filter := kg.Filter{Patterns: proposals.Patterns(deref(id)), View: kg.View{Principal: p.view.Principal, AllGraphs: true}}
		subject := proposalSubject{changefeed.Statements{Filter: filter}, filter}
		subject.standing.Patterns = proposals.StatusPatterns(deref(id))
		return content, subject, err
	})
}

// proposalSubject follows proposals. Its snapshot has each existing proposal
// once.
type proposalSubject struct {
	changefeed.Statements
	standing kg.Filter
}

// Current yields the statement with each proposal's status.
func (s proposalSubject) Current(ctx context.Context, snapshot *kg.Snapshot) iter.Seq2[operation.Event, error] {
	return changefeed.Statements{Filter: s.standing}.Current(ctx, snapshot)
}

func (p *planner) planProposalChange(set ast.SelectionSet) (fields []proposalEventField, err error) {
	err = p.eachField(set, proposalChangeImplementors, func(f graphql.CollectedField, key []byte) (err error) {
		field := proposalEventField{key: key, name: f.Name}
		switch f.Name {
		case "proposal":
			field.part, err = p.planProposal(f.Selections, proposalImplementors)
		case "commit":
			field.commit, err = p.planCommit(f.Selections)
		}
		fields = append(fields, field)
		return err
	})
	return fields, err
}

// planProposal plans the fields of a proposal or of a review. Their names are
// those of the JSON form.
func (p *planner) planProposal(set ast.SelectionSet, implementors []string) (fields []proposalEventField, err error) {
	err = p.eachField(set, implementors, func(f graphql.CollectedField, key []byte) (err error) {
		field := proposalEventField{key: key, name: f.Name}
		if f.Name == "reviews" {
			field.part, err = p.planProposal(f.Selections, proposalReviewImplementors)
		}
		fields = append(fields, field)
		return err
	})
	return fields, err
}

func (c *proposalEvent) write(t *eventWriter, e *operation.Event) ([]byte, error) {
	change := &e.Changes[0]
	id, counts := proposals.ParseEvent(change)
	if !counts {
		return nil, nil
	}
	revision := e.Revision
	if !e.Snapshot {
		revision = change.Commit.Revision
	}
	proposal, err := c.reviews.GetAt(t.ctx, c.by, id, revision)
	if err != nil {
		return nil, err
	}
	shown, err := membersOf(shownProposal(proposal))
	if err != nil {
		return nil, err
	}
	b := []byte{'{'}
	for i, f := range c.fields {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, f.key...)
		switch f.name {
		case "proposal":
			if b, err = appendPart(b, f.part, "Proposal", shown); err != nil {
				return nil, err
			}
		case "snapshot":
			b = strconv.AppendBool(b, e.Snapshot)
		case "snapshotEnd":
			b = strconv.AppendBool(b, e.SnapshotEnd)
		case "commit":
			b = appendCommit(b, t.run.engine, commitOf(e), f.commit)
		case "position":
			b = appendPosition(b, t.run.engine.deps.Store, e.Position)
		default:
			b = append(b, `"ProposalChange"`...)
		}
	}
	return append(b, '}'), nil
}

// membersOf returns the members of a value's JSON form.
func membersOf(v any) (map[string]json.RawMessage, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var m map[string]json.RawMessage
	return m, json.Unmarshal(raw, &m)
}

// proposalTimes are the fields of type DateTime, which has a format of its
// own.
var proposalTimes = map[string]bool{"createdAt": true, "expiresAt": true, "endedAt": true, "time": true}

// appendPart writes the selected fields of an object.
func appendPart(b []byte, fields []proposalEventField, typename string, of map[string]json.RawMessage) ([]byte, error) {
	b = append(b, '{')
	for i, f := range fields {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, f.key...)
		switch {
		case f.name == "__typename":
			b = appendString(b, typename)
		case proposalTimes[f.name]:
			var t *time.Time
			if err := json.Unmarshal(of[f.name], &t); err != nil {
				return nil, err
			}
			if t == nil {
				b = append(b, "null"...)
				break
			}
			b = appendString(b, formatTime(*t))
		case f.part != nil:
			var err error
			if b, err = appendReviews(b, f.part, of[f.name]); err != nil {
				return nil, err
			}
		default:
			b = append(b, of[f.name]...)
		}
	}
	return append(b, '}'), nil
}

func appendReviews(b []byte, fields []proposalEventField, raw json.RawMessage) ([]byte, error) {
	var list []map[string]json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, err
	}
	b = append(b, '[')
	for i, r := range list {
		if i > 0 {
			b = append(b, ',')
		}
		var err error
		if b, err = appendPart(b, fields, "ProposalReview", r); err != nil {
			return nil, err
		}
	}
	return append(b, ']'), nil
}
