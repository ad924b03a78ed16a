package kgtest

import (
	"testing"
	"time"

	"koine/kg"
)

// testValidity tests when an assertion is valid, alone and with other options of a view,
// and compares with the model.
func testValidity(t *testing.T, f Factory) {
	b := newBoth(t, f, kg.Options{})
	const a1, a2 = kg.AgentID("agent://a"), kg.AgentID("agent://b")
	in := func(p kg.Patch, from, until time.Time) kg.Patch {
		p.Validity = kg.TimeSpan{From: from, Until: until}
		return p
	}
	var never time.Time
	begin, end := year(1990), year(2031)
	b.update(kg.Meta{},
		add(quad("s", "p", "always"), a1),
		in(add(quad("s", "p", "from"), a1), begin, never),
		in(add(quad("s", "p", "to"), a1), never, begin),
		in(addWith(quad("s", "p", "both"), a1, 0.9), begin, end),
		in(addWith(quad("s", "p", "either"), a1, 0.9), begin, end),
		in(addWith(quad("s", "p", "either"), a2, 0.3), end, never),
	)
	b.update(kg.Meta{}, in(add(quad("s", "p", "changed"), a1), begin, end))
	b.update(kg.Meta{}, in(add(quad("s", "p", "changed"), a1), end, never))
	b.update(kg.Meta{}, in(add(quad("s", "p", "changed"), a1), end, never)) // unchanged: no commit
	if head := b.Head().Revision; head != 3 {
		t.Errorf("revision %d, want 3: an assertion that says the same, validity included, changes nothing", head)
	}
	for _, row := range []struct {
		name string
		view kg.View
		want []string
	}{
		{"at no time", kg.View{}, []string{"always", "from", "to", "both", "either", "changed"}},
		{"before", kg.View{ValidAt: begin.Add(-time.Millisecond)}, []string{"always", "to"}},
		{"the beginning belongs to it", kg.View{ValidAt: begin}, []string{"always", "from", "both", "either"}},
		{"just before the end", kg.View{ValidAt: end.Add(-time.Millisecond)}, []string{"always", "from", "both", "either"}},
		{"the end does not", kg.View{ValidAt: end}, []string{"always", "from", "either", "changed"}},
		{"then, quite certain", kg.View{ValidAt: end, MinCertainty: 0.5}, []string{"always", "from", "changed"}},
		{"then, by one source", kg.View{ValidAt: begin, Believed: []kg.AgentID{a2}}, nil},
		{"then, by the source whose is valid", kg.View{ValidAt: end, Believed: []kg.AgentID{a2}}, []string{"either"}},
		{"as it was said before", kg.View{ValidAt: begin, At: 2}, []string{"always", "from", "both", "either", "changed"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			compareObjects(t, b, row.view, row.want)
		})
	}
	t.Run("stored to the millisecond, in UTC", func(t *testing.T) {
		zone := time.FixedZone("east", 7200)
		from := time.Date(2020, 5, 4, 3, 2, 1, 999_999_999, zone)
		p := in(add(quad("s", "p", "precise"), a1), from, from.Add(time.Hour))
		if _, err := b.Update(within(t), kg.Meta{Principal: tester}, applyPatches([]kg.Patch{p})); err != nil {
			t.Fatal(err)
		}
		snap := open(t, b.Store, kg.View{Principal: tester})
		defer snap.Close()
		found, err := collect(snap.Match(kg.Pattern{Object: kg.IRI("urn:precise")}))
		if err != nil || len(found) != 1 {
			t.Fatalf("got %v, %v", found, err)
		}
		want := kg.TimeSpan{From: time.Date(2020, 5, 4, 1, 2, 1, 999_000_000, time.UTC), Until: time.Date(2020, 5, 4, 2, 2, 1, 999_000_000, time.UTC)}
		if got := found[0].Assertions[0].Validity; got != want {
			t.Errorf("got %v, want %v", got, want)
		}
	})
	t.Run("refused", func(t *testing.T) {
		for name, row := range map[string]struct {
			span  kg.TimeSpan
			field string
		}{
			"an end before the beginning":           {kg.TimeSpan{From: end, Until: begin}, "validTo"},
			"an end at the beginning":               {kg.TimeSpan{From: begin, Until: begin}, "validTo"},
			"an end in the beginning's millisecond": {kg.TimeSpan{From: begin, Until: begin.Add(999 * time.Microsecond)}, "validTo"},
			"a beginning in the year 10000":         {kg.TimeSpan{From: year(10000)}, "validFrom"},
			"an end before our era":                 {kg.TimeSpan{Until: year(0)}, "validTo"},
		} {
			_, err := b.Update(within(t), kg.Meta{Principal: tester}, applyPatches([]kg.Patch{{Op: kg.Add, Quad: quad("s", "p", "no"), Validity: row.span}}))
			if e := kg.AsError(err); err == nil || e.Code != kg.CodeInvalid || e.Field != row.field {
				t.Errorf("%s: got %v, want INVALID at %s", name, err, row.field)
			}
		}
	})
}
