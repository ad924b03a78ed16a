package shapes_test

import (
	"strings"
	"testing"

	"koine/internal/shapes"
	"koine/internal/slowtest"
	"koine/kg"
)

// hiding is an Access under which only ann reads and writes the graph secret.
type hiding struct{}

var secret = ex("secret")

func (hiding) Allowed(p kg.Principal, graph kg.Term, right kg.Right) bool {
	return graph != secret || p.ID == "agent://ann" || p.HasRole(kg.RoleAdmin)
}

// A verifier sees the caller's view: statements hidden from the caller neither influence the
// verdict nor occur in it.
func TestHiddenGraphsAreNoDataOfAJudgement(t *testing.T) {
	store, set := judgedStore(t, kg.Options{Governor: kg.Governor{Access: hiding{}}})
	put(t, store, personShape+`ex:T a sh:NodeShape ; sh:targetSubjectsOf ex:worksFor ; sh:property [ sh:path ex:worksFor ; sh:class ex:Firm ] .`)
	hidden := parse(t, `ex:zoe a ex:Person ; ex:name "Zoe Secret" . ex:spy a ex:Firm .`, secret)
	if r, err := write(t, store, by("ann"), hidden, nil); err != nil || !r.Committed {
		t.Fatalf("%+v, %v", r, err)
	}
	second := parse(t, `ex:zoe ex:name "Zoe" .`, kg.DefaultGraph)

	// For Ann this is the second name, and the message may mention it.
	dry := by("ann")
	dry.DryRun = true
	r, err := write(t, store, dry, second, nil)
	refused(t, r, err, "has 2 values, at most 1 are allowed")

	// Bob sees no person there: the hidden name neither counts nor occurs.
	dry = by("bob")
	dry.DryRun = true
	r, err = write(t, store, dry, second, nil)
	if err != nil || r.Verdict.Outcome != kg.Accepted || r.Verdict.Details != "" {
		t.Errorf("got %+v, %v", r, err)
	}
	// A node known to be a firm in the hidden graph only is not a firm for Bob; the message
	// equals that for a node that does not exist.
	r, err = write(t, store, by("bob"), parse(t, `ex:bob ex:worksFor ex:spy .`, kg.DefaultGraph), nil)
	refused(t, r, err)
	absent, err := write(t, store, by("bob"), parse(t, `ex:bob ex:worksFor ex:nix .`, kg.DefaultGraph), nil)
	refused(t, absent, err)
	if got := strings.ReplaceAll(r.Verdict.Details, "org/spy", "org/nix"); got != absent.Verdict.Details {
		t.Errorf("%q differs from %q", r.Verdict.Details, absent.Verdict.Details)
	}

	// Report finds a violation across graphs for an agent that reads both.
	if r, err := write(t, store, by("bob"), second, nil); err != nil || !r.Committed {
		t.Fatalf("%+v, %v", r, err)
	}
	for name, want := range map[string]int{"bob": 0, "ann": 1} {
		snapshot, err := store.View(slowtest.Context(t), kg.View{Principal: by(name).Principal})
		if err != nil {
			t.Fatal(err)
		}
		report, err := set.Report(slowtest.Context(t), snapshot, shapes.ReportOptions{})
		snapshot.Close()
		if err != nil || len(report.Findings) != want {
			t.Errorf("%s: %+v, %v", name, report, err)
		}
	}
}

// System graphs are not data: the shapes are not validated by themselves.
func TestOwnGraphsAreNoData(t *testing.T) {
	store, set := judgedStore(t, kg.Options{})
	put(t, store, `ex:S a sh:NodeShape ; sh:targetClass sh:NodeShape ; sh:nodeKind sh:Literal . ex:T a sh:NodeShape ; sh:targetSubjectsOf sh:nodeKind ; sh:closed true .`)
	put(t, store, personShape)
	snapshot, err := store.View(slowtest.Context(t), kg.View{Principal: admin, AllGraphs: true})
	if err != nil {
		t.Fatal(err)
	}
	defer snapshot.Close()
	if r, err := set.Report(slowtest.Context(t), snapshot, shapes.ReportOptions{}); err != nil || r.Judged != 0 {
		t.Errorf("got %+v, %v", r, err)
	}
}
