package main

import (
	"maps"
	"slices"

	"koine/kg"
)

// prefixFlags are short names for namespaces.
type prefixFlags struct {
	Prefix      map[string]string `help:"A short name for the IRIs of a namespace; may be repeated. Serve, and load on a data directory, keep it with the store." placeholder:"NAME=IRI" env:"KOINE_PREFIX"`
	PrefixForce bool              `help:"Let --prefix give another meaning to a name that the store knows already."`
}

// registry has the built-in prefixes and those of the command line.
func (p *prefixFlags) registry() (*kg.Prefixes, error) { return registryOf(p.Prefix) }

// with is the registry of a store, with those of the command line added.
func (p *prefixFlags) with(store *kg.Store) (*kg.Prefixes, error) {
	all, err := p.merged(store.KeptPrefixes())
	if err != nil {
		return nil, err
	}
	return registryOf(all)
}

// keep is the same, and has the store keep what is new: the command line's
// prefixes, and the defaults under names that mean nothing yet.
func (p *prefixFlags) keep(store *kg.Store, defaults map[string]string) (*kg.Prefixes, error) {
	kept := store.KeptPrefixes()
	all, err := p.merged(kept)
	if err != nil {
		return nil, err
	}
	for name, ns := range defaults {
		if _, known := meaning(all, name); !known {
			all[name] = ns
		}
	}
	registry, err := registryOf(all)
	if err != nil || maps.Equal(all, kept) {
		return registry, err
	}
	return registry, store.KeepPrefixes(all)
}

// merged adds the command line's prefixes to the kept ones. A name has one
// meaning in a store, or what was written and what is asked for are different
// entities; another one has to be asked for by name.
func (p *prefixFlags) merged(kept map[string]string) (map[string]string, error) {
	all := map[string]string{}
	maps.Copy(all, kept)
	for _, name := range slices.Sorted(maps.Keys(p.Prefix)) {
		ns := p.Prefix[name]
		before, known := meaning(kept, name)
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

// meaning is the namespace of a name that is kept or built in.
func meaning(kept map[string]string, name string) (ns string, known bool) {
	if ns, known = kept[name]; !known {
		ns, known = kg.BuiltinPrefixes[name]
	}
	return ns, known
}

func registryOf(prefixes map[string]string) (*kg.Prefixes, error) {
	registry, err := kg.NewPrefixes(prefixes)
	if err != nil {
		return nil, usageError{err}
	}
	return registry, nil
}
