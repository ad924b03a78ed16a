package a2a

import (
	"context"
	"regexp"

	"koine/internal/operation"
	"koine/internal/update"
	"koine/kg"
)

// updateKnowledge handles knowledge/update (knowledge graph extension, section 4.2).
func (h *Handler) updateKnowledge(ctx context.Context, c *call) (any, error) {
	f := new(failure)
	params := readParams(f, c.params)
	var req update.Request
	patches, _ := params.readArray("mutations")
	req.Meta.Principal, req.Meta.Actor = c.caller.Principal, c.caller.Actor
	if source := params.readAgent("sourceAgentId"); source != "" {
		req.Meta.Actor = source
	}
	req.Meta.TaskID, _ = params.readText("taskId")
	req.Meta.SessionID, _ = params.readText("sessionId")
	req.Meta.Justification, _ = params.readText("justification")
	controls := readControls(&params, "idempotencyKey", "expectedRevision", "dryRun")
	req.Meta.IdempotencyKey = controls.idempotencyKey
	req.Meta.ExpectedRevision, req.Meta.HasExpected = controls.expected, controls.hasExpected
	req.Meta.DryRun = controls.dryRun
	req.Meta.Method, req.Meta.Metadata = c.method, controls.metadata
	params.checkAllRead()
	req.Mutations = h.readMutations(f, "mutations", patches)
	if err := f.firstError(); err != nil {
		return nil, h.names.SuggestPrefixed(ctx, c.caller.Principal, err)
	}
	result, err := update.Apply(ctx, h.store, h.names, req)
	if err != nil {
		return nil, inParams(err)
	}
	return h.updateResult(result), nil
}

// readMutations reads the patches in the member name, unless there are too many.
func (h *Handler) readMutations(f *failure, name string, patches [][]byte) []update.Mutation {
	switch n := len(patches); {
	case n == 0:
		f.setAt(name, kg.Errorf(kg.CodeInvalid, "at least one patch is required"))
		return nil
	case n > update.MaxMutations:
		f.setAt(name, kg.Errorf(kg.CodeLimitExceeded, "%d patches exceed the limit of %d", n, update.MaxMutations))
		return nil
	}
	r := &reader{failure: f, prefixes: h.prefixes}
	mutations := make([]update.Mutation, 0, len(patches))
	for i, raw := range patches {
		mutations = append(mutations, r.readMutation(elementPath(name, i), raw))
		if f.err != nil {
			return nil
		}
	}
	return mutations
}

// domainPart matches the domain's name for a part of a mutation, as in "[3].object".
var domainPart = regexp.MustCompile(`^\[\d+\]\.(subject|predicate|object|graph|certainty|validFrom|validTo|provenance)`)

// inParams converts the field of an error of update.Apply to a path in the params.
func inParams(err error) error {
	e := kg.AsError(err)
	switch {
	case e.Field == "idempotencyKey" || e.Field == "expectedRevision":
		return e.At("metadata.koine")
	case e.Field == "" || e.Field[0] != '[':
		return err
	}
	return inPatch(e).At("mutations")
}

// inPatch converts the field of an error about a part of a patch to its path.
func inPatch(e *kg.Error) *kg.Error {
	f := *e
	if at := domainPart.FindStringSubmatchIndex(f.Field); at != nil {
		f.Field = f.Field[:at[2]] + "statement." + f.Field[at[2]:]
	}
	return &f
}

// wireUpdate is KnowledgeUpdateResponseResult with koine's extensions: revision and the
// members after it.
type wireUpdate struct {
	Success             bool        `json:"success"`
	StatementsAffected  int         `json:"statementsAffected"`
	AffectedIDs         []string    `json:"affectedIds"`
	VerificationStatus  string      `json:"verificationStatus"`
	VerificationDetails string      `json:"verificationDetails,omitempty"`
	Revision            kg.Revision `json:"revision"`
	Position            string      `json:"position"`
	CommitID            *string     `json:"commitId"` // null: no commit
	Replayed            bool        `json:"replayed,omitempty"`
	DryRun              bool        `json:"dryRun,omitempty"`
	ProposalID          string      `json:"proposalId,omitempty"` // of a held update
	// UpdateMetadata has hints about likely typing errors.
	UpdateMetadata *updateMetadata `json:"updateMetadata,omitempty"`
}

type updateMetadata struct {
	Hints []operation.Hint `json:"hints,omitempty"`
}

func (h *Handler) updateResult(r update.Result) wireUpdate {
	out := wireUpdate{
		Success: true, StatementsAffected: r.Affected, AffectedIDs: make([]string, 0, len(r.Subjects)),
		VerificationStatus: "Verified", VerificationDetails: r.Verdict.Details,
		Revision: r.Revision, Position: h.store.FormatPosition(r.Position), Replayed: r.Replayed, DryRun: r.DryRun,
	}
	for _, s := range r.Subjects {
		out.AffectedIDs = append(out.AffectedIDs, s.ExternalID())
	}
	if r.Verdict.Outcome == kg.Held {
		out.VerificationStatus, out.ProposalID = kg.ReasonHeld, r.ProposalID
	}
	if r.Verdict.Outcome == kg.Rejected {
		out.Success, out.VerificationStatus = false, "Rejected - "+r.Verdict.Reason
	}
	if len(r.Hints) > 0 {
		out.UpdateMetadata = new(updateMetadata)
		for _, hint := range r.Hints {
			out.UpdateMetadata.Hints = append(out.UpdateMetadata.Hints, hint.Under("mutations"))
		}
	}
	if r.Committed {
		id := h.store.CommitID(r.Revision)
		out.CommitID = &id
	}
	return out
}
