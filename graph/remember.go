package graph

import (
	"context"
	"strconv"

	"koine/internal/compact"
	"koine/internal/remember"
	"koine/internal/update"
	"koine/kg"
)

// Remember answers Mutation.remember.
func (*mutationRoot) Remember(ctx context.Context, input RememberInput) (*RememberPayload, error) {
	r := runOf(ctx)
	graph, err := r.graphOf(input.Graph)
	if err != nil {
		return nil, inInput(err)
	}
	q := remember.Request{Meta: r.rememberMeta("remember", input.Justification, input.IdempotencyKey, input.DryRun), Triples: input.Triples, Define: input.Define, NewNames: deref(input.NewNames)}
	if input.Facts != nil {
		if q.Facts, err = compact.Read(*input.Facts, r.engine.deps.Prefixes); err != nil {
			return nil, inInput(kg.Errorf(kg.CodeInvalid, "%s", err.Error()).At("facts"))
		}
	}
	if input.JSONLd != nil && string(input.JSONLd) != "null" {
		facts, err := r.rememberer().ReadJSONLD(input.JSONLd, kg.DefaultGraph)
		if err != nil {
			return nil, inInput(kg.AsError(err).At("jsonLd"))
		}
		q.Facts = append(q.Facts, facts...)
	}
	q.Graph, q.Certainty = graph, input.Certainty
	return r.rememberFacts(ctx, q)
}

// Put answers Mutation.put.
func (*mutationRoot) Put(ctx context.Context, input PutInput) (*RememberPayload, error) {
	r := runOf(ctx)
	graph, err := r.graphOf(input.Graph)
	if err != nil {
		return nil, inInput(err)
	}
	q := remember.Request{
		Meta:    r.rememberMeta("put", input.Justification, input.IdempotencyKey, input.DryRun),
		Replace: true, Graph: graph, Certainty: input.Certainty,
	}
	subject, err := r.putSubject(&input, &q)
	if err != nil {
		return nil, inInput(err)
	}
	add := func(predicate, object kg.Term) {
		q.Facts = append(q.Facts, compact.Fact{Graph: kg.DefaultGraph, Subject: subject, Predicate: compact.Ref{Term: predicate}, Object: compact.Ref{Term: object}})
	}
	if input.Label != nil && subject.Label == "" {
		add(kg.IRI(kg.RDFSLabel), kg.String(*input.Label))
	}
	if input.Type != nil {
		class, err := r.engine.deps.Prefixes.Resource(*input.Type)
		if err != nil {
			return nil, inInput(kg.AsError(err).At("type"))
		}
		add(kg.IRI(kg.RDFType), class)
	}
	for i := range input.Properties {
		predicate, objects, err := r.propertyOf(&input.Properties[i])
		if err != nil {
			return nil, inInput(kg.AsError(err).At("[" + strconv.Itoa(i) + "]").At("properties"))
		}
		for _, object := range objects {
			add(predicate, object)
		}
	}
	return r.rememberFacts(ctx, q)
}

// putSubject returns the subject of a put, and gives the request its key.
func (r *run) putSubject(input *PutInput, q *remember.Request) (ref compact.Ref, err error) {
	switch {
	case input.ID != nil && input.Key != nil || input.ID == nil && input.Key == nil && input.Label == nil:
		return ref, kg.Errorf(kg.CodeInvalid, "put requires an id, a key or a label; a label may stand beside one of the others")
	case input.ID != nil:
		if ref.Term, err = r.parseResource(*input.ID); err != nil {
			err = kg.AsError(err).At("id")
		}
	case input.Key != nil:
		predicate, objects, err := r.propertyOf(input.Key)
		if err == nil && len(objects) != 1 {
			err = kg.Errorf(kg.CodeInvalid, "a key has one value").At("objects")
		}
		if err != nil {
			return ref, kg.AsError(err).At("key")
		}
		q.Key = &remember.Key{Predicate: predicate, Value: objects[0]}
	default:
		if ref.Label = *input.Label; ref.Label == "" {
			err = kg.Errorf(kg.CodeInvalid, "the label is empty").At("label")
		}
	}
	return ref, err
}

func (r *run) propertyOf(p *PropertyInput) (predicate kg.Term, objects []kg.Term, err error) {
	if predicate, err = r.engine.deps.Prefixes.Resource(p.Predicate); err != nil {
		return predicate, nil, kg.AsError(err).At("predicate")
	}
	for i := range p.Objects {
		var m update.Mutation
		if err := r.convertObject(&m, &p.Objects[i]); err != nil {
			return predicate, nil, kg.AsError(err).At("[" + strconv.Itoa(i) + "]").At("objects")
		}
		objects = append(objects, m.Quad.Object)
	}
	return predicate, objects, nil
}

// Define answers Mutation.define.
func (*mutationRoot) Define(ctx context.Context, input DefineInput) (*RememberPayload, error) {
	r := runOf(ctx)
	graph, err := r.graphOf(input.Graph)
	if err != nil {
		return nil, inInput(err)
	}
	answer, err := r.rememberer().Define(ctx, remember.Definition{
		Meta: r.rememberMeta("define", input.Justification, nil, nil), Label: input.Label, Class: deref(input.Class), Comment: deref(input.Comment), Graph: graph,
	})
	return r.rememberPayload(answer, err)
}

func (r *run) rememberFacts(ctx context.Context, q remember.Request) (*RememberPayload, error) {
	answer, err := r.rememberer().Remember(ctx, q)
	return r.rememberPayload(answer, err)
}

func (r *run) rememberPayload(answer remember.Answer, err error) (*RememberPayload, error) {
	if err != nil {
		return nil, inInput(err)
	}
	r.writtenPosition = &answer.Position
	payload := &RememberPayload{
		Entities: make([]RememberedEntity, len(answer.Entities)), Known: make([]StatementRecord, len(answer.Known)),
		Contradictions: make([]Contradiction, len(answer.Contradictions)), Update: r.patchesPayload(answer.Receipt),
	}
	for i, e := range answer.Entities {
		payload.Entities[i] = RememberedEntity{Label: e.Label, Iri: e.Term, Made: e.Made}
	}
	for i, q := range answer.Known {
		payload.Known[i] = *recordOf(q)
	}
	for i, c := range answer.Contradictions {
		payload.Contradictions[i] = contradictionOf(c)
	}
	return payload, nil
}

func (r *run) rememberer() *remember.Rememberer {
	e := r.engine
	return &remember.Rememberer{Store: e.deps.Store, Names: e.deps.Names, Prefixes: e.deps.Prefixes, LabelPredicates: e.options.LabelPredicates, Shapes: e.shapeSet(), NewNames: e.options.NewNames}
}

func (r *run) rememberMeta(method string, justification, key *string, dryRun *bool) kg.Meta {
	m := r.patchesMeta(&ApplyPatchesInput{Justification: justification, IdempotencyKey: key, DryRun: dryRun})
	if r.request.Method == "" {
		m.Method = method
	}
	return m
}

// graphOf returns the graph that an input names, or the default graph.
func (r *run) graphOf(name *string) (kg.Term, error) {
	if name == nil {
		return kg.DefaultGraph, nil
	}
	t, err := r.engine.deps.Prefixes.Resource(*name)
	if err != nil {
		return t, kg.AsError(err).At("graph")
	}
	return t, nil
}
