package policy_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"koine/internal/policy"
	"koine/internal/slowtest"
	"koine/kg"
)

// A new graph belongs to its creator alone, until its policy says otherwise; every right
// covers exactly its operations.
func TestPolicyDecides(t *testing.T) {
	b := newBench(t, policy.Options{})
	p, _, err := b.graphs.Create(context.Background(), meta(dora), policy.Creation{})
	b.must(err)
	g := p.Graph
	if !strings.HasPrefix(g.Value(), "urn:uuid:") {
		t.Errorf("made up the name %s", g)
	}
	b.must(b.add(dora, g, "one"))
	for _, row := range []struct {
		name   string
		change policy.PolicyUpdate
		who    kg.Principal
		sees   uint64
		write  kg.Code
		manage kg.Code
	}{
		{"nothing said, a stranger", policy.PolicyUpdate{Owners: []policy.Grantee{"dora"}}, eve, 0, kg.CodeGraphNotFound, kg.CodeGraphNotFound},
		{"nothing said, an administrator", policy.PolicyUpdate{Owners: []policy.Grantee{"dora"}}, admin, 1, "", ""},
		{"a reader", policy.PolicyUpdate{Readers: []policy.Grantee{"eve"}}, eve, 1, kg.CodePermissionDenied, kg.CodePermissionDenied},
		{"a writer", policy.PolicyUpdate{Readers: []policy.Grantee{}, Writers: []policy.Grantee{policy.Agent(eve.ID)}}, eve, 1, "", kg.CodePermissionDenied},
		{"no longer", policy.PolicyUpdate{Writers: []policy.Grantee{}}, eve, 0, kg.CodeGraphNotFound, kg.CodeGraphNotFound},
		{"public", policy.PolicyUpdate{Public: yes()}, eve, 1, kg.CodePermissionDenied, kg.CodePermissionDenied},
		{"private again", policy.PolicyUpdate{Public: no()}, eve, 0, kg.CodeGraphNotFound, kg.CodeGraphNotFound},
		{"another role", policy.PolicyUpdate{Readers: []policy.Grantee{"role:other"}}, eve, 0, kg.CodeGraphNotFound, kg.CodeGraphNotFound},
		{"everybody reads", policy.PolicyUpdate{Readers: []policy.Grantee{"*"}}, eve, 1, kg.CodePermissionDenied, kg.CodePermissionDenied},
		{"everybody writes", policy.PolicyUpdate{Readers: []policy.Grantee{}, Writers: []policy.Grantee{"*"}}, eve, 1, "", kg.CodePermissionDenied},
		{"an owner by role", policy.PolicyUpdate{Writers: []policy.Grantee{}, Owners: []policy.Grantee{"role:scribe"}}, dora, 1, "", ""},
	} {
		b.must(b.set(admin, withGraph(g, row.change)))
		if got := b.count(row.who, g); got != row.sees {
			t.Errorf("%s: sees %d statements, want %d", row.name, got, row.sees)
		}
		dry := meta(row.who)
		dry.DryRun = true
		_, err := b.store.Update(context.Background(), dry, func(tx *kg.Tx) error {
			return tx.Apply(kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: iri("urn:s"), Predicate: iri("urn:p"), Object: kg.String("more"), Graph: g}})
		})
		wantCode(t, row.name+", writing", err, row.write)
		_, _, err = b.graphs.Set(context.Background(), dry, policy.PolicyUpdate{Graph: g, Public: no()})
		wantCode(t, row.name+", managing", err, row.manage)
	}
}

// The server's options hold for graphs without a policy.
func TestDefaults(t *testing.T) {
	other, own, blank := iri("urn:other"), iri("agent://dora/notes"), kg.Blank("other")
	for _, row := range []struct {
		options            policy.Options
		who                kg.Principal
		graph              kg.Term
		read, write, there kg.Code // there: a graph that holds something
	}{
		{policy.Options{}, eve, kg.DefaultGraph, "", "", ""},
		{policy.Options{DefaultGraph: policy.ReadOnly}, eve, kg.DefaultGraph, "", kg.CodePermissionDenied, kg.CodePermissionDenied},
		{policy.Options{DefaultGraph: policy.Private}, eve, kg.DefaultGraph, "hidden", kg.CodeGraphNotFound, kg.CodeGraphNotFound},
		{policy.Options{DefaultGraph: policy.Private}, admin, kg.DefaultGraph, "", "", ""},
		{policy.Options{}, eve, other, "hidden", kg.CodeGraphNotFound, kg.CodeGraphNotFound},
		{policy.Options{NewGraphs: policy.ReadOnly}, eve, other, "", kg.CodePermissionDenied, kg.CodePermissionDenied},
		{policy.Options{NewGraphs: policy.ReadWrite}, eve, other, "", kg.CodeGraphNotFound, ""},
		{policy.Options{}, eve, blank, "hidden", kg.CodeGraphNotFound, kg.CodeGraphNotFound},
		{policy.Options{NewGraphs: policy.ReadOnly}, eve, blank, "", kg.CodePermissionDenied, kg.CodePermissionDenied},
		{policy.Options{NewGraphs: policy.ReadWrite}, eve, blank, "", kg.CodeGraphNotFound, ""},
		{policy.Options{}, admin, blank, "", "", ""},
		{policy.Options{NewGraphs: policy.ReadWrite}, eve, own, "hidden", kg.CodeGraphNotFound, kg.CodeGraphNotFound},
		{policy.Options{}, dora, own, "", "", ""},
		{policy.Options{}, kg.Principal{ID: "agent://dor", Method: "key"}, own, "hidden", kg.CodeGraphNotFound, kg.CodeGraphNotFound},
		{policy.Options{}, kg.Principal{ID: "agent:x", Method: "key"}, iri("agent:x/notes"), "hidden", kg.CodeGraphNotFound, kg.CodeGraphNotFound},
		{policy.Options{}, kg.Principal{ID: "agent://dora/notes", Method: "key"}, iri("agent://dora/notes/more"), "hidden", kg.CodeGraphNotFound, kg.CodeGraphNotFound},
		{policy.Options{}, kg.Principal{ID: "https://example.org", Method: "key"}, iri("https://example.org/g"), "hidden", kg.CodeGraphNotFound, kg.CodeGraphNotFound},
		{policy.Options{}, kg.Principal{ID: "did:web:x", Method: "key"}, iri("did:web:x/g"), "", "", ""},
		{policy.Options{}, eve, kg.SystemGraph, "hidden", kg.CodeReserved, kg.CodeReserved},
		{policy.Options{NewGraphs: policy.ReadWrite}, eve, kg.SystemGraph, "hidden", kg.CodeReserved, kg.CodeReserved},
		{policy.Options{}, admin, kg.SystemGraph, "", kg.CodeReserved, kg.CodeReserved},
		{policy.Options{}, eve, iri(kg.OwnGraphPrefix + "agents"), "", kg.CodeReserved, kg.CodeReserved},
		{policy.Options{}, eve, iri(kg.OwnGraphPrefix + "proposal:1"), "hidden", kg.CodeReserved, kg.CodeReserved},
	} {
		b := newBench(t, row.options)
		name := fmt.Sprint(row.options, row.who.ID, row.graph)
		wantCode(t, name+" absent", b.add(row.who, row.graph, "first"), row.write)
		b.must(b.add(local, row.graph, "here"))
		if got, want := b.count(row.who, row.graph) > 0, row.read == ""; got != want {
			t.Errorf("%s: reads: %v", name, got)
		}
		wantCode(t, name+" there", b.add(row.who, row.graph, "second"), row.there)
	}
}

// A graph named by a blank node has a policy like any other: an administrator sets it, it
// decides the readers, and it does not affect another graph with that label or name.
func TestPolicyOfABlankGraph(t *testing.T) {
	b := newBench(t, policy.Options{})
	g, other := kg.Blank("g"), kg.Blank("g2")
	b.must(b.add(local, g, "one"))
	b.must(b.add(local, other, "two"))
	ctx := context.Background()
	_, _, err := b.graphs.Create(ctx, meta(admin), policy.Creation{Graph: g})
	wantCode(t, "creating", err, kg.CodeInvalid)
	_, _, err = b.graphs.Set(ctx, meta(eve), policy.PolicyUpdate{Graph: g, Public: yes()})
	wantCode(t, "a stranger's policy", err, kg.CodeGraphNotFound)
	_, _, err = b.graphs.Set(ctx, meta(admin), policy.PolicyUpdate{Graph: g, Readers: []policy.Grantee{"eve"}})
	b.must(err)
	if got := b.count(eve, g); got != 1 {
		t.Errorf("a reader sees %d statements, want 1", got)
	}
	if got := b.count(eve, other); got != 0 {
		t.Errorf("a reader of %s sees %d statements of %s", g, got, other)
	}
	wantCode(t, "a reader writes", b.add(eve, g, "three"), kg.CodePermissionDenied)
	_, err = b.graphs.Delete(ctx, meta(admin), g)
	b.must(err)
	if got := b.count(admin, g); got != 0 {
		t.Errorf("%d statements of a deleted graph are seen", got)
	}
	wantCode(t, "a deleted graph", b.add(admin, g, "four"), kg.CodeGraphNotFound)
}

// A hidden graph is answered like one that does not exist, word for word, for every
// request.
func TestHiddenIsAbsent(t *testing.T) {
	b := newBench(t, policy.Options{})
	hidden, absent := iri("urn:g:hidden"), iri("urn:g:absent")
	_, _, err := b.graphs.Create(context.Background(), meta(admin), policy.Creation{Graph: hidden})
	b.must(err)
	b.must(b.add(admin, hidden, "secret"))
	head := b.store.Head()
	for name, do := range map[string]func(kg.Term) error{
		"add": func(g kg.Term) error { return b.add(eve, g, "x") },
		"remove": func(g kg.Term) error {
			return b.apply(eve, kg.Patch{Op: kg.Remove, Quad: kg.Quad{Subject: iri("urn:s"), Predicate: iri("urn:p"), Object: kg.String("secret"), Graph: g}})
		},
		"set":    func(g kg.Term) error { return b.set(eve, policy.PolicyUpdate{Graph: g, Public: yes()}) },
		"delete": func(g kg.Term) error { _, err := b.graphs.Delete(context.Background(), meta(eve), g); return err },
		"create by name": func(g kg.Term) error {
			_, _, err := b.graphs.Create(context.Background(), meta(eve), policy.Creation{Graph: g})
			return err
		},
		"expected": func(g kg.Term) error {
			_, err := b.store.Update(context.Background(), kg.Meta{Principal: eve, HasExpected: true}, func(tx *kg.Tx) error {
				return tx.Apply(kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: iri("urn:s"), Predicate: iri("urn:p"), Object: kg.String("y"), Graph: g}})
			})
			return err
		},
		"with a key": func(g kg.Term) error {
			_, err := b.store.Update(context.Background(), kg.Meta{Principal: eve, IdempotencyKey: "k", ContentHash: [32]byte{1}}, func(tx *kg.Tx) error {
				return tx.Apply(kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: iri("urn:s"), Predicate: iri("urn:p"), Object: kg.String("y"), Graph: g}})
			})
			return err
		},
	} {
		say := func(g kg.Term) string {
			e := kg.AsError(do(g))
			return strings.ReplaceAll(fmt.Sprint(e.Code, "|", e.Message, "|", e.Field, "|", e.Hint), g.Value(), "G")
		}
		if got, want := say(hidden), say(absent); got != want || strings.HasPrefix(got, "|") {
			t.Errorf("%s: hidden %q, absent %q", name, got, want)
		}
	}
	if b.store.Head() != head {
		t.Error("something was written")
	}
}

// A deleted graph is gone for all callers, with its past, and its name too.
func TestDelete(t *testing.T) {
	b := newBench(t, policy.Options{})
	g := iri("agent://dora/notes")
	const many = 2500
	for from := 0; from < many; from += 500 {
		var patches []kg.Patch
		for i := range 500 {
			patches = append(patches, kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: iri("urn:s"), Predicate: iri("urn:p"), Object: kg.Integer(int64(from + i)), Graph: g}})
		}
		b.must(b.apply(dora, patches...))
	}
	full := b.store.Head().Revision
	if _, err := b.graphs.Delete(context.Background(), meta(eve), g); kg.CodeOf(err) != kg.CodeGraphNotFound {
		t.Errorf("by a stranger: %v", err)
	}
	b.must(b.set(dora, policy.PolicyUpdate{Graph: g, Readers: []policy.Grantee{"eve"}}))
	if _, err := b.graphs.Delete(context.Background(), meta(eve), g); kg.CodeOf(err) != kg.CodePermissionDenied {
		t.Errorf("by a reader: %v", err)
	}
	d, err := b.graphs.Delete(context.Background(), meta(dora), g)
	b.must(err)
	if d.Removed != many || d.Remaining != 0 || d.Receipt.Revision != b.store.Head().Revision {
		t.Errorf("got %+v at %d", d, b.store.Head().Revision)
	}
	for range 2 {
		for _, p := range []kg.Principal{dora, eve, admin} {
			if now, then := b.count(p, g), b.countAt(p, g, full); now+then != 0 {
				t.Errorf("%s sees %d statements, and %d of the past", p.ID, now, then)
			}
			wantCode(t, "writing", b.add(p, g, "x"), kg.CodeGraphNotFound)
			wantCode(t, "setting", b.set(p, policy.PolicyUpdate{Graph: g, Public: yes()}), kg.CodeGraphNotFound)
		}
		for _, p := range []kg.Principal{dora, admin} {
			again, err := b.graphs.Delete(context.Background(), meta(p), g)
			if err != nil || again.Removed != 0 || again.Receipt.Committed {
				t.Errorf("deleting it again: %+v, %v", again, err)
			}
		}
		_, err = b.graphs.Delete(context.Background(), meta(eve), g)
		wantCode(t, "deleting it again by who did not own it", err, kg.CodeGraphNotFound)
		if got := b.countAt(local, g, full); got != 0 {
			t.Errorf("koine itself sees %d statements of the past", got)
		}
		b.close()
		b.open(policy.Options{})
	}
	// An absent graph has one kind of hint, whatever it was.
	hidden := iri("agent://dora/hidden")
	b.must(b.add(dora, hidden, "x"))
	answers := map[string]string{}
	for _, absent := range []kg.Term{g, hidden, iri("agent://dora/never")} {
		_, err := b.graphs.Delete(context.Background(), meta(eve), absent)
		e := kg.AsError(err)
		if e.Code != kg.CodeGraphNotFound || !strings.Contains(e.Hint, "hidden from all but its owners") {
			t.Errorf("deleting %s: %v, hint %q", absent, err, e.Hint)
		}
		answers[strings.ReplaceAll(e.Message, absent.String(), "G")+e.Hint+e.Field] = absent.String()
	}
	if len(answers) != 1 {
		t.Errorf("the errors for absent graphs differ in %d ways: %q", len(answers), answers)
	}
	for _, g := range []kg.Term{kg.DefaultGraph, kg.SystemGraph} {
		if _, err := b.graphs.Delete(context.Background(), meta(admin), g); err == nil {
			t.Errorf("%s was deleted", g)
		}
	}
}

// One call deletes a graph of any size.
func TestDeleteLarge(t *testing.T) {
	slowtest.Long(t)
	b := newBench(t, policy.Options{})
	g := iri("urn:large")
	const many = 2*kg.MaxPatches + 1
	b.load(g, many)
	d, err := b.graphs.Delete(context.Background(), meta(admin), g)
	if err != nil || d.Removed != many || d.Remaining != 0 {
		t.Fatalf("got %+v, %v", d, err)
	}
	if n := b.count(admin, g); n != 0 {
		t.Errorf("sees %d", n)
	}
	if n, err := b.store.SourceStatements(local.ID); err != nil || n != 0 {
		t.Errorf("its source backs %d statements, %v", n, err)
	}
	if report, err := b.store.Maintenance().Check(context.Background(), kg.CheckOptions{}); err != nil || !report.Clean() {
		t.Errorf("check: %+v, %v", report, err)
	}
}

func (b *bench) load(g kg.Term, n int) {
	_, err := b.store.Load(context.Background(), kg.Meta{Principal: local}, func(yield func(kg.Quad, error) bool) {
		for i := range n {
			if !yield(kg.Quad{Subject: iri("urn:s"), Predicate: iri("urn:p"), Object: kg.Integer(int64(i)), Graph: g}, nil) {
				return
			}
		}
	}, kg.LoadOptions{})
	b.must(err)
}

// Former owners and administrators create a deleted name again, which then reveals nothing
// of its past: every answer equals that for a name that was never used.
func TestMadeAgain(t *testing.T) {
	type told struct {
		Now, Past, Versions, Diff, Log []string
		Rights                         []kg.Right
		Code                           kg.Code
	}
	list := func(again bool) (out []told) {
		b := newBench(t, policy.Options{})
		g := iri("agent://dora/notes")
		before := iri("agent://dora/before")
		// The earlier content under the name, or, never used, under another.
		old := before
		if again {
			old = g
		}
		_, _, err := b.graphs.Create(context.Background(), meta(dora), policy.Creation{Graph: old, Public: yes()})
		b.must(err)
		b.must(b.add(dora, old, "secret"))
		b.must(b.add(dora, old, "kept"))
		start, full := b.store.Head(), b.store.Head().Revision
		_, err = b.graphs.Delete(context.Background(), meta(dora), old)
		b.must(err)
		if again {
			_, _, err := b.graphs.Create(context.Background(), meta(eve), policy.Creation{Graph: g})
			if err == nil {
				t.Error("who did not own it made it again")
			}
		}
		for range 2 { // also after a restart
			_, _, err = b.graphs.Create(context.Background(), meta(dora), policy.Creation{Graph: g, Public: yes()})
			if len(out) == 0 {
				b.must(err)
				b.must(b.add(dora, g, "kept"))
			}
			for _, p := range []kg.Principal{dora, eve, admin, local} {
				out = append(out, told{
					Now: b.objects(p, g, 0), Past: b.objects(p, g, full), Versions: b.versions(p, g, full),
					Diff: b.difference(p, g, full), Log: b.logged(p, g, start), Rights: b.graphs.Rights(p, g), Code: kg.CodeOf(err),
				})
			}
			b.close()
			b.open(policy.Options{})
		}
		return out
	}
	again, never := list(true), list(false)
	if diff := cmp.Diff(never, again); diff != "" {
		t.Errorf("a name that was used before tells other than one that was not (-never +again):\n%s", diff)
	}
}

func (b *bench) view(p kg.Principal, at kg.Revision) *kg.Snapshot {
	s, err := b.store.View(context.Background(), kg.View{Principal: p, At: at, AllGraphs: true})
	b.must(err)
	return s
}

func (b *bench) objects(p kg.Principal, g kg.Term, at kg.Revision) (out []string) {
	s := b.view(p, at)
	defer s.Close()
	for st, err := range s.Match(kg.Pattern{Graph: g}) {
		b.must(err)
		out = append(out, st.Object.Value())
	}
	return out
}

// versions are those of the graph's statements, given by their beginnings after a revision.
func (b *bench) versions(p kg.Principal, g kg.Term, after kg.Revision) (out []string) {
	s := b.view(p, 0)
	defer s.Close()
	id, known, err := s.ID(g)
	b.must(err)
	if !known {
		return nil
	}
	for v, err := range s.Versions(kg.IDPattern{Graph: id}, nil) {
		b.must(err)
		object, err := s.Term(v.Object)
		b.must(err)
		out = append(out, fmt.Sprint(object.Value(), v.From > after, v.To))
	}
	return out
}

func (b *bench) difference(p kg.Principal, g kg.Term, from kg.Revision) (out []string) {
	s := b.view(p, 0)
	defer s.Close()
	id, known, err := s.ID(g)
	b.must(err)
	if !known {
		return nil
	}
	for d, err := range s.Diff(from, kg.IDPattern{Graph: id}, nil) {
		b.must(err)
		object, err := s.Term(d.Object)
		b.must(err)
		out = append(out, fmt.Sprint(object.Value(), d.Before.From, d.After.From > from))
	}
	return out
}

// logged is the graph's part of the log from its beginning on, and the events of a watcher
// from a position on.
func (b *bench) logged(p kg.Principal, g kg.Term, from kg.Position) (out []string) {
	f := kg.Filter{Patterns: []kg.Pattern{{Graph: g}}, View: kg.View{Principal: p, AllGraphs: true}}
	l, err := b.store.ReadLog(context.Background(), f, kg.LogRange{After: b.store.Oldest(), Until: b.store.Head()})
	b.must(err)
	for e, err := range l.Events() {
		b.must(err)
		out = append(out, fmt.Sprint(e.Op, e.Statement.Object.Value()))
	}
	for r := kg.Revision(1); r <= b.store.Head().Revision; r++ {
		c, err := b.store.Commit(context.Background(), p, r)
		if err != nil {
			continue
		}
		for i := range c.Changes {
			if q := &c.Changes[i].Quad; q.Graph == g {
				out = append(out, fmt.Sprint("commit ", c.Changes[i].Op, q.Object.Value()))
			}
		}
		if c.Replaced != nil && c.Replaced.Graph == g {
			out = append(out, "replaced")
		}
	}
	return out
}

// A graph keeps an owner, unless an administrator removes it.
func TestLastOwner(t *testing.T) {
	b := newBench(t, policy.Options{})
	g := iri("agent://dora/notes")
	_, _, err := b.graphs.Create(context.Background(), meta(dora), policy.Creation{Graph: g})
	b.must(err)
	wantCode(t, "none left", b.set(dora, policy.PolicyUpdate{Graph: g, Owners: []policy.Grantee{}}), kg.CodeInvalid)
	wantCode(t, "everybody", b.set(dora, policy.PolicyUpdate{Graph: g, Owners: []policy.Grantee{"*"}}), kg.CodeInvalid)
	wantCode(t, "nothing said", b.set(dora, policy.PolicyUpdate{Graph: g}), kg.CodeInvalid)
	wantCode(t, "another", b.set(dora, policy.PolicyUpdate{Graph: g, Owners: []policy.Grantee{"eve"}}), "")
	wantCode(t, "no longer an owner, and by name it is hers no more", b.set(dora, policy.PolicyUpdate{Graph: g, Public: yes()}), kg.CodeGraphNotFound)
	wantCode(t, "by an administrator", b.set(admin, policy.PolicyUpdate{Graph: g, Owners: []policy.Grantee{}}), "")
	wantCode(t, "then nobody", b.set(eve, policy.PolicyUpdate{Graph: g, Public: yes()}), kg.CodeGraphNotFound)
}

// Names below its id belong to an agent, others to administrators, and koine's to none.
func TestNames(t *testing.T) {
	b := newBench(t, policy.Options{})
	for _, row := range []struct {
		who  kg.Principal
		name kg.Term
		code kg.Code
	}{
		{dora, iri("agent://dora/notes"), ""},
		{dora, iri("agent://dora/notes"), kg.CodeInvalid},
		{dora, iri("agent://dora/"), kg.CodePermissionDenied},
		{dora, iri("agent://eve/notes"), kg.CodePermissionDenied},
		{dora, iri("urn:any"), kg.CodePermissionDenied},
		{dora, iri(kg.OwnGraphPrefix + "mine"), kg.CodeReserved},
		{dora, kg.DefaultGraph, kg.CodeInvalid},
		{dora, kg.Blank("b"), kg.CodeInvalid},
		{admin, iri("urn:any"), ""},
		{admin, iri("not an iri"), kg.CodeInvalid},
		{admin, kg.SystemGraph, kg.CodeReserved},
	} {
		_, _, err := b.graphs.Create(context.Background(), meta(row.who), policy.Creation{Graph: row.name})
		wantCode(t, fmt.Sprint(row.who.ID, " ", row.name), err, row.code)
	}
}

// The same key gives the same graph, and with another wish none.
func TestCreateOnce(t *testing.T) {
	b := newBench(t, policy.Options{})
	m := meta(dora)
	m.IdempotencyKey = "k"
	first, _, err := b.graphs.Create(context.Background(), m, policy.Creation{Public: yes()})
	b.must(err)
	again, receipt, err := b.graphs.Create(context.Background(), m, policy.Creation{Public: yes()})
	if err != nil || again.Graph != first.Graph || !receipt.Replayed {
		t.Errorf("got %s, %+v, %v, want %s", again.Graph, receipt, err, first.Graph)
	}
	_, _, err = b.graphs.Create(context.Background(), m, policy.Creation{Public: no()})
	wantCode(t, "another wish", err, kg.CodeIdempotencyConflict)
	theirs := meta(eve)
	theirs.IdempotencyKey = "k"
	other, _, err := b.graphs.Create(context.Background(), theirs, policy.Creation{Public: yes()})
	if err != nil || other.Graph == first.Graph {
		t.Errorf("somebody else's key: %s, %v", other.Graph, err)
	}
}

// Lists have a bound.
func TestGranteeBounds(t *testing.T) {
	b := newBench(t, policy.Options{})
	list := func(n int) (out []policy.Grantee) {
		for i := range n {
			out = append(out, policy.Grantee(fmt.Sprint("a", i)))
		}
		return out
	}
	for _, row := range []struct {
		readers []policy.Grantee
		code    kg.Code
	}{
		{list(policy.MaxGrantees), ""},
		{append(list(policy.MaxGrantees), "a1", "agent://a1"), ""},
		{list(policy.MaxGrantees + 1), kg.CodeLimitExceeded},
		{[]policy.Grantee{policy.Role(strings.Repeat("r", policy.MaxRoleBytes))}, ""},
		{[]policy.Grantee{policy.Role(strings.Repeat("r", policy.MaxRoleBytes+1))}, kg.CodeLimitExceeded},
		{[]policy.Grantee{"role:"}, kg.CodeInvalid},
		{[]policy.Grantee{"role:two words"}, kg.CodeInvalid},
		{[]policy.Grantee{""}, kg.CodeInvalid},
		{[]policy.Grantee{"two words"}, kg.CodeInvalid},
	} {
		_, _, err := b.graphs.Create(context.Background(), meta(dora), policy.Creation{Readers: row.readers})
		wantCode(t, fmt.Sprint(len(row.readers)), err, row.code)
	}
}

// Policies survive a restart.
func TestPoliciesAreKept(t *testing.T) {
	b := newBench(t, policy.Options{})
	p, _, err := b.graphs.Create(context.Background(), meta(dora), policy.Creation{Readers: []policy.Grantee{"eve", "role:x"}})
	b.must(err)
	b.must(b.set(dora, policy.PolicyUpdate{Graph: p.Graph, Writers: []policy.Grantee{"bob"}}))
	b.must(b.set(admin, policy.PolicyUpdate{Graph: kg.DefaultGraph, Public: no(), Writers: []policy.Grantee{}}))
	want, _ := b.graphs.PolicyOf(p.Graph)
	wantDefault, _ := b.graphs.PolicyOf(kg.DefaultGraph)
	b.close()
	b.open(policy.Options{})
	got, stored := b.graphs.PolicyOf(p.Graph)
	gotDefault, _ := b.graphs.PolicyOf(kg.DefaultGraph)
	if fmt.Sprint(got) != fmt.Sprint(want) || !stored || len(want.Writers) != 1 {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if fmt.Sprint(gotDefault) != fmt.Sprint(wantDefault) || b.graphs.Allowed(eve, kg.DefaultGraph, kg.Read) {
		t.Errorf("got %+v, want %+v", gotDefault, wantDefault)
	}
}

// A graph that changed after the expected revision is not deleted.
func TestDeleteExpectsARevision(t *testing.T) {
	b := newBench(t, policy.Options{})
	g := iri("agent://dora/notes")
	b.must(b.add(dora, g, "one"))
	m := meta(dora)
	m.HasExpected, m.ExpectedRevision = true, b.store.Head().Revision
	b.must(b.add(dora, g, "two"))
	_, err := b.graphs.Delete(context.Background(), m, g)
	wantCode(t, "deleting what changed", err, kg.CodeRevisionConflict)
	stranger := meta(eve)
	stranger.HasExpected, stranger.ExpectedRevision = true, m.ExpectedRevision
	_, err = b.graphs.Delete(context.Background(), stranger, g)
	wantCode(t, "deleting what one does not see", err, kg.CodeGraphNotFound)
	if n := b.count(dora, g); n != 2 {
		t.Errorf("sees %d statements", n)
	}
	m.ExpectedRevision = b.store.Head().Revision
	d, err := b.graphs.Delete(context.Background(), m, g)
	if err != nil || d.Removed != 2 || d.Remaining != 0 {
		t.Errorf("deleting what did not change: %+v, %v", d, err)
	}
}
