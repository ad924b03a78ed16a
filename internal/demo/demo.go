// Package demo contains a small example graph: a team of agents investigates why a
// battery loses its capacity. Its statements have several sources, different
// certainties and named graphs, and were written in commits with justifications, one of
// them a removal. So there is a history to read and a contradiction to find.
//
// Load writes the graph into an empty store; Publish makes its named graphs readable.
package demo

import (
	"context"
	"embed"
	"fmt"
	"maps"

	"koine/internal/policy"
	"koine/internal/rdf"
	"koine/internal/systemgraph"
	"koine/kg"
)

// Prefixes are the prefixes of the graph.
var Prefixes = map[string]string{
	"lab":     "https://koine.example/demo/",
	"finding": "https://koine.example/demo/finding/",
}

//go:embed lab/*.trig
var files embed.FS

// Load writes the graph and its prefixes, except those in without, into a store that
// has no commits. It reports whether it wrote anything.
func Load(ctx context.Context, store *kg.Store, without ...string) (bool, error) {
	if store.Head().Revision > 0 {
		return false, nil
	}
	prefixes := maps.Clone(Prefixes)
	for _, name := range without {
		delete(prefixes, name)
	}
	for i, c := range history {
		if i > 0 {
			prefixes = nil
		}
		if err := c.writeTo(ctx, store, prefixes); err != nil {
			return false, fmt.Errorf("demo: %s: %w", c.why, err)
		}
	}
	return true, nil
}

// writeTo makes the commit and registers the prefixes in it.
func (c commit) writeTo(ctx context.Context, store *kg.Store, prefixes map[string]string) error {
	patches, err := c.patches()
	if err != nil {
		return err
	}
	meta := kg.Meta{
		Principal:     kg.Principal{ID: c.by, Method: "local"},
		Justification: c.why,
		TaskID:        c.task,
		SessionID:     "cathode-review",
	}
	_, err = store.Update(ctx, meta, func(tx *kg.Tx) error {
		for _, p := range patches {
			if err := tx.Apply(p); err != nil {
				return err
			}
		}
		if len(prefixes) > 0 {
			return kg.RegisterPrefixes(tx, prefixes)
		}
		return nil
	})
	return err
}

func (c commit) patches() (out []kg.Patch, err error) {
	if c.file != "" {
		f, err := files.Open("lab/" + c.file)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		for q, err := range rdf.Read(f, rdf.TriG, rdf.Options{Name: c.file, Tag: "demo"}) {
			if err != nil {
				return nil, err
			}
			out = append(out, kg.Patch{Op: kg.Add, Quad: q})
		}
	}
	for _, s := range c.claims {
		out = append(out, kg.Patch{Op: s.op, Quad: kg.Quad{Subject: s.subject, Predicate: s.predicate, Object: s.object, Graph: kg.DefaultGraph}})
	}
	for i := range out {
		p := &out[i]
		if p.Op == kg.Remove {
			p.Source = c.by
			continue
		}
		p.Certainty, p.HasCertainty = c.certainty, c.certainty > 0
		if c.evidence != "" {
			p.Provenance = []byte(c.evidence)
		}
	}
	return out, nil
}

// graphs are the named graphs, each with its owner.
var graphs = []struct {
	name  kg.Term
	owner kg.AgentID
}{
	{labIRI("literature"), bruno},
	{labIRI("measurements"), chen},
}

// Publish makes the named graphs readable for every authenticated agent and gives each
// to its owner. A graph keeps an existing policy, and an empty graph gets none.
// policies must be those of the store.
func Publish(ctx context.Context, store *kg.Store, policies *policy.Policies) error {
	meta := kg.Meta{Principal: kg.SystemPrincipal(), Justification: "The demo is for everybody to read"}
	_, err := store.Update(ctx, meta, func(tx *kg.Tx) error {
		for _, g := range graphs {
			if _, stored := policies.PolicyOf(g.name); stored {
				continue
			}
			_, held, err := systemgraph.First(tx.Match, kg.Pattern{Graph: g.name})
			if err != nil {
				return err
			}
			if !held {
				continue
			}
			if err := policy.Write(tx, policy.Policy{Graph: g.name, Public: true, Owners: []policy.Grantee{policy.Agent(g.owner)}}); err != nil {
				return err
			}
		}
		return nil
	})
	return err
}
