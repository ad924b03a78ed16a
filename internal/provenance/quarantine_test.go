package provenance_test

import (
	"slices"
	"testing"
	"time"

	"koine/internal/provenance"
	"koine/internal/slowtest"
	"koine/kg"
)

// A preview equals the later effect.
func TestPreviewsOfQuarantine(t *testing.T) {
	private := ex("private")
	w := newWorld(t, kg.Options{Governor: kg.Governor{Access: hiding{private}}})
	w.add("ann", `ex:a ex:p 1, 2, 3 .`)
	w.add("bob", `ex:a ex:p 3, 4 .`)
	w.now = w.now.Add(time.Hour)
	since := w.now
	w.add("ann", `ex:a ex:q 1 .`)
	all := []string{"a p 1 /ann", "a p 2 /ann", "a p 3 /ann /bob", "a p 4 /bob", "a q 1 /ann"}
	dry := meta(root)
	dry.DryRun = true
	preview := func(want provenance.Effect, e *provenance.Effect, err error) {
		t.Helper()
		if err != nil || e.Assertions != want.Assertions || e.Statements != want.Statements || len(e.Examples) != int(want.Statements) || !e.Complete || e.Agent != "agent://ann" {
			t.Errorf("got %+v, %v; want %+v", e, err, want)
		}
	}
	e, err := w.quarantines.Set(slowtest.Context(t), w.Store, dry, "ann", time.Time{})
	preview(provenance.Effect{Assertions: 4, Statements: 3}, e, err)
	e, err = w.quarantines.Set(slowtest.Context(t), w.Store, dry, "ann", since)
	preview(provenance.Effect{Assertions: 1, Statements: 1}, e, err)
	if e.Examples[0].Predicate != ex("q") {
		t.Errorf("got %v", e.Examples)
	}
	w.want(all...)
	if len(w.quarantines.Doubted()) > 0 {
		t.Error("a preview put somebody under quarantine")
	}

	e, err = w.quarantines.Set(slowtest.Context(t), w.Store, meta(root), "ann", since)
	preview(provenance.Effect{Assertions: 1, Statements: 1}, e, err)
	w.want(all[:4]...)
	// Widened: statements that are hidden already do not count again.
	e, err = w.quarantines.Set(slowtest.Context(t), w.Store, meta(root), "ann", time.Time{})
	preview(provenance.Effect{Assertions: 3, Statements: 2}, e, err)
	w.want("a p 3 /bob", "a p 4 /bob")
	// Narrowed: the statements that come back count.
	e, err = w.quarantines.Set(slowtest.Context(t), w.Store, dry, "ann", since)
	preview(provenance.Effect{Assertions: 3, Statements: 2}, e, err)
	e, err = w.quarantines.Lift(slowtest.Context(t), w.Store, dry, "ann")
	preview(provenance.Effect{Assertions: 4, Statements: 3}, e, err)
	w.want("a p 3 /bob", "a p 4 /bob")
	if _, err = w.quarantines.Lift(slowtest.Context(t), w.Store, meta(root), "ann"); err != nil {
		t.Fatal(err)
	}
	w.want(all...)
}

func TestWhoIsPutUnderQuarantineByWhom(t *testing.T) {
	w := newWorld(t, kg.Options{})
	for _, row := range []struct {
		by    kg.Principal
		agent kg.AgentID
		code  kg.Code
	}{
		{principal("ann"), "bob", kg.CodePermissionDenied},
		{root, "", kg.CodeInvalid},
		{root, kg.System, kg.CodeInvalid},
		{root, "a b", kg.CodeInvalid},
	} {
		if _, err := w.quarantines.Set(slowtest.Context(t), w.Store, meta(row.by), row.agent, time.Time{}); kg.CodeOf(err) != row.code {
			t.Errorf("%s about %q: got %v", row.by.ID, row.agent, err)
		}
	}
	if _, err := w.quarantines.Lift(slowtest.Context(t), w.Store, meta(root), "bob"); kg.CodeOf(err) != kg.CodeNotFound {
		t.Errorf("got %v", err)
	}
	if _, err := w.quarantines.List(slowtest.Context(t), w.Store, principal("ann")); kg.CodeOf(err) != kg.CodePermissionDenied {
		t.Errorf("got %v", err)
	}
	since := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, agent := range []kg.AgentID{"cy", "bob"} {
		if _, err := w.quarantines.Set(slowtest.Context(t), w.Store, meta(root), agent, since); err != nil {
			t.Fatal(err)
		}
	}
	list, err := w.quarantines.List(slowtest.Context(t), w.Store, root)
	if err != nil || len(list) != 2 || list[0].Agent != "agent://bob" || !list[0].Since.Equal(since) || list[1].Commit.Principal != "agent://root" {
		t.Errorf("got %+v, %v", list, err)
	}
	var again provenance.Quarantines // as after a start
	if err := again.Load(slowtest.Context(t), w.Store); err != nil || len(again.Doubted()) != 2 {
		t.Errorf("got %v, %v", again.Doubted(), err)
	}
}

// believedBy selects the agents that count: in statements, contradictions and
// explanations.
func TestBelievedBy(t *testing.T) {
	w := newWorld(t, kg.Options{})
	w.add("ann", `ex:a ex:p 1, 2 . ex:p a <http://www.w3.org/2002/07/owl#FunctionalProperty> .`)
	w.add("bob", `ex:a ex:p 2, 3 .`)
	ann, bob := kg.View{Believed: []kg.AgentID{"agent://ann"}}, kg.View{Believed: []kg.AgentID{"agent://bob"}}
	w.expect(ann, "1 a p: a p 1 /ann; a p 2 /ann")
	q := w.turtle(`ex:a ex:p 2 .`, kg.DefaultGraph)[0]
	for _, row := range []struct {
		v       kg.View
		sources []kg.AgentID
	}{
		{kg.View{}, []kg.AgentID{"agent://ann", "agent://bob"}}, {ann, []kg.AgentID{"agent://ann"}}, {bob, []kg.AgentID{"agent://bob"}},
		{kg.View{Believed: []kg.AgentID{"agent://nobody"}}, nil},
	} {
		account, err := provenance.Why(slowtest.Context(t), w.Store, w.view(row.v), q, provenance.DefaultSteps)
		if err != nil || (account == nil) != (row.sources == nil) {
			t.Errorf("%v: got %+v, %v", row.v.Believed, account, err)
			continue
		}
		if account == nil {
			continue
		}
		var got []kg.AgentID
		for i, a := range account.Statement.Assertions {
			got = append(got, a.Source)
			if account.Backing[i] == nil || account.Backing[i].Principal != a.Source {
				t.Errorf("%s is backed by %+v", a.Source, account.Backing[i])
			}
		}
		if !slices.Equal(got, row.sources) || len(account.History) != len(row.sources) || account.More {
			t.Errorf("%v: got %v, %d steps", row.v.Believed, got, len(account.History))
		}
	}
}

// The explanation of a statement goes past its replacement and restoration, and ends at
// its limit.
func TestWhy(t *testing.T) {
	w := newWorld(t, kg.Options{})
	w.add("ann", `ex:a ex:p 1 .`)
	replace := w.patches(kg.Replace, `ex:a ex:p 2 .`, kg.DefaultGraph)
	r := w.write(principal("ann"), replace...)
	w.revert(principal("ann"), r, false)
	one := w.turtle(`ex:a ex:p 1 .`, kg.DefaultGraph)[0]
	account, err := provenance.Why(slowtest.Context(t), w.Store, w.view(kg.View{}), one, provenance.DefaultSteps)
	if err != nil || account.More || len(account.History) != 3 {
		t.Fatalf("got %+v, %v", account, err)
	}
	if s := account.History[1]; s.Op != kg.Remove || s.ReplacedBy.Object != kg.Integer(2) || s.Commit.Revision != r {
		t.Errorf("got %+v", s)
	}
	if account, err = provenance.Why(slowtest.Context(t), w.Store, w.view(kg.View{}), one, 2); err != nil || !account.More || len(account.History) != 2 {
		t.Errorf("got %+v, %v", account, err)
	}
	gone := w.turtle(`ex:a ex:p 2 .`, kg.DefaultGraph)[0]
	if account, err = provenance.Why(slowtest.Context(t), w.Store, w.view(kg.View{}), gone, 2); err != nil || account != nil {
		t.Errorf("got %+v, %v", account, err)
	}
}
