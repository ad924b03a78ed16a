package names

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"koine/kg"
)

// Register registers prefixes with their namespaces in one commit, or none if nothing
// changes. A registered prefix keeps its namespace, because changing it would give
// stored and new names different meanings: another one is CodeInvalid unless force is
// set. force does not change stored statements. Other errors are those of
// kg.Store.ChangeNames.
func Register(ctx context.Context, store *kg.Store, m kg.Meta, prefixes map[string]string, force bool) (kg.Receipt, error) {
	return store.ChangeNames(ctx, m, func(n *kg.Names) error {
		for _, name := range slices.Sorted(maps.Keys(prefixes)) {
			namespace := prefixes[name]
			before, known := Meaning(n.Prefixes, name)
			switch {
			case known && before == namespace:
			case known && !force:
				return ErrOtherMeaning(name, before)
			default:
				n.Prefixes[name] = namespace
			}
		}
		return nil
	})
}

// Meaning returns the namespace of a registered or built-in prefix.
func Meaning(kept map[string]string, name string) (namespace string, known bool) {
	if namespace, known = kept[name]; !known {
		namespace, known = kg.BuiltinPrefixes[name]
	}
	return namespace, known
}

// ErrOtherMeaning is the error for a prefix that is registered with another namespace.
func ErrOtherMeaning(name, before string) *kg.Error {
	e := kg.Errorf(kg.CodeInvalid, "the prefix %s is already registered as %s", name, before)
	e.Hint = "Use another prefix, or force the change: stored statements stay, and " + name + ":… means other IRIs from then on."
	return e
}

// Remove removes prefixes; stored statements stay. An unregistered prefix is
// CodeNotFound. A built-in prefix with another namespace gets its own back.
func Remove(ctx context.Context, store *kg.Store, m kg.Meta, prefixes ...string) (kg.Receipt, error) {
	return store.ChangeNames(ctx, m, func(n *kg.Names) error {
		for _, name := range prefixes {
			if _, kept := n.Prefixes[name]; !kept {
				if _, builtin := kg.BuiltinPrefixes[name]; builtin {
					return kg.Errorf(kg.CodeInvalid, "the prefix %s is built in and cannot be removed", name)
				}
				return kg.Errorf(kg.CodeNotFound, "prefix %q is not registered", name)
			}
			delete(n.Prefixes, name)
		}
		return nil
	})
}

// ChangeSchemes makes URI schemes known to the store, and removes schemes that it made
// known; stored statements stay. To forbid another scheme is CodeNotFound.
func ChangeSchemes(ctx context.Context, store *kg.Store, m kg.Meta, allow, forbid []string) (kg.Receipt, error) {
	return store.ChangeNames(ctx, m, func(n *kg.Names) error {
		for _, scheme := range forbid {
			scheme = strings.ToLower(scheme)
			switch {
			case n.Schemes[scheme]:
				delete(n.Schemes, scheme)
			case builtinScheme(scheme):
				return kg.Errorf(kg.CodeInvalid, "the URI scheme %s is built in and cannot be removed", scheme)
			default:
				return kg.Errorf(kg.CodeNotFound, "URI scheme %q is not registered", scheme)
			}
		}
		for _, scheme := range allow {
			if scheme = strings.ToLower(scheme); !builtinScheme(scheme) {
				n.Schemes[scheme] = true
			}
		}
		return nil
	})
}

func builtinScheme(name string) bool { return kg.IsScheme(name) || name == "tel" }

// Justification returns the justification of a commit that registers names for the
// operator.
func Justification(what string, names []string) string {
	return fmt.Sprintf("%s: %s", what, strings.Join(names, ", "))
}
