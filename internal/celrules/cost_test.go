package celrules_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"koine/internal/celrules"
	"koine/internal/slowtest"
	"koine/kg"
)

// longText is the largest text that a statement takes, with a head and a tail of its own.
func longText(head, tail string) kg.Term {
	return kg.String(head + strings.Repeat("A", 512<<10-32) + tail)
}

// TestPatternIsPaidFor proves that a pattern costs its instructions times the length of
// the text, however short it is written.
func TestPatternIsPaidFor(t *testing.T) {
	slowtest.Long(t)
	for _, when := range []string{
		`patch.object.matches("[A-Z]{999}b")`,
		`matches(patch.object, "[A-Z]{999}b")`,
		`true || patch.object.matches("[A-Z]{999}b") || patch.object.matches("[A-Z]{999}c")`,
	} {
		s := store(t, parse(t, rule(when+" && patch.subject == ''", "reject")))
		began := time.Now()
		_, err := apply(s, kg.Meta{Principal: caller("ann")}, patch(kg.Add, "urn:s", "urn:p", longText("", "")))
		want := kg.CodeJudgeLimit
		if strings.HasPrefix(when, "true") {
			want = ""
		}
		if kg.CodeOf(err) != want {
			t.Errorf("%s: got %v after %s", when, err, time.Since(began))
		}
	}
	cheap := store(t, parse(t, rule(`patch.object.matches("^https?://[a-z.]+") || patch.object.matches("[0-9]+$")`, "reject")))
	if r, err := apply(cheap, kg.Meta{Principal: caller("ann")}, patch(kg.Add, "urn:s", "urn:p", longText("", "1"))); outcome(r, err) != "rejected" || strings.Contains(r.Verdict.Details, "evaluated") {
		t.Errorf("two light patterns: got %+v, %v", r.Verdict, err)
	}
}

// TestRulesEndInTime proves that the evaluation of one condition on long values ends
// with its caller, and when its time is over, wherever it is.
func TestRulesEndInTime(t *testing.T) {
	slowtest.Long(t)
	const soon = 20 * time.Millisecond
	for _, when := range []string{
		`patch.object.matches("([A-Z]{2,200}-[0-9]{4}){3}")`,
		`[1, 2, 3, 4, 5, 6, 7, 8].all(a, [1, 2, 3, 4, 5, 6, 7, 8].all(b, before.all(c, !(patch.object in before.map(s, s.object)))))`,
		`before.all(a, before.all(b, before.all(c, [[b.object]] != [[c.object + ""]] || true)))`,
		`before.all(a, before.all(b, before.all(c, size(b.object) > 0)))`,
	} {
		for _, row := range []struct {
			name   string
			budget time.Duration
			leaves bool
		}{{"the time is over", soon, false}, {"the caller leaves", time.Hour, true}} {
			set, err := celrules.Parse([]byte(rule(when+" && patch.subject == ''", "reject")), celrules.Options{RuleCost: 1 << 50, JudgementCost: 1 << 60, JudgementTime: row.budget})
			if err != nil {
				t.Fatal(err)
			}
			s := store(t, set)
			var before []kg.Patch
			for i := range 16 {
				before = append(before, patch(kg.Add, "urn:s", "urn:p", longText("", fmt.Sprintf("%08d", i))))
			}
			for _, p := range before { // of this process: not judged
				if _, err := apply(s, kg.Meta{Principal: kg.Principal{ID: "agent://old"}}, p); err != nil {
					t.Fatal(err)
				}
			}
			ctx, leave := context.WithCancel(t.Context())
			if row.leaves {
				time.AfterFunc(soon, leave)
			}
			began := time.Now()
			_, err = s.Update(ctx, kg.Meta{Principal: caller("ann")}, func(tx *kg.Tx) error {
				return tx.Apply(patch(kg.Add, "urn:s", "urn:p", longText("", "00000099")))
			})
			took := time.Since(began)
			if row.leaves && !errors.Is(err, context.Canceled) || !row.leaves && kg.CodeOf(err) != kg.CodeJudgeLimit || took > slowtest.Slack(time.Second) {
				t.Errorf("%s, %s: got %v after %s", when, row.name, err, took)
			}
			leave()
		}
	}
}

// TestValuesThatRulesReadArePaidFor proves that reading, comparing and measuring long
// values takes more steps than short ones.
func TestValuesThatRulesReadArePaidFor(t *testing.T) {
	slowtest.Long(t)
	for _, row := range []struct {
		when    string
		options celrules.Options // enough for short values
	}{
		{`before.size() == 9`, celrules.Options{JudgementCost: 500}},
		{`entity.properties["urn:p"].size() == 9`, celrules.Options{JudgementCost: 500}},
		{`entity.types == ["x"]`, celrules.Options{JudgementCost: 500}},
		{`[[patch.object]] == [[patch.object]] && false`, celrules.Options{RuleCost: 400}},
		{`patch.object in [patch.object] && false`, celrules.Options{RuleCost: 400}},
		{`{"a": patch.object} != {"a": patch.object}`, celrules.Options{RuleCost: 400}},
		{`size(patch.object) == 9`, celrules.Options{RuleCost: 400}},
		{`patch.object.size() == 9`, celrules.Options{RuleCost: 400}},
		{`bytes(patch.object) == b"x"`, celrules.Options{RuleCost: 400}},
		{`patch.object.matches("[B-Z]")`, celrules.Options{RuleCost: 400}},
	} {
		set, err := celrules.Parse([]byte(rule(row.when, "reject")), row.options)
		if err != nil {
			t.Fatal(err)
		}
		for text, want := range map[kg.Term]kg.Code{kg.String("short"): "", longText("", ""): kg.CodeJudgeLimit} {
			s := store(t, set)
			if _, err := apply(s, kg.Meta{Principal: kg.Principal{ID: "agent://old"}}, patch(kg.Add, "urn:s", "urn:p", text), patch(kg.Add, "urn:s", kg.RDFType, text)); err != nil {
				t.Fatal(err)
			}
			if _, err := apply(s, kg.Meta{Principal: caller("ann")}, patch(kg.Add, "urn:s", "urn:p", text)); kg.CodeOf(err) != want {
				t.Errorf("%s of %d bytes: got %v, want %q", row.when, len(text.Value()), err, want)
			}
		}
	}
}

// TestPatternsAreBounded proves the bounds of patterns, at them and past them: of those
// that a rule names when it is read, of others when it is evaluated.
func TestPatternsAreBounded(t *testing.T) {
	if _, err := celrules.Parse([]byte(rule(`patch.object.matches("(a{100}){10}")`, "reject")), celrules.Options{}); err != nil {
		t.Errorf("a pattern of 1,000 characters: %v", err)
	}
	if _, err := celrules.Parse([]byte(rule(`patch.object.matches("`+strings.Repeat("[a-z]{1000}", celrules.MaxPatternInstructions/1000)+`")`, "reject")), celrules.Options{}); err == nil || !strings.Contains(err.Error(), "the limit is 10000") {
		t.Errorf("a pattern of more than %d instructions: got %v", celrules.MaxPatternInstructions, err)
	}
	for n, want := range map[int]string{celrules.MaxPatternBytes: "accepted", celrules.MaxPatternBytes + 1: "rejected"} {
		s := store(t, parse(t, rule(`"x".matches(patch.object)`, "reject")))
		r, err := apply(s, kg.Meta{Principal: caller("ann")}, patch(kg.Add, "urn:s", "urn:p", kg.String(strings.Repeat("a", n))))
		if outcome(r, err) != want || want == "rejected" && !strings.Contains(r.Verdict.Details, "may have at most 256 bytes") {
			t.Errorf("a pattern of %d bytes from the update: got %+v, %v", n, r.Verdict, err)
		}
	}
}
