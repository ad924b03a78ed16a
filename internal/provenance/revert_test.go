package provenance_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"koine/internal/provenance"
	"koine/internal/slowtest"
	"koine/kg"
)

// revert reverts a commit and fails the test if it is blocked.
func (w *world) revert(p kg.Principal, r kg.Revision, force bool) *provenance.Reversal {
	w.Helper()
	done, err := provenance.Revert(slowtest.Context(w), w.Store, meta(p), r, force)
	if err != nil || done.Blocked || !done.Receipt.Committed {
		w.Fatalf("revert of %d: %+v, %v", r, done, err)
	}
	return done
}

func (w *world) want(want ...string) {
	w.Helper()
	got := strings.Split(strings.TrimSpace(w.standing(kg.View{})), "\n")
	if w.standing(kg.View{}) == "" {
		got = nil
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		w.Errorf("there is %q, want %q", got, want)
	}
}

func TestRevert(t *testing.T) {
	w := newWorld(t, kg.Options{})
	w.add("ann", `ex:a ex:p 1 ; ex:q 1 .`)
	first := w.write(principal("ann"), append(w.patches(kg.Add, `ex:a ex:r 1 .`, kg.DefaultGraph), w.patches(kg.Remove, `ex:a ex:q 1 .`, kg.DefaultGraph)...)...)
	w.want("a p 1 /ann", "a r 1 /ann")
	w.revert(principal("ann"), first, false)
	w.want("a p 1 /ann", "a q 1 /ann")
}

// A revert is a commit like any other: it can be reverted, and so on.
func TestRevertOfARevert(t *testing.T) {
	w := newWorld(t, kg.Options{})
	w.add("ann", `ex:a ex:p 1 .`)
	at := w.remove("ann", `ex:a ex:p 1 .`)
	for i := range 6 {
		at = w.revert(principal("ann"), at, false).Receipt.Revision
		if i%2 == 0 {
			w.want("a p 1 /ann")
		} else {
			w.want()
		}
	}
	// The commit that was reverted and restored is reverted once more.
	w.revert(principal("ann"), 2, false)
	w.want("a p 1 /ann")
	// A commit that is undone already has nothing to revert.
	done, err := provenance.Revert(slowtest.Context(t), w.Store, meta(principal("ann")), 2, false)
	if err != nil || done.Blocked || done.Receipt.Committed || done.Receipt.Affected != 0 {
		t.Errorf("got %+v, %v", done, err)
	}
}

// Later changes block the reversal of a commit as a whole, and are reported; with force
// it succeeds.
func TestRevertOfWhatWasOverwritten(t *testing.T) {
	w := newWorld(t, kg.Options{})
	w.add("ann", `ex:a ex:p 1 .`)
	second := w.write(principal("ann"), append(w.patches(kg.Add, `ex:a ex:q 1, 2 .`, kg.DefaultGraph), w.patches(kg.Remove, `ex:a ex:p 1 .`, kg.DefaultGraph)...)...)
	w.remove("ann", `ex:a ex:q 1 .`)
	w.add("ann", `ex:a ex:q 1 .`) // as it was: no conflict
	w.add("bob", `ex:a ex:q 2 .`) // now of two
	head := w.Head()
	done, err := provenance.Revert(slowtest.Context(t), w.Store, meta(root), second, false)
	if err != nil || !done.Blocked || done.Total != 1 || len(done.Conflicts) != 1 || done.Conflicts[0].Quad.Object != kg.Integer(2) || len(done.Conflicts[0].Now) != 2 {
		t.Errorf("got %+v, %v", done, err)
	}
	if w.Head() != head {
		t.Error("something was written")
	}
	// bob may not remove assertions of ann, forced or not.
	for _, force := range []bool{false, true} {
		if _, err := provenance.Revert(slowtest.Context(t), w.Store, meta(principal("bob")), second, force); kg.CodeOf(err) != kg.CodePermissionDenied {
			t.Errorf("got %v", err)
		}
	}
	dry := meta(root)
	dry.DryRun = true
	if done, err := provenance.Revert(slowtest.Context(t), w.Store, dry, second, true); err != nil || done.Blocked || done.Total != 1 || done.Receipt.Committed {
		t.Errorf("got %+v, %v", done, err)
	}
	w.want("a q 1 /ann", "a q 2 /ann /bob")
	forced := w.revert(root, second, true)
	if forced.Total != 1 {
		t.Errorf("got %+v", forced)
	}
	w.want("a p 1 /ann") // given back in ann's name, by root
	w.revert(root, forced.Receipt.Revision, false)
	w.want("a q 1 /ann", "a q 2 /ann /bob")
}

// The listed conflicts are bounded, the counted ones are not.
func TestConflictsAreBounded(t *testing.T) {
	w := newWorld(t, kg.Options{})
	var patches []kg.Patch
	for i := range provenance.MaxConflicts + 1 {
		patches = append(patches, w.patches(kg.Add, fmt.Sprintf(`ex:a ex:p %d .`, i), kg.DefaultGraph)...)
	}
	for _, n := range []int{provenance.MaxConflicts, provenance.MaxConflicts + 1} {
		r := w.write(principal("ann"), patches[:n]...)
		for i := range patches {
			patches[i].Op = kg.Remove
		}
		w.write(principal("ann"), patches[:n]...)
		for i := range patches {
			patches[i].Op = kg.Add
		}
		w.write(principal("bob"), patches[:n]...)
		done, err := provenance.Revert(slowtest.Context(t), w.Store, meta(root), r, false)
		if err != nil || !done.Blocked || done.Total != n || len(done.Conflicts) != provenance.MaxConflicts {
			t.Errorf("of %d: %d of %d, %v", n, len(done.Conflicts), done.Total, err)
		}
		w.revert(root, w.Head().Revision, false)
	}
}

// A commit that the caller does not see in full is not reverted, and its hidden part is
// not revealed.
func TestRevertOfWhatIsHidden(t *testing.T) {
	private := ex("private")
	w := newWorld(t, kg.Options{Governor: kg.Governor{Access: hiding{private}}})
	both := w.write(root, append(w.patches(kg.Add, `ex:a ex:p 1 .`, kg.DefaultGraph), w.patches(kg.Add, `ex:a ex:secret 1 .`, private)...)...)
	only := w.write(root, w.patches(kg.Add, `ex:b ex:secret 1 .`, private)...)
	if _, err := provenance.Revert(slowtest.Context(t), w.Store, meta(principal("ann")), both, true); kg.CodeOf(err) != kg.CodePermissionDenied || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v", err)
	}
	hidden, none := "", ""
	_, err := provenance.Revert(slowtest.Context(t), w.Store, meta(principal("ann")), only, true)
	if kg.CodeOf(err) == kg.CodeNotFound {
		hidden = err.Error()
	}
	_, err = provenance.Revert(slowtest.Context(t), w.Store, meta(principal("ann")), 99, true)
	if kg.CodeOf(err) == kg.CodeNotFound {
		none = err.Error()
	}
	if hidden == "" || strings.Replace(hidden, fmt.Sprint(only), "99", 1) != none {
		t.Errorf("a commit that is hidden is %q, one that is not there %q", hidden, none)
	}
	w.revert(root, both, false)
	w.revert(root, only, false)
	w.want()
}

// Restored assertions have their certainty, validity and provenance.
func TestRevertGivesBackWhatWasSaid(t *testing.T) {
	w := newWorld(t, kg.Options{})
	q := w.turtle(`ex:a ex:p 1 .`, kg.DefaultGraph)[0]
	was := kg.Patch{Op: kg.Add, Quad: q, Certainty: 0.25, HasCertainty: true, Provenance: []byte(`{"page":3}`),
		Validity: kg.TimeSpan{From: time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC), Until: time.Date(2002, 1, 1, 0, 0, 0, 0, time.UTC)}}
	w.write(principal("ann"), was)
	changed := was
	changed.Certainty = 0.75
	r := w.write(principal("ann"), changed)
	w.now = w.now.Add(time.Hour)
	back := w.revert(principal("ann"), r, false)
	for st, err := range w.view(kg.View{}).Match(kg.Pattern{}) {
		a := st.Assertions[0]
		if err != nil || a.Certainty != 0.25 || !a.Validity.Equal(was.Validity) || string(a.Provenance) != `{"page":3}` || a.Revision != back.Receipt.Revision || !a.Time.Equal(w.now) {
			t.Errorf("got %+v, %v", a, err)
		}
	}
}

// koine's own statements are not restored: their own calls do that.
func TestRevertOfWhatIsKoinesOwn(t *testing.T) {
	w := newWorld(t, kg.Options{})
	w.put(`ex:S sh:targetClass ex:C ; sh:class ex:D .`)
	if _, err := provenance.Revert(slowtest.Context(t), w.Store, meta(root), w.Head().Revision, true); kg.CodeOf(err) != kg.CodeReserved {
		t.Errorf("got %v", err)
	}
}

// Statements hidden by a quarantine are visible to a revert.
func TestRevertUnderQuarantine(t *testing.T) {
	w := newWorld(t, kg.Options{})
	r := w.add("ann", `ex:a ex:p 1 .`)
	if _, err := w.quarantines.Set(slowtest.Context(t), w.Store, meta(root), "ann", time.Time{}); err != nil {
		t.Fatal(err)
	}
	w.want()
	w.revert(root, r, false)
	if _, err := w.quarantines.Lift(slowtest.Context(t), w.Store, meta(root), "ann"); err != nil {
		t.Fatal(err)
	}
	w.want()
}

func TestResolve(t *testing.T) {
	w := newWorld(t, kg.Options{})
	w.add("ann", `ex:a ex:p 1, 2, 3 .`)
	quads := w.turtle(`ex:a ex:p 1, 2, 3, 4 .`, kg.DefaultGraph)
	for _, row := range []struct {
		name       string
		keep, drop []kg.Quad
		code       kg.Code
	}{
		{"nothing", quads[:1], nil, kg.CodeInvalid},
		{"too much", nil, make([]kg.Quad, provenance.MaxDropped+1), kg.CodeLimitExceeded},
		{"kept and dropped", quads[:1], quads[:2], kg.CodeInvalid},
		{"kept what does not stand", quads[3:], quads[:1], kg.CodeRevisionConflict},
		{"dropped what does not stand", quads[:1], quads[3:], kg.CodeRevisionConflict},
	} {
		if _, err := provenance.Resolve(slowtest.Context(t), w.Store, meta(principal("ann")), row.keep, row.drop); kg.CodeOf(err) != row.code {
			t.Errorf("%s: got %v", row.name, err)
		}
	}
	w.want("a p 1 /ann", "a p 2 /ann", "a p 3 /ann")
	if r, err := provenance.Resolve(slowtest.Context(t), w.Store, meta(principal("ann")), quads[:1], quads[1:3]); err != nil || r.Affected != 2 {
		t.Errorf("got %+v, %v", r, err)
	}
	w.want("a p 1 /ann")
}
