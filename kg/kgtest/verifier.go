package kgtest

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"koine/kg"
)

// recordingVerifier is a Verifier that records its calls and responds by a function.
type recordingVerifier struct {
	answer func(ctx context.Context, j kg.Judgement) (kg.Verdict, error)

	mu    sync.Mutex
	asked []asked
}

type asked struct {
	task    string
	changes []string
	before  []string
	after   []string
	at      kg.Revision
}

func (v *recordingVerifier) Verify(ctx context.Context, j kg.Judgement) (kg.Verdict, error) {
	before, err := collect(j.Before.Match(kg.Pattern{}))
	if err != nil {
		return kg.Verdict{}, err
	}
	after, err := collect(j.After.Match(kg.Pattern{}))
	if err != nil {
		return kg.Verdict{}, err
	}
	v.mu.Lock()
	v.asked = append(v.asked, asked{j.Meta.TaskID, changeLines(j.Changes), statementLines(before), quadLines(after), j.Before.Revision()})
	v.mu.Unlock()
	return v.answer(ctx, j)
}

// judgementsOf returns the judgements of one task's update.
func (v *recordingVerifier) judgementsOf(task string) []asked {
	v.mu.Lock()
	defer v.mu.Unlock()
	var out []asked
	for _, a := range v.asked {
		if a.task == task {
			out = append(out, a)
		}
	}
	return out
}

func accept(context.Context, kg.Judgement) (kg.Verdict, error) { return kg.Verdict{}, nil }

// testVerifier proves that every update is verified before any of its changes is visible,
// and that a rejection leaves nothing.
func testVerifier(t *testing.T, f Factory) {
	q, q2 := quad("s", "p", "o"), quad("s", "p", "o2")
	t.Run("is asked about the changes", func(t *testing.T) {
		v := &recordingVerifier{answer: accept}
		b := newBoth(t, f, kg.Options{Governor: kg.Governor{Verifier: v}, Clock: NewClock().Now}) // a trial is of another moment
		b.update(kg.Meta{TaskID: "first"}, add(q, "agent://a"), add(q, "agent://b"))
		before := statementLines(b.model.Match(kg.View{}, kg.Pattern{}))
		b.update(kg.Meta{TaskID: "second"}, replace(q2, ""))
		judged := v.judgementsOf("second")
		if len(judged) != 1 {
			t.Fatalf("asked %d times, want once", len(judged))
		}
		want := asked{"second", changeLines(b.model.Commits[1].Changes), before, quadLines(b.model.Match(kg.View{}, kg.Pattern{})), 1}
		if diff := cmp.Diff(want, judged[0], cmp.AllowUnexported(asked{})); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	rejection := kg.Verdict{Outcome: kg.Rejected, Reason: "Constraint Violation", Details: "no"}
	violation := kg.Verdict{Outcome: kg.Violation, Reason: "Rule", Details: "never"}
	held := kg.Verdict{Outcome: kg.Held, Reason: "Rule", Hold: &kg.Hold{Approvals: 1}}
	broken := errors.New("the verifier is broken")
	for _, row := range []struct {
		name    string
		verdict kg.Verdict
		err     error
		code    kg.Code
	}{
		{"rejects", rejection, nil, ""},
		{"holds", held, nil, ""},
		{"sees a violation", violation, nil, kg.CodeConstraintViolation},
		{"fails", kg.Verdict{}, broken, kg.CodeInternal},
	} {
		for _, dry := range []bool{false, true} {
			t.Run(row.name+map[bool]string{true: ", dry run"}[dry], func(t *testing.T) {
				v := &recordingVerifier{answer: accept}
				b := newBoth(t, f, kg.Options{Governor: kg.Governor{Verifier: v}})
				b.update(kg.Meta{}, add(q, ""))
				v.answer = func(context.Context, kg.Judgement) (kg.Verdict, error) { return row.verdict, row.err }
				meta := kg.Meta{Principal: tester, DryRun: dry, IdempotencyKey: "k"}
				got, err := b.Update(within(t), meta, applyPatches([]kg.Patch{add(q2, "")}))
				if code := kg.CodeOf(err); code != row.code {
					t.Errorf("got %q (%v), want %q", code, err, row.code)
				}
				if err == nil && (!reflect.DeepEqual(got.Verdict, row.verdict) || got.Committed || got.Affected != 0 || got.Revision != 1) {
					t.Errorf("got %+v, want revision 1, nothing affected, and the verdict", got)
				}
				sameEverything(t, b.model, b.Store)
				v.answer = accept
				meta.DryRun = false
				b.update(meta, add(q2, "")) // the key was not used
			})
		}
	}
	t.Run("is asked again when the subject changed", func(t *testing.T) { testVerifiedAgain(t, f, "s", 2) })
	t.Run("is not asked again when another subject changed", func(t *testing.T) { testVerifiedAgain(t, f, "other", 1) })
	t.Run("panics", func(t *testing.T) {
		v := &recordingVerifier{answer: func(context.Context, kg.Judgement) (kg.Verdict, error) { panic("the verifier is broken") }}
		b := newBoth(t, f, kg.Options{Governor: kg.Governor{Verifier: v}})
		_, err := b.Update(within(t), kg.Meta{Principal: tester}, applyPatches([]kg.Patch{add(q, "")}))
		if code := kg.CodeOf(err); code != kg.CodeInternal {
			t.Errorf("got %q (%v), want %q", code, err, kg.CodeInternal)
		}
		v.answer = accept
		b.update(kg.Meta{}, add(q, ""))
		sameEverything(t, b.model, b.Store)
	})
}

// testVerifiedAgain delays the judgement of one update until another one has committed a
// change of the given subject.
func testVerifiedAgain(t *testing.T, f Factory, subject string, times int) {
	asking, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	v := &recordingVerifier{answer: func(ctx context.Context, j kg.Judgement) (kg.Verdict, error) {
		if j.Meta.TaskID == "held up" {
			once.Do(func() {
				close(asking)
				select {
				case <-goOn:
				case <-ctx.Done():
				}
			})
		}
		return kg.Verdict{}, nil
	}}
	store := f(t, kg.Options{Governor: kg.Governor{Verifier: v}})
	ctx := within(t)
	held := make(chan error, 1)
	go func() {
		_, err := store.Update(ctx, kg.Meta{Principal: tester, TaskID: "held up"}, applyPatches([]kg.Patch{add(quad("s", "p", "o"), "")}))
		held <- err
	}()
	select {
	case <-asking:
	case <-ctx.Done():
		t.Fatal("the verifier is not asked")
	}
	if _, err := store.Update(ctx, kg.Meta{Principal: tester}, applyPatches([]kg.Patch{add(quad(subject, "p", "first"), "")})); err != nil {
		t.Fatalf("an update while another one is judged: %v", err)
	}
	close(goOn)
	if err := <-held; err != nil {
		t.Fatalf("Update: %v", err)
	}
	judged := v.judgementsOf("held up")
	if len(judged) != times {
		t.Fatalf("asked %d times, want %d", len(judged), times)
	}
	if last := judged[times-1]; int(last.at) != times-1 || len(last.before) != times-1 {
		t.Errorf("last asked with %d statements at revision %d, want %d", len(last.before), last.at, times-1)
	}
	if last := judged[times-1]; len(last.after) != times {
		t.Errorf("last asked with %q after the update, want %d statements", last.after, times)
	}
}
