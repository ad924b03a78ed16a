package graph

import (
	"context"
	"strings"

	kgnames "koine/internal/names"
	"koine/kg"
)

// MaxSchemesAtOnce bounds each list of URI schemes of one mutation.
const MaxSchemesAtOnce = 100

// RegisterPrefix answers Mutation.registerPrefix.
func (*mutationRoot) RegisterPrefix(ctx context.Context, input RegisterPrefixInput) (*NamespacesPayload, error) {
	r := runOf(ctx)
	receipt, err := kgnames.Register(ctx, r.engine.deps.Store, r.namesMeta(kgnames.Justification("Register the prefix", []string{input.Name})), map[string]string{input.Name: input.Namespace}, deref(input.Force))
	return r.namesPayload(receipt, err)
}

// RemovePrefix answers Mutation.removePrefix.
func (*mutationRoot) RemovePrefix(ctx context.Context, input RemovePrefixInput) (*NamespacesPayload, error) {
	r := runOf(ctx)
	receipt, err := kgnames.Remove(ctx, r.engine.deps.Store, r.namesMeta(kgnames.Justification("Remove the prefix", []string{input.Name})), input.Name)
	if err != nil {
		err = kg.AsError(err).At("name")
	}
	return r.namesPayload(receipt, err)
}

// ChangeSchemes answers Mutation.changeSchemes.
func (*mutationRoot) ChangeSchemes(ctx context.Context, input ChangeSchemesInput) (*NamespacesPayload, error) {
	r := runOf(ctx)
	var why []string
	for _, change := range []struct {
		member, does string
		schemes      []string
	}{{"allow", "Allow URI schemes", input.Allow}, {"forbid", "Forbid URI schemes", input.Forbid}} {
		if n := len(change.schemes); n > MaxSchemesAtOnce {
			return nil, inInput(kg.Errorf(kg.CodeLimitExceeded, "%s has %d schemes; at most %d are allowed", change.member, n, MaxSchemesAtOnce).At(change.member))
		} else if n > 0 {
			why = append(why, kgnames.Justification(change.does, change.schemes))
		}
	}
	receipt, err := kgnames.ChangeSchemes(ctx, r.engine.deps.Store, r.namesMeta(strings.Join(why, ". ")), input.Allow, input.Forbid)
	switch {
	case err == nil:
	case kg.CodeOf(err) == kg.CodeNotFound, len(input.Allow) == 0:
		err = kg.AsError(err).At("forbid")
	case len(input.Forbid) == 0:
		err = kg.AsError(err).At("allow")
	}
	return r.namesPayload(receipt, err)
}

// namesMeta returns the Meta of a change of names.
func (r *run) namesMeta(why string) kg.Meta {
	m := r.patchesMeta(&ApplyPatchesInput{})
	m.Method = "registerPrefix"
	m.Justification = why
	return m
}

func (r *run) namesPayload(receipt kg.Receipt, err error) (*NamespacesPayload, error) {
	if err != nil {
		return nil, kg.AsError(err).At("input")
	}
	r.notePosition(receipt.Position)
	store := r.engine.deps.Store
	return &NamespacesPayload{
		Prefixes: r.engine.deps.Prefixes.All(), Schemes: store.KeptSchemes(),
		Revision: receipt.Revision, Position: Position(store.FormatPosition(receipt.Position)),
	}, nil
}
