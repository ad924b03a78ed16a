package names

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"koine/kg"
)

// Register registers prefixes, each with its namespace, in one commit; without anything
// new there is none. A prefix has one meaning, or what was written and what is asked for
// are different entities: another one is CodeInvalid unless force is set, which leaves
// what is stored as it is. Otherwise errors are those of kg.Store.ChangeNames.
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

// Meaning returns the namespace of a prefix that is kept or built in.
func Meaning(kept map[string]string, name string) (namespace string, known bool) {
	if namespace, known = kept[name]; !known {
		namespace, known = kg.BuiltinPrefixes[name]
	}
	return namespace, known
}

// ErrOtherMeaning refuses to give a prefix another meaning.
func ErrOtherMeaning(name, before string) *kg.Error {
	e := kg.Errorf(kg.CodeInvalid, "in this store, %s is %s", name, before)
	e.Hint = "Use another name, or force the change: what is stored stays as it is, and " + name + ":… means other IRIs from then on."
	return e
}

// Remove removes prefixes; what is stored stays as it is. A prefix that is not kept is
// CodeNotFound, and one that is built in gets back its own meaning.
func Remove(ctx context.Context, store *kg.Store, m kg.Meta, prefixes ...string) (kg.Receipt, error) {
	return store.ChangeNames(ctx, m, func(n *kg.Names) error {
		for _, name := range prefixes {
			if _, kept := n.Prefixes[name]; !kept {
				if _, builtin := kg.BuiltinPrefixes[name]; builtin {
					return kg.Errorf(kg.CodeInvalid, "%s is built in, and stays", name)
				}
				return kg.Errorf(kg.CodeNotFound, "there is no prefix %q", name)
			}
			delete(n.Prefixes, name)
		}
		return nil
	})
}

// AllowSchemes makes URI schemes known to the store.
func AllowSchemes(ctx context.Context, store *kg.Store, m kg.Meta, schemes ...string) (kg.Receipt, error) {
	return store.ChangeNames(ctx, m, func(n *kg.Names) error {
		for _, scheme := range schemes {
			if scheme = strings.ToLower(scheme); !builtinScheme(scheme) {
				n.Schemes[scheme] = true
			}
		}
		return nil
	})
}

// ForbidSchemes takes URI schemes away from those that AllowSchemes made known; what is
// stored stays. One that is not among them is CodeNotFound.
func ForbidSchemes(ctx context.Context, store *kg.Store, m kg.Meta, schemes ...string) (kg.Receipt, error) {
	return store.ChangeNames(ctx, m, func(n *kg.Names) error {
		for _, scheme := range schemes {
			scheme = strings.ToLower(scheme)
			if !n.Schemes[scheme] {
				if builtinScheme(scheme) {
					return kg.Errorf(kg.CodeInvalid, "every store knows the URI scheme %s", scheme)
				}
				return kg.Errorf(kg.CodeNotFound, "there is no URI scheme %q", scheme)
			}
			delete(n.Schemes, scheme)
		}
		return nil
	})
}

func builtinScheme(name string) bool { return kg.IsScheme(name) || name == "tel" }

// Justification is the reason of a commit that registers names at the operator's word.
func Justification(what string, names []string) string {
	return fmt.Sprintf("%s: %s", what, strings.Join(names, ", "))
}
