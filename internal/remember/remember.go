// Package remember writes facts whose entities are named by their labels and classes. An
// entity that exists is used, otherwise one is made. Labels are looked up within the
// commit, so that updates at the same time make one entity.
package remember

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"

	"koine/internal/compact"
	"koine/internal/names"
	"koine/internal/update"
	"koine/kg"
)

// MaxLabels bounds the labels that one request looks up.
const MaxLabels = 1_000

// Rememberer writes facts to a store.
type Rememberer struct {
	Store    *kg.Store
	Names    *names.Judge
	Prefixes *kg.Prefixes
	// LabelPredicates are the properties that give an entity its label.
	LabelPredicates []string
	// NewNames is the beginning of the IRIs of new entities, which a slug of the label
	// ends. "" stands for urn:uuid: and a UUID of version 7.
	NewNames string
}

// Request is facts to write in one commit, all or none.
type Request struct {
	// Meta is the metadata for the store. Remember sets its ContentHash.
	Meta  kg.Meta
	Facts []compact.Fact
}

// Entity is the meaning of a label in a request.
type Entity struct {
	Label string
	Term  kg.Term
	// Made reports that no entity had the label.
	Made bool
}

// Answer is the result of a request.
type Answer struct {
	kg.Receipt
	// Entities are the labels of the request in their order.
	Entities []Entity
	// Facts are the statements of the request, with the names of their entities. Known are
	// those that the caller could read before.
	Facts, Known []kg.Quad
}

// Remember writes the facts of a request. Facts without effect are no error, so that a
// request may be repeated.
//
// Errors: those of Store.Update, with the index of the fact as Field; CodeInvalid without a
// fact and for a label that several entities have, which the message lists;
// CodeLimitExceeded past compact.MaxFacts and MaxLabels; CodeUnknownPrefix.
func (r *Rememberer) Remember(ctx context.Context, q Request) (Answer, error) {
	switch n := len(q.Facts); {
	case n == 0:
		return Answer{}, kg.Errorf(kg.CodeInvalid, "there is no fact to remember")
	case n > compact.MaxFacts:
		return Answer{}, kg.Errorf(kg.CodeLimitExceeded, "the request has %d facts, more than the limit of %d", n, compact.MaxFacts)
	}
	resolver, err := r.newResolver(q.Facts)
	if err != nil {
		return Answer{}, err
	}
	if err := resolver.check(ctx, q.Meta.Principal); err != nil {
		return Answer{}, err
	}
	patches, err := r.patchesOf(ctx, &q, resolver)
	if err != nil {
		return Answer{}, err
	}
	q.Meta.ContentHash = hashFacts(q.Facts)
	var answer Answer
	receipt, err := r.Store.Update(ctx, q.Meta, func(tx *kg.Tx) (err error) {
		answer = Answer{Facts: make([]kg.Quad, 0, len(patches))}
		if answer.Entities, err = resolver.resolve(tx, patches); err != nil {
			return err
		}
		for i, p := range patches {
			p.Quad = resolver.replaceNames(p.Quad)
			known, err := isKnown(tx, p.Quad)
			if err == nil {
				err = tx.Apply(p)
			}
			if err != nil {
				return atFact(err, i)
			}
			if answer.Facts = append(answer.Facts, p.Quad); known {
				answer.Known = append(answer.Known, p.Quad)
			}
		}
		return nil
	})
	answer.Receipt = receipt
	return answer, err
}

func atFact(err error, i int) error { return kg.AsError(err).At(fmt.Sprintf("[%d]", i)) }

// isKnown reports whether the caller can read the statement.
func isKnown(tx *kg.Tx, q kg.Quad) (bool, error) {
	for _, err := range tx.Match(kg.Pattern(q)) {
		return err == nil, err
	}
	return false, nil
}

// patchesOf checks the facts and returns a patch for each of them, with the placeholders of
// labels.
func (r *Rememberer) patchesOf(ctx context.Context, q *Request, resolver *resolver) ([]kg.Patch, error) {
	source := q.Meta.Actor
	if source == "" {
		source = q.Meta.Principal.ID
	}
	if source != "" {
		if err := r.Store.CheckAgent(ctx, kg.CanonicalAgent(string(source))); err != nil {
			return nil, kg.AsError(err).At("sourceAgentId")
		}
	}
	mutations := make([]update.Mutation, len(q.Facts))
	for i := range q.Facts {
		f := &q.Facts[i]
		if len(f.Sources) > 0 || !f.Time.IsZero() {
			return nil, atFact(kg.Errorf(kg.CodeInvalid, `the source and the time of a fact are you and now: leave "by" and "at" out`), i)
		}
		p := kg.Patch{Op: kg.Add, Certainty: f.Certainty, HasCertainty: f.HasCertainty, Validity: f.Validity, Quad: kg.Quad{
			Subject: resolver.termOf(f.Subject), Predicate: resolver.termOf(f.Predicate), Object: resolver.termOf(f.Object), Graph: f.Graph,
		}}
		if err := p.Normalise(source); err != nil {
			return nil, atFact(err, i)
		}
		mutations[i].Patch = p
	}
	facts, err := update.Expand(ctx, r.Names, q.Meta.Principal, mutations)
	return facts.Patches, err
}

// hashFacts returns the hash of a request for its idempotency key.
func hashFacts(facts []compact.Fact) (sum [32]byte) {
	h := sha256.New()
	fmt.Fprintln(h, "koine remember 1")
	for i := range facts {
		f := &facts[i]
		for _, ref := range [...]compact.Ref{f.Subject, f.Predicate, f.Object} {
			if ref.Term.IsZero() {
				fmt.Fprintf(h, "(%q) ", ref.Label)
			} else {
				fmt.Fprintf(h, "%s ", ref.Term)
			}
		}
		fmt.Fprintln(h, f.Graph, f.HasCertainty, f.Certainty, f.Validity.From.UnixMilli(), f.Validity.Until.UnixMilli())
	}
	h.Sum(sum[:0])
	return sum
}

// slugOf returns the letters and digits of a label in lower case, with a hyphen for each run
// of other runes. "" stands for a label without any.
func slugOf(label string) string {
	slug := strings.Join(strings.FieldsFunc(strings.ToLower(label), isSeparator), "-")
	return strings.TrimRight(kg.Excerpt(slug, maxSlugBytes), "-…")
}
