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

// worst returns a pattern of many instructions, and a text that executes them at each character.
const worst = `sh:pattern "[A-Z]{2,80}-[0-9]{4}"`

func longText(i int) kg.Quad {
	text := fmt.Sprint(i, strings.Repeat("A", 512<<10-16))
	return kg.Quad{Subject: ex("s"), Predicate: ex("p"), Object: kg.String(text), Graph: kg.DefaultGraph}
}

func longTexts(n int) (list []kg.Quad) {
	for i := range n {
		list = append(list, longText(i))
	}
	return list
}

// TestPatternIsPaidFor proves that matching a long text costs steps in proportion to the work.
func TestPatternIsPaidFor(t *testing.T) {
	slowtest.Long(t)
	store, _ := judgedStore(t, kg.Options{})
	put(t, store, `ex:S a sh:NodeShape ; sh:targetSubjectsOf ex:p ; sh:property [ sh:path ex:p ; `+worst+` ] .`)
	began := time.Now()
	_, err := write(t, store, by("ann"), longTexts(8), nil)
	if kg.CodeOf(err) != kg.CodeJudgeLimit {
		t.Errorf("8 texts of 512 KiB: got %v after %s", err, time.Since(began))
	}
}

// TestPatternEndsInTime proves that the match of one long text ends with its context and
// with its time limit.
func TestPatternEndsInTime(t *testing.T) {
	store, set := judgedStore(t, kg.Options{})
	put(t, store, `ex:S a sh:NodeShape ; sh:targetSubjectsOf ex:p ; sh:property [ sh:path ex:p ; sh:pattern "([A-Z]{2,200}-[0-9]{4}){3}" ] .`)
	const soon = 20 * time.Millisecond
	for _, row := range []struct {
		name   string
		budget time.Duration
		leaves bool
		code   kg.Code
	}{
		{"the time is over", soon, false, kg.CodeJudgeLimit},
		{"the caller leaves", time.Hour, true, kg.CodeTimeout},
	} {
		set.Budget = shapes.Budget{Steps: 1 << 40, Time: row.budget}
		ctx, leave := context.WithCancel(slowtest.Context(t))
		if row.leaves {
			time.AfterFunc(soon, leave)
		}
		began := time.Now()
		_, err := store.Update(ctx, by("ann"), func(tx *kg.Tx) error {
			return tx.Apply(kg.Patch{Op: kg.Add, Quad: longText(0)})
		})
		if took := time.Since(began); kg.CodeOf(err) != row.code || took > slowtest.Slack(time.Second) {
			t.Errorf("%s: got %v after %s", row.name, err, took)
		}
		leave()
	}
}

// TestLongValuesArePaidFor proves that reading, testing and comparing a long value costs
// more steps than a short one.
func TestLongValuesArePaidFor(t *testing.T) {
	slowtest.Long(t)
	for _, constraint := range []string{
		`sh:minLength 1`, `sh:maxLength 9`, `sh:datatype xsd:date`, `sh:nodeKind sh:IRI`, `sh:in ( "a" "b" )`, `sh:hasValue "a"`,
		`sh:pattern "a"`, `sh:minInclusive "a"`, `sh:languageIn ( "en" )`, `sh:class ex:C`, `sh:equals ex:q`, `sh:disjoint ex:q`, `sh:lessThan ex:q`,
		`sh:not [ sh:minLength 3 ]`, `sh:or ( [ sh:minLength 3 ] [ sh:minLength 4 ] )`, `sh:node [ sh:closed true ]`,
	} {
		store, set := judgedStore(t, kg.Options{})
		put(t, store, `ex:S a sh:NodeShape ; sh:targetSubjectsOf ex:q ; sh:property [ sh:path ex:p ; `+constraint+` ] .`)
		judge := func(text string) error {
			m := by("ann")
			m.DryRun = true
			quads := parse(t, `ex:s ex:q "b", "c" .`, kg.DefaultGraph)
			q := longText(0)
			q.Object = kg.String(text)
			_, err := write(t, store, m, append(quads, q), nil)
			return err
		}
		set.Budget = shapes.Budget{Steps: 100}
		if err := judge("short"); err != nil {
			t.Errorf("%s of a short text: %v", constraint, err)
		}
		set.Budget = shapes.Budget{Steps: 512}
		if err := judge(strings.Repeat("long", 128<<10)); kg.CodeOf(err) != kg.CodeJudgeLimit {
			t.Errorf("%s of a text of 512 KiB: got %v", constraint, err)
		}
	}
}

// TestHiddenStatementsArePaidFor proves that statements of system graphs that are read
// and skipped cost steps, too.
func TestHiddenStatementsArePaidFor(t *testing.T) {
	store, set := judgedStore(t, kg.Options{})
	put(t, store, `ex:S a sh:NodeShape ; sh:targetSubjectsOf ex:p ; sh:property [ sh:path rdf:type ; sh:maxCount 1000 ] .`)
	own := kg.IRI(kg.OwnGraphPrefix + "test")
	if _, err := store.Update(slowtest.Context(t), kg.Meta{Principal: kg.SystemPrincipal()}, func(tx *kg.Tx) error {
		for i := range 500 {
			if err := tx.ApplyOwn(kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: ex("s"), Predicate: kg.IRI(kg.RDFType), Object: ex(fmt.Sprint("C", i)), Graph: own}}); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	set.Budget = shapes.Budget{Steps: 400}
	m := kg.Meta{Principal: admin}
	if _, err := write(t, store, m, parse(t, `ex:s ex:p "b" .`, kg.DefaultGraph), nil); kg.CodeOf(err) != kg.CodeJudgeLimit {
		t.Errorf("got %v", err)
	}
}
