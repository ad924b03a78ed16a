package main

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"koine/internal/names"
	"koine/kg"
)

// prefixFlags register prefixes.
type prefixFlags struct {
	Prefix      map[string]string `help:"Prefix for the IRIs of a namespace; may be repeated. serve, and load on a data directory, register it with the store." placeholder:"NAME=IRI" env:"KOINE_PREFIX"`
	PrefixForce bool              `help:"Let --prefix change the meaning of a registered prefix."`
}

// nameFlags restrict the names that updates may use.
type nameFlags struct {
	Names  string   `help:"How updates treat names with neither a registered prefix nor a known URI scheme: strict refuses them, lenient accepts them with a hint." enum:"strict,lenient" default:"strict"`
	Scheme []string `help:"URI scheme to allow in new names; may be repeated. It is registered with the store (see koine scheme)." placeholder:"NAME"`
}

// checkMode returns the mode in which names are checked.
func (n *nameFlags) checkMode() names.Mode { return names.Mode(n.Names) }

// keepSchemes registers the URI schemes of the command line with the store.
func (n *nameFlags) keepSchemes(ctx context.Context, store *kg.Store) error {
	if len(n.Scheme) == 0 {
		return nil
	}
	_, err := names.AllowSchemes(ctx, store, kg.Meta{Principal: kg.SystemPrincipal(), Justification: names.Justification("Allow URI schemes", n.Scheme)}, n.Scheme...)
	if kg.CodeOf(err) == kg.CodeInvalid {
		return usageError{fmt.Errorf("--scheme: %w", err)}
	}
	return err
}

// builtinPrefixes returns the built-in prefixes and those of the command line.
func (p *prefixFlags) builtinPrefixes() (*kg.Prefixes, error) { return newPrefixes(p.Prefix) }

// storePrefixes returns the prefixes of a store and those of the command line.
func (p *prefixFlags) storePrefixes(store *kg.Store) (*kg.Prefixes, error) {
	all, err := p.mergePrefixes(store.KeptPrefixes())
	if err != nil {
		return nil, err
	}
	return newPrefixes(all)
}

// registerNew registers the new prefixes of the command line, and the defaults whose names
// are free, in one commit. It returns the store's prefixes.
func (p *prefixFlags) registerNew(ctx context.Context, store *kg.Store, defaults map[string]string) (*kg.Prefixes, error) {
	kept := store.KeptPrefixes()
	all, err := p.mergePrefixes(kept)
	if err != nil {
		return nil, err
	}
	for name, ns := range defaults {
		if _, known := names.Meaning(all, name); !known {
			all[name] = ns
		}
	}
	if _, err := newPrefixes(all); err != nil || maps.Equal(all, kept) {
		return store.Prefixes(), err
	}
	added := slices.DeleteFunc(slices.Sorted(maps.Keys(all)), func(name string) bool { return kept[name] == all[name] })
	meta := kg.Meta{Principal: kg.SystemPrincipal(), Justification: names.Justification("Register prefixes", added)}
	_, err = names.Register(ctx, store, meta, all, true)
	return store.Prefixes(), err
}

// mergePrefixes adds the command line's prefixes to the registered ones. A name may not
// change its meaning unless --prefix-force is set: names already stored would no longer
// match those in queries.
func (p *prefixFlags) mergePrefixes(kept map[string]string) (map[string]string, error) {
	all := map[string]string{}
	maps.Copy(all, kept)
	for _, name := range slices.Sorted(maps.Keys(p.Prefix)) {
		ns := p.Prefix[name]
		before, known := names.Meaning(kept, name)
		switch {
		case known && before == ns:
		case known && !p.PrefixForce:
			e := kg.Errorf(kg.CodeInvalid, "--prefix %s=%s: in this store, %s is %s", name, ns, name, before)
			e.Hint = "Omit it to keep that meaning, or add --prefix-force to change it: stored statements do not change, and " + name + ":… means other IRIs from then on."
			return nil, usageError{e}
		default:
			all[name] = ns
		}
	}
	return all, nil
}

func newPrefixes(prefixes map[string]string) (*kg.Prefixes, error) {
	registry, err := kg.NewPrefixes(prefixes)
	if err != nil {
		return nil, usageError{err}
	}
	return registry, nil
}

// prefixCommand manages the prefixes of a store.
type prefixCommand struct {
	Add    prefixAddCommand    `cmd:"" help:"Register prefixes."`
	List   prefixListCommand   `cmd:"" help:"List the registered prefixes."`
	Remove prefixRemoveCommand `cmd:"" help:"Remove prefixes."`
}

// Help is shown by --help.
func (prefixCommand) Help() string {
	return `A prefix is a short name for the beginning of IRIs, for all clients of the store. With --data, the commands work on a data directory that no server has open; otherwise on a server, as an administrator.

Examples:
  koine prefix add ex=https://example.org/
  koine prefix list
  koine prefix remove ex`
}

// prefixAddCommand registers prefixes.
type prefixAddCommand struct {
	target
	reserveFlag
	Prefixes []string `arg:"" name:"prefix" help:"Prefix and namespace, as NAME=IRI." placeholder:"NAME=IRI"`
	Force    bool     `help:"Change the meaning of a registered prefix. Stored statements do not change."`
}

// Run registers the prefixes; on a data directory in one commit.
func (c *prefixAddCommand) Run(ctx context.Context, command *kong.Context, t terminal, log *slog.Logger) error {
	prefixes := map[string]string{}
	for _, text := range c.Prefixes {
		name, namespace, ok := strings.Cut(text, "=")
		if !ok || name == "" || namespace == "" {
			return usageError{fmt.Errorf("%s: a prefix must be NAME=IRI", text)}
		}
		prefixes[name] = namespace
	}
	d, err := c.openVocabulary(ctx, command, log, &c.reserveFlag)
	if err != nil {
		return err
	}
	defer d.close()
	if d.store != nil {
		_, err := names.Register(ctx, d.store, d.commitMeta("Register prefixes", slices.Sorted(maps.Keys(prefixes))), prefixes, c.Force)
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(prefixes)) {
		if err := d.registerPrefix(ctx, name, prefixes[name], c.Force); err != nil {
			return err
		}
	}
	return nil
}

// prefixRemoveCommand removes prefixes.
type prefixRemoveCommand struct {
	target
	reserveFlag
	Names []string `arg:"" name:"name" help:"Prefix to remove."`
}

// Run removes the prefixes.
func (c *prefixRemoveCommand) Run(ctx context.Context, command *kong.Context, t terminal, log *slog.Logger) error {
	d, err := c.openVocabulary(ctx, command, log, &c.reserveFlag)
	if err != nil {
		return err
	}
	defer d.close()
	if d.store != nil {
		_, err := names.Remove(ctx, d.store, d.commitMeta("Remove prefixes", c.Names), c.Names...)
		return err
	}
	for _, name := range c.Names {
		if err := d.server.GraphQL(ctx, `mutation($name: String!) { removePrefix(name: $name) { revision } }`, map[string]any{"name": name}, nil); err != nil {
			return err
		}
	}
	return nil
}

// prefixListCommand lists prefixes.
type prefixListCommand struct {
	target
	outputFlags
}

// Run prints a table.
func (c *prefixListCommand) Run(ctx context.Context, command *kong.Context, t terminal, log *slog.Logger) error {
	list, _, err := c.listNames(ctx, command, log)
	if err != nil {
		return err
	}
	b := &table{columns: []string{"PREFIX", "NAMESPACE"}}
	for _, p := range list {
		b.rows = append(b.rows, []string{p.Name, p.Namespace})
	}
	return c.printWhole(t, b, func(i int) any {
		return struct {
			Name      string `json:"name"`
			Namespace string `json:"namespace"`
		}(list[i])
	})
}
