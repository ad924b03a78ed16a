package systemgraph

import (
	"context"
	"maps"
	"slices"

	"koine/kg"
)

// Store is the part of kg.Store that records need.
type Store interface {
	Update(context.Context, kg.Meta, func(*kg.Tx) error) (kg.Receipt, error)
	View(context.Context, kg.View) (*kg.Snapshot, error)
}

// Update is UpdateWithReceipt without the receipt.
func Update(ctx context.Context, store Store, m kg.Meta, do func(*kg.Tx) error) error {
	_, err := UpdateWithReceipt(ctx, store, m, do)
	return err
}

// UpdateWithReceipt runs an update of records. Unlike an update of statements it cannot
// wait for a review: every verdict but acceptance is an error.
func UpdateWithReceipt(ctx context.Context, store Store, m kg.Meta, do func(*kg.Tx) error) (kg.Receipt, error) {
	receipt, err := store.Update(ctx, m, do)
	if err == nil && receipt.Verdict.Outcome != kg.Accepted {
		err = kg.Errorf(kg.CodeConstraintViolation, "a rule of this server rejects the change: %s", receipt.Verdict.Reason)
	}
	return receipt, err
}

// Class returns the value of Type for a class of the system's vocabulary.
func Class(name string) []kg.Term { return []kg.Term{Property(name)} }

// Write sets the given properties of a subject: each gets exactly these objects. Other
// properties keep theirs.
func Write(tx *kg.Tx, graph, subject kg.Term, properties Record) error {
	was := Record{}
	for name := range properties {
		quads, err := Quads(tx.MatchOwn, kg.Pattern{Subject: subject, Predicate: predicateOf(name), Graph: graph})
		if err != nil {
			return err
		}
		for i := range quads {
			was[name] = append(was[name], quads[i].Object)
		}
	}
	return WriteOver(tx, graph, subject, was, properties)
}

// WriteOver is Write without reading: was is the record as read in the same update,
// empty for a new subject.
func WriteOver(tx *kg.Tx, graph, subject kg.Term, was, properties Record) error {
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if err := writeProperty(tx, kg.Quad{Subject: subject, Predicate: predicateOf(name), Graph: graph}, was[name], properties[name]); err != nil {
			return err
		}
	}
	return nil
}

// WouldChange reports whether WriteOver would write anything.
func WouldChange(was, properties Record) bool {
	for name, objects := range properties {
		notIn := func(list []kg.Term) func(kg.Term) bool {
			return func(o kg.Term) bool { return !slices.Contains(list, o) }
		}
		if slices.ContainsFunc(objects, notIn(was[name])) || slices.ContainsFunc(was[name], notIn(objects)) {
			return true
		}
	}
	return false
}

// Remove removes the statements that match.
func Remove(tx *kg.Tx, p kg.Pattern) error {
	quads, err := Quads(tx.MatchOwn, p)
	if err != nil {
		return err
	}
	for _, q := range quads {
		if err := tx.ApplyOwn(kg.Patch{Op: kg.Remove, Quad: q}); err != nil {
			return err
		}
	}
	return nil
}

// predicateOf returns the property with the given key in a record.
func predicateOf(name string) kg.Term {
	if name == Type {
		return kg.IRI(kg.RDFType)
	}
	return Property(name)
}

// writeProperty removes the existing objects that are not wanted and adds the missing
// ones.
func writeProperty(tx *kg.Tx, q kg.Quad, stand, objects []kg.Term) error {
	for _, o := range stand {
		if q.Object = o; slices.Contains(objects, o) {
			continue
		}
		if err := tx.ApplyOwn(kg.Patch{Op: kg.Remove, Quad: q}); err != nil {
			return err
		}
	}
	for _, o := range objects {
		if q.Object = o; slices.Contains(stand, o) {
			continue
		}
		if err := tx.ApplyOwn(kg.Patch{Op: kg.Add, Quad: q}); err != nil {
			return err
		}
	}
	return nil
}
