package policy_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"koine/internal/policy"
	"koine/internal/slowtest"
	"koine/internal/systemgraph"
	"koine/kg"
)

// watched is the output of a watcher: the texts of the messages, and its end.
type watched struct {
	texts []string
	err   error
}

// watch follows as the principal until the text "end" comes or the watcher ends.
func (b *bench) watch(ctx context.Context, p kg.Principal, f kg.Filter, from kg.Position) (<-chan watched, *kg.Watcher) {
	b.t.Helper()
	f.View.Principal = p
	w, err := b.store.Watch(ctx, f, from)
	b.must(err)
	b.t.Cleanup(w.Close)
	out := make(chan watched, 1)
	go func() {
		var all watched
		defer func() { out <- all }()
		for e, err := range w.Events() {
			if err != nil {
				all.err = err
				return
			}
			all.texts = append(all.texts, e.Statement.Object.Value())
			if e.Statement.Object.Value() == "end" {
				return
			}
		}
	}()
	return out, w
}

// waitDelivered waits until the watcher has delivered everything.
func (b *bench) waitDelivered(w *kg.Watcher) {
	b.t.Helper()
	ctx := slowtest.Context(b.t)
	for head := b.store.Head(); w.Position().Compare(head) < 0; time.Sleep(time.Millisecond) {
		if ctx.Err() != nil {
			b.t.Fatalf("told up to %v, not to %v", w.Position(), head)
		}
	}
}

func (b *bench) ended(what string, c <-chan watched, code kg.Code, texts ...string) {
	b.t.Helper()
	select {
	case got := <-c:
		if kg.CodeOf(got.err) != code {
			b.t.Errorf("%s: ended with %v, want %q", what, got.err, code)
		}
		if len(got.texts) != len(texts) {
			b.t.Errorf("%s: got %q, want %q", what, got.texts, texts)
		}
	case <-slowtest.Context(b.t).Done():
		b.t.Fatalf("%s: nothing came", what)
	}
}

// A stream ends with the commit that changes its principal's access, even if nothing that
// it follows changes, and delivers no more hidden statements; the streams of others
// continue.
func TestStreamsLearnOfPolicies(t *testing.T) {
	b := newBench(t, policy.Options{})
	g := iri("agent://dora/notes")
	_, _, err := b.graphs.Create(context.Background(), meta(dora), policy.Creation{Graph: g, Readers: []policy.Grantee{"eve"}})
	b.must(err)
	nothing := kg.Filter{Patterns: []kg.Pattern{{Subject: iri("urn:never")}}}
	ctx := slowtest.Context(t)
	from := b.store.Head()
	bob := kg.Principal{ID: "agent://bob", Method: "key"}
	hers, reader := b.watch(ctx, eve, kg.Filter{}, from)
	still, _ := b.watch(ctx, eve, nothing, from)
	owners, _ := b.watch(ctx, dora, kg.Filter{}, from)
	others, _ := b.watch(ctx, bob, kg.Filter{}, from)
	admins, _ := b.watch(ctx, admin, kg.Filter{}, from)

	// Creating a graph changes the access of no other caller, public or not.
	_, _, err = b.graphs.Create(context.Background(), meta(eve), policy.Creation{Public: yes()})
	b.must(err)
	b.must(b.add(dora, g, "seen"))
	b.waitDelivered(reader) // the newest policy decides: events not delivered by then never are
	b.must(b.set(dora, policy.PolicyUpdate{Graph: g, Readers: []policy.Grantee{}}))
	b.must(b.add(dora, g, "hidden"))
	b.must(b.add(dora, kg.DefaultGraph, "end"))
	b.ended("a reader", hers, kg.CodeAccessChanged, "seen")
	b.ended("a reader of nothing that changes", still, kg.CodeAccessChanged)
	b.ended("the owner", owners, "", "seen", "hidden", "end")
	b.ended("one who never saw it", others, "", "end")
	b.ended("an administrator", admins, "", "seen", "hidden", "end")

	// A stream that resumes before the change gets its end, one that resumes after it does
	// not.
	resumed, _ := b.watch(ctx, eve, kg.Filter{}, from)
	b.ended("resumed from before", resumed, kg.CodeAccessChanged)
	again, _ := b.watch(ctx, eve, kg.Filter{}, b.store.Oldest())
	b.ended("from the oldest position: a replay, under the newest policy", again, "", "end")
	from = b.store.Head()
	b.must(b.add(eve, kg.DefaultGraph, "end"))
	late, _ := b.watch(ctx, eve, kg.Filter{}, from)
	b.ended("resumed from behind", late, "", "end")

	// A gain of access ends it as well.
	gains, _ := b.watch(ctx, bob, kg.Filter{}, b.store.Head())
	b.must(b.set(dora, policy.PolicyUpdate{Graph: g, Readers: []policy.Grantee{"bob"}}))
	b.must(b.add(dora, g, "end"))
	b.ended("one who may read it now", gains, kg.CodeAccessChanged)

	// And its end does.
	last, _ := b.watch(ctx, bob, kg.Filter{}, b.store.Head())
	gone, _ := b.watch(ctx, dora, kg.Filter{}, b.store.Head())
	root, _ := b.watch(ctx, admin, kg.Filter{}, b.store.Head())
	_, err = b.graphs.Delete(context.Background(), meta(dora), g)
	b.must(err)
	b.ended("a reader of a graph that is deleted", last, kg.CodeAccessChanged)
	b.ended("its owner", gone, kg.CodeAccessChanged)
	b.ended("an administrator", root, kg.CodeAccessChanged)
}

// A reader that resumes after a restart gets the change of access behind its position,
// though its details are forgotten; graphs created meanwhile are no change.
func TestResumeAfterRestart(t *testing.T) {
	b := newBench(t, policy.Options{})
	g := iri("agent://dora/notes")
	_, _, err := b.graphs.Create(context.Background(), meta(dora), policy.Creation{Graph: g, Readers: []policy.Grantee{"eve"}})
	b.must(err)
	before := b.store.Head()
	b.must(b.set(dora, policy.PolicyUpdate{Graph: g, Readers: []policy.Grantee{}}))
	late := b.store.Head()
	_, _, err = b.graphs.Create(context.Background(), meta(eve), policy.Creation{})
	b.must(err)
	b.must(b.add(dora, kg.DefaultGraph, "end"))
	b.close()
	b.open(policy.Options{})
	c, _ := b.watch(slowtest.Context(t), eve, kg.Filter{}, before)
	b.ended("from before", c, kg.CodeAccessChanged)
	c, _ = b.watch(slowtest.Context(t), eve, kg.Filter{}, late)
	b.ended("from behind", c, "", "end")
}

// So many changes are remembered, and past them all that is known is that there
// were some.
func TestKeptChanges(t *testing.T) {
	ps := policy.New(policy.Options{})
	follow := func(r kg.Revision) {
		g := iri("urn:g")
		c := &kg.Commit{Revision: r}
		for _, object := range []string{"public", "private"} {
			after := []kg.Assertion{{}}
			if (r%2 == 0) != (object == "public") {
				after = nil
			}
			c.Changes = append(c.Changes, kg.Change{Quad: kg.Quad{Subject: g, Predicate: iri(kg.OwnVocabulary + "graphVisibility"), Object: kg.String(object), Graph: kg.SystemGraph}, After: after})
		}
		ps.Follow(c)
	}
	for r := range kg.Revision(systemgraph.MaxRecentChanges) {
		follow(r + 1)
	}
	changed, upTo := ps.ReadChanged(admin, 0)
	if changed || upTo != systemgraph.MaxRecentChanges {
		t.Errorf("all are remembered: got %v, %d", changed, upTo)
	}
	follow(systemgraph.MaxRecentChanges + 1)
	for after, want := range map[kg.Revision]bool{0: true, 1: false} {
		if changed, _ := ps.ReadChanged(admin, after); changed != want {
			t.Errorf("after %d: got %v, want %v", after, changed, want)
		}
	}
	if changed, _ := ps.ReadChanged(eve, systemgraph.MaxRecentChanges); !changed {
		t.Error("a change of sight was not told")
	}
}

// A watcher across the deletion of a graph and its creation anew: a reader gets a resync
// and nothing from before, and other callers get nothing at all.
func TestWatchAcrossAGraphMadeAgain(t *testing.T) {
	b := newBench(t, policy.Options{DefaultGraph: policy.ReadWrite})
	g := iri("agent://dora/notes")
	create := func() {
		t.Helper()
		_, _, err := b.graphs.Create(context.Background(), meta(dora), policy.Creation{Graph: g})
		b.must(err)
	}
	create()
	before := b.store.Head()
	b.must(b.add(dora, g, "secret"))
	live, lw := b.watch(slowtest.Context(t), dora, kg.Filter{Replacements: true}, b.store.Head())
	stranger, _ := b.watch(slowtest.Context(t), eve, kg.Filter{Replacements: true}, b.store.Head())
	b.must(b.add(dora, g, "seen"))
	b.waitDelivered(lw)
	b.load(g, 2*kg.MaxPatches)
	_, err := b.graphs.Delete(context.Background(), meta(dora), g)
	b.must(err)
	deleted := b.store.Head()
	create()
	b.must(b.add(dora, g, "new"))
	b.must(b.add(dora, kg.DefaultGraph, "end"))
	select {
	case got := <-live:
		if kg.CodeOf(got.err) != kg.CodeAccessChanged || got.texts[0] != "seen" || slices.Contains(got.texts, "new") {
			t.Errorf("its owner is told %d texts and %v", len(got.texts), got.err)
		}
	case <-slowtest.Context(t).Done():
		t.Fatal("its owner's watcher does not end")
	}
	b.ended("a stranger", stranger, "", "end")
	resumed, _ := b.watch(slowtest.Context(t), dora, kg.Filter{Replacements: true}, before)
	b.ended("its owner, from before", resumed, kg.CodeAccessChanged)
	late, _ := b.watch(slowtest.Context(t), dora, kg.Filter{Replacements: true}, deleted)
	b.ended("its owner, from the deletion", late, "", "new", "end")
	all, _ := b.watch(slowtest.Context(t), dora, kg.Filter{Replacements: true}, b.store.Oldest())
	b.ended("its owner, from the beginning", all, "", "new", "end")
	strangers, _ := b.watch(slowtest.Context(t), eve, kg.Filter{Replacements: true}, before)
	b.ended("a stranger, from before", strangers, "", "end")
}
