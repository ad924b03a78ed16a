package records

import (
	"context"
	"maps"
	"slices"

	"koine/kg"
)

// Store is where records are (kg.Store).
type Store interface {
	Update(context.Context, kg.Meta, func(*kg.Tx) error) (kg.Receipt, error)
	View(context.Context, kg.View) (*kg.Snapshot, error)
}

// Update makes an update of records. Unlike one of statements it cannot wait for
// a review: a verdict that is not in its favour is an error.
func Update(ctx context.Context, store Store, m kg.Meta, do func(*kg.Tx) error) error {
	receipt, err := store.Update(ctx, m, do)
	if err == nil && receipt.Verdict.Outcome != kg.Accepted {
		err = kg.Errorf(kg.CodeConstraintViolation, "a rule of this server's refuses it: %s", receipt.Verdict.Reason)
	}
	return err
}

// Class is the property of a record that says what it is a record of.
func Class(name string) (string, []kg.Term) { return classes, []kg.Term{Property(name)} }

// Write makes the record of a subject what is given: each property in it gets
// these objects and no others, the others stay as they are.
func Write(tx *kg.Tx, graph, subject kg.Term, properties Record) error {
	for _, name := range sorted(properties) {
		predicate := Property(name)
		if name == classes {
			predicate = kg.IRI(kg.RDFType)
		}
		if err := writeProperty(tx, kg.Quad{Subject: subject, Predicate: predicate, Graph: graph}, properties[name]); err != nil {
			return err
		}
	}
	return nil
}

func sorted(r Record) []string { return slices.Sorted(maps.Keys(r)) }

// writeProperty adds the objects that are not there, and removes the others.
func writeProperty(tx *kg.Tx, q kg.Quad, objects []kg.Term) error {
	var gone []kg.Quad
	var stand []kg.Term
	for st, err := range tx.MatchOwn(kg.Pattern{Subject: q.Subject, Predicate: q.Predicate, Graph: q.Graph}) {
		if err != nil {
			return err
		}
		if slices.Contains(objects, st.Object) {
			stand = append(stand, st.Object)
			continue
		}
		gone = append(gone, st.Quad)
	}
	for _, quad := range gone {
		if err := tx.ApplyOwn(kg.Patch{Op: kg.Remove, Quad: quad}); err != nil {
			return err
		}
	}
	for _, object := range objects {
		if slices.Contains(stand, object) {
			continue
		}
		q.Object = object
		if err := tx.ApplyOwn(kg.Patch{Op: kg.Add, Quad: q}); err != nil {
			return err
		}
	}
	return nil
}
