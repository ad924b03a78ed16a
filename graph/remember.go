package graph

import (
	"context"

	"koine/internal/compact"
	"koine/internal/remember"
	"koine/kg"
)

// Remember answers Mutation.remember.
func (*mutationRoot) Remember(ctx context.Context, input RememberInput) (*RememberPayload, error) {
	r := runOf(ctx)
	facts, err := r.readFacts(&input)
	if err != nil {
		return nil, inInput(err)
	}
	answer, err := r.rememberer().Remember(ctx, remember.Request{Meta: r.rememberMeta(&input), Facts: facts})
	if err != nil {
		if e := kg.AsError(err); e.Field == "" || e.Field[0] == '[' {
			err = e.At("facts")
		}
		return nil, inInput(err)
	}
	r.writtenPosition = &answer.Position
	payload := &RememberPayload{Entities: make([]RememberedEntity, len(answer.Entities)), Known: make([]StatementRecord, len(answer.Known)), Update: r.patchesPayload(answer.Receipt)}
	for i, e := range answer.Entities {
		payload.Entities[i] = RememberedEntity{Label: e.Label, Iri: e.Term, Made: e.Made}
	}
	for i, q := range answer.Known {
		payload.Known[i] = *recordOf(q)
	}
	return payload, nil
}

func (r *run) rememberer() *remember.Rememberer {
	e := r.engine
	return &remember.Rememberer{Store: e.deps.Store, Names: e.deps.Names, Prefixes: e.deps.Prefixes, LabelPredicates: e.options.LabelPredicates, NewNames: e.options.NewNames}
}

func (r *run) rememberMeta(input *RememberInput) kg.Meta {
	m := r.patchesMeta(&ApplyPatchesInput{Justification: input.Justification, IdempotencyKey: input.IdempotencyKey, DryRun: input.DryRun})
	if r.request.Method == "" {
		m.Method = "remember"
	}
	return m
}

// readFacts returns the facts of the input, with its graph and certainty.
func (r *run) readFacts(input *RememberInput) ([]compact.Fact, error) {
	graph := kg.DefaultGraph
	if input.Graph != nil {
		var err error
		if graph, err = r.engine.deps.Prefixes.Resource(*input.Graph); err != nil {
			return nil, kg.AsError(err).At("graph")
		}
	}
	facts, err := compact.Read(input.Facts, r.engine.deps.Prefixes)
	if err != nil {
		return nil, kg.Errorf(kg.CodeInvalid, "%s", err.Error()).At("facts")
	}
	for i := range facts {
		f := &facts[i]
		if f.Graph == kg.DefaultGraph {
			f.Graph = graph
		}
		if !f.HasCertainty && input.Certainty != nil {
			f.Certainty, f.HasCertainty = *input.Certainty, true
		}
	}
	return facts, nil
}
