package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/alecthomas/kong"

	"koine/client"
	"koine/internal/names"
	"koine/kg"
)

// schemeCommand manages the URI schemes allowed in new names.
type schemeCommand struct {
	Add    schemeAddCommand    `cmd:"" help:"Allow URI schemes in new names."`
	List   schemeListCommand   `cmd:"" help:"List the URI schemes that are allowed in addition to the built-in ones."`
	Remove schemeRemoveCommand `cmd:"" help:"Forbid URI schemes in new names."`
}

// Help is shown by --help.
func (schemeCommand) Help() string {
	return `A name in an update must begin with a registered prefix (koine prefix) or a URI scheme. Every store accepts http, https, urn, agent, file, mailto, data, did, tag, tel, chan, ws and wss. Other schemes must be allowed, because most of them are misspelt prefixes. With --data, the commands work on a data directory that no server has open; otherwise on a server, as an administrator.

Examples:
  koine scheme add doi ipfs
  koine scheme list
  koine scheme remove ipfs`
}

type (
	schemeAddCommand    struct{ schemesChange }
	schemeRemoveCommand struct{ schemesChange }
	schemeListCommand   struct {
		target
		outputFlags
	}
)

type schemesChange struct {
	target
	reserveFlag
	Schemes []string `arg:"" name:"scheme" help:"URI scheme, without the colon."`
}

// Run allows the schemes.
func (c *schemeAddCommand) Run(ctx context.Context, command *kong.Context, log *slog.Logger) error {
	return c.changeSchemes(ctx, command, log, "Allow URI schemes", "allowSchemes", names.AllowSchemes)
}

// Run forbids the schemes.
func (c *schemeRemoveCommand) Run(ctx context.Context, command *kong.Context, log *slog.Logger) error {
	return c.changeSchemes(ctx, command, log, "Forbid URI schemes", "forbidSchemes", names.ForbidSchemes)
}

func (c *schemesChange) changeSchemes(ctx context.Context, command *kong.Context, log *slog.Logger, why, mutation string, here func(context.Context, *kg.Store, kg.Meta, ...string) (kg.Receipt, error)) error {
	d, err := c.openVocabulary(ctx, command, log, &c.reserveFlag)
	if err != nil {
		return err
	}
	defer d.close()
	if d.store != nil {
		_, err := here(ctx, d.store, d.commitMeta(why, c.Schemes), c.Schemes...)
		return err
	}
	return d.server.GraphQL(ctx, `mutation($names: [String!]!) { `+mutation+`(names: $names) { revision } }`, map[string]any{"names": c.Schemes}, nil)
}

// Run prints a scheme per line.
func (c *schemeListCommand) Run(ctx context.Context, command *kong.Context, t terminal, log *slog.Logger) error {
	_, schemes, err := c.listNames(ctx, command, log)
	if err != nil {
		return err
	}
	if c.outputFlags == (outputFlags{}) {
		for _, s := range schemes {
			fmt.Fprintln(t.out, s)
		}
		return nil
	}
	b := &table{columns: []string{"SCHEME"}}
	for _, s := range schemes {
		b.rows = append(b.rows, []string{s})
	}
	return c.printWhole(t, b, func(i int) any {
		return struct {
			Name string `json:"name"`
		}{schemes[i]}
	})
}

// vocabularyTarget is the data directory or server on which prefixes and schemes change.
type vocabularyTarget struct {
	target *target
	store  *kg.Store      // nil with a server
	server *client.Client // nil with a data directory
}

// openVocabulary opens the target; for changes if reserve is not nil, else for reading.
func (t *target) openVocabulary(ctx context.Context, command *kong.Context, log *slog.Logger, reserve *reserveFlag) (*vocabularyTarget, error) {
	offline, err := t.isOffline(command)
	if err != nil {
		return nil, err
	}
	d := &vocabularyTarget{target: t}
	switch {
	case !offline:
		d.server, err = t.serverFlags().openClient(ctx)
	case reserve != nil:
		d.store, err = t.openToWrite(log, kg.Options{ReserveBytes: reserve.reserveBytes()})
	default:
		d.store, err = t.openToRead(log, kg.Options{})
	}
	return d, err
}

func (d *vocabularyTarget) close() {
	if d.store != nil {
		if err := d.store.Close(); err != nil {
			slog.Error("close the data directory", "error", err)
		}
	}
}

func (d *vocabularyTarget) commitMeta(why string, list []string) kg.Meta {
	return kg.Meta{Principal: d.target.localPrincipal(), Justification: names.Justification(why, list)}
}

// registerPrefix registers a prefix on the server.
func (d *vocabularyTarget) registerPrefix(ctx context.Context, name, namespace string, force bool) error {
	return registerPrefixOn(ctx, d.server, name, namespace, force)
}

func registerPrefixOn(ctx context.Context, server *client.Client, name, namespace string, force bool) error {
	return server.GraphQL(ctx, `mutation($input: RegisterPrefixInput!) { registerPrefix(input: $input) { revision } }`,
		map[string]any{"input": map[string]any{"name": name, "namespace": namespace, "force": force}}, nil)
}

// listNames returns the prefixes and the additional schemes of the store.
func (t *target) listNames(ctx context.Context, command *kong.Context, log *slog.Logger) ([]kg.Prefix, []string, error) {
	d, err := t.openVocabulary(ctx, command, log, nil)
	if err != nil {
		return nil, nil, err
	}
	defer d.close()
	if d.store != nil {
		return d.store.Prefixes().All(), d.store.KeptSchemes(), nil
	}
	var answer struct {
		Vocabulary struct {
			Prefixes []kg.Prefix
			Schemes  []string
		}
	}
	err = d.server.GraphQL(ctx, `{ vocabulary { prefixes { name namespace } schemes } }`, nil, &answer)
	return answer.Vocabulary.Prefixes, answer.Vocabulary.Schemes, err
}
