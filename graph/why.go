package graph

import (
	"context"

	"koine/graph/internal/knowledge"
	"koine/graph/internal/views"
	"koine/internal/provenance"
	"koine/kg"
)

// explainStatement answers Query.why.
func explainStatement(ctx context.Context, ref StatementRef, first *int, view *views.ViewInput) (*StatementExplanation, error) {
	r := runOf(ctx)
	steps, err := countUpTo(first, provenance.DefaultSteps, provenance.MaxSteps)
	if err != nil {
		return nil, err
	}
	s, err := knowledge.OpenView(ctx, view)
	if err != nil {
		return nil, err
	}
	st, found, err := r.statementRef(s, &ref)
	if err != nil {
		return nil, kg.AsError(err).At("statement")
	}
	if !found {
		return nil, nil
	}
	account, err := provenance.Why(ctx, r.engine.deps.Store, s, st.Quad, steps)
	if account == nil || err != nil {
		return nil, err
	}
	out := &StatementExplanation{Statement: recordOf(st.Quad), HasMoreHistory: account.More, Origins: []AssertionOrigin{}, History: []StatementHistoryEntry{}}
	proposals := map[string]*Proposal{}
	for i, a := range account.Statement.Assertions {
		c := account.Backing[i]
		proposal, err := r.proposalOf(ctx, c, proposals)
		if err != nil {
			return nil, err
		}
		message, err := r.messageOfCommit(ctx, a.Revision)
		if err != nil {
			return nil, err
		}
		out.Origins = append(out.Origins, AssertionOrigin{Assertion: assertionOf(a), Commit: r.commitOf(c), Proposal: proposal, Message: message})
	}
	for _, step := range account.History {
		shown := r.convertStep(step)
		if shown.Proposal, err = r.proposalOf(ctx, step.Commit, proposals); err != nil {
			return nil, err
		}
		if step.Commit != nil {
			if shown.Message, err = r.messageOfCommit(ctx, step.Commit.Revision); err != nil {
				return nil, err
			}
		}
		out.History = append(out.History, shown)
	}
	return out, nil
}

func (r *run) convertStep(s provenance.Step) StatementHistoryEntry {
	out := StatementHistoryEntry{
		Op: s.Op, Assertion: assertionOf(s.Assertion), StatementRemains: s.Remains, Commit: r.commitOf(s.Commit),
		Previous: []PreviousStatement{},
	}
	if s.ReplacedBy != (kg.Quad{}) {
		out.ReplacedBy = recordOf(s.ReplacedBy)
	}
	for _, st := range s.Previous {
		out.Previous = append(out.Previous, PreviousStatement{Statement: recordOf(st.Quad), Assertions: assertionsOf(st.Assertions)})
	}
	return out
}

// proposalOf returns the proposal that a commit applied. It is nil if
// there is none or the caller may not read it. Each proposal is read once.
func (r *run) proposalOf(ctx context.Context, c *kg.Commit, known map[string]*Proposal) (*Proposal, error) {
	if c == nil || c.Held || c.ProposalID == "" || r.engine.deps.Reviews == nil {
		return nil, nil
	}
	if p, ok := known[c.ProposalID]; ok {
		return p, nil
	}
	p, err := readProposal(ctx, c.ProposalID)
	if kg.CodeOf(err) == kg.CodeNotFound {
		p, err = nil, nil
	}
	known[c.ProposalID] = p
	return p, err
}

// countUpTo returns an argument between 0 and most, otherwise if it is absent.
func countUpTo(n *int, otherwise, most int) (int, error) {
	switch {
	case n == nil:
		return otherwise, nil
	case *n < 0 || *n > most:
		return 0, kg.Errorf(kg.CodeInvalid, "first must be between 0 and %d, not %d", most, *n).At("first")
	}
	return *n, nil
}
