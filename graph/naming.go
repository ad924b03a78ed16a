package graph

import (
	"context"

	kgnames "koine/internal/names"
	"koine/kg"
)

// MaxSchemesAtOnce bounds the URI schemes of one mutation.
const MaxSchemesAtOnce = 100

// RegisterPrefix answers Mutation.registerPrefix.
func (*mutationRoot) RegisterPrefix(ctx context.Context, input RegisterPrefixInput) (*NamespacesPayload, error) {
	r := runOf(ctx)
	receipt, err := kgnames.Register(ctx, r.engine.deps.Store, r.namesMeta("Register the prefix", input.Name), map[string]string{input.Name: input.Namespace}, deref(input.Force))
	return r.namesPayload(receipt, err, "input")
}

// RemovePrefix answers Mutation.removePrefix.
func (*mutationRoot) RemovePrefix(ctx context.Context, name string) (*NamespacesPayload, error) {
	r := runOf(ctx)
	receipt, err := kgnames.Remove(ctx, r.engine.deps.Store, r.namesMeta("Remove the prefix", name), name)
	return r.namesPayload(receipt, err, "name")
}

// AllowSchemes answers Mutation.allowSchemes.
func (*mutationRoot) AllowSchemes(ctx context.Context, names []string) (*NamespacesPayload, error) {
	return changeSchemes(ctx, "Allow URI schemes", names, kgnames.AllowSchemes)
}

// ForbidSchemes answers Mutation.forbidSchemes.
func (*mutationRoot) ForbidSchemes(ctx context.Context, names []string) (*NamespacesPayload, error) {
	return changeSchemes(ctx, "Forbid URI schemes", names, kgnames.ForbidSchemes)
}

func changeSchemes(ctx context.Context, why string, names []string, change func(context.Context, *kg.Store, kg.Meta, ...string) (kg.Receipt, error)) (*NamespacesPayload, error) {
	if len(names) > MaxSchemesAtOnce {
		return nil, kg.Errorf(kg.CodeLimitExceeded, "names has %d schemes; at most %d are allowed", len(names), MaxSchemesAtOnce).At("names")
	}
	r := runOf(ctx)
	receipt, err := change(ctx, r.engine.deps.Store, r.namesMeta(why, names...), names...)
	return r.namesPayload(receipt, err, "names")
}

// tellPrefixed adds the prefixed form, if one exists, to an error about a name
// without a prefix.
func (r *run) tellPrefixed(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	return r.engine.deps.Names.SuggestPrefixed(ctx, r.request.Principal, err)
}

// namesMeta returns the Meta of a change of names.
func (r *run) namesMeta(why string, names ...string) kg.Meta {
	m := r.patchesMeta(&ApplyPatchesInput{})
	m.Method = "registerPrefix"
	m.Justification = kgnames.Justification(why, names)
	return m
}

func (r *run) namesPayload(receipt kg.Receipt, err error, field string) (*NamespacesPayload, error) {
	if err != nil {
		return nil, kg.AsError(err).At(field)
	}
	r.notePosition(receipt.Position)
	store := r.engine.deps.Store
	return &NamespacesPayload{
		Prefixes: r.engine.deps.Prefixes.All(), Schemes: store.KeptSchemes(),
		Revision: receipt.Revision, Position: Position(store.FormatPosition(receipt.Position)),
	}, nil
}
