package cli

import (
	"context"
	"maps"
	"slices"

	"koine/internal/names"
	"koine/kg"
)

// PrefixFlags register prefixes.
type PrefixFlags struct {
	Prefix      map[string]string `help:"Prefix for the IRIs of a namespace; may be repeated. serve, and load on a data directory, register it with the store." placeholder:"NAME=IRI" env:"KOINE_PREFIX"`
	PrefixForce bool              `help:"Let --prefix change the meaning of a registered prefix."`
}

// BuiltinPrefixes returns the built-in prefixes and those of the command line.
func (p *PrefixFlags) BuiltinPrefixes() (*kg.Prefixes, error) { return NewPrefixes(p.Prefix) }

// StorePrefixes returns the prefixes of a store and those of the command line.
func (p *PrefixFlags) StorePrefixes(store *kg.Store) (*kg.Prefixes, error) {
	all, err := p.mergePrefixes(store.KeptPrefixes())
	if err != nil {
		return nil, err
	}
	return NewPrefixes(all)
}

// RegisterNew registers the new prefixes of the command line, and the defaults whose names
// are free, in one commit. It returns the store's prefixes.
func (p *PrefixFlags) RegisterNew(ctx context.Context, store *kg.Store, defaults map[string]string) (*kg.Prefixes, error) {
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
	if _, err := NewPrefixes(all); err != nil || maps.Equal(all, kept) {
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
func (p *PrefixFlags) mergePrefixes(kept map[string]string) (map[string]string, error) {
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
			return nil, AsUsage(e)
		default:
			all[name] = ns
		}
	}
	return all, nil
}

func NewPrefixes(prefixes map[string]string) (*kg.Prefixes, error) {
	registry, err := kg.NewPrefixes(prefixes)
	if err != nil {
		return nil, AsUsage(err)
	}
	return registry, nil
}
