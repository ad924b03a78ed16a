// Package update writes mutations for all protocols: GraphQL's applyPatches and
// knowledge/update both call Apply, so they follow the same rules. Apply normalises a
// request, hashes it for idempotency, and calls Store.Update once.
//
// The package knows no protocol: an Error's Field begins with the index of the
// mutation, "[3].object", and the adapter prepends its own name.
package update

import (
	"cmp"
	"context"

	"koine/internal/names"
	"koine/internal/operation"
	"koine/kg"
)

// MaxMutations limits one request. The resulting changes have their own limit,
// kg.MaxChanges: an implied type may be one more.
const MaxMutations = kg.MaxPatches

// Mutation is a patch together with the types that it implies.
type Mutation struct {
	kg.Patch
	// SubjectType and ObjectType assert the rdf:type of the subject, and of an object
	// that is a resource, in the same commit and graph and for the same source; the
	// zero Term asserts nothing. A Remove ignores them.
	SubjectType, ObjectType kg.Term
}

// Request is one atomic update.
type Request struct {
	// Meta is the metadata for the store; Apply sets its ContentHash.
	Meta      kg.Meta
	Mutations []Mutation
}

// Store is the part of kg.Store that Apply needs.
type Store interface {
	NewTermPrefetch(source kg.AgentID, patches int) *kg.TermPrefetch
	CheckAgent(context.Context, kg.AgentID) error
	Update(context.Context, kg.Meta, func(*kg.Tx) error) (kg.Receipt, error)
}

// Result is the receipt of an update with hints about likely typing errors. The path of
// a hint begins with the index of the mutation.
type Result struct {
	kg.Receipt
	Hints []operation.Hint
}

// Apply applies all mutations atomically. It does not modify the caller's slice. Errors
// are those of Store.Update and of kg.Tx.Apply, the latter with the index of the
// mutation in Field; CodeUnknownPrefix for a name that judge refuses; CodeInvalid
// without a mutation; CodeLimitExceeded past MaxMutations.
func Apply(ctx context.Context, store Store, judge *names.Judge, r Request) (Result, error) {
	switch n := len(r.Mutations); {
	case n == 0:
		return Result{}, kg.Errorf(kg.CodeInvalid, "an update requires at least one mutation")
	case n > MaxMutations:
		e := kg.Errorf(kg.CodeLimitExceeded, "the update has %d mutations, more than the limit of %d", n, MaxMutations)
		e.Hint = "Send several updates, or load a file of RDF."
		return Result{}, e
	}
	source := cmp.Or(r.Meta.Actor, r.Meta.Principal.ID) // of mutations that name none
	steps, err := normalise(r.Mutations, source)
	if err != nil {
		return Result{}, err
	}
	if err := checkSources(ctx, store, source, steps); err != nil {
		return Result{}, err
	}
	hints, err := checkNames(ctx, judge, r.Meta.Principal, steps)
	if err != nil {
		return Result{}, err
	}
	prefetch := store.NewTermPrefetch(source, len(steps))
	for i := range steps {
		if err := prefetch.Prefetch(&steps[i].Patch); err != nil {
			return Result{}, atMutation(err, steps[i].mutation)
		}
	}
	r.Meta.ContentHash = contentHash(steps)
	receipt, err := store.Update(ctx, r.Meta, func(tx *kg.Tx) error {
		for i := range steps {
			if err := steps[i].applyTo(tx); err != nil {
				return atMutation(err, steps[i].mutation)
			}
		}
		return nil
	})
	if receipt.Replayed {
		hints = nil
	}
	return Result{receipt, hints}, err
}

// checkSources checks that every source is a permitted agent before the update is
// queued. It checks each of them once, and also the source of the whole update, which
// no protocol has checked if it comes from the command line.
func checkSources(ctx context.Context, store Store, source kg.AgentID, steps []step) error {
	if source != "" {
		if err := store.CheckAgent(ctx, kg.CanonicalAgent(string(source))); err != nil {
			return kg.AsError(err).At("sourceAgentId")
		}
	}
	last := source
	for i := range steps {
		s := steps[i].Patch.Source
		if s == "" || s == last {
			continue
		}
		if err := store.CheckAgent(ctx, kg.CanonicalAgent(string(s))); err != nil {
			return atMutation(kg.AsError(err).At("source"), steps[i].mutation)
		}
		last = s
	}
	return nil
}

// checkNames checks the names of the steps before the update is queued.
func checkNames(ctx context.Context, judge *names.Judge, by kg.Principal, steps []step) ([]operation.Hint, error) {
	judging := judge.Begin(ctx, by)
	defer judging.Close()
	for i := range steps {
		s := &steps[i]
		if err := judging.Check(&s.Patch, s.mutation, s.part); err != nil {
			return nil, atMutation(err, s.mutation)
		}
	}
	for i := range steps {
		judging.Hint(&steps[i].Patch, steps[i].mutation)
	}
	return judging.Hints(), nil
}
