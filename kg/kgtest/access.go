package kgtest

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"koine/kg"
)

// policies is an Access over a table of rights by graph and agent. A graph without an entry is
// open to all. Its answers can be cached.
type policies struct {
	mu      sync.Mutex
	rules   map[kg.Term]map[kg.AgentID]kg.Right
	version atomic.Uint64
}

func (p *policies) Version() *atomic.Uint64 { return &p.version }

func (p *policies) Allowed(who kg.Principal, graph kg.Term, right kg.Right) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	rule, ok := p.rules[graph]
	return !ok || rule[who.ID] >= right
}

func (p *policies) setRule(graph kg.Term, rule map[kg.AgentID]kg.Right) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules[graph] = rule
	p.version.Add(1)
}

var (
	hidden   = kg.IRI("urn:graph:hidden")
	readable = kg.IRI("urn:graph:readable")
	reader   = kg.Principal{ID: "agent://reader"}
)

func newPolicies() *policies {
	return &policies{rules: map[kg.Term]map[kg.AgentID]kg.Right{
		hidden:   {tester.ID: kg.Manage},
		readable: {tester.ID: kg.Manage, reader.ID: kg.Read},
	}}
}

// testAccess proves that data which a caller may not read is invisible to it through every
// operation, and that the newest policy applies.
func testAccess(t *testing.T, f Factory) {
	b := newBoth(t, f, kg.Options{Governor: kg.Governor{Access: newPolicies()}})
	secret := quadIn(hidden, "secret", "secretly", "secret")
	typed := secret
	typed.Predicate = kg.IRI(kg.RDFType)
	shown := quadIn(readable, "s", "p", "o")
	b.update(kg.Meta{}, add(secret, ""), add(typed, ""), add(shown, ""), add(quad("s", "p", "o2"), ""))
	b.update(kg.Meta{}, add(secret, "agent://whistleblower"), addWith(secret, "", 0.5), addWith(shown, "", 0.5))
	b.update(kg.Meta{}, replace(quadIn(hidden, "secret", "secretly", "new"), ""))
	b.update(kg.Meta{}, replace(quadIn(hidden, "secret", "secretly", "newer"), ""), replace(quadIn(readable, "s", "p", "o4"), ""))

	for name, who := range map[string]kg.Principal{"one who may": tester, "one who may not": reader, "anonymous": {}} {
		t.Run("reading by "+name, func(t *testing.T) { checkReads(t, b, who) })
	}
	t.Run("writing", func(t *testing.T) { checkWrites(t, b) })
	t.Run("commits", func(t *testing.T) {
		for r := kg.Revision(1); r <= b.model.Head(); r++ {
			checkCommit(t, b, r)
			sameCommit(within(t), t, b.model, b.Store, r)
		}
	})
	t.Run("the newest policy decides", func(t *testing.T) {
		kept, asked := newPolicies(), newPolicies()
		testNewestPolicy(t, f, kept, kept)
		testNewestPolicy(t, f, asked, struct{ kg.Access }{asked})
	})
}

func checkReads(t *testing.T, b *both, who kg.Principal) {
	for _, v := range []kg.View{
		{}, {AllGraphs: true}, {Graphs: []kg.Term{hidden}}, {Graphs: []kg.Term{hidden, readable}},
		{At: 1}, {At: 2, Graphs: []kg.Term{hidden}}, {MinCertainty: 0.4},
	} {
		v.Principal = who
		snap := open(t, b.Store, v)
		for _, p := range []kg.Pattern{
			{}, {Graph: hidden}, {Graph: readable}, {Subject: kg.IRI("urn:secret")}, {Object: kg.IRI("urn:secret")},
			{Predicate: kg.IRI("urn:secretly")}, {Predicate: kg.IRI(kg.RDFType)}, {Predicate: kg.IRI(kg.RDFType), Object: kg.IRI("urn:secret")},
		} {
			sameStatements(t, b.model, snap, p)
			samePages(t, b.model, snap, p, 2)
		}
		sameCounts(t, b.model, snap)
		if who.ID != tester.ID && slices.Contains(snap.Sources(), "agent://whistleblower") {
			t.Error("Sources lists an agent that only a hidden graph knows")
		}
		snap.Close()
	}
	for _, f := range []kg.Filter{{}, {Patterns: []kg.Pattern{{Graph: hidden}}}, {Patterns: []kg.Pattern{{Graph: hidden}, {Subject: kg.IRI("urn:s")}}}, {View: kg.View{AllGraphs: true}}} {
		f.View.Principal = who
		from := b.Oldest()
		events, err := Watched(within(t), b.Store, f, from, len(b.model.Events(f, from)))
		if err == nil {
			err = Filtered(History{from, events}, b.model, f)
		}
		if err != nil {
			t.Errorf("watching %+v: %v", f, err)
		}
	}
}

// checkCommit proves that a commit has the changes that its reader may see, and that a
// commit without such changes is not found.
func checkCommit(t *testing.T, b *both, r kg.Revision) {
	t.Helper()
	var want []string
	for _, change := range b.model.Commits[r-1].Changes {
		if change.Quad.Graph != hidden {
			want = append(want, quadText(change.Quad))
		}
	}
	c, err := b.Commit(within(t), reader, r)
	if len(want) == 0 {
		if kg.CodeOf(err) != kg.CodeNotFound {
			t.Errorf("Commit(%d), all of it hidden: got %v, %v, want %s", r, c, err, kg.CodeNotFound)
		}
		return
	}
	if err != nil {
		t.Fatalf("Commit(%d): %v", r, err)
	}
	var got []string
	for _, change := range c.Changes {
		got = append(got, quadText(change.Quad))
		if len(want) < len(b.model.Commits[r-1].Changes) && (change.Replaces != nil || change.ReplacedBy >= 0) {
			t.Errorf("Commit(%d) keeps indexes of changes among which some are hidden: %s", r, changeText(change))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Commit(%d) (-want +got):\n%s", r, diff)
	}
}

func checkWrites(t *testing.T, b *both) {
	for _, row := range []struct {
		name string
		who  kg.Principal
		do   kg.Patch
		code kg.Code
	}{
		{"adding to a hidden graph", reader, add(quadIn(hidden, "s", "p", "o"), ""), kg.CodeGraphNotFound},
		{"removing what is in a hidden graph", reader, remove(quadIn(hidden, "secret", "secretly", "newer"), ""), kg.CodeGraphNotFound},
		{"removing what is not in a hidden graph", reader, remove(quadIn(hidden, "s", "p", "o"), ""), kg.CodeGraphNotFound},
		{"replacing in a hidden graph", reader, replace(quadIn(hidden, "s", "p", "o"), ""), kg.CodeGraphNotFound},
		{"adding to a readable graph", reader, add(quadIn(readable, "s", "p", "o3"), ""), kg.CodePermissionDenied},
		{"removing what is not in a readable graph", reader, remove(quadIn(readable, "s", "p", "o3"), ""), kg.CodePermissionDenied},
		{"adding to an open graph", reader, add(quad("s", "p", "o3"), ""), ""},
		{"adding with the right to", tester, add(quadIn(hidden, "s", "p", "o"), ""), ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			head := b.model.Head()
			// The valid patch beside it must not be applied either.
			b.update(kg.Meta{Principal: row.who}, add(quad("s", "p", "\"beside "+row.name), ""), row.do)
			want := head
			if row.code == "" {
				want++
			}
			_, err := b.Update(within(t), kg.Meta{Principal: row.who, DryRun: true}, applyPatches([]kg.Patch{row.do}))
			if code := kg.CodeOf(err); code != row.code || b.Head().Revision != want {
				t.Errorf("got %q (%v) at revision %d, want %q at %d", code, err, b.Head().Revision, row.code, want)
			}
		})
	}
	t.Run("an update reads what its caller may", func(t *testing.T) {
		_, err := b.Update(within(t), kg.Meta{Principal: reader, DryRun: true}, func(tx *kg.Tx) error {
			found, err := collect(tx.Match(kg.Pattern{}))
			for _, s := range found {
				if s.Graph == hidden {
					t.Errorf("Tx.Match shows %s", statementText(s))
				}
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// testNewestPolicy opens and closes a graph while an agent reads and watches. Each step waits for
// the event of the previous one. The store uses given, which is access itself or an Access
// without a version.
func testNewestPolicy(t *testing.T, f Factory, access *policies, given kg.Access) {
	b := newBoth(t, f, kg.Options{Governor: kg.Governor{Access: given}})
	rec := Record(t, b.Store, kg.Filter{View: kg.View{Principal: reader}}, b.Oldest())
	want := 0
	say := func(open bool, text string) {
		q := quadIn(hidden, "s", "p", "\""+text)
		b.update(kg.Meta{}, add(q, ""))
		b.update(kg.Meta{}, add(quad("s", "p", "\""+text), "")) // always visible
		want++
		if open {
			want++
		}
		if h, err := rec.Wait(within(t), want); err != nil || len(h.Events) != want {
			t.Fatalf("%s: got %d events, %v, want %d", text, len(h.Events), err, want)
		}
		snap := openTo(t, b.Store, reader, 0)
		defer snap.Close()
		n, err := snap.Count(kg.Pattern{Graph: hidden, Object: q.Object})
		if err != nil || n > 0 != open {
			t.Errorf("%s: reads %d statements, %v", text, n, err)
		}
	}
	say(false, "shut")
	access.setRule(hidden, map[kg.AgentID]kg.Right{tester.ID: kg.Manage, reader.ID: kg.Read})
	say(true, "open")
	for r, n := range map[kg.Revision]uint64{1: 1, b.model.Head(): 2} { // including writes while it was closed
		snap := openTo(t, b.Store, reader, r)
		if got, err := snap.Count(kg.Pattern{Graph: hidden}); got != n || err != nil {
			t.Errorf("as of %d, opened later: got %d statements, %v, want %d", r, got, err, n)
		}
		snap.Close()
	}
	access.setRule(hidden, map[kg.AgentID]kg.Right{tester.ID: kg.Manage})
	say(false, "shut again")
	snap := openTo(t, b.Store, reader, 3)
	defer snap.Close()
	if got, err := snap.Count(kg.Pattern{Graph: hidden}); got != 0 || err != nil {
		t.Errorf("as of a revision in which it was open: got %d statements, %v", got, err)
	}
	from := b.Oldest()
	filter := kg.Filter{View: kg.View{Principal: reader}}
	events, err := Watched(context.Background(), b.Store, filter, from, len(b.model.Events(filter, from)))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		if e.Statement.Graph == hidden {
			t.Errorf("replayed after it was shut: %s", eventText(e))
		}
	}
}

func openTo(t testing.TB, s *Store, who kg.Principal, at kg.Revision) *kg.Snapshot {
	t.Helper()
	return open(t, s, kg.View{Principal: who, At: at})
}

// changingAccess is an Access to all, whose answers for one principal change with a commit.
type changingAccess struct {
	kg.AllowAll
	of      kg.AgentID
	changed atomic.Uint64 // the revision
}

func (a *changingAccess) ReadChanged(p kg.Principal, after kg.Revision) (bool, kg.Revision) {
	at := kg.Revision(a.changed.Load())
	return p.ID == a.of && at > after, max(at, after)
}

// testRightsWatched proves that a commit which changes a principal's rights ends its watches at
// once, also those that the commit does not match, and that no position behind it is given out.
func testRightsWatched(t *testing.T, f Factory) {
	access := &changingAccess{of: reader.ID}
	b := newBoth(t, f, kg.Options{
		Governor: kg.Governor{Access: access, OnSystemChange: func(c *kg.Commit) { access.changed.Store(uint64(c.Revision)) }},
	})
	b.update(kg.Meta{}, add(quad("s", "p", "1"), ""))
	one := kg.Pattern{Subject: quad("s", "p", "1").Subject}
	watcher, err := b.Watch(within(t), kg.Filter{View: kg.View{Principal: reader}, Patterns: []kg.Pattern{one}}, b.Head())
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Close()
	other := Record(t, b.Store, kg.Filter{View: kg.View{Principal: tester}, Patterns: []kg.Pattern{one}}, b.Head())
	ended := make(chan error, 1)
	go func() {
		for _, err := range watcher.Events() {
			ended <- err
		}
	}()
	b.update(kg.Meta{}, add(quad("other", "p", "1"), ""))
	waitUntil(t, "the watch to have nothing to do", func() bool { return watcher.Position() == b.Head() })
	before := b.Head()
	b.update(kg.Meta{}, add(kg.Quad{Subject: kg.IRI("urn:x"), Predicate: kg.IRI("urn:y"), Object: kg.IRI("urn:z"), Graph: ownGraph}, ""))
	select {
	case err := <-ended:
		if kg.CodeOf(err) != kg.CodeAccessChanged {
			t.Errorf("the watch ended with %v, want ACCESS_CHANGED", err)
		}
	case <-within(t).Done():
		t.Fatal("the watch has not ended")
	}
	if at := watcher.Position(); at.Compare(before) > 0 {
		t.Errorf("the position %v is behind the change of rights: a watch from there would not end", at)
	}
	b.update(kg.Meta{}, add(quad("s", "p", "2"), ""))
	if _, err := other.Wait(within(t), 1); err != nil {
		t.Errorf("the watch of a principal whose rights did not change: %v", err)
	}
}
