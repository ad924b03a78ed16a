package graph

import (
	"cmp"
	"context"
	"iter"
	"strconv"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"koine/channels"
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
	channels *channels.Service // nil if disabled
	fields   []proposalEventField
	reviews  Reviews
	by       proposals.Caller
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
		content := &proposalEvent{reviews: service, channels: runOf(ctx).engine.deps.Channels, by: by}
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
	err = p.EachField(set, knowledge.ProposalChangeImplementors, func(f graphql.CollectedField, key []byte) error {
		fields = append(fields, proposalEventField{key: key, name: f.Name})
		return proposalChangeFieldPlan{p, &fields[len(fields)-1]}.planNamed(f)
	})
	return fields, err
}

// proposalChangeFieldPlan plans a field of a ProposalChange.
type proposalChangeFieldPlan struct {
	planner *knowledge.Planner
	field   *proposalEventField
}

func (b proposalChangeFieldPlan) planProposal(f graphql.CollectedField) error {
	b.field.proposal = b.planner.SelectedField(f)
	return nil
}

func (b proposalChangeFieldPlan) planCommit(f graphql.CollectedField) (err error) {
	b.field.commit, err = b.planner.PlanCommit(f.Selections)
	return err
}

// proposalChangeLeaves appends the scalars of a ProposalChange.
type proposalChangeLeaves struct {
	store *kg.Store
	event *operation.Event
}

func (v proposalChangeLeaves) appendSnapshot(b []byte) []byte {
	return strconv.AppendBool(b, v.event.Snapshot)
}

func (v proposalChangeLeaves) appendSnapshotEnd(b []byte) []byte {
	return strconv.AppendBool(b, v.event.SnapshotEnd)
}

func (v proposalChangeLeaves) appendPosition(b []byte) []byte {
	return knowledge.AppendPosition(b, v.store, v.event.Position)
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
		case "__typename":
			w.B = append(w.B, `"ProposalChange"`...)
		case "proposal":
			shown, failed := shownProposal(t.Ctx, c.channels, proposal)
			if err = cmp.Or(err, failed); err == nil {
				err = w.Object(f.proposal.On(proposalObject), shown)
			}
		case "commit":
			err = cmp.Or(err, t.Run.WriteCommitOf(w, e, f.commit))
		default:
			w.B = proposalChangeLeaves{t.Run.Reader.Store, e}.appendNamed(w.B, f.name)
		}
		w.LeaveField()
	})
	return err
}
