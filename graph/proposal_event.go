package graph

import (
	"cmp"
	"context"
	"iter"
	"strconv"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"koine/graph/executor"
	"koine/graph/internal/knowledge"
	"koine/graph/internal/scalar"
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

// proposalEventField is a field of a ProposalChange.
type proposalEventField struct {
	key      []byte
	name     string
	proposal *executor.Selected
	commit   []knowledge.RecordField
}

// ProposalChanged establishes Subscription.proposalChanged.
func (*subscriptionRoot) ProposalChanged(ctx context.Context, f *executor.Selected, args *knowledge.SubscriptionProposalChangedArgs) (*Stream, error) {
	return knowledge.SubscribeTo(ctx, f, args.Resume, nil, func(p *knowledge.Planner, field ast.SelectionSet) (knowledge.EventContent, changefeed.Subject, error) {
		service, by, err := runOf(ctx).reviewService()
		if err != nil {
			return nil, nil, err
		}
		content := &proposalEvent{reviews: service, by: by}
		content.fields, err = planProposalChange(p, field)
		filter := kg.Filter{Patterns: proposals.Patterns(deref(args.ID)), View: kg.View{Principal: p.View.Principal, AllGraphs: true}}
		subject := proposalSubject{changefeed.Statements{Filter: filter}, filter}
		subject.standing.Patterns = proposals.StatusPatterns(deref(args.ID))
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

func planProposalChange(p *knowledge.Planner, set ast.SelectionSet) (fields []proposalEventField, err error) {
	err = p.EachField(set, knowledge.ProposalChangeImplementors, func(f graphql.CollectedField, key []byte) (err error) {
		field := proposalEventField{key: key, name: f.Name}
		switch f.Name {
		case "proposal":
			field.proposal = p.SelectedField(f)
		case "commit":
			field.commit, err = p.PlanCommit(f.Selections)
		case "__typename", "snapshot", "snapshotEnd", "position":
		default:
			return knowledge.UnplannedField(f)
		}
		fields = append(fields, field)
		return err
	})
	return fields, err
}

func (c *proposalEvent) Write(w *writer, t *knowledge.EventWriter, e *operation.Event) error {
	change := &e.Changes[0]
	id, counts := proposals.ParseEvent(change)
	if !counts {
		return nil
	}
	revision := e.Revision
	if !e.Snapshot {
		revision = change.Commit.Revision
	}
	proposal, err := c.reviews.GetAt(t.Ctx, c.by, id, revision)
	if err != nil {
		return err
	}
	scalar.WriteFields(w, c.fields, func(_ int, f *proposalEventField) {
		w.EnterField(f.key)
		switch f.name {
		case "proposal":
			err = cmp.Or(err, w.Object(f.proposal.On(proposalObject), shownProposal(proposal)))
		case "snapshot":
			w.B = strconv.AppendBool(w.B, e.Snapshot)
		case "snapshotEnd":
			w.B = strconv.AppendBool(w.B, e.SnapshotEnd)
		case "commit":
			err = cmp.Or(err, t.Run.WriteCommitOf(w, e, f.commit))
		case "position":
			w.B = knowledge.AppendPosition(w.B, t.Run.Reader.Store, e.Position)
		default:
			w.B = append(w.B, `"ProposalChange"`...)
		}
		w.LeaveField()
	})
	return err
}
