package graph

import (
	"context"
	"strconv"

	"koine/graph/internal/knowledge"
	"koine/graph/internal/views"
	"koine/internal/provenance"
	"koine/kg"
)

// RevertCommit answers Mutation.revertCommit.
func (*mutationRoot) RevertCommit(ctx context.Context, input RevertCommitInput) (*RevertCommitPayload, error) {
	r := runOf(ctx)
	store := r.engine.deps.Store
	m := r.graphMeta(input.Justification, nil)
	m.DryRun = deref(input.DryRun)
	rev, err := provenance.Revert(ctx, store, m, input.Revision, deref(input.Force))
	if err != nil {
		return nil, atInput(err)
	}
	p := &RevertCommitPayload{Conflicts: []AssertedStatement{}, ConflictCount: rev.Total}
	for _, c := range rev.Conflicts {
		p.Conflicts = append(p.Conflicts, *backedOf(kg.Statement{Quad: c.Quad, Assertions: c.Now}))
	}
	if rev.Blocked {
		p.VerificationStatus, p.Revision = "Rejected - Changed Since", store.Head().Revision
		return p, nil
	}
	v := r.patchesPayload(rev.Receipt)
	r.noteIfCommitted(rev.Receipt)
	p.Success, p.StatementsAffected, p.VerificationStatus, p.VerificationDetails = v.Success, v.StatementsAffected, v.VerificationStatus, v.VerificationDetails
	p.Revision, p.Position, p.CommitID, p.ProposalID = v.Revision, &v.Position, v.CommitID, v.ProposalID
	return p, nil
}

// ResolveContradiction answers Mutation.resolveContradiction.
func (*mutationRoot) ResolveContradiction(ctx context.Context, input ResolveContradictionInput) (*ResolveContradictionPayload, error) {
	r := runOf(ctx)
	s, err := knowledge.OpenView(ctx, &views.ViewInput{AllGraphs: new(true)})
	if err != nil {
		return nil, err
	}
	if n := len(input.Drop); n > provenance.MaxDropped {
		return nil, kg.Errorf(kg.CodeLimitExceeded, "drop has %d statements; at most %d are allowed", n, provenance.MaxDropped).At("input.drop")
	}
	keep, err := r.quadsOf(s, "keep", input.Keep)
	if err != nil {
		return nil, err
	}
	drop, err := r.quadsOf(s, "drop", input.Drop)
	if err != nil {
		return nil, err
	}
	m := r.graphMeta(input.Justification, nil)
	m.DryRun = deref(input.DryRun)
	receipt, err := provenance.Resolve(ctx, r.engine.deps.Store, m, keep, drop)
	if err != nil {
		return nil, atInput(err)
	}
	v := r.patchesPayload(receipt)
	r.noteIfCommitted(receipt)
	return &ResolveContradictionPayload{
		Success: v.Success, StatementsAffected: v.StatementsAffected, VerificationStatus: v.VerificationStatus, VerificationDetails: v.VerificationDetails,
		Revision: v.Revision, Position: v.Position, CommitID: v.CommitID, ProposalID: v.ProposalID,
	}, nil
}

func (r *run) noteIfCommitted(receipt kg.Receipt) {
	if receipt.Committed {
		r.notePosition(receipt.Position)
	}
}

// quadsOf finds the statements of a list.
func (r *run) quadsOf(s *kg.Snapshot, field string, refs []StatementRef) ([]kg.Quad, error) {
	out := make([]kg.Quad, len(refs))
	for i := range refs {
		st, found, err := r.statementRef(s, &refs[i])
		if err == nil && !found {
			err = kg.Errorf(kg.CodeNotFound, "the statement does not exist")
		}
		if err != nil {
			return nil, kg.AsError(err).At("input." + field + "[" + strconv.Itoa(i) + "]")
		}
		out[i] = st.Quad
	}
	return out, nil
}

func backedOf(st kg.Statement) *AssertedStatement {
	return &AssertedStatement{Statement: recordOf(st.Quad), Assertions: assertionsOf(st.Assertions)}
}
