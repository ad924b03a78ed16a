package graph

import (
	"cmp"
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"koine/internal/operation"
	"koine/internal/update"
	"koine/kg"
)

// ApplyPatches answers Mutation.applyPatches: it converts the input, makes one
// update, and converts the receipt (docs/reference/knowledge.md).
func (*mutationRoot) ApplyPatches(ctx context.Context, input ApplyPatchesInput) (*ApplyPatchesPayload, error) {
	r := runOf(ctx)
	mutations, err := r.convertPatches(input.Patches)
	if err != nil {
		return nil, kg.AsError(r.TellPrefixed(ctx, err)).At("patches").At("input")
	}
	result, err := update.Apply(ctx, r.engine.deps.Store, r.engine.deps.Names, update.Request{Meta: r.patchesMeta(&input), Mutations: mutations})
	if err != nil {
		return nil, placeUpdateError(err)
	}
	field := r.answer.Path()[0].(ast.PathName)
	r.writtenPosition = &result.Position
	for _, h := range result.Hints[:min(len(result.Hints), operation.MaxHints-len(r.NotedHints))] {
		r.NotedHints = append(r.NotedHints, h.Under(string(field), "input", "patches"))
	}
	return r.patchesPayload(result.Receipt), nil
}

// placeUpdateError places an error of the update in the mutation's input.
func placeUpdateError(err error) error {
	e := *kg.AsError(err)
	index, part, ok := strings.Cut(e.Field, "]")
	switch {
	case e.Field == "":
		return err
	case !ok || index[0] != '[':
		return e.At("input")
	case part == ".source":
		part = ".statement.provenance.sourceAgentId"
	case strings.HasPrefix(part, ".embedding"):
	case part != "" && part != ".op":
		part = ".statement" + part
	}
	e.Field = index + "]" + part
	return e.At("patches").At("input")
}

func (r *run) patchesMeta(input *ApplyPatchesInput) kg.Meta {
	req := r.request
	m := kg.Meta{
		Principal: req.Principal, Actor: req.Actor,
		TaskID: req.TaskID, SessionID: req.SessionID,
		Justification: deref(input.Justification), IdempotencyKey: deref(input.IdempotencyKey),
		DryRun: deref(input.DryRun),
		Method: cmp.Or(req.Method, "applyPatches"), Metadata: req.Metadata,
	}
	if input.TaskID != nil {
		m.TaskID = *input.TaskID
	}
	if input.SessionID != nil {
		m.SessionID = *input.SessionID
	}
	if input.SourceAgentID != nil {
		m.Actor = kg.CanonicalAgent(*input.SourceAgentID)
	}
	if input.ExpectedRevision != nil {
		m.ExpectedRevision, m.HasExpected = *input.ExpectedRevision, true
	}
	return m
}

func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

func (r *run) convertPatches(patches []PatchInput) ([]update.Mutation, error) {
	out := make([]update.Mutation, len(patches))
	for i := range patches {
		m, err := r.convertPatch(&patches[i])
		if err != nil {
			return nil, kg.AsError(err).At("[" + strconv.Itoa(i) + "]")
		}
		out[i] = m
	}
	return out, nil
}

func (r *run) convertPatch(p *PatchInput) (m update.Mutation, err error) {
	s := p.Statement
	m.Op = p.Op
	if m.Quad.Subject, err = r.parseResource(s.Subject.ID); err != nil {
		return m, kg.AsError(err).At("statement.subject.id")
	}
	if m.Quad.Predicate, err = r.engine.deps.Prefixes.Resource(s.Predicate.ID); err != nil {
		return m, kg.AsError(err).At("statement.predicate.id")
	}
	if s.Subject.Type != nil {
		if m.SubjectType, err = r.engine.deps.Prefixes.Resource(*s.Subject.Type); err != nil {
			return m, kg.AsError(err).At("statement.subject.type")
		}
	}
	if err := r.convertObject(&m, s.Object); err != nil {
		return m, kg.AsError(err).At("statement.object")
	}
	m.Quad.Graph = kg.DefaultGraph
	if s.Graph != nil {
		if m.Quad.Graph, err = r.engine.deps.Prefixes.Resource(*s.Graph); err != nil {
			return m, kg.AsError(err).At("statement.graph")
		}
	}
	if s.Certainty != nil {
		m.Certainty, m.HasCertainty = *s.Certainty, true
	}
	m.Validity = kg.TimeSpan{From: orZero(s.ValidFrom), Until: orZero(s.ValidTo)}
	m.Embedding = p.Embedding
	m.Provenance, m.Source, err = parseProvenance(s.Provenance)
	return m, err
}

// parseResource parses an id. docs/reference/knowledge.md allows any text.
func (r *run) parseResource(id string) (kg.Term, error) {
	if t, err := r.engine.deps.Prefixes.Resource(id); err == nil {
		return t, nil
	}
	return kg.ResourceFromID(id)
}

func (r *run) convertObject(m *update.Mutation, o *ObjectInput) (err error) {
	hasValue := o.Value != nil && string(o.Value) != "null"
	switch {
	case (o.ID != nil) == hasValue:
		return kg.Errorf(kg.CodeInvalid, "an object requires exactly one of id and value")
	case o.ID == nil:
		m.Quad.Object, err = kg.LiteralFromJSON(o.Value, deref(o.Type), deref(o.Language))
		return err
	case o.Language != nil:
		return kg.Errorf(kg.CodeInvalid, "language requires a value").At("language")
	}
	if m.Quad.Object, err = r.parseResource(*o.ID); err != nil {
		return kg.AsError(err).At("id")
	}
	if o.Type != nil {
		if m.ObjectType, err = r.engine.deps.Prefixes.Resource(*o.Type); err != nil {
			return kg.AsError(err).At("type")
		}
	}
	return nil
}

// parseProvenance extracts the source from a provenance.
func parseProvenance(raw json.RawMessage) ([]byte, kg.AgentID, error) {
	if raw == nil || string(raw) == "null" {
		return nil, "", nil
	}
	var p struct {
		Source *string `json:"sourceAgentId"`
	}
	if err := json.Unmarshal(raw, &p); err != nil {
		return nil, "", kg.Errorf(kg.CodeInvalid, "provenance must be an object, and its sourceAgentId a string").At("statement.provenance")
	}
	return raw, kg.CanonicalAgent(deref(p.Source)), nil
}

func (r *run) patchesPayload(receipt kg.Receipt) *ApplyPatchesPayload {
	store := r.engine.deps.Store
	p := &ApplyPatchesPayload{
		Success:            receipt.Verdict.Outcome == kg.Accepted || receipt.Verdict.Outcome == kg.Held,
		StatementsAffected: int64(receipt.Affected),
		AffectedIds:        make([]string, len(receipt.Subjects)),
		VerificationStatus: "Verified",
		Revision:           receipt.Revision,
		Position:           Position(store.FormatPosition(receipt.Position)),
	}
	for i, t := range receipt.Subjects {
		p.AffectedIds[i] = t.ExternalID()
	}
	if receipt.Verdict.Outcome == kg.Held {
		p.VerificationStatus = kg.ReasonHeld
		if receipt.ProposalID != "" {
			p.ProposalID = &receipt.ProposalID
		}
	}
	if !p.Success {
		p.VerificationStatus = "Rejected - " + receipt.Verdict.Reason
	}
	if receipt.Verdict.Details != "" {
		p.VerificationDetails = &receipt.Verdict.Details
	}
	if receipt.Committed {
		id := store.CommitID(receipt.Revision)
		p.CommitID = &id
	}
	return p
}
