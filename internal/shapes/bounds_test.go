package shapes_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"koine/internal/shapes"
	"koine/internal/slowtest"
	"koine/kg"
)

func TestTheBudgetOfAJudgement(t *testing.T) {
	store, set := judgedStore(t, kg.Options{})
	put(t, store, `ex:S a sh:NodeShape ; sh:targetClass ex:C ; sh:property [ sh:path ex:p ; sh:datatype xsd:integer ] .`)
	var many []kg.Quad
	for i := range 200 {
		many = append(many, parse(t, fmt.Sprintf(`ex:c%d a ex:C ; ex:p %d .`, i, i), kg.DefaultGraph)...)
	}
	set.Budget = shapes.Budget{Steps: 1_000}
	_, err := write(t, store, by("ann"), many, nil)
	if kg.CodeOf(err) != kg.CodeJudgeLimit || kg.AsError(err).Limit != "shapes.steps" || !strings.Contains(err.Error(), "more than 1000 steps") {
		t.Errorf("got %v", err)
	}
	if r, err := write(t, store, by("ann"), many[:20], nil); err != nil || !r.Committed {
		t.Errorf("got %+v, %v", r, err)
	}
	set.Budget = shapes.Budget{Time: 1}
	_, err = write(t, store, by("ann"), many, nil)
	if kg.CodeOf(err) != kg.CodeJudgeLimit || kg.AsError(err).Limit != "shapes.time" {
		t.Errorf("got %v", err)
	}
	set.Budget = shapes.Budget{}
	if r, err := write(t, store, by("ann"), many, nil); err != nil || !r.Committed {
		t.Errorf("got %+v, %v", r, err)
	}
}

// A validation ends exactly at its budget: the first step beyond it is rejected.
func TestTheLastStepOfABudget(t *testing.T) {
	store, set := judgedStore(t, kg.Options{})
	put(t, store, personShape)
	accepted := func(steps int) bool {
		set.Budget = shapes.Budget{Steps: steps, Time: time.Hour}
		m := by("ann")
		m.DryRun = true
		r, err := write(t, store, m, parse(t, `ex:ann a ex:Person ; ex:name "Ann" .`, kg.DefaultGraph), nil)
		if err != nil && kg.CodeOf(err) != kg.CodeJudgeLimit {
			t.Fatal(err)
		}
		return err == nil && r.Verdict.Outcome == kg.Accepted
	}
	least := 1
	for !accepted(least) {
		if least++; least > 1_000 {
			t.Fatal("one node takes more than 1000 steps")
		}
	}
	if accepted(least - 1) {
		t.Errorf("%d steps are enough, and so is one less", least)
	}
}

func TestAReportEndsAtItsLimits(t *testing.T) {
	store, set := judgedStore(t, kg.Options{})
	var text strings.Builder
	for i := range 12 {
		fmt.Fprintf(&text, "ex:p%d a ex:Person . ", i)
	}
	accepts(t, store, text.String())
	put(t, store, personShape)
	snapshot, err := store.View(slowtest.Context(t), kg.View{Principal: admin})
	if err != nil {
		t.Fatal(err)
	}
	defer snapshot.Close()
	for _, row := range []struct {
		o        shapes.ReportOptions
		found    int
		complete bool
	}{
		{shapes.ReportOptions{}, 12, true},
		{shapes.ReportOptions{Limit: 12}, 12, true},
		{shapes.ReportOptions{Limit: 11}, 11, false},
		{shapes.ReportOptions{Budget: shapes.Budget{Steps: 5}}, 0, false},
		{shapes.ReportOptions{Budget: shapes.Budget{Steps: 40}}, 11, false},
	} {
		r, err := set.Report(slowtest.Context(t), snapshot, row.o)
		if err != nil || len(r.Findings) > row.found || r.Complete && len(r.Findings) != row.found || r.Complete != row.complete {
			t.Errorf("%+v: %d findings, %+v, %v", row.o, len(r.Findings), r, err)
		}
	}
	if _, err := set.Report(slowtest.Context(t), snapshot, shapes.ReportOptions{Limit: shapes.MaxReported + 1}); kg.CodeOf(err) != kg.CodeLimitExceeded {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(slowtest.Context(t))
	cancel()
	if _, err := set.Report(ctx, snapshot, shapes.ReportOptions{}); kg.CodeOf(err) != kg.CodeTimeout {
		t.Errorf("got %v", err)
	}
}

// The details of a verdict are bounded for any number of violations.
func TestDetailsAreBounded(t *testing.T) {
	store, _ := judgedStore(t, kg.Options{})
	put(t, store, personShape)
	var text strings.Builder
	for i := range 25 {
		fmt.Fprintf(&text, "ex:p%d a ex:Person ; ex:name 5, %q@en . ", i, strings.Repeat("long ", 500)+"\n.")
	}
	text.WriteString("ex:x a ex:Person .")
	r, err := write(t, store, by("ann"), parse(t, text.String(), kg.DefaultGraph), nil)
	refused(t, r, err, "\n66 more") // three for each of the 25, one for the last
	if lines := strings.Split(r.Verdict.Details, "\n"); len(lines) != shapes.MaxDetails+1 || len(r.Verdict.Details) > 12_000 {
		t.Errorf("%d lines, %d bytes", len(lines), len(r.Verdict.Details))
	}
}

func TestBoundsOfShapes(t *testing.T) {
	if _, err := shapes.Parse(strings.Repeat(" ", shapes.MaxTextBytes)); err != nil {
		t.Error(err)
	}
	if _, err := shapes.Parse(strings.Repeat(" ", shapes.MaxTextBytes+1)); kg.CodeOf(err) != kg.CodeLimitExceeded {
		t.Errorf("got %v", err)
	}
	nested := func(depth int) string {
		return "ex:S a sh:NodeShape ; " + strings.Repeat("sh:not [ ", depth) + "sh:class ex:C" + strings.Repeat(" ]", depth) + " ."
	}
	wide := func(steps int) string {
		return "ex:S sh:path [ sh:alternativePath ( " + strings.Repeat("ex:p ", steps-1) + ") ] ."
	}
	fanned := func(levels int) string { // each level doubles the dependencies
		var b strings.Builder
		b.WriteString("ex:S0 sh:targetNode ex:a . ")
		for i := range levels {
			fmt.Fprintf(&b, "ex:S%d a sh:NodeShape ; sh:property [ sh:path ex:p ; sh:node ex:S%d ] , [ sh:path ex:q ; sh:node ex:S%d ] . ", i, i+1, i+1)
		}
		fmt.Fprintf(&b, "ex:S%d a sh:NodeShape .", levels)
		return b.String()
	}
	for _, row := range []struct{ at, past, says string }{
		{nested(shapes.MaxNesting), nested(shapes.MaxNesting + 1), "32 deep"},
		{wide(shapes.MaxPathSteps), wide(shapes.MaxPathSteps + 1), "1000 steps"},
		{fanned(12), fanned(13), "has more than 10000 dependencies"}, // 2^13-2 and 2^14-2 reads
	} {
		store, _ := judgedStore(t, kg.Options{})
		put(t, store, row.at)
		quads, err := shapes.Parse(prefixes + row.past)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = shapes.Put(slowtest.Context(t), store, kg.Meta{Principal: admin}, quads); kg.CodeOf(err) != kg.CodeLimitExceeded || !strings.Contains(err.Error(), row.says) {
			t.Errorf("got %v, want %q", err, row.says)
		}
	}
}

func TestBoundOfTheShapesGraph(t *testing.T) {
	slowtest.WithoutRace(t)
	slowtest.Long(t)
	store, _ := judgedStore(t, kg.Options{})
	some := func(from, n int) (quads []kg.Quad) {
		for i := range n {
			quads = append(quads, kg.Quad{Subject: ex(fmt.Sprintf("S%d", from+i)), Predicate: ex("comment"), Object: kg.Integer(int64(i))})
		}
		return quads
	}
	if _, err := shapes.Put(slowtest.Context(t), store, kg.Meta{Principal: admin}, some(0, shapes.MaxStatements)); err != nil {
		t.Fatal(err)
	}
	if _, err := shapes.Put(slowtest.Context(t), store, kg.Meta{Principal: admin}, some(shapes.MaxStatements, 1)); kg.CodeOf(err) != kg.CodeLimitExceeded {
		t.Errorf("got %v", err)
	}
}
