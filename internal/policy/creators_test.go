package policy_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"koine/internal/policy"
	"koine/kg"
)

// The number of graphs that a principal creates is bounded: graphs that it deletes or gives
// away still count, graphs of others or without a creation do not, and a restart changes
// nothing.
func TestGraphsThatOneMakes(t *testing.T) {
	o := policy.Options{MaxGraphs: 3}
	b := newBench(t, o)
	create := func(principal kg.Principal, c policy.Creation) (kg.Term, error) {
		t.Helper()
		p, _, err := b.graphs.Create(context.Background(), meta(principal), c)
		return p.Graph, err
	}
	full := func(when string, p kg.Principal) {
		t.Helper()
		_, err := create(p, policy.Creation{})
		if e := kg.AsError(err); err == nil || e.Code != kg.CodeLimitExceeded || e.Limit != policy.LimitGraphs || e.Hint == "" {
			t.Errorf("%s: got %v (%+v)", when, err, e)
		}
	}
	first, err := create(dora, policy.Creation{})
	b.must(err)
	given, err := create(dora, policy.Creation{Owners: []policy.Grantee{"eve"}})
	b.must(err)
	dry := meta(dora)
	dry.DryRun = true
	_, _, err = b.graphs.Create(context.Background(), dry, policy.Creation{})
	b.must(err) // makes nothing
	again := meta(dora)
	again.IdempotencyKey = "once"
	for range 3 { // one graph
		_, _, err = b.graphs.Create(context.Background(), again, policy.Creation{})
		b.must(err)
	}
	full("at the bound", dora)
	_, _, err = b.graphs.Create(context.Background(), dry, policy.Creation{})
	wantCode(t, "a dry run", err, kg.CodeLimitExceeded)
	_, err = create(dora, policy.Creation{Graph: iri("agent://dora/x")})
	wantCode(t, "a name of its own", err, kg.CodeLimitExceeded)
	b.must(b.add(dora, iri("agent://dora/notes"), "one")) // needs no creation

	_, err = b.graphs.Delete(context.Background(), meta(dora), first)
	b.must(err)
	full("after a deletion", dora)
	b.must(b.set(admin, policy.PolicyUpdate{Graph: given, Owners: []policy.Grantee{"root"}}))
	full("after an amendment", dora)
	for range 3 {
		_, err = create(eve, policy.Creation{})
		b.must(err)
	}
	full("another one", eve)
	for range 5 { // koine itself, and the command line
		_, err = create(local, policy.Creation{})
		b.must(err)
	}

	b.close()
	b.open(o)
	full("after a restart", dora)
	if n := b.graphs.CreatedCount("dora"); n != 3 {
		t.Errorf("dora made %d graphs, want 3", n)
	}
	b.close()
	o.MaxGraphs = 4
	b.open(o)
	_, err = create(dora, policy.Creation{})
	b.must(err)
	full("at a bound that was raised", dora)
	b.close()
	b.open(policy.Options{})
	_, err = create(dora, policy.Creation{})
	b.must(err)
}

// Concurrent requests cannot exceed the bound.
func TestGraphsThatOneMakesAtOnce(t *testing.T) {
	b := newBench(t, policy.Options{MaxGraphs: 5})
	var created atomic.Int32
	var done sync.WaitGroup
	for range 20 {
		done.Go(func() {
			_, _, err := b.graphs.Create(context.Background(), meta(dora), policy.Creation{})
			if err == nil {
				created.Add(1)
			} else if kg.CodeOf(err) != kg.CodeLimitExceeded {
				t.Error(err)
			}
		})
	}
	done.Wait()
	if created.Load() != 5 || b.graphs.CreatedCount(dora.ID) != 5 {
		t.Errorf("%d were made, %d are counted, want 5", created.Load(), b.graphs.CreatedCount(dora.ID))
	}
}
