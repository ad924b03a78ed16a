package graph

import (
	"context"

	"koine/graph/internal/knowledge"
	"koine/graph/internal/views"
	"koine/internal/shapes"
	"koine/kg"
)

// shapeSet returns the shapes that the store validates with, an empty set for
// none.
func (e *Engine) shapeSet() *shapes.Set {
	if e.deps.Shapes == nil {
		return &shapes.Set{}
	}
	return e.deps.Shapes
}

// readShapes answers Query.shapes.
func readShapes(ctx context.Context) []Shape {
	list := runOf(ctx).engine.shapeSet().List()
	out := make([]Shape, len(list))
	for i, s := range list {
		out[i] = Shape{
			Iri: s.ID, Severity: s.Severity, Message: orNil(s.Message), Deactivated: s.Deactivated,
			TargetClasses: s.Classes, TargetNodes: nodeNames(s.Nodes), TargetSubjectsOf: s.SubjectsOf, TargetObjectsOf: s.ObjectsOf,
			Unsupported: leftOut(s.LeftOut),
		}
	}
	return out
}

func leftOut(list []shapes.LeftOut) []UnsupportedShapePart {
	out := make([]UnsupportedShapePart, len(list))
	for i, l := range list {
		out[i] = UnsupportedShapePart{Path: l.Place, Name: orNil(l.Name), Reason: l.Reason}
		if !l.Shape.IsZero() {
			out[i].Resource = &l.Shape
		}
	}
	return out
}

func nodeNames(terms []kg.Term) []string {
	out := make([]string, len(terms))
	for i, t := range terms {
		out[i] = t.Name()
	}
	return out
}

func orNil(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// readViolations answers Query.violations.
func readViolations(ctx context.Context, first *int, shape *kg.Term, view *views.ViewInput) (*ValidationReport, error) {
	snapshot, err := knowledge.OpenView(ctx, view)
	if err != nil {
		return nil, err
	}
	o := shapes.ReportOptions{Shape: deref(shape)}
	if first != nil {
		if *first < 1 {
			return nil, kg.Errorf(kg.CodeInvalid, "first must be at least 1").At("first")
		}
		o.Limit = *first
	}
	r, err := runOf(ctx).engine.shapeSet().Report(ctx, snapshot, o)
	if err != nil {
		return nil, err
	}
	out := &ValidationReport{Conforms: r.Conforms, Complete: r.Complete, ValidatedCount: int64(r.Judged), Revision: snapshot.Revision(), UnsupportedCount: r.LeftOut, Results: make([]ValidationResult, len(r.Findings))}
	for i := range r.Findings {
		f := &r.Findings[i]
		out.Results[i] = ValidationResult{
			Shape: f.Shape, FocusNode: f.Focus.Name(), Path: orNil(f.Path), SourceShape: f.Source,
			SourceConstraintComponent: kg.IRI(f.Component), Severity: f.Severity, Message: f.Message,
		}
		if !f.Value.IsZero() {
			out.Results[i].Value = orNil(f.Value.String())
		}
	}
	return out, nil
}

// SetShapes answers Mutation.setShapes.
func (*mutationRoot) SetShapes(ctx context.Context, input SetShapesInput) (*SetShapesPayload, error) {
	quads, err := shapes.Parse(input.Turtle)
	if err != nil {
		return nil, kg.AsError(err).At("turtle").At("input")
	}
	r := runOf(ctx)
	store, meta := r.engine.deps.Store, r.shapesMeta(input.DryRun, input.Justification)
	var receipt kg.Receipt
	var left []shapes.LeftOut
	if deref(input.SupportedOnly) {
		receipt, left, err = shapes.PutSupported(ctx, store, meta, quads)
	} else {
		receipt, err = shapes.Put(ctx, store, meta, quads)
	}
	p, err := r.shapesPayload(receipt, err)
	if err != nil {
		return nil, err
	}
	return &SetShapesPayload{
		Success: p.Success, StatementsAffected: p.StatementsAffected, AffectedIds: p.AffectedIds,
		VerificationStatus: p.VerificationStatus, VerificationDetails: p.VerificationDetails,
		Revision: p.Revision, Position: p.Position, CommitID: p.CommitID, ProposalID: p.ProposalID, Unsupported: leftOut(left),
	}, nil
}

// RemoveShapes answers Mutation.removeShapes.
func (*mutationRoot) RemoveShapes(ctx context.Context, input RemoveShapesInput) (*ApplyPatchesPayload, error) {
	r := runOf(ctx)
	receipt, err := shapes.Remove(ctx, r.engine.deps.Store, r.shapesMeta(input.DryRun, input.Justification), input.Shapes)
	return r.shapesPayload(receipt, err)
}

func (r *run) shapesMeta(dryRun *bool, justification *string) kg.Meta {
	return kg.Meta{
		Principal: r.request.Principal, Actor: r.request.Actor, TaskID: r.request.TaskID, SessionID: r.request.SessionID,
		Justification: deref(justification), DryRun: deref(dryRun),
	}
}

func (r *run) shapesPayload(receipt kg.Receipt, err error) (*ApplyPatchesPayload, error) {
	if err != nil {
		return nil, inInput(err)
	}
	r.notePosition(receipt.Position)
	return r.patchesPayload(receipt), nil
}
