package shapes_test

import (
	"strings"
	"testing"

	"koine/internal/shapes"
	"koine/kg"
)

// hiding is an Access under which only ann reads and writes the graph secret.
type hiding struct{}

var secret = ex("secret")

func (hiding) Allowed(p kg.Principal, graph kg.Term, right kg.Right) bool {
	return graph != secret || p.ID == "agent://ann" || p.HasRole(kg.RoleAdmin)
}

// A judgement sees what the caller sees: what is hidden from it neither decides
// nor shows.
func TestHiddenGraphsAreNoDataOfAJudgement(t *testing.T) {
	store, set := judgedStore(t, kg.Options{Access: hiding{}})
	put(t, store, personShape+`ex:T a sh:NodeShape ; sh:targetSubjectsOf ex:worksFor ; sh:property [ sh:path ex:worksFor ; sh:class ex:Firm ] .`)
	hidden := parse(t, `ex:zoe a ex:Person ; ex:name "Zoe Secret" . ex:spy a ex:Firm .`, secret)
	if r, err := write(t, store, by("ann"), hidden, nil); err != nil || !r.Committed {
		t.Fatalf("%+v, %v", r, err)
	}
	second := parse(t, `ex:zoe ex:name "Zoe" .`, kg.DefaultGraph)

	// For ann this is the second name, and it may say so.
	dry := by("ann")
	dry.DryRun = true
	r, err := write(t, store, dry, second, nil)
	refused(t, r, err, "has 2 values, at most 1 are allowed")

	// Bob sees no person there: the hidden name does not count, nor does it show.
	dry = by("bob")
	dry.DryRun = true
	r, err = write(t, store, dry, second, nil)
	if err != nil || r.Verdict.Outcome != kg.Accepted || r.Verdict.Details != "" {
		t.Errorf("got %+v, %v", r, err)
	}
	// And what is known to be a firm only there is none for him, in the very words
	// that are said of what is not there at all.
	r, err = write(t, store, by("bob"), parse(t, `ex:bob ex:worksFor ex:spy .`, kg.DefaultGraph), nil)
	refused(t, r, err)
	absent, err := write(t, store, by("bob"), parse(t, `ex:bob ex:worksFor ex:nix .`, kg.DefaultGraph), nil)
	refused(t, absent, err)
	if got := strings.ReplaceAll(r.Verdict.Details, "org/spy", "org/nix"); got != absent.Verdict.Details {
		t.Errorf("%q differs from %q", r.Verdict.Details, absent.Verdict.Details)
	}

	// A violation across graphs is found by a report for somebody who reads both.
	if r, err := write(t, store, by("bob"), second, nil); err != nil || !r.Committed {
		t.Fatalf("%+v, %v", r, err)
	}
	for name, want := range map[string]int{"bob": 0, "ann": 1} {
		snapshot, err := store.View(within(t), kg.View{Principal: by(name).Principal})
		if err != nil {
			t.Fatal(err)
		}
		report, err := set.Report(within(t), snapshot, shapes.ReportOptions{})
		snapshot.Close()
		if err != nil || len(report.Findings) != want {
			t.Errorf("%s: %+v, %v", name, report, err)
		}
	}
}

// Koine's own graphs are no data: the shapes are not judged by themselves.
func TestOwnGraphsAreNoData(t *testing.T) {
	store, set := judgedStore(t, kg.Options{})
	put(t, store, `ex:S a sh:NodeShape ; sh:targetClass sh:NodeShape ; sh:nodeKind sh:Literal . ex:T a sh:NodeShape ; sh:targetSubjectsOf sh:nodeKind ; sh:closed true .`)
	put(t, store, personShape)
	snapshot, err := store.View(within(t), kg.View{Principal: admin, AllGraphs: true})
	if err != nil {
		t.Fatal(err)
	}
	defer snapshot.Close()
	if r, err := set.Report(within(t), snapshot, shapes.ReportOptions{}); err != nil || r.Judged != 0 {
		t.Errorf("got %+v, %v", r, err)
	}
}
