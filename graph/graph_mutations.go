package graph

import (
	"context"
	"crypto/sha256"
	"errors"
	"strings"

	"koine/internal/policy"
	"koine/internal/rdf"
	"koine/kg"
)

// CreateGraph answers Mutation.createGraph.
func (*mutationRoot) CreateGraph(ctx context.Context, input CreateGraphInput) (*GraphPayload, error) {
	r := runOf(ctx)
	graphs, err := r.graphService()
	if err != nil {
		return nil, err
	}
	if input.Iri != nil {
		if err := r.engine.deps.Names.CheckTerm(ctx, r.request.Principal, *input.Iri, "iri"); err != nil {
			return nil, atInput(err)
		}
	}
	p, receipt, err := graphs.Create(ctx, r.graphMeta(input.Justification, input.IdempotencyKey), policy.Creation{
		Graph: deref(input.Iri), Public: isPublic(input.Visibility),
		Owners: toGrantees(input.Owners), Writers: toGrantees(input.Writers), Readers: toGrantees(input.Readers),
	})
	if err != nil {
		return nil, atInput(err)
	}
	return r.graphPayload(p.Graph, receipt), nil
}

// SetGraphPolicy answers Mutation.setGraphPolicy.
func (*mutationRoot) SetGraphPolicy(ctx context.Context, input SetGraphPolicyInput) (*GraphPayload, error) {
	r := runOf(ctx)
	graphs, err := r.graphService()
	if err != nil {
		return nil, err
	}
	m := r.graphMeta(input.Justification, input.IdempotencyKey)
	if input.ExpectedRevision != nil {
		m.ExpectedRevision, m.HasExpected = *input.ExpectedRevision, true
	}
	p, receipt, err := graphs.Set(ctx, m, policy.PolicyUpdate{
		Graph: graphNamed(input.Iri), Public: isPublic(input.Visibility),
		Owners: toGrantees(input.Owners), Writers: toGrantees(input.Writers), Readers: toGrantees(input.Readers),
	})
	if err != nil {
		return nil, atInput(err)
	}
	return r.graphPayload(p.Graph, receipt), nil
}

// DeleteGraph answers Mutation.deleteGraph.
func (*mutationRoot) DeleteGraph(ctx context.Context, input DeleteGraphInput) (*DeleteGraphPayload, error) {
	r := runOf(ctx)
	graphs, err := r.graphService()
	if err != nil {
		return nil, err
	}
	d, err := graphs.Delete(ctx, r.graphMeta(input.Justification, nil), input.Iri)
	if err != nil {
		return nil, atInput(err)
	}
	r.notePosition(d.Receipt.Position)
	return &DeleteGraphPayload{
		Removed: int64(d.Removed), Remaining: int64(d.Remaining),
		Revision: d.Receipt.Revision, Position: Position(r.engine.deps.Store.FormatPosition(d.Receipt.Position)),
	}, nil
}

// ReplaceGraph answers Mutation.replaceGraph.
func (*mutationRoot) ReplaceGraph(ctx context.Context, input ReplaceGraphInput) (*ReplaceGraphPayload, error) {
	r, graph := runOf(ctx), graphNamed(input.Iri)
	store := r.engine.deps.Store
	m := r.graphMeta(input.Justification, input.IdempotencyKey)
	m.ContentHash = sha256.Sum256([]byte(graph.String() + "\n" + input.Turtle))
	if input.ExpectedRevision != nil {
		m.ExpectedRevision, m.HasExpected = *input.ExpectedRevision, true
	}
	quads := rdf.Read(strings.NewReader(input.Turtle), rdf.Turtle, rdf.Options{
		Graph: graph, Tag: rdf.DocumentTag(sha256.Sum256([]byte(input.Turtle))), LiteralBytes: store.LiteralBytes(),
	})
	replaced, err := store.ReplaceGraph(ctx, m, graph, quads, kg.ReplaceOptions{})
	if syntax := (*rdf.SyntaxError)(nil); errors.As(err, &syntax) {
		return nil, kg.AsError(err).At("input.turtle")
	}
	if err != nil {
		return nil, atInput(err)
	}
	r.notePosition(replaced.Position)
	p := &ReplaceGraphPayload{
		Added: int64(replaced.Added), Removed: int64(replaced.Removed),
		Revision: replaced.Revision, Position: Position(store.FormatPosition(replaced.Position)),
	}
	if replaced.Commits > 0 || replaced.Replayed {
		id := store.CommitID(replaced.Revision)
		p.CommitID = &id
	}
	if replaced.ProposalID != "" {
		p.ProposalID = &replaced.ProposalID
	}
	return p, nil
}

func (r *run) graphMeta(justification, key *string) kg.Meta {
	return kg.Meta{
		Principal: r.request.Principal, Actor: r.request.Actor, TaskID: r.request.TaskID, SessionID: r.request.SessionID,
		Justification: deref(justification), IdempotencyKey: deref(key),
	}
}

// atInput places an error of the domain in the mutation's input.
func atInput(err error) error {
	e := *kg.AsError(err)
	switch e.Field {
	case "":
		return err
	case "graph":
		e.Field = "iri"
	}
	return e.At("input")
}

func isPublic(v *GraphVisibility) *bool {
	if v == nil {
		return nil
	}
	public := *v == GraphVisibilityPublic
	return &public
}

// toGrantees converts a list, nil for an absent one.
func toGrantees(list []string) []policy.Grantee {
	if list == nil {
		return nil
	}
	out := make([]policy.Grantee, len(list))
	for i, text := range list {
		out[i] = policy.Grantee(text)
	}
	return out
}

func (r *run) graphPayload(graph kg.Term, receipt kg.Receipt) *GraphPayload {
	r.notePosition(receipt.Position)
	store := r.engine.deps.Store
	p := &GraphPayload{
		Graph:    &Graph{term: graph, at: receipt.Revision},
		Revision: receipt.Revision, Position: Position(store.FormatPosition(receipt.Position)),
	}
	if receipt.Committed {
		id := store.CommitID(receipt.Revision)
		p.CommitID = &id
	}
	return p
}
