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
	Prefix      map[string]string `help:"A short name for the IRIs of a namespace; may be repeated. Serve, and load on a data directory, keep it with the store." placeholder:"NAME=IRI" env:"KOINE_PREFIX"`
	PrefixForce bool              `help:"Let --prefix give another meaning to a name that the store knows already."`
}

// nameFlags restrict the names that updates may use.
type nameFlags struct {
	Names  string   `help:"What becomes of names with neither a registered prefix nor a known URI scheme: strict refuses them in updates, lenient takes them with a hint." enum:"strict,lenient" default:"strict"`
	Scheme []string `help:"A URI scheme that new names may have; may be repeated. It is kept with the store: koine scheme." placeholder:"NAME"`
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
			e.Hint = "Leave it out to go on with that, or add --prefix-force to change it: what is stored stays as it is, and " + name + ":… means other IRIs from then on."
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
	List   prefixListCommand   `cmd:"" help:"List the prefixes."`
	Remove prefixRemoveCommand `cmd:"" help:"Remove prefixes."`
}

// Help is shown by --help.
func (prefixCommand) Help() string {
	return `A prefix stands for the beginning of IRIs, for everybody who writes to the store or reads from it. With --data these work on a data directory that no server has open, otherwise on a running server, as an administrator.

Examples:
  koine prefix add ex=https://example.org/
  koine prefix list
  koine prefix remove ex`
}

// prefixAddCommand registers prefixes.
type prefixAddCommand struct {
	target
	reserveFlag
	Prefixes []string `arg:"" name:"prefix" help:"NAME=IRI." placeholder:"NAME=IRI"`
	Force    bool     `help:"Give a prefix that is registered another meaning. What is stored stays as it is."`
}

// Run registers the prefixes; on a data directory in one commit.
func (c *prefixAddCommand) Run(ctx context.Context, command *kong.Context, t terminal, log *slog.Logger) error {
	prefixes := map[string]string{}
	for _, text := range c.Prefixes {
		name, namespace, ok := strings.Cut(text, "=")
		if !ok || name == "" || namespace == "" {
			return usageError{fmt.Errorf("%s: a prefix is given as NAME=IRI", text)}
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
	Names []string `arg:"" name:"name" help:"A prefix."`
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
