package main

import (
	"fmt"
	"slices"

	"koine/kg"
)

// policyWitness sets the policy of one graph again and again: each time another
// agent reads it, and readers and writers carry the number of the change.
type policyWitness struct {
	graph, admin string
	readers      [2]string // the keys of agent://even and agent://odd
	made, making bool
	number       int         // that was acknowledged
	revision     kg.Revision // of that
	setting      bool        // the one behind it is under way
}

type graphPayload struct{ Revision kg.Revision }

func (w *policyWitness) act(c asker) error {
	if !w.made {
		w.making = true
		return w.make(c)
	}
	w.setting = true
	r, err := w.set(c, w.number+1)
	if err != nil {
		return err
	}
	w.number, w.revision, w.setting = w.number+1, r, false
	return nil
}

func (w *policyWitness) make(c asker) error {
	var out struct{ CreateGraph graphPayload }
	if err := c.ask(w.admin, fmt.Sprintf(`mutation { createGraph(input: {iri: %q, readers: %q, writers: %q}) { revision } }`, w.graph, w.readersOf(0), w.writersOf(0)), &out); err != nil {
		return err
	}
	w.made, w.making, w.revision = true, false, out.CreateGraph.Revision
	return nil
}

func (w *policyWitness) set(c asker, n int) (kg.Revision, error) {
	var out struct{ SetGraphPolicy graphPayload }
	err := c.ask(w.admin, fmt.Sprintf(`mutation { setGraphPolicy(input: {iri: %q, readers: %q, writers: %q, idempotencyKey: "%s/%d"}) { revision } }`, w.graph, w.readersOf(n), w.writersOf(n), w.graph, n), &out)
	return out.SetGraphPolicy.Revision, err
}

func (w *policyWitness) readersOf(n int) []string {
	list := []string{[]string{"agent://even", "agent://odd"}[n%2], fmt.Sprint("agent://reader", n)}
	slices.Sort(list)
	return list
}

func (w *policyWitness) writersOf(n int) []string { return []string{fmt.Sprint("agent://writer", n)} }

func (w *policyWitness) check(c asker) error {
	if w.making {
		var out struct{ Graph *struct{ IRI string } }
		if err := c.ask(w.admin, fmt.Sprintf(`{ graph(iri: %q) { iri } }`, w.graph), &out); err != nil {
			return err
		}
		w.making = false
		if out.Graph != nil {
			w.made, w.revision = true, 0
		}
	}
	if !w.made {
		return nil
	}
	if err := w.holds(c); err != nil || !w.setting {
		return err
	}
	var revisions [2]kg.Revision
	for i := range revisions { // asked again it is done once
		var err error
		if revisions[i], err = w.set(c, w.number+1); err != nil {
			return err
		}
	}
	if revisions[0] != revisions[1] || revisions[0] <= w.revision {
		return fmt.Errorf("the policy %d of %s was set by the revisions %v, the one before by %d", w.number+1, w.graph, revisions, w.revision)
	}
	w.number, w.revision, w.setting = w.number+1, revisions[0], false
	return w.holds(c)
}

// holds reports whether the policy equals the acknowledged one, or the complete interrupted
// one, and whether it decides.
func (w *policyWitness) holds(c asker) error {
	var out struct {
		Graph struct {
			Policy struct {
				Readers, Writers []string
				Revision         kg.Revision
			}
		}
	}
	if err := c.ask(w.admin, fmt.Sprintf(`{ graph(iri: %q) { policy { readers writers revision } } }`, w.graph), &out); err != nil {
		return err
	}
	got, n := out.Graph.Policy, w.number
	slices.Sort(got.Readers)
	is := func(n int) bool {
		return slices.Equal(got.Readers, w.readersOf(n)) && slices.Equal(got.Writers, w.writersOf(n))
	}
	switch {
	case is(n) && (w.revision == 0 || got.Revision == w.revision):
	case w.setting && is(n+1) && got.Revision > w.revision:
		n++
	default:
		return fmt.Errorf("the policy of %s is %+v, was %d of revision %d when it was acknowledged; under way: %t", w.graph, got, w.number, w.revision, w.setting)
	}
	for i, key := range w.readers {
		var sees struct{ Graph *struct{ IRI string } }
		if err := c.ask(key, fmt.Sprintf(`{ graph(iri: %q) { iri } }`, w.graph), &sees); err != nil {
			return err
		}
		if (sees.Graph != nil) != (n%2 == i) {
			return fmt.Errorf("by policy %d of %s, reader %d sees it: %t", n, w.graph, i, sees.Graph != nil)
		}
	}
	return nil
}

// replay counts the changes: there is one for each number.
func (w *policyWitness) replay(commits []*kg.Commit) error {
	of := map[string]kg.Revision{}
	for _, c := range commits {
		for i := range c.Changes {
			ch := &c.Changes[i]
			if text := ch.Quad.Object.Value(); ch.Op == kg.Add && ch.Quad.Graph == kg.SystemGraph && ch.Quad.Predicate.Value() == kg.OwnVocabulary+"graphWriter" {
				if before, twice := of[ch.Quad.Subject.String()+text]; twice {
					return fmt.Errorf("the writer %s was set by the revisions %d and %d", text, before, c.Revision)
				}
				of[ch.Quad.Subject.String()+text] = c.Revision
			}
		}
	}
	if w.made && len(of) == 0 {
		return fmt.Errorf("the log has no writers")
	}
	return nil
}
