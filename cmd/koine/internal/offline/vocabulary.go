package offline

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"koine/client"
	"koine/cmd/koine/internal/cli"
	"koine/internal/names"
	"koine/kg"
)

// openedTarget is the data directory or server that a command works on.
type openedTarget struct {
	target *cli.Target
	store  *kg.Store      // nil with a server
	server *client.Client // nil with a data directory
}

// openTarget opens the target; for changes if reserve is not nil, else for reading.
func openTarget(ctx context.Context, t *cli.Target, command *kong.Context, log *slog.Logger, reserve *cli.ReserveFlag) (*openedTarget, error) {
	offline, err := t.IsOffline(command)
	if err != nil {
		return nil, err
	}
	d := &openedTarget{target: t}
	switch {
	case !offline:
		d.server, err = t.ServerFlags().OpenClient(ctx)
	case reserve != nil:
		d.store, err = t.OpenToWrite(log, kg.Options{ReserveBytes: reserve.ReserveBytes()})
	default:
		d.store, err = t.OpenToRead(log, kg.Options{})
	}
	return d, err
}

func (d *openedTarget) close() {
	if d.store != nil {
		if err := d.store.Close(); err != nil {
			slog.Error("close the data directory", "error", err)
		}
	}
}

func (d *openedTarget) commitMeta(why string, list []string) kg.Meta {
	return kg.Meta{Principal: d.target.LocalPrincipal(), Justification: names.Justification(why, list)}
}

// registerPrefixOn registers a prefix on the server.
func registerPrefixOn(ctx context.Context, server *client.Client, name, namespace string, force bool) error {
	return server.GraphQL(ctx, `mutation($input: RegisterPrefixInput!) { registerPrefix(input: $input) { revision } }`,
		map[string]any{"input": map[string]any{"name": name, "namespace": namespace, "force": force}}, nil)
}

// listNames returns the prefixes and the additional schemes of the store.
func listNames(ctx context.Context, t *cli.Target, command *kong.Context, log *slog.Logger) ([]kg.Prefix, []string, error) {
	d, err := openTarget(ctx, t, command, log, nil)
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

// PrefixCommand manages the prefixes of a store.
type PrefixCommand struct {
	Add    prefixAddCommand    `cmd:"" help:"Register prefixes."`
	List   prefixListCommand   `cmd:"" help:"List the registered prefixes."`
	Remove prefixRemoveCommand `cmd:"" help:"Remove prefixes."`
}

// Help is shown by --help.
func (PrefixCommand) Help() string {
	return `A prefix is a short name for the beginning of IRIs, for all clients of the store. With --data, the commands work on a data directory that no server has open; otherwise on a server, as an administrator.

Examples:
  koine prefix add ex=https://example.org/
  koine prefix list
  koine prefix remove ex`
}

// prefixAddCommand registers prefixes.
type prefixAddCommand struct {
	cli.Target
	cli.ReserveFlag
	Prefixes []string `arg:"" name:"prefix" help:"Prefix and namespace, as NAME=IRI." placeholder:"NAME=IRI"`
	Force    bool     `help:"Change the meaning of a registered prefix. Stored statements do not change."`
}

// Run registers the prefixes; on a data directory in one commit.
func (c *prefixAddCommand) Run(ctx context.Context, command *kong.Context, t cli.Terminal, log *slog.Logger) error {
	prefixes := map[string]string{}
	for _, text := range c.Prefixes {
		name, namespace, ok := strings.Cut(text, "=")
		if !ok || name == "" || namespace == "" {
			return cli.Usagef("%s: a prefix must be NAME=IRI", text)
		}
		prefixes[name] = namespace
	}
	d, err := openTarget(ctx, &c.Target, command, log, &c.ReserveFlag)
	if err != nil {
		return err
	}
	defer d.close()
	if d.store != nil {
		_, err := names.Register(ctx, d.store, d.commitMeta("Register prefixes", slices.Sorted(maps.Keys(prefixes))), prefixes, c.Force)
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(prefixes)) {
		if err := registerPrefixOn(ctx, d.server, name, prefixes[name], c.Force); err != nil {
			return err
		}
	}
	return nil
}

// prefixRemoveCommand removes prefixes.
type prefixRemoveCommand struct {
	cli.Target
	cli.ReserveFlag
	Names []string `arg:"" name:"name" help:"Prefix to remove."`
}

// Run removes the prefixes.
func (c *prefixRemoveCommand) Run(ctx context.Context, command *kong.Context, t cli.Terminal, log *slog.Logger) error {
	d, err := openTarget(ctx, &c.Target, command, log, &c.ReserveFlag)
	if err != nil {
		return err
	}
	defer d.close()
	if d.store != nil {
		_, err := names.Remove(ctx, d.store, d.commitMeta("Remove prefixes", c.Names), c.Names...)
		return err
	}
	for _, name := range c.Names {
		if err := d.server.GraphQL(ctx, `mutation($name: String!) { removePrefix(input: {name: $name}) { revision } }`, map[string]any{"name": name}, nil); err != nil {
			return err
		}
	}
	return nil
}

// prefixListCommand lists prefixes.
type prefixListCommand struct {
	cli.Target
	cli.OutputFlags
}

// Run prints a table.
func (c *prefixListCommand) Run(ctx context.Context, command *kong.Context, t cli.Terminal, log *slog.Logger) error {
	list, _, err := listNames(ctx, &c.Target, command, log)
	if err != nil {
		return err
	}
	b := &cli.Table{Columns: []string{"PREFIX", "NAMESPACE"}}
	for _, p := range list {
		b.Rows = append(b.Rows, []string{p.Name, p.Namespace})
	}
	return c.PrintWhole(t, b, func(i int) any {
		return struct {
			Name      string `json:"name"`
			Namespace string `json:"namespace"`
		}(list[i])
	})
}

// SchemeCommand manages the URI schemes allowed in new names.
type SchemeCommand struct {
	Add    schemeAddCommand    `cmd:"" help:"Allow URI schemes in new names."`
	List   schemeListCommand   `cmd:"" help:"List the URI schemes that are allowed in addition to the built-in ones."`
	Remove schemeRemoveCommand `cmd:"" help:"Forbid URI schemes in new names."`
}

// Help is shown by --help.
func (SchemeCommand) Help() string {
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
		cli.Target
		cli.OutputFlags
	}
)

type schemesChange struct {
	cli.Target
	cli.ReserveFlag
	Schemes []string `arg:"" name:"scheme" help:"URI scheme, without the colon."`
}

// Run allows the schemes.
func (c *schemeAddCommand) Run(ctx context.Context, command *kong.Context, log *slog.Logger) error {
	return c.changeSchemes(ctx, command, log, "Allow URI schemes", c.Schemes, nil)
}

// Run forbids the schemes.
func (c *schemeRemoveCommand) Run(ctx context.Context, command *kong.Context, log *slog.Logger) error {
	return c.changeSchemes(ctx, command, log, "Forbid URI schemes", nil, c.Schemes)
}

func (c *schemesChange) changeSchemes(ctx context.Context, command *kong.Context, log *slog.Logger, why string, allow, forbid []string) error {
	d, err := openTarget(ctx, &c.Target, command, log, &c.ReserveFlag)
	if err != nil {
		return err
	}
	defer d.close()
	if d.store != nil {
		_, err := names.ChangeSchemes(ctx, d.store, d.commitMeta(why, c.Schemes), allow, forbid)
		return err
	}
	return d.server.GraphQL(ctx, `mutation($input: ChangeSchemesInput!) { changeSchemes(input: $input) { revision } }`, map[string]any{"input": map[string]any{"allow": allow, "forbid": forbid}}, nil)
}

// Run prints a scheme per line.
func (c *schemeListCommand) Run(ctx context.Context, command *kong.Context, t cli.Terminal, log *slog.Logger) error {
	_, schemes, err := listNames(ctx, &c.Target, command, log)
	if err != nil {
		return err
	}
	if c.OutputFlags == (cli.OutputFlags{}) {
		for _, s := range schemes {
			fmt.Fprintln(t.Out, s)
		}
		return nil
	}
	b := &cli.Table{Columns: []string{"SCHEME"}}
	for _, s := range schemes {
		b.Rows = append(b.Rows, []string{s})
	}
	return c.PrintWhole(t, b, func(i int) any {
		return struct {
			Name string `json:"name"`
		}{schemes[i]}
	})
}
