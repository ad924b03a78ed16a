package provenance

import (
	"context"

	"koine/internal/systemgraph"
	"koine/kg"
)

// MaxDropped bounds the statements that one Resolve removes.
const MaxDropped = 1000

// Resolve settles a contradiction: it removes the dropped statements with all their
// assertions in one commit, provided that the kept statements still exist. The caller
// needs the right to write their graphs, and the operator's rules judge it like any
// removal.
//
// Errors: CodeInvalid when nothing is dropped, or a statement is both kept and dropped;
// CodeLimitExceeded past MaxDropped; CodeRevisionConflict when one of the statements no
// longer exists; those of Store.Update.
func Resolve(ctx context.Context, store Writer, m kg.Meta, keep, drop []kg.Quad) (kg.Receipt, error) {
	switch {
	case len(drop) == 0:
		return kg.Receipt{}, kg.Errorf(kg.CodeInvalid, "drop must have at least one statement").At("drop")
	case len(drop) > MaxDropped:
		return kg.Receipt{}, kg.Errorf(kg.CodeLimitExceeded, "%d statements exceed the limit of %d", len(drop), MaxDropped).At("drop")
	}
	dropped := make(map[kg.Quad]bool, len(drop))
	for _, q := range drop {
		dropped[q] = true
	}
	for _, q := range keep {
		if dropped[q] {
			return kg.Receipt{}, kg.Errorf(kg.CodeInvalid, "a statement cannot be in both keep and drop").At("keep")
		}
	}
	return store.Update(ctx, m, func(tx *kg.Tx) error {
		for field, list := range map[string][]kg.Quad{"keep": keep, "drop": drop} {
			for _, q := range list {
				if err := requireStatement(tx, q); err != nil {
					return kg.AsError(err).At(field)
				}
			}
		}
		for _, q := range drop {
			if err := tx.Apply(kg.Patch{Op: kg.Remove, Quad: q}); err != nil {
				return err
			}
		}
		return nil
	})
}

func requireStatement(tx *kg.Tx, q kg.Quad) error {
	_, found, err := systemgraph.First(tx.Match, kg.Pattern(q))
	if err == nil && !found {
		err = kg.Errorf(kg.CodeRevisionConflict, "one of the statements no longer exists")
	}
	return err
}
