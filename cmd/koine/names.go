package main

import (
	"context"

	"koine/cmd/koine/internal/cli"
	"koine/internal/names"
	"koine/kg"
)

// nameFlags restrict the names that updates may use.
type nameFlags struct {
	Names    string   `help:"How updates treat names with neither a registered prefix nor a known URI scheme: strict refuses them, lenient accepts them with a hint." enum:"strict,lenient" default:"strict"`
	NewNames string   `help:"IRI prefix of new entities; a slug of the label is appended (default: urn:uuid: and a UUID)." placeholder:"IRI"`
	Scheme   []string `help:"URI scheme to allow in new names; may be repeated. It is registered with the store (see koine scheme)." placeholder:"NAME"`
}

// checkMode returns the mode in which names are checked.
func (n *nameFlags) checkMode() names.Mode { return names.Mode(n.Names) }

// newNamesOf returns --new-names as an IRI of a scheme that the store knows.
func (n *nameFlags) newNamesOf(ctx context.Context, prefixes *kg.Prefixes, judge *names.Judge) (string, error) {
	if n.NewNames == "" {
		return "", nil
	}
	t, err := prefixes.Resource(n.NewNames)
	if err == nil {
		err = judge.CheckTerm(ctx, kg.SystemPrincipal(), t, "")
	}
	if err != nil {
		return "", cli.Usagef("--new-names: %w", err)
	}
	return t.Value(), nil
}

// keepSchemes registers the URI schemes of the command line with the store.
func (n *nameFlags) keepSchemes(ctx context.Context, store *kg.Store) error {
	if len(n.Scheme) == 0 {
		return nil
	}
	_, err := names.ChangeSchemes(ctx, store, kg.Meta{Principal: kg.SystemPrincipal(), Justification: names.Justification("Allow URI schemes", n.Scheme)}, n.Scheme, nil)
	if kg.CodeOf(err) == kg.CodeInvalid {
		return cli.Usagef("--scheme: %w", err)
	}
	return err
}
