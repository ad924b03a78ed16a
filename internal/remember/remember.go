// Package remember writes facts about entities that are named by their labels and classes. An
// entity that exists is used, otherwise one is made. Labels are looked up within the
// commit, so that updates at the same time make one entity.
package remember

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"koine/internal/compact"
	"koine/internal/names"
	"koine/internal/provenance"
	"koine/internal/shapes"
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
	// Shapes has the shapes that limit how many values there may be.
	Shapes *shapes.Set
	// NewNames is the beginning of the IRIs of new entities, which a slug of the label
	// ends. "" stands for urn:uuid: and a UUID of version 7.
	NewNames string
}

// Request is facts to write in one commit, all or none. A Ref with a label stands for the
// entity with that label, and with the class that the facts give it; in the place of a
// predicate or a class it is a word of the vocabulary.
type Request struct {
	// Meta is the metadata for the store. Remember sets its ContentHash.
	Meta  kg.Meta
	Facts []compact.Fact
	// Triples are more facts, each of three parts in JSON: labels, names, words of the
	// vocabulary and values.
	Triples [][]json.RawMessage
	// Define are words for predicates and classes that are made if there are none.
	Define []string
	// NewNames is instead of that of the Rememberer; "" for that.
	NewNames string
	// Graph and Certainty are those of facts without; nil states facts.
	Graph     kg.Term
	Certainty *float64
	// Key is the entity that facts with an empty subject are about; nil for none.
	Key *Key
	// Replace removes the other values of the subjects and predicates, except classes.
	Replace bool
}

// Key is a property that only one entity has, with its value.
type Key struct{ Predicate, Value kg.Term }

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
	// Contradictions are those that the facts are part of after the commit.
	Contradictions []provenance.Contradiction
}

// Remember writes the facts of a request. Facts without effect are no error, so that a
// request may be repeated.
//
// Errors: those of Store.Update, with the place of the fact as Field, facts[2] or triples[2]; CodeInvalid without a
// fact and for a label that several entities have, which the message lists;
// CodeLimitExceeded past compact.MaxFacts and MaxLabels; CodeUnknownPrefix.
func (r *Rememberer) Remember(ctx context.Context, q Request) (Answer, error) {
	answer, err := r.writeFacts(ctx, q)
	if err != nil {
		err = placeError(err, len(q.Facts))
	}
	return answer, err
}

// placeError names the fact or the triple of an error at an index among both.
func placeError(err error, facts int) error {
	e := *kg.AsError(err)
	number, part, _ := strings.Cut(strings.TrimPrefix(e.Field, "["), "]")
	index, failed := strconv.Atoi(number)
	switch {
	case failed != nil:
		return err
	case index < facts:
		e.Field = fmt.Sprintf("facts[%d]%s", index, part)
	default:
		e.Field = fmt.Sprintf("triples[%d]%s", index-facts, part)
	}
	return &e
}

func (r *Rememberer) writeFacts(ctx context.Context, q Request) (Answer, error) {
	switch n := len(q.Facts) + len(q.Triples); {
	case n == 0:
		return Answer{}, kg.Errorf(kg.CodeInvalid, "there is no fact to remember; write a subject at the beginning of a line, then indented lines with a predicate and its objects")
	case n > compact.MaxFacts:
		return Answer{}, kg.Errorf(kg.CodeLimitExceeded, "the request has %d facts, more than the limit of %d", n, compact.MaxFacts)
	}
	q.Meta.ContentHash = hashRequest(&q)
	if q.NewNames != "" {
		t, err := r.Prefixes.Resource(q.NewNames)
		if err == nil {
			err = r.Names.CheckTerm(ctx, q.Meta.Principal, t, "")
		}
		if err != nil {
			return Answer{}, kg.AsError(err).At("newNames")
		}
		with := *r
		with.NewNames, r = t.Value(), &with
	}
	q.Facts = slices.Clone(q.Facts)
	resolver, err := r.prepare(ctx, &q)
	if err != nil {
		return Answer{}, err
	}
	patches, err := r.patchesOf(ctx, &q, resolver)
	if err != nil {
		return Answer{}, err
	}
	var answer Answer
	receipt, err := r.Store.Update(ctx, q.Meta, func(tx *kg.Tx) (err error) {
		answer = Answer{Facts: make([]kg.Quad, 0, len(patches))}
		if answer.Entities, err = resolver.resolve(tx, patches); err != nil {
			return err
		}
		for i := range patches {
			p := patches[i]
			p.Quad = resolver.replaceNames(p.Quad)
			answer.Facts = append(answer.Facts, p.Quad)
		}
		if q.Replace {
			if err := removeOthers(tx, answer.Facts); err != nil {
				return err
			}
		}
		for i, p := range patches {
			p.Quad = answer.Facts[i]
			known, err := isKnown(tx, p.Quad)
			if err == nil {
				err = tx.Apply(p)
			}
			if err != nil {
				return atFact(err, i)
			}
			if known {
				answer.Known = append(answer.Known, p.Quad)
			}
		}
		return nil
	})
	if err != nil {
		return Answer{}, err
	}
	answer.Receipt = receipt
	if receipt.Committed && !receipt.Replayed || receipt.Affected == 0 && !receipt.DryRun {
		err = r.findContradictions(ctx, q.Meta.Principal, &answer)
	}
	return answer, err
}

// Definition is a predicate or a class to find or to make.
type Definition struct {
	Meta  kg.Meta
	Label string
	Class bool // not a predicate
	// Comment explains a new one; "" for none.
	Comment string
	Graph   kg.Term
}

// Define returns the predicate or class that a word names, and makes it if there is none.
func (r *Rememberer) Define(ctx context.Context, d Definition) (Answer, error) {
	s, err := r.Store.View(ctx, kg.View{Principal: d.Meta.Principal, AllGraphs: true, WithoutPending: true, Now: time.Now()})
	if err != nil {
		return Answer{}, err
	}
	defer s.Close()
	v := &vocabulary{Rememberer: r, kind: predicates}
	if d.Class {
		v.kind = classes
	}
	switch found, err := v.findWord(s, d.Label); {
	case err == nil:
		return Answer{Entities: []Entity{{Label: d.Label, Term: found}}, Receipt: kg.Receipt{Revision: s.Revision(), Position: s.Position()}}, nil
	case !errors.Is(err, errNoWord):
		return Answer{}, err
	}
	fact := compact.Fact{Graph: d.Graph, Subject: compact.Ref{Label: d.Label}, Predicate: compact.Ref{Term: rdfType}, Object: compact.Ref{Term: kg.IRI(v.kind.declared[0])}}
	facts := []compact.Fact{fact}
	if d.Comment != "" {
		fact.Predicate.Term, fact.Object.Term = kg.IRI(rdfs+"comment"), kg.String(d.Comment)
		facts = append(facts, fact)
	}
	return r.Remember(ctx, Request{Meta: d.Meta, Facts: facts})
}

// prepare finds the words of the vocabulary, and looks the labels up.
func (r *Rememberer) prepare(ctx context.Context, q *Request) (*resolver, error) {
	s, err := r.Store.View(ctx, kg.View{Principal: q.Meta.Principal, AllGraphs: true, WithoutPending: true, Now: time.Now()})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	triples, loose, err := r.readTriples(q.Triples)
	if err == nil {
		triples, err = r.replaceWords(s, triples, q.Define)
	}
	if err == nil {
		err = r.replaceTexts(s, triples, loose)
	}
	if err != nil {
		return nil, kg.AsError(err).At("triples")
	}
	facts, err := r.replaceWords(s, q.Facts, q.Define)
	if err != nil {
		return nil, err
	}
	lines := len(q.Facts)
	q.Facts = slices.Concat(facts[:lines], triples, facts[lines:]) // the defined words come last
	for i := range q.Facts {
		f := &q.Facts[i]
		if f.Graph == kg.DefaultGraph && !q.Graph.IsZero() {
			f.Graph = q.Graph
		}
		if !f.HasCertainty && q.Certainty != nil {
			f.Certainty, f.HasCertainty = *q.Certainty, true
		}
	}
	resolver, err := r.newResolver(q.Facts, q.Key)
	if err != nil {
		return nil, err
	}
	return resolver, resolver.checkLabels(s)
}

// removeOthers removes the values of the subjects and predicates of facts that are not among
// the facts, so that a repetition changes nothing.
func removeOthers(tx *kg.Tx, facts []kg.Quad) error {
	stay := make(map[kg.Quad]bool, len(facts))
	for _, q := range facts {
		stay[q] = true
	}
	for i, q := range facts {
		if q.Predicate == rdfType {
			continue
		}
		var others []kg.Quad
		for st, err := range tx.Match(kg.Pattern{Subject: q.Subject, Predicate: q.Predicate, Graph: q.Graph}) {
			if err != nil {
				return err
			}
			if !stay[st.Quad] {
				others = append(others, st.Quad)
			}
		}
		for _, other := range others {
			if err := tx.Apply(kg.Patch{Op: kg.Remove, Quad: other}); err != nil {
				return atFact(err, i)
			}
		}
	}
	return nil
}

// findContradictions adds the contradictions that the facts are part of.
func (r *Rememberer) findContradictions(ctx context.Context, by kg.Principal, a *Answer) error {
	view := kg.View{Principal: by, Now: time.Now()}
	s, err := r.Store.View(ctx, view)
	if err != nil {
		return err
	}
	defer s.Close()
	view.Graphs, view.At = []kg.Term{kg.ShapesGraph}, s.Revision()
	constraints, err := r.Store.View(ctx, view)
	if err != nil {
		return err
	}
	defer constraints.Close()
	limits, err := r.Shapes.Limits(ctx, constraints)
	if err != nil {
		return err
	}
	a.Contradictions, _, err = provenance.ContradictionsOf(s, limits, a.Facts)
	return err
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

// hashRequest returns the hash of a request for its idempotency key.
func hashRequest(q *Request) (sum [32]byte) {
	h := sha256.New()
	fmt.Fprintf(h, "koine remember 1 %v %v %q %q\n", q.Replace, q.Graph, q.Define, q.NewNames)
	if q.Certainty != nil {
		fmt.Fprintln(h, *q.Certainty)
	}
	if q.Key != nil {
		fmt.Fprintln(h, q.Key.Predicate, q.Key.Value)
	}
	for i := range q.Facts {
		f := &q.Facts[i]
		for _, ref := range [...]compact.Ref{f.Subject, f.Predicate, f.Object} {
			if ref.Term.IsZero() {
				fmt.Fprintf(h, "(%q) ", ref.Label)
			} else {
				fmt.Fprintf(h, "%s ", ref.Term)
			}
		}
		fmt.Fprintln(h, f.Graph, f.HasCertainty, f.Certainty, f.Validity.From.UnixMilli(), f.Validity.Until.UnixMilli())
	}
	for _, parts := range q.Triples {
		fmt.Fprintf(h, "%q\n", parts)
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
