package shapes_test

import (
	"context"
	"sync"
	"testing"

	"koine/internal/shapes"
	"koine/kg"
)

// overtaken is a verifier that runs a function between its first verdict and the commit.
type overtaken struct {
	*shapes.Set
	once      sync.Once
	meanwhile func()
	asked     int
}

func (o *overtaken) Verify(ctx context.Context, j kg.Judgement) (kg.Verdict, error) {
	v, err := o.Set.Verify(ctx, j)
	if j.Meta.TaskID == "overtaken" {
		o.asked++
		o.once.Do(o.meanwhile)
	}
	return v, err
}

// A valid update is validated again if a dependency of its verdict has changed meanwhile,
// even of subjects that the update does not change.
func TestWhatAVerdictWasMadeFromMayChange(t *testing.T) {
	for _, row := range []struct {
		name, shapes, before, update string
		meanwhile, removed           string // changes between validation and commit
		putMeanwhile                 string
		accepted                     bool
		asked                        int
	}{
		{name: "at the end of a path",
			shapes: `ex:S a sh:NodeShape ; sh:targetSubjectsOf ex:worksFor ; sh:property [ sh:path ( ex:worksFor ex:name ) ; sh:minCount 1 ] .`,
			before: `ex:acme ex:name "Acme" .`, update: `ex:ann ex:worksFor ex:acme .`, removed: `ex:acme ex:name "Acme" .`, asked: 2},
		{name: "against a path",
			shapes: `ex:S a sh:NodeShape ; sh:targetObjectsOf ex:heads ; sh:property [ sh:path [ sh:inversePath ex:heads ] ; sh:maxCount 1 ] .`,
			update: `ex:ann ex:heads ex:lab .`, meanwhile: `ex:bob ex:heads ex:lab .`, asked: 2},
		{name: "above a class",
			shapes: `ex:S a sh:NodeShape ; sh:targetSubjectsOf ex:eats ; sh:property [ sh:path ex:eats ; sh:class ex:Food ] .`,
			before: `ex:pie a ex:Cake . ex:Cake rdfs:subClassOf ex:Food .`, update: `ex:ann ex:eats ex:pie .`, removed: `ex:Cake rdfs:subClassOf ex:Food .`, asked: 2},
		{name: "a target",
			shapes: `ex:S a sh:NodeShape ; sh:targetClass ex:Person ; sh:property [ sh:path ex:age ; sh:datatype xsd:integer ] .`,
			update: `ex:ann ex:age "old" .`, meanwhile: `ex:ann a ex:Person .`, asked: 2},
		{name: "any property of a value",
			shapes: `ex:S a sh:NodeShape ; sh:targetSubjectsOf ex:at ; sh:property [ sh:path ex:at ; sh:node [ sh:closed true ; sh:ignoredProperties ( ex:lat ) ] ] .`,
			update: `ex:ann ex:at ex:here .`, meanwhile: `ex:here ex:lon 3 .`, asked: 2},
		{name: "the shapes", update: `ex:ann a ex:Person .`, shapes: `ex:T a sh:NodeShape ; sh:targetNode ex:none ; sh:class ex:C .`, putMeanwhile: personShape, asked: 2},
		{name: "nothing that it was made from", accepted: true,
			shapes: `ex:S a sh:NodeShape ; sh:targetSubjectsOf ex:worksFor ; sh:property [ sh:path ( ex:worksFor ex:name ) ; sh:minCount 1 ] .`,
			before: `ex:acme ex:name "Acme" .`, update: `ex:ann ex:worksFor ex:acme .`, meanwhile: `ex:acme ex:founded 1949 . ex:zoo ex:name "Zoo" . ex:bob ex:knows ex:ann .`, asked: 1},
		{name: "for the better, after all", accepted: true,
			shapes: `ex:S a sh:NodeShape ; sh:targetSubjectsOf ex:worksFor ; sh:property [ sh:path ( ex:worksFor ex:name ) ; sh:minCount 1 ] .`,
			before: `ex:acme ex:name "Acme" .`, update: `ex:ann ex:worksFor ex:acme .`, meanwhile: `ex:acme ex:name "Acme Inc" .`, asked: 2},
	} {
		t.Run(row.name, func(t *testing.T) {
			o := &overtaken{Set: &shapes.Set{}}
			store, err := kg.Open(t.TempDir(), kg.Options{Governor: kg.Governor{Verifier: o, OnSystemChange: o.Follow}, ReserveBytes: 1})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { store.Close() })
			put(t, store, row.shapes)
			o.meanwhile = func() {
				if row.putMeanwhile != "" {
					put(t, store, row.putMeanwhile)
					return
				}
				r, err := write(t, store, by("bob"), parse(t, row.meanwhile, kg.DefaultGraph), parse(t, row.removed, kg.DefaultGraph))
				if err != nil || !r.Committed {
					t.Errorf("meanwhile: %+v, %v", r, err)
				}
			}
			if row.before != "" {
				accepts(t, store, row.before)
			}
			m := by("ann")
			m.TaskID = "overtaken"
			r, err := write(t, store, m, parse(t, row.update, kg.DefaultGraph), nil)
			if row.accepted {
				if err != nil || !r.Committed {
					t.Errorf("got %+v, %v", r, err)
				}
			} else {
				refused(t, r, err)
			}
			if o.asked != row.asked {
				t.Errorf("it was judged %d times, want %d", o.asked, row.asked)
			}
		})
	}
}
